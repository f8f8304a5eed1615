#include "convert/foreign.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "convert/npy.h"
#include "convert/pickle.h"

static sp_err no_memory(const sp_foreign *f)
{
    return sp_fail(SP_ENOMEM, "%s: out of memory", f->path);
}

static sp_err wrong(const sp_foreign *f, const char *name, const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: %.100s: %s", f->path, name, what);
}

static sp_err make_room(sp_foreign *f, size_t count)
{
    f->arrays = sp_arena_alloc(&f->arena, (count + 1) * sizeof *f->arrays);
    return f->arrays ? SP_OK : no_memory(f);
}

/* Strides of an array without gaps; `fortran`: the first index runs fastest.
 * *count: its elements; false if there are too many. */
static bool fill_strides(sp_foreign_array *a, bool fortran, int64_t *count)
{
    bool empty = false;

    *count = 1;
    for (int i = 0; i < a->ndim; i++)
        empty |= a->dims[i] == 0;
    for (int k = 0; k < a->ndim && !empty; k++) {
        int i = fortran ? k : a->ndim - 1 - k;
        a->strides[i] = *count;
        if (*count > INT64_MAX / 8 / a->dims[i])
            return false;
        *count *= a->dims[i];
    }
    if (empty)
        *count = 0;
    return true;
}

/* Whether so many numbers of an array's kind are what its entry holds. */
static bool fills_entry(const sp_foreign_array *a, int64_t numbers)
{
    uint64_t bytes = a->entry->size - a->skip;

    return bytes % a->type->bytes == 0 &&
           bytes / a->type->bytes == (uint64_t)numbers;
}

/* ---- NumPy ------------------------------------------------------------- */

static sp_err list_npy(sp_foreign *f, const sp_zip_entry *entry)
{
    sp_foreign_array *a = &f->arrays[f->count];
    size_t n =
        entry->size < SP_NPY_HEADER ? (size_t)entry->size : SP_NPY_HEADER;
    uint8_t head[SP_NPY_HEADER];
    int64_t numbers;
    sp_npy npy;
    char *name;

    SP_TRY(sp_zip_read(&f->zip, entry, head, n));
    SP_TRY(sp_npy_read(&npy, f->path, entry->name, head, n));
    name = sp_arena_text(&f->arena, entry->name);
    if (!name)
        return no_memory(f);
    name[strlen(name) - strlen(".npy")] = '\0';
    *a = (sp_foreign_array){ .name = name,
                             .type = npy.type,
                             .ndim = npy.ndim,
                             .entry = entry,
                             .skip = npy.data };
    memcpy(a->dims, npy.dims, sizeof npy.dims);
    if (!fill_strides(a, npy.fortran, &numbers) || !fills_entry(a, numbers))
        return wrong(f, entry->name, "its numbers do not fit its shape");
    f->count++;
    return SP_OK;
}

static sp_err list_npz(sp_foreign *f)
{
    f->kind = ".npz file";
    SP_TRY(make_room(f, f->zip.count));
    for (size_t i = 0; i < f->zip.count; i++)
        if (sp_ends_with(f->zip.entries[i].name, ".npy"))
            SP_TRY(list_npy(f, &f->zip.entries[i]));
    return SP_OK;
}

/* ---- PyTorch ----------------------------------------------------------- */

/* Bytes of a pickle. A tensor takes about 250; and what a byte makes, up to 80
 * in memory. */
enum { MOST_PICKLE = 1 << 22 };

/* Find the storage FOLDER/data/NAME. */
static sp_err find_storage(sp_foreign *f, const char *folder,
                           const sp_pickled *t, const sp_zip_entry **out)
{
    char *path = sp_path("", "%sdata/%s", folder, t->storage);

    if (!path)
        return no_memory(f);
    *out = sp_zip_find(&f->zip, path);
    free(path);
    return *out ? SP_OK : wrong(f, t->name, "its storage is missing");
}

static sp_err list_tensor(sp_foreign *f, const char *folder,
                          const sp_pickled *t)
{
    sp_foreign_array *a = &f->arrays[f->count];

    *a = (sp_foreign_array){
        .name = t->name, .type = t->type, .ndim = t->ndim, .offset = t->offset
    };
    memcpy(a->dims, t->dims, sizeof t->dims);
    memcpy(a->strides, t->strides, sizeof t->strides);
    SP_TRY(find_storage(f, folder, t, &a->entry));
    if (!fills_entry(a, t->numbers))
        return wrong(f, t->name, "its storage has another size than it says");
    f->count++;
    return SP_OK;
}

static sp_err check_order(const sp_foreign *f, const char *folder)
{
    char *path = sp_path("", "%sbyteorder", folder), text[6];
    const sp_zip_entry *e;

    if (!path)
        return no_memory(f);
    e = sp_zip_find(&f->zip, path);
    free(path);
    if (!e)
        return SP_OK; /* older versions leave it out */
    if (e->size != sizeof text)
        return wrong(f, "byteorder",
                     "is not little: save it on another "
                     "machine");
    SP_TRY(sp_zip_read(&f->zip, e, text, sizeof text));
    return memcmp(text, "little", sizeof text) == 0
               ? SP_OK
               : wrong(f, "byteorder",
                       "is not little: save it on another "
                       "machine");
}

static sp_err list_torch(sp_foreign *f, const sp_zip_entry *pickle)
{
    size_t n = strlen(pickle->name) - strlen("data.pkl");
    char *folder = sp_arena_text(&f->arena, pickle->name);
    uint8_t *bytes = NULL;
    sp_pickled *list;
    size_t count;
    sp_err e;

    f->kind = "PyTorch file";
    if (!folder)
        return no_memory(f);
    folder[n] = '\0';
    SP_TRY(check_order(f, folder));
    if (pickle->size > MOST_PICKLE)
        return wrong(f, pickle->name, "is larger than a state dict's");
    bytes = malloc((size_t)pickle->size + 1);
    if (!bytes)
        return no_memory(f);
    e = sp_zip_read(&f->zip, pickle, bytes, (size_t)pickle->size);
    if (e == SP_OK)
        e = sp_pickle_read(f->path, bytes, (size_t)pickle->size, &f->arena,
                           &list, &count);
    free(bytes);
    SP_TRY(e);
    SP_TRY(make_room(f, count));
    for (size_t i = 0; i < count; i++)
        SP_TRY(list_tensor(f, folder, &list[i]));
    return SP_OK;
}

/* ---- Archives and safetensors ------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const sp_foreign_array *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static sp_err sort(sp_foreign *f)
{
    qsort(f->arrays, f->count, sizeof *f->arrays, by_name);
    for (size_t i = 1; i < f->count; i++)
        if (by_name(&f->arrays[i - 1], &f->arrays[i]) == 0)
            return wrong(f, f->arrays[i].name, "stands twice");
    return f->count ? SP_OK : sp_fail(SP_EFORMAT, "%s: has no arrays", f->path);
}

static sp_err list_archive(sp_foreign *f, const uint8_t *bytes, size_t size)
{
    const sp_zip_entry *e = NULL;

    SP_TRY(sp_zip_open(&f->zip, f->path, bytes, size));
    for (size_t i = 0; i < f->zip.count && !e; i++)
        if (sp_ends_with(f->zip.entries[i].name, "/data.pkl"))
            e = &f->zip.entries[i];
    SP_TRY(e ? list_torch(f, e) : list_npz(f));
    if (!f->count && !e)
        return sp_fail(SP_EFORMAT,
                       "%s: is an archive, but neither of NumPy's arrays "
                       "(.npz) nor PyTorch's (.pth)",
                       f->path);
    return sort(f);
}

static sp_err list_safetensors(sp_foreign *f)
{
    static const char *const storages[] = {
        [SP_ST_F32] = "FloatStorage",  [SP_ST_I64] = "LongStorage",
        [SP_ST_F16] = "HalfStorage",   [SP_ST_BF16] = "BFloat16Storage",
        [SP_ST_F64] = "DoubleStorage", [SP_ST_I32] = "IntStorage",
        [SP_ST_U8] = "ByteStorage",    [SP_ST_BOOL] = "BoolStorage",
    };
    const sp_st_tensor *t;
    size_t count = 0;
    int64_t numbers;

    f->kind = "safetensors file";
    SP_TRY(sp_st_open_any(&f->file, f->path));
    while (sp_st_at(f->file, count))
        count++;
    SP_TRY(make_room(f, count));
    for (; (t = sp_st_at(f->file, f->count)); f->count++) {
        sp_foreign_array *a = &f->arrays[f->count];
        *a = (sp_foreign_array){ .name = t->name,
                                 .type = sp_numeric_storage(storages[t->type]),
                                 .ndim = t->ndim,
                                 .tensor = t };
        memcpy(a->dims, t->dims, sizeof t->dims);
        if (!fill_strides(a, false, &numbers))
            return wrong(f, t->name, "has too many numbers");
    }
    return sort(f);
}

static sp_err start(sp_foreign *f, const char *path)
{
    *f = (sp_foreign){ .path = sp_copy(path, strlen(path)) };
    return f->path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

sp_err sp_foreign_parse(sp_foreign *f, const char *path, const uint8_t *bytes,
                        size_t size)
{
    sp_err e = start(f, path);

    if (e == SP_OK)
        e = list_archive(f, bytes, size);
    if (e != SP_OK)
        sp_foreign_close(f);
    return e;
}

/* Of a safetensors file the length of its header, and the { that begins it. */
enum { HEAD = 9 };

/* The first bytes of a file, and its size; bytes beyond its end are 0. */
static sp_err peek(const char *path, uint8_t head[HEAD], uint64_t *size)
{
    sp_err e;
    int fd;

    memset(head, 0, HEAD);
    SP_TRY(sp_file_open(path, &fd, size));
    e = sp_file_read_at(fd, path, 0, head, *size < HEAD ? (size_t)*size : HEAD);
    close(fd);
    return e;
}

static sp_err list_any(sp_foreign *f)
{
    uint8_t head[HEAD];
    uint64_t bytes;
    size_t size;

    SP_TRY(peek(f->path, head, &bytes));
    if (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
        return sp_fail(SP_EFORMAT,
                       "%s: is a bare pickle, as PyTorch wrote before 1.6: "
                       "load it there and save it again, as "
                       "torch.save(model.state_dict(), FILE)",
                       f->path);
    if (!sp_zip_is(head, sizeof head)) {
        if (bytes < HEAD || head[HEAD - 1] == '{')
            return list_safetensors(f);
        return sp_fail(SP_EFORMAT,
                       "%s: is none of what can be read: a safetensors file, "
                       "an .npz file, a state dict of PyTorch (.pth, .pt)",
                       f->path);
    }
    SP_TRY(sp_file_read(f->path, PTRDIFF_MAX, &f->bytes, &size));
    return list_archive(f, f->bytes, size);
}

sp_err sp_foreign_open(sp_foreign *f, const char *path)
{
    sp_err e = start(f, path);

    if (e == SP_OK)
        e = list_any(f);
    if (e != SP_OK)
        sp_foreign_close(f);
    return e;
}

void sp_foreign_close(sp_foreign *f)
{
    sp_st_close(f->file);
    sp_zip_close(&f->zip);
    sp_arena_free(&f->arena);
    free(f->bytes);
    free(f->path);
    *f = (sp_foreign){ 0 };
}

const sp_foreign_array *sp_foreign_find(const sp_foreign *f, const char *name)
{
    sp_foreign_array wanted = { .name = name };

    return bsearch(&wanted, f->arrays, f->count, sizeof *f->arrays, by_name);
}

/* ---- Numbers ----------------------------------------------------------- */

/* The bytes in which an array's numbers are. */
static sp_err load(const sp_foreign *f, const sp_foreign_array *a,
                   uint8_t **out)
{
    uint64_t n = a->entry ? a->entry->size : a->tensor->bytes;
    uint8_t *bytes = n < SIZE_MAX ? malloc((size_t)n + 1) : NULL;
    sp_err e;

    if (!bytes)
        return sp_fail(SP_ENOMEM, "%s: %.100s: out of memory for %llu bytes",
                       f->path, a->name, (unsigned long long)n);
    e = a->entry ? sp_zip_read(&f->zip, a->entry, bytes, (size_t)n)
                 : sp_st_read(f->file, a->tensor, bytes);
    if (e != SP_OK)
        free(bytes);
    else
        *out = bytes;
    return e;
}

/* Go on to the next element in C's order; false behind the last. */
static bool advance(const sp_foreign_array *a, int64_t index[SP_ST_DIMS],
                    int64_t *at)
{
    for (int i = a->ndim - 1; i >= 0; i--) {
        if (++index[i] < a->dims[i]) {
            *at += a->strides[i];
            return true;
        }
        *at -= a->strides[i] * (a->dims[i] - 1);
        index[i] = 0;
    }
    return false;
}

sp_err sp_foreign_read(const sp_foreign *f, const sp_foreign_array *a,
                       float *out)
{
    int64_t index[SP_ST_DIMS] = { 0 }, at = a->offset;
    uint8_t *bytes = NULL;

    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] == 0)
            return SP_OK;
    SP_TRY(load(f, a, &bytes));
    do {
        *out++ = a->type->get(bytes + a->skip + (size_t)at * a->type->bytes);
    } while (advance(a, index, &at));
    free(bytes);
    return SP_OK;
}
