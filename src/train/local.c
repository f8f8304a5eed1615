/* A rank's own arrays, listed from a session. */
#include "train/local.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/arrays.h"

size_t sp_kept_size(const sp_kept *k)
{
    size_t n = 1;

    for (int i = 0; i < k->tensor.ndim; i++)
        n *= (size_t)k->tensor.dims[i];
    return n;
}

static sp_err keep(sp_kept *k, const sp_param *p, size_t n, const char *name)
{
    sp_text text = { 0 };

    sp_text_add(&text, "%s.%s", p->name, name);
    SP_TRY(sp_text_check(&text));
    k->name = text.bytes;
    k->tensor = (sp_st_tensor){
        .name = k->name, .type = SP_ST_F32, .ndim = 1, .dims = { (int64_t)n }
    };
    if (n != p->count)
        return SP_OK;
    k->tensor.ndim = p->ndim;
    for (int i = 0; i < p->ndim; i++)
        k->tensor.dims[i] = p->dims[i];
    return SP_OK;
}

/* Count what the exchange keeps; list it, too, where there is room for it. */
static sp_err list_kept(const sp_session *s, sp_kept *room, size_t *count)
{
    *count = 0;
    for (int i = 0; s->exchange && sp_params_at(s->params, i); i++) {
        const sp_param *p = sp_params_at(s->params, i);

        for (int k = 0; !p->buffer && k < SP_MAX_SLOT_STATE; k++) {
            const char *name;
            size_t n;
            bool adds;
            float *data =
                sp_exchange_state(s->exchange, p, k, &n, &name, &adds);

            if (!data)
                continue;
            if (room) {
                SP_TRY(keep(&room[*count], p, n, name));
                room[*count].data = data;
                room[*count].adds = adds;
            }
            ++*count;
        }
    }
    return SP_OK;
}

sp_err sp_local_open(sp_local *l, const sp_session *s, bool carry)
{
    size_t first, rows;
    sp_err e;

    sp_share((size_t)s->set.train->batch, sp_comm_rank(s->comm),
             sp_comm_ranks(s->comm), &first, &rows);
    *l = (sp_local){ .params = s->params,
                     .carry = carry ? &s->train.carry : NULL,
                     .rows = (int)rows };
    SP_TRY(list_kept(s, NULL, &l->kept_count));
    l->kept = calloc(l->kept_count + 1, sizeof *l->kept);
    e = l->kept ? list_kept(s, l->kept, &l->kept_count)
                : sp_fail(SP_ENOMEM, "out of memory");
    if (e != SP_OK)
        sp_local_close(l);
    return e;
}

void sp_local_close(sp_local *l)
{
    for (size_t i = 0; l->kept && i < l->kept_count; i++)
        free(l->kept[i].name);
    free(l->kept);
    *l = (sp_local){ 0 };
}

static sp_err list(sp_arrays *a, const sp_local *l)
{
    int states = l->carry ? l->carry->count : 0;
    int values = sp_params_size(l->params);

    SP_TRY(sp_arrays_room(a, (size_t)(values + states) + l->kept_count));
    for (int i = 0; i < values; i++) {
        sp_param *q = sp_params_at(l->params, i);
        if (q->buffer)
            sp_arrays_add(a, q, NULL, q->value);
    }
    for (int i = 0; i < states; i++) {
        const sp_carried *s = &l->carry->at[i];
        sp_st_tensor t = { .name = s->name,
                           .type = SP_ST_F32,
                           .ndim = 2,
                           .dims = { l->rows, s->c } };

        sp_arrays_add_tensor(a, &t, s->now);
    }
    for (size_t i = 0; i < l->kept_count; i++)
        sp_arrays_add_tensor(a, &l->kept[i].tensor, l->kept[i].data);
    return SP_OK;
}

sp_err sp_local_save(const char *path, const sp_local *l, sp_st_stamp *stamp)
{
    sp_arrays a;

    SP_TRY(list(&a, l));
    return sp_arrays_save(path, &a, stamp);
}

sp_err sp_local_load(const char *path, const sp_local *l)
{
    sp_arrays a;

    SP_TRY(list(&a, l));
    return sp_arrays_load(path, &a, "model, batch or compressor");
}
