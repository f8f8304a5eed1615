/* safetensors: named arrays in one file that any framework reads.
 *
 *   8 bytes       n, little endian
 *   n bytes       JSON: {"__metadata__":{...},
 *                 "NAME":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
 *                 ...} padded with spaces to a multiple of 8
 *   the rest      the arrays, one after the other, little endian
 *
 * Source: the format's description at
 *         https://github.com/huggingface/safetensors
 * Differs: only some types, and only F32 and I64 where nothing else is asked
 *          for; read and written on little-endian machines only.
 */
#ifndef SPRAT_BASE_SAFETENSORS_H
#define SPRAT_BASE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "sprat/base.h"

enum { SP_ST_DIMS = 8 };

typedef enum sp_st_type {
    SP_ST_F32,
    SP_ST_I64,
    SP_ST_F16, /* this and those below: sp_st_open_any() alone */
    SP_ST_BF16,
    SP_ST_F64,
    SP_ST_I32,
    SP_ST_U8,
    SP_ST_BOOL
} sp_st_type;

/* One array. `dims` may be empty (ndim 0: a single number) and hold zeros. */
typedef struct sp_st_tensor {
    const char *name;
    sp_st_type type;
    int ndim;
    int64_t dims[SP_ST_DIMS];
    const void *data; /* to write; NULL in a tensor that was read */
    uint64_t offset;  /* set by reading: from the start of the file */
    uint64_t bytes;   /* set by reading */
} sp_st_tensor;

/* One entry of a file's metadata. */
typedef struct sp_st_pair {
    const char *key, *value;
} sp_st_pair;

/* What to write. Equal contents in equal order give equal files. */
typedef struct sp_st_content {
    const sp_st_tensor *tensors;
    size_t count;
    const sp_st_pair *pairs; /* or NULL */
    size_t pair_count;
} sp_st_content;

/* What was written, for a manifest. */
typedef struct sp_st_stamp {
    uint64_t size; /* bytes of the file */
    char sha256[SP_HASH_HEX];
} sp_st_stamp;

/* Write a file, whole or not at all and synced, straight from the tensors'
 * memory. `stamp` may be NULL. Errors: SP_EARG for a tensor that cannot stand
 * in a file (name empty, twice or "__metadata__"; ndim or dims out of range);
 * SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_st_write(const char *path, const sp_st_content *content,
                           sp_st_stamp *stamp);

/* An open file; its header is in memory, its arrays are read on demand. */
typedef struct sp_st_file sp_st_file;

/* Open a file and check all of its header against its size. Errors: SP_EIO;
 * SP_EFORMAT naming file and tensor: truncated, header not valid, a type other
 * than F32 and I64, spans that do not fit their shape or leave gaps; SP_ENOMEM.
 */
SP_MUST sp_err sp_st_open(sp_st_file **f, const char *path);

/* The same for a file of another program, which may hold all sp_st_type. */
SP_MUST sp_err sp_st_open_any(sp_st_file **f, const char *path);
void sp_st_close(sp_st_file *f);

/* The i-th tensor, in the order of the data, or NULL past the last; the one of
 * that name, or NULL. */
const sp_st_tensor *sp_st_at(const sp_st_file *f, size_t i);
const sp_st_tensor *sp_st_find(const sp_st_file *f, const char *name);

/* The metadata of that key, or NULL. */
const char *sp_st_metadata(const sp_st_file *f, const char *key);

/* Read one of this file's tensors; `out` has t->bytes bytes. Errors: SP_EIO;
 * SP_EFORMAT if the file has shrunk since. */
SP_MUST sp_err sp_st_read(const sp_st_file *f, const sp_st_tensor *t,
                          void *out);

/* Read the tensor `name`, which must be there with this type and shape.
 * Errors: those of sp_st_read(); SP_EFORMAT naming file, tensor and both
 * shapes. */
SP_MUST sp_err sp_st_load(const sp_st_file *f, const sp_st_tensor *wanted,
                          void *out);

#endif
