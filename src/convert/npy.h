/* .npy: one array of NumPy, a header and its numbers.
 *
 *   "\x93NUMPY", version 1 0, 2 bytes n, little endian; then n bytes
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  and a line end
 *
 * Source: NumPy's documentation, "numpy.lib.format".
 */
#ifndef SP_CONVERT_NPY_H
#define SP_CONVERT_NPY_H

#include <stdbool.h>

#include "base/text.h"
#include "convert/numeric.h"

enum {
    SP_NPY_DIMS = 8,
    SP_NPY_HEADER = 4096 /* the longest that is read */
};

typedef struct sp_npy {
    const sp_numeric *type;
    int ndim;
    int64_t dims[SP_NPY_DIMS];
    bool fortran; /* the first index runs fastest */
    size_t data;  /* where the numbers begin */
} sp_npy;

/* Read the header that `bytes` begin with, of a file of which these are the
 * first `size` (all, or SP_NPY_HEADER). `path` and `name` are for messages.
 * Errors: SP_EFORMAT: of another kind, a header too long or not as NumPy writes
 * it, numbers of an unknown kind. */
SP_MUST sp_err sp_npy_read(sp_npy *a, const char *path, const char *name,
                           const uint8_t *bytes, size_t size);

/* Append the header of an array of numbers `descr`, "<f4", in C's order: a
 * multiple of 64 bytes. */
void sp_npy_write(sp_text *out, const char *descr, const int64_t *dims,
                  int ndim);

#endif
