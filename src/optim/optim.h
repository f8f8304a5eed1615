/* An optimizer at work on a parameter store. A step is two calls, so that a
 * gradient that is not finite is seen before any weight is touched:
 *
 *   norm = sp_optim_norm(o);
 *   if (!isfinite(norm))
 *       ... stop ...
 *   sp_optim_update(o, lr, norm, step);
 */
#ifndef SP_OPTIM_OPTIM_H
#define SP_OPTIM_OPTIM_H

#include "sprat/graph.h"
#include "sprat/optim.h"

typedef struct sp_optim sp_optim;

/* What an sp_optim is made of; all pointers must outlive it. */
typedef struct sp_optim_args {
    sp_params *params; /* compiled for training */
    const sp_optimizer *rule;
    const void *own; /* the rule's settings */
    const sp_optim_cfg *cfg;
    int threads;
} sp_optim_args;

/* On success *out is the caller's to free; its state is zero.
 * Errors: SP_ECONFIG when the rule's settings contradict each other, SP_EARG
 * for a store without gradients, SP_ENOMEM. */
SP_MUST sp_err sp_optim_new(sp_optim **out, const sp_optim_args *args);
void sp_optim_free(sp_optim *o);

/* The Euclidean norm of all gradients together: not finite exactly if one of
 * them is not. The same bits with any number of threads. */
double sp_optim_norm(const sp_optim *o);

/* The sum of squares of one parameter's gradient. The same bits with any number
 * of threads. */
double sp_optim_squares(const sp_optim *o, const sp_param *p);

/* From the next step on, the gradient of `p` has its momentum in it already
 * (sp_update.corrected), or no longer has. The rule must have `momentum`. */
void sp_optim_correct(sp_optim *o, const sp_param *p, bool corrected);

/* From the next step on, decay pulls on these p->count floats, in p's axis
 * order, in place of the values of `p`; they are read in every update. NULL: on
 * the values again. The rule must be one that `pulls`. */
void sp_optim_pull(sp_optim *o, const sp_param *p, const float *pull);

/* One step at rate `lr` (the configuration's, times the schedule's factor).
 * With clipping the gradient is scaled by min(1, clip / norm), where `norm` is
 * from sp_optim_norm(), before decay is added; norm 0: is not scaled.
 * Differs: PyTorch divides by norm + 1e-6. */
void sp_optim_update(sp_optim *o, double lr, double norm, int64_t step);

/* State array i of a trained parameter, p->count floats in its axis order;
 * the names are those of the rule. */
float *sp_optim_state(const sp_optim *o, const sp_param *p, int i);

/* The rule, for the number and the names of the states. */
const sp_optimizer *sp_optim_rule(const sp_optim *o);

#endif
