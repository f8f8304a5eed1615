/* Scores of a network over a part of the data set. */
#ifndef SP_TRAIN_EVALUATE_H
#define SP_TRAIN_EVALUATE_H

#include "train/session.h"

/* Whether to stop now. */
typedef bool (*sp_must_stop)(const void *arg);

/* Score every sample of a part once, in its order, without augmentation, with
 * the session's evaluation program; of text, every token but the first, in
 * train.eval_batch columns that each begin with states of zero. `stop` (may be
 * NULL) is asked before each batch.
 * Collective: the session's ranks share each batch and get the same scores,
 * with the average of their running statistics; all stop if one is to.
 * Errors: SP_EARG for an empty part, SP_ESTOPPED, those of reading, on all
 * ranks together. */
SP_MUST sp_err sp_evaluate(sp_session *s, sp_part part, sp_must_stop stop,
                           const void *arg, sp_scores *out);

/* e^loss, infinite for a loss that is no number. */
double sp_perplexity(double loss);

/* "training", "validation" or "test". */
const char *sp_part_name(sp_part part);

/* How many of `classes` logits stand before that of `label` when sorted: 0
 * for the largest. Of equal ones the lower class comes first; those that are
 * not numbers come before all. */
int sp_rank_of(const float *logits, int classes, int label);

#endif
