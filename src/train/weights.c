/* Named arrays to and from safetensors files. */
#include "train/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MISTAKES = 20 /* told of one file; more say no more */ };

/* The arrays that a file holds, or shall hold, and where they live. */
typedef struct array_list {
    sp_st_tensor *tensors;
    float **places;
    char **names; /* those made here */
    size_t count;
} array_list;

static void list_free(array_list *l)
{
    for (size_t i = 0; l->names && i < l->count; i++)
        free(l->names[i]);
    free(l->tensors);
    free(l->places);
    free(l->names);
    *l = (array_list){ 0 };
}

static sp_err list_room(array_list *l, size_t room)
{
    *l = (array_list){
        .tensors = calloc(room + 1, sizeof *l->tensors),
        .places = calloc(room + 1, sizeof *l->places),
        .names = calloc(room + 1, sizeof *l->names),
    };
    if (l->tensors && l->places && l->names)
        return SP_OK;
    list_free(l);
    return sp_fail(SP_ENOMEM, "out of memory");
}

/* Add an array with the shape of `p`; `name` is the list's to free, or NULL
 * for the parameter's own. */
static void list_add(array_list *l, const sp_param *p, char *name, float *place)
{
    sp_st_tensor *t = &l->tensors[l->count];

    t->name = name ? name : p->name;
    t->type = SP_ST_F32;
    t->ndim = p->ndim;
    for (int i = 0; i < p->ndim; i++)
        t->dims[i] = p->dims[i];
    t->data = place;
    l->places[l->count] = place;
    l->names[l->count++] = name;
}

static size_t store_size(const sp_params *p)
{
    size_t n = 0;

    while (sp_params_at(p, (int)n))
        n++;
    return n;
}

static sp_err list_values(array_list *l, const sp_params *p)
{
    SP_TRY(list_room(l, store_size(p)));
    for (int i = 0; sp_params_at(p, i); i++) {
        sp_param *q = sp_params_at(p, i);
        list_add(l, q, NULL, q->value);
    }
    return SP_OK;
}

static sp_err list_local(array_list *l, const sp_params *p,
                         const sp_carry *carry)
{
    size_t states = carry ? (size_t)carry->count : 0;

    SP_TRY(list_room(l, store_size(p) + states));
    for (int i = 0; sp_params_at(p, i); i++) {
        sp_param *q = sp_params_at(p, i);
        if (q->buffer)
            list_add(l, q, NULL, q->value);
    }
    for (size_t i = 0; i < states; i++) {
        const sp_carried *s = &carry->at[i];
        sp_st_tensor *t = &l->tensors[l->count];

        *t = (sp_st_tensor){ .name = s->name,
                             .type = SP_ST_F32,
                             .ndim = 2,
                             .dims = { carry->rows, s->c },
                             .data = s->now };
        l->places[l->count++] = s->now;
    }
    return SP_OK;
}

static sp_err list_state(array_list *l, const sp_params *p, const sp_optim *o)
{
    const sp_optimizer *rule = sp_optim_rule(o);

    SP_TRY(list_room(l, store_size(p) * SP_MAX_STATE));
    for (int i = 0; sp_params_at(p, i); i++) {
        const sp_param *q = sp_params_at(p, i);
        for (int k = 0; !q->buffer && k < rule->state_count; k++) {
            sp_text name = { 0 };
            sp_text_add(&name, "%s.%s", q->name, rule->state_names[k]);
            if (sp_text_check(&name) != SP_OK) {
                list_free(l);
                return SP_ENOMEM;
            }
            list_add(l, q, name.bytes, sp_optim_state(o, q, k));
        }
    }
    return SP_OK;
}

/* Write and free the list. */
static sp_err save(const char *path, array_list *l, sp_st_stamp *stamp)
{
    static const sp_st_pair pairs[] = { { "format", "pt" } };
    sp_st_content content = { l->tensors, l->count, pairs, 1 };
    sp_err e = sp_st_write(path, &content, stamp);

    list_free(l);
    return e;
}

static void add_shape(sp_text *out, const sp_st_tensor *t)
{
    for (int i = 0; i < t->ndim; i++)
        sp_text_add(out, "%s%lld", i ? "x" : "", (long long)t->dims[i]);
    if (t->ndim == 0)
        sp_text_add(out, "single number");
}

static bool same_shape(const sp_st_tensor *a, const sp_st_tensor *b)
{
    if (a->type != b->type || a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

static bool is_counter(const char *name)
{
    static const char end[] = "num_batches_tracked";
    size_t n = strlen(name), k = sizeof end - 1;

    return n >= k && strcmp(name + n - k, end) == 0;
}

static bool is_listed(const array_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* What keeps the file from filling the list: a line for each tensor. */
static int compare(const sp_st_file *f, const array_list *l, sp_text *out)
{
    int found = 0;

    for (size_t i = 0; i < l->count && found < MISTAKES; i++) {
        const sp_st_tensor *want = &l->tensors[i];
        const sp_st_tensor *have = sp_st_find(f, want->name);

        if (have && same_shape(have, want))
            continue;
        found++;
        sp_text_add(out, "\n  %s: ", want->name);
        if (!have) {
            sp_text_add(out, "missing");
            continue;
        }
        sp_text_add(out, "%s of ",
                    have->type == SP_ST_F32 ? "float" : "integer");
        add_shape(out, have);
        sp_text_add(out, ", the model's is ");
        add_shape(out, want);
    }
    for (size_t i = 0; sp_st_at(f, i) && found < MISTAKES; i++) {
        const char *name = sp_st_at(f, i)->name;

        if (!is_counter(name) && !is_listed(l, name)) {
            found++;
            sp_text_add(out, "\n  %s: not in the model", name);
        }
    }
    return found;
}

static sp_err check(const char *path, const sp_st_file *f, const array_list *l)
{
    sp_text list = { 0 };
    int found = compare(f, l, &list);
    sp_err e = sp_text_check(&list);

    if (e == SP_OK && found > 0)
        e = sp_fail(SP_EFORMAT, "%s: of another model than configured:%s%s",
                    path, sp_text_string(&list),
                    found == MISTAKES ? "\n  ..." : "");
    sp_text_free(&list);
    return e;
}

/* Read and free the list. */
static sp_err load(const char *path, array_list *l)
{
    sp_st_file *f = NULL;
    sp_err e = sp_st_open(&f, path);

    if (e == SP_OK)
        e = check(path, f, l);
    for (size_t i = 0; e == SP_OK && i < l->count; i++)
        e = sp_st_load(f, &l->tensors[i], l->places[i]);
    sp_st_close(f);
    list_free(l);
    return e;
}

sp_err sp_weights_save(const char *path, const sp_params *p, sp_st_stamp *stamp)
{
    array_list l;

    SP_TRY(list_values(&l, p));
    return save(path, &l, stamp);
}

sp_err sp_weights_load(const char *path, sp_params *p)
{
    array_list l;

    SP_TRY(list_values(&l, p));
    return load(path, &l);
}

sp_err sp_local_save(const char *path, const sp_params *p,
                     const sp_carry *carry, sp_st_stamp *stamp)
{
    array_list l;

    SP_TRY(list_local(&l, p, carry));
    return save(path, &l, stamp);
}

sp_err sp_local_load(const char *path, sp_params *p, sp_carry *carry)
{
    array_list l;

    SP_TRY(list_local(&l, p, carry));
    return load(path, &l);
}

sp_err sp_optim_save(const char *path, const sp_params *p, const sp_optim *o,
                     sp_st_stamp *stamp)
{
    array_list l;

    SP_TRY(list_state(&l, p, o));
    return save(path, &l, stamp);
}

sp_err sp_optim_load(const char *path, const sp_params *p, sp_optim *o)
{
    array_list l;

    SP_TRY(list_state(&l, p, o));
    return load(path, &l);
}
