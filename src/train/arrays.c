/* Named arrays to and from safetensors files. */
#include "train/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MISTAKES = 20 /* told of one file; more say no more */ };

void sp_arrays_free(sp_arrays *l)
{
    for (size_t i = 0; l->names && i < l->count; i++)
        free(l->names[i]);
    free(l->tensors);
    free(l->places);
    free(l->names);
    *l = (sp_arrays){ 0 };
}

sp_err sp_arrays_room(sp_arrays *l, size_t room)
{
    *l = (sp_arrays){
        .tensors = calloc(room + 1, sizeof *l->tensors),
        .places = calloc(room + 1, sizeof *l->places),
        .names = calloc(room + 1, sizeof *l->names),
    };
    if (l->tensors && l->places && l->names)
        return SP_OK;
    sp_arrays_free(l);
    return sp_fail(SP_ENOMEM, "out of memory");
}

void sp_arrays_add(sp_arrays *l, const sp_param *p, char *name, float *place)
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

void sp_arrays_add_tensor(sp_arrays *l, const sp_st_tensor *t, float *place)
{
    l->tensors[l->count] = *t;
    l->tensors[l->count].data = place;
    l->places[l->count++] = place;
}

sp_err sp_arrays_save(const char *path, sp_arrays *l, sp_st_stamp *stamp)
{
    static const sp_st_pair pairs[] = { { "format", "pt" } };
    sp_st_content content = { l->tensors, l->count, pairs, 1 };
    sp_err e = sp_st_write(path, &content, stamp);

    sp_arrays_free(l);
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
    return sp_ends_with(name, "num_batches_tracked");
}

static bool is_listed(const sp_arrays *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* What keeps the file from filling the list: a line for each tensor. */
static int compare(const sp_st_file *f, const sp_arrays *l, sp_text *out)
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

static sp_err check(const char *path, const sp_st_file *f, const sp_arrays *l,
                    const char *what)
{
    sp_text list = { 0 };
    int found = compare(f, l, &list);
    sp_err e = sp_text_check(&list);

    if (e == SP_OK && found > 0)
        e = sp_fail(SP_EFORMAT, "%s: of another %s than configured:%s%s", path,
                    what, sp_text_string(&list),
                    found == MISTAKES ? "\n  ..." : "");
    sp_text_free(&list);
    return e;
}

sp_err sp_arrays_check(const char *path, sp_arrays *l, const char *what)
{
    sp_st_file *f = NULL;
    sp_err e = sp_st_open(&f, path);

    if (e == SP_OK)
        e = check(path, f, l, what);
    sp_st_close(f);
    sp_arrays_free(l);
    return e;
}

sp_err sp_arrays_load(const char *path, sp_arrays *l, const char *what)
{
    sp_st_file *f = NULL;
    sp_err e = sp_st_open(&f, path);

    if (e == SP_OK)
        e = check(path, f, l, what);
    for (size_t i = 0; e == SP_OK && i < l->count; i++)
        e = sp_st_load(f, &l->tensors[i], l->places[i]);
    sp_st_close(f);
    sp_arrays_free(l);
    return e;
}
