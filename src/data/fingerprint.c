/* Every part of a data set in one number each. */
#include "data/fingerprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"

static const char *const split_names[SP_SPLITS] = {
    [SP_TRAIN] = "training split",
    [SP_TEST] = "test split",
    [SP_VALID] = "validation split",
};

static uint64_t of_names(const sp_data_info *info)
{
    uint64_t sum = 0;

    for (int i = 0; info->class_names && i < info->classes; i++)
        sum = sp_fingerprint(sum, info->class_names[i],
                             strlen(info->class_names[i]));
    return sum;
}

static size_t image_bytes(const sp_data_info *info)
{
    return (size_t)info->h * (size_t)info->w * (size_t)info->c;
}

/* Image number i of `shown`, evenly spread over all `count`. */
static size_t spread(size_t i, size_t shown, size_t count)
{
    return shown < 2 ? i
                     : (size_t)((double)i * (double)(count - 1) /
                                (double)(shown - 1));
}

static sp_err of_images(const sp_dataset *d, sp_split split, uint64_t *sum)
{
    size_t bytes = image_bytes(&d->info), count = d->info.count[split];
    size_t shown = count;
    uint8_t *image = malloc(bytes);
    sp_err e = image ? SP_OK : sp_fail(SP_ENOMEM, "an image: out of memory");

    if (count > SP_FINGERPRINT_BYTES / bytes && shown > SP_FINGERPRINT_IMAGES)
        shown = SP_FINGERPRINT_IMAGES;
    for (size_t i = 0; e == SP_OK && i < shown; i++) {
        int label = 0;

        e = d->set->read(d->state, split, spread(i, shown, count), image,
                         &label);
        *sum = sp_fingerprint(*sum, image, bytes);
        *sum = sp_fingerprint(*sum, &label, sizeof label);
    }
    free(image);
    return e;
}

static void add(void *sum, const void *bytes, size_t n)
{
    uint64_t *s = sum;

    *s = sp_fingerprint(*s, bytes, n);
}

static sp_err of_split(const sp_dataset *d, sp_split split, uint64_t *sum)
{
    size_t count = d->info.count[split];

    *sum = 0;
    if (count == 0)
        return SP_OK;
    if (d->set->fingerprint)
        return d->set->fingerprint(d->state, split, add, sum);
    if (!d->info.text)
        return of_images(d, split, sum);
    *sum = sp_fingerprint(0, d->set->tokens(d->state, split),
                          count * sizeof(int32_t));
    return SP_OK;
}

sp_err sp_dataset_fingerprint(const sp_dataset *d, sp_text *out)
{
    const sp_data_info *i = &d->info;

    sp_text_add(out, "set: %s\n", d->set->entry.name);
    if (i->text)
        sp_text_add(out, "kind: text of %d %s\n", i->classes,
                    i->chars ? "characters" : "words");
    else
        sp_text_add(out, "kind: images of %dx%dx%d in %d classes\n", i->h, i->w,
                    i->c, i->classes);
    sp_text_add(out, "%s: %016" PRIx64 "\n", i->text ? "words" : "class names",
                of_names(i));
    for (int s = 0; s < SP_SPLITS; s++) {
        uint64_t sum;

        SP_TRY(of_split(d, (sp_split)s, &sum));
        sp_text_add(out, "%s: %zu %s, fingerprint %016" PRIx64 "\n",
                    split_names[s], i->count[s], i->text ? "tokens" : "images",
                    sum);
    }
    return sp_text_check(out);
}
