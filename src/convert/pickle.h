/* Tensors that a pickle of PyTorch speaks of.
 *
 * A pickle is a program, and may call anything that Python can. This machine
 * knows those few instructions and names that state dicts consist of, and
 * refuses all others: nothing in a file can make it do more than list tensors.
 *
 * Source: Python's documentation, "pickletools"; of what PyTorch puts in,
 *         torch/serialization.py and torch/_utils.py of version 1.13.
 */
#ifndef SP_CONVERT_PICKLE_H
#define SP_CONVERT_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "convert/numeric.h"
#include "sprat/base.h"

enum { SP_PICKLE_DIMS = 8 };

/* A tensor: element (i, j, ...) is number offset + i strides[0] + j strides[1]
 * + ... of its storage, within which all of them lie. */
typedef struct sp_pickled {
    const char *name;
    const sp_numeric *type;
    const char *storage; /* its name */
    int64_t numbers;     /* of the storage */
    int64_t offset;
    int ndim;
    int64_t dims[SP_PICKLE_DIMS], strides[SP_PICKLE_DIMS];
} sp_pickled;

/* List the tensors of the pickled dictionary, or if it has none itself, of the
 * one that it has under a name usual for that, such as "state_dict". `path` is
 * for messages. All is in `arena`, also on failure.
 * Errors: SP_EFORMAT naming the instruction or what would be called, a
 * dictionary without tensors, tensors beyond their storages; SP_ENOMEM. */
SP_MUST sp_err sp_pickle_read(const char *path, const uint8_t *bytes,
                              size_t size, sp_arena *arena, sp_pickled **out,
                              size_t *count);

#endif
