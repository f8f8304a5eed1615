/* One training step: forward and backward over a batch, then the update. */
#ifndef SP_TRAIN_STEP_H
#define SP_TRAIN_STEP_H

#include "data/loader.h"
#include "train/session.h"

/* What a step is told. */
typedef struct sp_step_at {
    int64_t step;    /* from 0 */
    int64_t begun;   /* step at which the optimizer's state began */
    double progress; /* epochs done, with the fraction of the present one */
    double lr;
    bool pruned;   /* weights that are 0 are pruned (prune.h) */
    bool stop;     /* this rank was told to stop after it */
    bool save;     /* this rank wants a checkpoint after it */
    sp_err failed; /* this rank cannot take part: SP_OK, or an error whose text
                      is sp_last_error(); with several ranks it goes through
                      the step with no rows, so that all fail together */
} sp_step_at;

/* What a step did, on all ranks together. */
typedef struct sp_step_result {
    double loss;     /* mean over the batch: per image, or per token */
    size_t correct;  /* of images */
    double norm;     /* of the gradient that arrived, before clipping */
    bool stop, save; /* what some rank was told, or wants */
    double forward_s, backward_s, optim_s;
    double compress_s, exchange_s; /* encoding and decoding; waiting for other
                                      ranks. Not within the others */
} sp_step_result;

/* Train on one batch; the states of text are carried on from the batch before,
 * or zero for an epoch's first. With b->x and b->tokens NULL the program's
 * inputs are left as they are. Collective.
 * Errors: SP_ENUMERIC, naming the step (counted from 1, as in reports) and the
 * operator, when the loss or a gradient is not finite: parameters, optimizer
 * and states are then as before. at->failed of any rank; SP_EPEER. */
SP_MUST sp_err sp_train_step(sp_session *s, const sp_batch *b,
                             const sp_step_at *at, sp_step_result *out);

#endif
