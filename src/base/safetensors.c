#include "base/safetensors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/little.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian, and nothing here swaps bytes"
#endif

enum { MOST_HEADER = 1 << 22 }; /* about 40,000 tensors */

static const struct {
    const char *name;
    uint64_t bytes;
} types[] = {
    [SP_ST_F32] = { "F32", 4 }, [SP_ST_I64] = { "I64", 8 },
    [SP_ST_F16] = { "F16", 2 }, [SP_ST_BF16] = { "BF16", 2 },
    [SP_ST_F64] = { "F64", 8 }, [SP_ST_I32] = { "I32", 4 },
    [SP_ST_U8] = { "U8", 1 },   [SP_ST_BOOL] = { "BOOL", 1 },
};

enum { OUR_TYPES = SP_ST_I64 + 1, TYPES = sizeof types / sizeof *types };

struct sp_st_file {
    int fd;
    int types; /* how many are read, from the first */
    char *path;
    uint64_t data, size; /* where the arrays begin and end */
    sp_json_doc *header;
    sp_st_tensor *tensors; /* in the order of their data */
    const sp_st_tensor **by_name;
    size_t count;
};

/* Bytes of a tensor; false if they do not fit 63 bits or a size is negative.
 */
static bool bytes_of(const sp_st_tensor *t, uint64_t *bytes)
{
    uint64_t n = types[t->type].bytes;
    bool empty = false;

    for (int i = 0; i < t->ndim; i++) {
        if (t->dims[i] < 0)
            return false;
        empty |= t->dims[i] == 0;
    }
    for (int i = 0; i < t->ndim && !empty; i++) {
        if (n > INT64_MAX / (uint64_t)t->dims[i])
            return false;
        n *= (uint64_t)t->dims[i];
    }
    *bytes = empty ? 0 : n;
    return true;
}

/* ---- Writing ----------------------------------------------------------- */

static bool is_utf8(const char *s)
{
    size_t n = strlen(s), length;

    for (size_t i = 0; i < n; i += length) {
        length = sp_utf8(s + i, n - i);
        if (length == 0)
            return false;
    }
    return n > 0;
}

static sp_err put_tensor(sp_json *j, const char *path, const sp_st_tensor *t,
                         uint64_t *offset)
{
    uint64_t bytes;

    if (!t->name || !is_utf8(t->name))
        return sp_fail(SP_EARG,
                       "%s: a tensor's name is empty or not UTF-8 text", path);
    if (t->ndim < 0 || t->ndim > SP_ST_DIMS || !bytes_of(t, &bytes) ||
        bytes > INT64_MAX - *offset)
        return sp_fail(SP_EARG, "%s: tensor %s: shape out of range", path,
                       t->name);
    sp_json_open(j, t->name);
    sp_json_text(j, "dtype", types[t->type].name);
    sp_json_list(j, "shape");
    for (int i = 0; i < t->ndim; i++)
        sp_json_int(j, NULL, t->dims[i]);
    sp_json_close(j);
    sp_json_list(j, "data_offsets");
    sp_json_int(j, NULL, (int64_t)*offset);
    *offset += bytes;
    sp_json_int(j, NULL, (int64_t)*offset);
    sp_json_close(j);
    sp_json_close(j);
    return SP_OK;
}

/* The header without its padding. */
static sp_err put_header(sp_json *j, const char *path, const sp_st_content *c)
{
    uint64_t offset = 0;

    sp_json_open(j, NULL);
    if (c->pair_count > 0) {
        sp_json_open(j, "__metadata__");
        for (size_t i = 0; i < c->pair_count; i++)
            sp_json_text(j, c->pairs[i].key, c->pairs[i].value);
        sp_json_close(j);
    }
    for (size_t i = 0; i < c->count; i++)
        SP_TRY(put_tensor(j, path, &c->tensors[i], &offset));
    sp_json_close(j);
    return SP_OK;
}

/* Names that stand twice make a header that no one can read. */
static sp_err check_header(const char *path, const char *text, size_t size)
{
    sp_json_doc *doc;
    sp_err e;

    if (size > MOST_HEADER)
        return sp_fail(SP_EARG,
                       "%s: the header would have %zu bytes; at most "
                       "%d are read back",
                       path, size, MOST_HEADER);
    e = sp_json_parse(&doc, path, text, size);
    if (e == SP_OK)
        sp_json_doc_free(doc);
    return e == SP_EFORMAT ? SP_EARG : e;
}

static sp_err put_part(sp_file_out *f, sp_hash *h, const void *bytes, size_t n)
{
    sp_hash_add(h, bytes, n);
    return sp_file_put(f, bytes, n);
}

static sp_err put_all(sp_file_out *f, sp_hash *h, const char *header,
                      const sp_st_content *c)
{
    size_t n = strlen(header), padding = (8 - n % 8) % 8;
    uint8_t length[8];
    uint64_t bytes;

    sp_little_put(length, sizeof length, n + padding);
    SP_TRY(put_part(f, h, length, sizeof length));
    SP_TRY(put_part(f, h, header, n));
    SP_TRY(put_part(f, h, "        ", padding));
    for (size_t i = 0; i < c->count; i++)
        if (bytes_of(&c->tensors[i], &bytes) && bytes > 0)
            SP_TRY(put_part(f, h, c->tensors[i].data, (size_t)bytes));
    return SP_OK;
}

sp_err sp_st_write(const char *path, const sp_st_content *content,
                   sp_st_stamp *stamp)
{
    sp_json j = { 0 };
    sp_file_out *f = NULL;
    sp_hash h;
    const char *header;
    sp_err e = put_header(&j, path, content);

    if (e == SP_OK)
        e = sp_json_finish(&j, &header);
    if (e == SP_OK)
        e = check_header(path, header, j.text.size);
    if (e == SP_OK)
        e = sp_file_begin(&f, path);
    if (e != SP_OK)
        goto done;
    sp_hash_start(&h);
    e = put_all(f, &h, header, content);
    if (e != SP_OK) {
        sp_file_cancel(f);
        goto done;
    }
    e = sp_file_commit(f);
    if (e == SP_OK && stamp) {
        stamp->size = h.size;
        sp_hash_end(&h, stamp->sha256);
    }
done:
    sp_json_free(&j);
    return e;
}

/* ---- Reading ----------------------------------------------------------- */

static sp_err damaged(const sp_st_file *f, const char *tensor, const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: tensor %.100s: %s", f->path, tensor, what);
}

/* Whole numbers of a list, none negative; false if there are more than
 * `most` or other things. */
static bool read_ints(const sp_json_value *list, int64_t *out, int most)
{
    int n = 0;

    if (list->count > (size_t)most)
        return false;
    for (const sp_json_value *v = list->first; v; v = v->next) {
        if (v->kind != SP_JSON_NUMBER || !v->whole || v->integer < 0)
            return false;
        out[n++] = v->integer;
    }
    return true;
}

static sp_err read_type(const sp_st_file *f, const sp_json_value *v,
                        sp_st_type *type)
{
    const char *name;

    if (sp_json_get_text(v, "dtype", &name) != SP_OK)
        return damaged(f, v->key, "it has no dtype");
    for (int i = 0; i < f->types; i++)
        if (strcmp(name, types[i].name) == 0) {
            *type = (sp_st_type)i;
            return SP_OK;
        }
    return sp_fail(SP_EFORMAT,
                   "%s: tensor %.100s has dtype %.20s; only %s are read: "
                   "convert it%s",
                   f->path, v->key, name,
                   f->types == TYPES ? "F16, BF16, F32, F64, I32, I64, U8, BOOL"
                                     : "F32 and I64",
                   f->types == TYPES ? "" : ", as `sprat import` does");
}

/* One entry of the header, with offsets still counted from the data. */
static sp_err read_tensor(const sp_st_file *f, const sp_json_value *v,
                          sp_st_tensor *t)
{
    const sp_json_value *list;
    int64_t span[2];
    uint64_t bytes;

    t->name = v->key;
    if (v->kind != SP_JSON_OBJECT || v->count != 3)
        return damaged(f, v->key,
                       "it must have dtype, shape and data_offsets alone");
    SP_TRY(read_type(f, v, &t->type));
    if (sp_json_get(v, "shape", SP_JSON_LIST, &list) != SP_OK ||
        !read_ints(list, t->dims, SP_ST_DIMS))
        return damaged(f, v->key, "its shape is not a list of at most 8 sizes");
    t->ndim = (int)list->count;
    if (sp_json_get(v, "data_offsets", SP_JSON_LIST, &list) != SP_OK ||
        list->count != 2 || !read_ints(list, span, 2) || span[0] > span[1])
        return damaged(f, v->key, "its data_offsets are not [begin, end]");
    if (!bytes_of(t, &bytes) || bytes != (uint64_t)(span[1] - span[0]))
        return damaged(f, v->key, "its data_offsets do not fit its shape");
    t->offset = (uint64_t)span[0];
    t->bytes = bytes;
    return SP_OK;
}

static sp_err check_metadata(const sp_st_file *f, const sp_json_value *v)
{
    if (v->kind != SP_JSON_OBJECT)
        return damaged(f, v->key, "it must be an object of strings");
    for (const sp_json_value *m = v->first; m; m = m->next)
        if (m->kind != SP_JSON_TEXT)
            return damaged(f, v->key, "it must hold strings alone");
    return SP_OK;
}

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* By place; empty ones before the one that begins at the same place. */
static int by_place(const void *a, const void *b)
{
    const sp_st_tensor *x = a, *y = b;

    return x->offset != y->offset ? compare(x->offset, y->offset)
           : x->bytes != y->bytes ? compare(x->bytes, y->bytes)
                                  : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const sp_st_tensor *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* The arrays must follow one another from the header to the file's end. */
static sp_err check_spans(sp_st_file *f)
{
    uint64_t end = 0, data = f->size - f->data;

    qsort(f->tensors, f->count, sizeof *f->tensors, by_place);
    for (size_t i = 0; i < f->count; i++) {
        sp_st_tensor *t = &f->tensors[i];
        if (t->offset < end)
            return damaged(f, t->name, "its data overlap another tensor's");
        if (t->offset > end)
            return damaged(f, t->name, "there is a gap before its data");
        end = t->offset + t->bytes;
        if (end > data)
            return damaged(f, t->name,
                           "the file ends before its data do: it is truncated");
        t->offset += f->data;
    }
    if (end != data)
        return sp_fail(SP_EFORMAT, "%s: %llu bytes follow the last tensor",
                       f->path, (unsigned long long)(data - end));
    return SP_OK;
}

/* The tensors of the parsed header. */
static sp_err read_tensors(sp_st_file *f)
{
    const sp_json_value *root = sp_json_root(f->header);

    if (root->kind != SP_JSON_OBJECT)
        return sp_fail(SP_EFORMAT, "%s: the header is not a JSON object",
                       f->path);
    f->tensors = calloc(root->count + 1, sizeof *f->tensors);
    f->by_name = calloc(root->count + 1, sizeof *f->by_name);
    if (!f->tensors || !f->by_name)
        return sp_fail(SP_ENOMEM, "out of memory for the tensors of %s",
                       f->path);
    for (const sp_json_value *v = root->first; v; v = v->next) {
        if (strcmp(v->key, "__metadata__") == 0)
            SP_TRY(check_metadata(f, v));
        else
            SP_TRY(read_tensor(f, v, &f->tensors[f->count++]));
    }
    SP_TRY(check_spans(f));
    for (size_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->tensors[i];
    qsort(f->by_name, f->count, sizeof *f->by_name, by_name);
    return SP_OK;
}

static sp_err read_header(sp_st_file *f)
{
    uint8_t length[8];
    uint64_t n;
    char *text;
    sp_err e;

    SP_TRY(sp_file_read_at(f->fd, f->path, 0, length, sizeof length));
    n = sp_little_get(length, sizeof length);
    if (n > MOST_HEADER)
        return sp_fail(SP_EFORMAT,
                       "%s is not a safetensors file: its first 8 bytes say "
                       "that the header has %llu bytes",
                       f->path, (unsigned long long)n);
    text = malloc((size_t)n + 1);
    if (!text)
        return sp_fail(SP_ENOMEM, "out of memory for the header of %s",
                       f->path);
    e = sp_file_read_at(f->fd, f->path, sizeof length, text, (size_t)n);
    if (e == SP_OK && (n == 0 || text[0] != '{'))
        e = sp_fail(SP_EFORMAT,
                    "%s is not a safetensors file: its header does not begin "
                    "with {",
                    f->path);
    if (e == SP_OK)
        e = sp_json_parse(&f->header, f->path, text, (size_t)n);
    free(text);
    f->data = sizeof length + n;
    return e;
}

static sp_err open_file(sp_st_file **out, const char *path, int count)
{
    sp_st_file *f = calloc(1, sizeof *f);
    sp_err e;

    if (!f)
        return sp_fail(SP_ENOMEM, "out of memory for reading %s", path);
    f->fd = -1;
    f->types = count;
    f->path = sp_copy(path, strlen(path));
    e = f->path ? sp_file_open(path, &f->fd, &f->size)
                : sp_fail(SP_ENOMEM, "out of memory for reading %s", path);
    if (e == SP_OK)
        e = read_header(f);
    if (e == SP_OK)
        e = read_tensors(f);
    if (e != SP_OK)
        sp_st_close(f);
    else
        *out = f;
    return e;
}

sp_err sp_st_open(sp_st_file **out, const char *path)
{
    return open_file(out, path, OUR_TYPES);
}

sp_err sp_st_open_any(sp_st_file **out, const char *path)
{
    return open_file(out, path, TYPES);
}

void sp_st_close(sp_st_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    sp_json_doc_free(f->header);
    free(f->tensors);
    free(f->by_name);
    free(f->path);
    free(f);
}

const sp_st_tensor *sp_st_at(const sp_st_file *f, size_t i)
{
    return i < f->count ? &f->tensors[i] : NULL;
}

const sp_st_tensor *sp_st_find(const sp_st_file *f, const char *name)
{
    sp_st_tensor wanted = { .name = name };
    const sp_st_tensor *key = &wanted, **found;

    found = bsearch(&key, f->by_name, f->count, sizeof *f->by_name, by_name);
    return found ? *found : NULL;
}

const char *sp_st_metadata(const sp_st_file *f, const char *key)
{
    const sp_json_value *v =
        sp_json_find(sp_json_root(f->header), "__metadata__");

    v = sp_json_find(v, key);
    return v ? v->text : NULL;
}

sp_err sp_st_read(const sp_st_file *f, const sp_st_tensor *t, void *out)
{
    return sp_file_read_at(f->fd, f->path, t->offset, out, (size_t)t->bytes);
}

/* "F32 [2, 3]" */
static void put_shape(sp_text *out, const sp_st_tensor *t)
{
    sp_text_add(out, "%s [", types[t->type].name);
    for (int i = 0; i < t->ndim; i++)
        sp_text_add(out, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    sp_text_add(out, "]");
}

sp_err sp_st_load(const sp_st_file *f, const sp_st_tensor *wanted, void *out)
{
    const sp_st_tensor *t = sp_st_find(f, wanted->name);
    sp_text shapes = { 0 };
    sp_err e;

    if (!t)
        return sp_fail(SP_EFORMAT, "%s: there is no tensor %s", f->path,
                       wanted->name);
    if (t->type == wanted->type && t->ndim == wanted->ndim &&
        memcmp(t->dims, wanted->dims, (size_t)t->ndim * sizeof *t->dims) == 0)
        return sp_st_read(f, t, out);
    put_shape(&shapes, t);
    sp_text_add(&shapes, "; expected is ");
    put_shape(&shapes, wanted);
    e = sp_fail(SP_EFORMAT, "%s: tensor %s is %s", f->path, t->name,
                sp_text_string(&shapes));
    sp_text_free(&shapes);
    return e;
}
