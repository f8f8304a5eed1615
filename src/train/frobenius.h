/* Frobenius decay: of layers of low rank, weight decay acts on the product of
 * the factors instead of on each.
 *
 *   (decay / 2) ||v u||^2   has the gradients   decay * v' v u  for u and
 *                                               decay * v u u'  for v
 *
 * and of blocks of rows with factors of their own, each its own. v' v and u u'
 * are small: the product itself is never computed.
 *
 * Source: Khodak, Tenenholtz, Mackey, Fusi 2021, "Initialization and
 *         regularization of factorized neural layers"; Wang et al. 2023,
 *         "Cuttlefish".
 */
#ifndef SP_TRAIN_FROBENIUS_H
#define SP_TRAIN_FROBENIUS_H

#include "kernels/kernels.h"
#include "optim/optim.h"

/* The pull of decay on all pairs of factors of a store. */
typedef struct sp_frobenius sp_frobenius;

/* Let the decay of `o`, whose store is `p`, pull on what is computed here.
 * `how` says by which kernels. On success *out is the caller's to free, with
 * the optimizer; both pointers must outlive it. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_frobenius_new(sp_frobenius **out, const sp_params *p,
                                sp_optim *o, sp_conv_how how);
void sp_frobenius_free(sp_frobenius *f);

/* Compute it for the present values: before every update. NULL: does nothing.
 * The same bits with any number of threads. */
void sp_frobenius_fill(sp_frobenius *f);

#endif
