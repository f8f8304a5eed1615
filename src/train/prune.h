/* The section `prune`: magnitude pruning with rewinding. A run is trained to
 * its end, the smallest weights are removed, the others go back to what they
 * were early in training, and it is trained again, round after round.
 *
 * A weight that is removed is 0 and stays so; from the first pruning on, no
 * other weight is ever exactly 0. So weights say themselves what is left of
 * them: no mask is kept beside them.
 *
 * Source: Frankle, Carbin 2019, "The lottery ticket hypothesis", iterative
 *         magnitude pruning over all layers together; Frankle, Dziugaite, Roy,
 *         Carbin 2020, "Linear mode connectivity and the lottery ticket
 *         hypothesis", for going back to a later epoch than the first.
 * Differs: the momentum starts anew when weights go back.
 */
#ifndef SP_TRAIN_PRUNE_H
#define SP_TRAIN_PRUNE_H

#include "sprat/config.h"
#include "sprat/graph.h"

/* The keys of `prune` with name: magnitude. */
typedef struct sp_prune_cfg {
    double share; /* of the weights that are left, what each pruning removes */
    int rounds;   /* prunings; each is followed by a training */
    int rewind_epoch; /* weights go back to what they were after so many */
} sp_prune_cfg;

/* Weights that can be pruned, those of trained parameters of more than one
 * dimension; and those of them that are 0. */
size_t sp_prunable(const sp_params *p);
size_t sp_prune_zeros(const sp_params *p);

/* How many of so many weights that are left a pruning removes. */
size_t sp_prune_count(const sp_prune_cfg *cfg, size_t left);

/* Mark the `count` weights of smallest magnitude, of equal ones the first in
 * recording order: gone[i] of the i-th of the sp_prunable(), which `count` is
 * less than. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_prune_smallest(const sp_params *p, size_t count, bool *gone);

/* Remove what is marked. Another one that is 0 becomes the smallest float of
 * full precision. */
void sp_prune_apply(const sp_params *p, const bool *gone);

/* Before a step's update: gradients of what is removed become 0. After it: a
 * weight that the update has brought to 0, which nothing else can have a
 * gradient for, becomes the smallest float as above. */
void sp_prune_hold(const sp_params *p, int threads);
void sp_prune_keep(const sp_params *p, int threads);

#endif
