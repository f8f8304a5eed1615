/* Parameters and optimizer state as lists of arrays. */
#include "train/weights.h"

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
