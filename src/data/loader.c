/* One interface to the loaders of images and of text. */
#include "data/loader.h"

#include <limits.h>
#include <stdlib.h>

#include "data/image_loader.h"
#include "data/text_loader.h"

/* One of the two is NULL. */
struct sp_loader {
    sp_image_loader *image;
    sp_text_loader *text;
};

void sp_share(size_t rows, int rank, int ranks, size_t *first, size_t *n)
{
    size_t r = (size_t)rank, size = (size_t)ranks;

    *first = rows * r / size;
    *n = rows * (r + 1) / size - *first;
}

sp_err sp_loader_new(sp_loader **out, const sp_loader_opt *opt)
{
    sp_loader_opt o = *opt;
    sp_loader *l;
    sp_err err;

    if (o.ranks == 0)
        o.ranks = 1;
    if (o.batch < 1 || o.batch > INT_MAX || o.ranks < 1 || o.rank < 0 ||
        o.rank >= o.ranks)
        return sp_fail(SP_EARG,
                       "batches: %zu rows, rank %d of %d: out of range",
                       o.batch, o.rank, o.ranks);
    l = calloc(1, sizeof *l);
    if (!l)
        return sp_fail(SP_ENOMEM, "batches: out of memory");
    err = o.data->info.text ? sp_text_loader_new(&l->text, &o)
                            : sp_image_loader_new(&l->image, &o);
    if (err) {
        free(l);
        return err;
    }
    *out = l;
    return SP_OK;
}

void sp_loader_free(sp_loader *l)
{
    if (!l)
        return;
    sp_image_loader_free(l->image);
    sp_text_loader_free(l->text);
    free(l);
}

size_t sp_loader_batches(const sp_loader *l)
{
    return l->text ? sp_text_loader_batches(l->text)
                   : sp_image_loader_batches(l->image);
}

size_t sp_loader_capacity(const sp_loader *l)
{
    return l->text ? sp_text_loader_capacity(l->text)
                   : sp_image_loader_capacity(l->image);
}

sp_err sp_loader_seek(sp_loader *l, int epoch, size_t index)
{
    if (epoch < 0 || index > sp_loader_batches(l))
        return sp_fail(SP_EARG,
                       "batches: there is no batch %zu in epoch %d; an epoch "
                       "has %zu",
                       index, epoch, sp_loader_batches(l));
    if (l->text)
        sp_text_loader_seek(l->text, epoch, index);
    else
        sp_image_loader_seek(l->image, epoch, index);
    return SP_OK;
}

sp_err sp_loader_next(sp_loader *l, sp_batch *batch)
{
    if (l->image)
        return sp_image_loader_next(l->image, batch);
    sp_text_loader_next(l->text, batch);
    return SP_OK;
}
