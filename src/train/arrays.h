/* A list of named arrays of floats, to and from a safetensors file. */
#ifndef SP_TRAIN_ARRAYS_H
#define SP_TRAIN_ARRAYS_H

#include "base/safetensors.h"
#include "sprat/graph.h"

/* The arrays that a file holds, or shall hold, and where they live. */
typedef struct sp_arrays {
    sp_st_tensor *tensors;
    float **places;
    char **names; /* those that are the list's to free; else NULL */
    size_t count;
} sp_arrays;

/* An empty list with room for so many. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_arrays_room(sp_arrays *l, size_t room);
void sp_arrays_free(sp_arrays *l);

/* Add an array with the shape of `p`; `name` is the list's to free, or NULL
 * for the parameter's own. */
void sp_arrays_add(sp_arrays *l, const sp_param *p, char *name, float *place);

/* Add one by its tensor, whose name must outlive the list. */
void sp_arrays_add_tensor(sp_arrays *l, const sp_st_tensor *t, float *place);

/* Write the list, and free it. `stamp` may be NULL. */
SP_MUST sp_err sp_arrays_save(const char *path, sp_arrays *l,
                              sp_st_stamp *stamp);

/* Read the list, and free it. Counters that PyTorch keeps beside its batch
 * norms (num_batches_tracked) are passed over; otherwise the file must hold
 * exactly these arrays. Errors: SP_EIO; SP_EFORMAT "of another WHAT than
 * configured", naming every one that is missing, extra or of another shape. */
SP_MUST sp_err sp_arrays_load(const char *path, sp_arrays *l, const char *what);

/* See whether it could be read, and free it. */
SP_MUST sp_err sp_arrays_check(const char *path, sp_arrays *l,
                               const char *what);

#endif
