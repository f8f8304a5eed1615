/* Arrays that are summed over ranks as they are: large ones where they stand,
 * small ones fused, each as soon as enough has come together.
 *
 *   sp_dense_add(d, x, n);            any number of times
 *   SP_TRY(sp_dense_wait(d));         all are sums now
 */
#ifndef SP_TRAIN_DENSE_H
#define SP_TRAIN_DENSE_H

#include "dist/comm.h"

typedef struct sp_dense sp_dense;

typedef struct sp_dense_args {
    sp_comm *comm;
    sp_on on;
    bool reduce; /* to rank 0 of the group only */
    size_t most; /* arrays between two waits, at the most */
} sp_dense_args;

/* On success *out is the caller's to free. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_dense_new(sp_dense **out, const sp_dense_args *args);
void sp_dense_free(sp_dense *d);

/* The array is final, and may leave; all ranks add arrays of the same sizes in
 * the same order, at places that lie to each other in the same way. */
void sp_dense_add(sp_dense *d, float *x, size_t n);

/* Let what waits leave now. */
void sp_dense_flush(sp_dense *d);

/* Let all that was added leave, and wait until the sums are there. Collective.
 * Errors: as sp_op_wait(). */
SP_MUST sp_err sp_dense_wait(sp_dense *d);

#endif
