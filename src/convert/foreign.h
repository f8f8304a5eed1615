/* Named arrays of numbers in files that others wrote: safetensors, NumPy's
 * .npz, and the state dicts that torch.save() writes, all little endian.
 *
 * Everything in such a file is checked before it is believed; nothing in it is
 * run. For an array, no more is allocated than deflate can have packed into the
 * file, about a thousand times its size; for all that a pickle says, some
 * hundred MiB.
 */
#ifndef SP_CONVERT_FOREIGN_H
#define SP_CONVERT_FOREIGN_H

#include "base/arena.h"
#include "base/safetensors.h"
#include "convert/numeric.h"
#include "convert/zip.h"

/* One array: element (i, j, ...) is number offset + i strides[0] + j strides[1]
 * + ... of those that stand in its place. */
typedef struct sp_foreign_array {
    const char *name;
    const sp_numeric *type;
    int ndim;
    int64_t dims[SP_ST_DIMS], strides[SP_ST_DIMS], offset;

    /* Where its numbers are: in a file of an archive behind `skip` bytes, or
     * in a safetensors file. */
    const sp_zip_entry *entry;
    size_t skip;
    const sp_st_tensor *tensor;
} sp_foreign_array;

typedef struct sp_foreign {
    char *path;
    const char *kind;         /* "safetensors file" */
    sp_foreign_array *arrays; /* by name, each once */
    size_t count;
    sp_arena arena;
    sp_zip zip;
    sp_st_file *file;
    uint8_t *bytes; /* of an archive */
} sp_foreign;

/* Open a file and list its arrays. Errors: SP_EIO; SP_EFORMAT naming file and
 * array; SP_ENOMEM. Nothing is open then. */
SP_MUST sp_err sp_foreign_open(sp_foreign *f, const char *path);
void sp_foreign_close(sp_foreign *f);

/* The same for an archive in memory, an .npz or what torch.save() writes: its
 * bytes are the caller's, and last until it is closed. */
SP_MUST sp_err sp_foreign_parse(sp_foreign *f, const char *path,
                                const uint8_t *bytes, size_t size);

/* The array of that name, or NULL. */
const sp_foreign_array *sp_foreign_find(const sp_foreign *f, const char *name);

/* Read all elements of one, in C's order, as floats. `out` has room for them:
 * the caller has looked at the dims. Errors: SP_EIO; SP_EFORMAT; SP_ENOMEM. */
SP_MUST sp_err sp_foreign_read(const sp_foreign *f, const sp_foreign_array *a,
                               float *out);

#endif
