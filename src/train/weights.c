/* Parameters and optimizer state as lists of arrays. */
#include "train/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/arrays.h"

static sp_err list_values(sp_arrays *l, const sp_params *p)
{
    SP_TRY(sp_arrays_room(l, (size_t)sp_params_size(p)));
    for (int i = 0; sp_params_at(p, i); i++) {
        sp_param *q = sp_params_at(p, i);
        sp_arrays_add(l, q, NULL, q->value);
    }
    return SP_OK;
}

static sp_err list_state(sp_arrays *l, const sp_params *p, const sp_optim *o)
{
    const sp_optimizer *rule = sp_optim_rule(o);

    SP_TRY(sp_arrays_room(l, (size_t)sp_params_size(p) * SP_MAX_STATE));
    for (int i = 0; sp_params_at(p, i); i++) {
        const sp_param *q = sp_params_at(p, i);
        for (int k = 0; !q->buffer && k < rule->state_count; k++) {
            sp_text name = { 0 };
            sp_text_add(&name, "%s.%s", q->name, rule->state_names[k]);
            if (sp_text_check(&name) != SP_OK) {
                sp_arrays_free(l);
                return SP_ENOMEM;
            }
            sp_arrays_add(l, q, name.bytes, sp_optim_state(o, q, k));
        }
    }
    return SP_OK;
}

sp_err sp_weights_save(const char *path, const sp_params *p, sp_st_stamp *stamp)
{
    sp_arrays l;

    SP_TRY(list_values(&l, p));
    return sp_arrays_save(path, &l, stamp);
}

sp_err sp_weights_load(const char *path, sp_params *p)
{
    sp_arrays l;

    SP_TRY(list_values(&l, p));
    return sp_arrays_load(path, &l, "model");
}

sp_err sp_weights_check(const char *path, const sp_params *p)
{
    sp_arrays l;

    SP_TRY(list_values(&l, p));
    return sp_arrays_check(path, &l, "model");
}

/* Whether a file has NAME_u.weight and NAME_v.weight, as layers of low rank
 * call their factors. */
static bool has_factors(const sp_st_file *f)
{
    static const char end[] = "_u.weight";
    size_t n = sizeof end - 1;

    for (size_t i = 0; sp_st_at(f, i); i++) {
        const char *name = sp_st_at(f, i)->name;
        size_t size = strlen(name);
        char *other = size > n ? sp_copy(name, size) : NULL;
        bool both = other && strcmp(name + size - n, end) == 0;

        if (both) {
            other[size - n + 1] = 'v';
            both = sp_st_find(f, other);
        }
        free(other);
        if (both)
            return true;
    }
    return false;
}

sp_err sp_weights_init(const char *path, sp_params *p, bool low)
{
    sp_err e = sp_weights_load(path, p);
    char *text = NULL;
    sp_st_file *f = NULL;

    if (e != SP_EFORMAT)
        return e;
    text = sp_error_keep();
    if (text && sp_st_open(&f, path) != SP_OK)
        sp_fail(e,
                "%s; of .npz, .pth and others' files `sprat import` makes what "
                "model.init takes",
                text);
    else if (text && !low && has_factors(f))
        sp_fail(e,
                "%s\nit holds factors of low rank: they need "
                "lowrank.name=pufferfish, lowrank.warmup_epochs=0, and the "
                "lowrank.rank_ratio, full and gates of the run that they are "
                "from",
                text);
    else if (text) /* opening may have put its own in place */
        sp_fail(e, "%s", text);
    sp_st_close(f);
    free(text);
    return e;
}

sp_err sp_optim_save(const char *path, const sp_params *p, const sp_optim *o,
                     sp_st_stamp *stamp)
{
    sp_arrays l;

    SP_TRY(list_state(&l, p, o));
    return sp_arrays_save(path, &l, stamp);
}

sp_err sp_optim_load(const char *path, const sp_params *p, sp_optim *o)
{
    sp_arrays l;

    SP_TRY(list_state(&l, p, o));
    return sp_arrays_load(path, &l, "model");
}
