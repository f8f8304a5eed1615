/* From what a pickle leaves to a list of tensors. */
#include <stdlib.h>
#include <string.h>

#include "convert/pickle_value.h"

typedef sp_pickle_value value;

/* Under which names checkpoints hold their weights, the most telling first. */
static const char *const usual[] = { "state_dict", "model_state_dict", "model",
                                     "net", "weights" };

static sp_err wrong(const char *path, const char *name, const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: tensor %.100s: %s", path, name, what);
}

/* The item at that place of a tuple or the like, if it is of that kind; else
 * NULL. */
static const value *item(const value *v, size_t i, sp_pickle_kind kind)
{
    if (i >= v->items.count || v->items.at[i]->kind != kind)
        return NULL;
    return v->items.at[i];
}

/* Whole numbers of a tuple, none negative; their count, -1 for others. */
static int read_sizes(const value *v, int64_t out[SP_PICKLE_DIMS])
{
    if (!v || v->items.count > SP_PICKLE_DIMS)
        return -1;
    for (size_t i = 0; i < v->items.count; i++) {
        const value *n = item(v, i, SP_PICKLE_INT);
        if (!n || n->integer < 0)
            return -1;
        out[i] = n->integer;
    }
    return (int)v->items.count;
}

static sp_err read_storage(const char *path, const value *s, sp_pickled *t)
{
    static const char module[] = "torch ";
    const value *class = item(s, 1, SP_PICKLE_GLOBAL);
    const value *key = item(s, 2, SP_PICKLE_TEXT);
    const value *numbers = item(s, 4, SP_PICKLE_INT);

    if (!class || !key || !numbers || numbers->integer < 0)
        return wrong(path, t->name,
                     "its storage is not described as PyTorch does");
    if (strncmp(class->text, module, sizeof module - 1) == 0)
        t->type = sp_numeric_storage(class->text + sizeof module - 1);
    if (!t->type)
        return sp_fail(SP_EFORMAT,
                       "%s: tensor %.100s: its storage is a %.100s, which is "
                       "not read: convert it to float32",
                       path, t->name, class->text);
    t->storage = key->text;
    t->numbers = numbers->integer;
    return SP_OK;
}

/* Whether all elements lie within the storage. */
static bool lies_within(const sp_pickled *t)
{
    int64_t last = t->offset;

    for (int i = 0; i < t->ndim; i++)
        if (t->dims[i] == 0)
            return true;
    for (int i = 0; i < t->ndim; i++) {
        int64_t steps = t->dims[i] - 1, stride = t->strides[i];
        if (last >= t->numbers ||
            (stride > 0 && steps > (t->numbers - 1 - last) / stride))
            return false;
        last += steps * stride;
    }
    return last < t->numbers;
}

static sp_err read_tensor(const char *path, const value *v, sp_pickled *t)
{
    const value *storage = item(v, 0, SP_PICKLE_STORAGE);
    const value *offset = item(v, 1, SP_PICKLE_INT);
    int strides;

    if (!storage || !offset || offset->integer < 0)
        return wrong(path, t->name, "is not rebuilt as PyTorch does");
    SP_TRY(read_storage(path, storage, t));
    t->offset = offset->integer;
    t->ndim = read_sizes(item(v, 2, SP_PICKLE_TUPLE), t->dims);
    strides = read_sizes(item(v, 3, SP_PICKLE_TUPLE), t->strides);
    if (t->ndim < 0 || strides != t->ndim)
        return wrong(path, t->name,
                     "its sizes and strides are not those of at most 8 "
                     "dimensions");
    if (!lies_within(t))
        return wrong(path, t->name, "does not lie within its storage");
    return SP_OK;
}

static size_t count_tensors(const value *dict)
{
    size_t n = 0;

    for (size_t i = 1; dict->kind == SP_PICKLE_DICT && i < dict->items.count;
         i += 2)
        n += dict->items.at[i]->kind == SP_PICKLE_TENSOR &&
             dict->items.at[i - 1]->kind == SP_PICKLE_TEXT;
    return n;
}

/* The value of a key, or NULL. */
static const value *find(const value *dict, const char *key)
{
    for (size_t i = 1; i < dict->items.count; i += 2) {
        const value *k = dict->items.at[i - 1];
        if (k->kind == SP_PICKLE_TEXT && strcmp(k->text, key) == 0)
            return dict->items.at[i];
    }
    return NULL;
}

/* The dictionary that holds the weights, or NULL. */
static const value *find_weights(const value *root)
{
    if (root->kind != SP_PICKLE_DICT || count_tensors(root) > 0)
        return root->kind == SP_PICKLE_DICT ? root : NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const value *v = find(root, usual[i]);
        if (v && count_tensors(v) > 0)
            return v;
    }
    return NULL;
}

sp_err sp_pickle_read(const char *path, const uint8_t *bytes, size_t size,
                      sp_arena *arena, sp_pickled **out, size_t *count)
{
    const value *dict;
    value *root;
    sp_pickled *list;
    size_t n = 0;

    SP_TRY(sp_pickle_run(path, bytes, size, arena, &root));
    dict = find_weights(root);
    if (!dict)
        return sp_fail(SP_EFORMAT,
                       "%s: is no dictionary of tensors, nor has one under "
                       "\"state_dict\"; save one: "
                       "torch.save(model.state_dict(), FILE)",
                       path);
    list = sp_arena_alloc(arena, count_tensors(dict) * sizeof *list + 1);
    if (!list)
        return sp_fail(SP_ENOMEM, "%s: out of memory", path);
    for (size_t i = 1; i < dict->items.count; i += 2) {
        const value *key = dict->items.at[i - 1], *v = dict->items.at[i];
        if (v->kind != SP_PICKLE_TENSOR || key->kind != SP_PICKLE_TEXT)
            continue;
        list[n].name = key->text;
        SP_TRY(read_tensor(path, v, &list[n++]));
    }
    *out = list;
    *count = n;
    return SP_OK;
}
