/* What is one rank's own between two steps, and its file in a checkpoint:
 * running statistics, the states that its columns of text are carried on with,
 * and what its compressor keeps. */
#ifndef SP_TRAIN_LOCAL_H
#define SP_TRAIN_LOCAL_H

#include "base/safetensors.h"
#include "train/session.h"

/* An array that a compressor keeps for a parameter. */
typedef struct sp_kept {
    char *name;
    sp_st_tensor tensor; /* PARAMETER.NAME, in the parameter's shape where it
                            has as many elements, else flat */
    float *data;
    bool adds; /* the sum over ranks is what counts */
} sp_kept;

typedef struct sp_local {
    const sp_params *params; /* whose buffers */
    const sp_carry *carry;   /* NULL: none */
    int rows;                /* of its states, the first so many */
    sp_kept *kept;
    size_t kept_count;
} sp_local;

/* Of a session that trains; the carried states only if asked for, which is
 * within an epoch. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_local_open(sp_local *l, const sp_session *s, bool carry);
void sp_local_close(sp_local *l);

/* Elements of a kept array. */
size_t sp_kept_size(const sp_kept *k);

/* Write all of it, or read it from such a file: the same bits. `stamp` may be
 * NULL. Errors: SP_EIO, SP_ENOMEM; reading: SP_EFORMAT naming every array that
 * is missing, extra or of another shape. */
SP_MUST sp_err sp_local_save(const char *path, const sp_local *l,
                             sp_st_stamp *stamp);
SP_MUST sp_err sp_local_load(const char *path, const sp_local *l);

#endif
