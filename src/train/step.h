/* One training step: forward and backward over a batch, then the update. */
#ifndef SP_TRAIN_STEP_H
#define SP_TRAIN_STEP_H

#include "data/loader.h"
#include "train/session.h"

/* What a step did. */
typedef struct sp_step_result {
    double loss;    /* mean over the batch: per image, or per token */
    size_t correct; /* of images */
    double norm;    /* of the gradient, before clipping */
    double forward_s, backward_s, optim_s;
} sp_step_result;

/* Train on one batch as step number `step` (from 0) at rate `lr`; the states of
 * text are carried on from the batch before, or zero for an epoch's first. With
 * b->x and b->tokens NULL the program's inputs are left as they are.
 * Errors: SP_ENUMERIC, naming the step (counted from 1, as in reports) and the
 * operator, when the loss or a gradient is not finite: parameters, optimizer
 * and states are then as before. */
SP_MUST sp_err sp_train_step(sp_session *s, const sp_batch *b, int64_t step,
                             double lr, sp_step_result *out);

#endif
