/* Running statistics over several ranks. Each rank's batch norms see its own
 * samples, so that buffers differ from rank to rank. What is evaluated and
 * kept as weights is their average, weighted by the ranks' samples; training
 * goes on with the local ones.
 *
 *   SP_TRY(sp_statistics_average(&kept, s, SP_USE_EVALUATE));
 *   ... evaluate, or save the weights ...
 *   sp_statistics_restore(&kept);
 */
#ifndef SP_TRAIN_STATISTICS_H
#define SP_TRAIN_STATISTICS_H

#include "train/session.h"

/* The local values, while the average stands in the store. */
typedef struct sp_statistics {
    sp_params *params;
    float *local; /* NULL: nothing was changed */
} sp_statistics;

/* Replace the buffers of the session's store by their average over the ranks,
 * of which each counts by its share of train.batch. With one rank, or without
 * buffers, nothing is touched. Collective. Errors: SP_ENOMEM on all ranks
 * together, those of waiting; nothing is changed then. */
SP_MUST sp_err sp_statistics_average(sp_statistics *kept, const sp_session *s,
                                     sp_use use);

/* Put the local values back, the same bits. */
void sp_statistics_restore(sp_statistics *kept);

/* The steps of an average: floats in all buffers; add them, `samples` times
 * each, to `sum`; and let them become sum / samples. */
size_t sp_statistics_count(const sp_params *p);
void sp_statistics_add(const sp_params *p, double samples, double *sum);
void sp_statistics_set(sp_params *p, const double *sum, double samples);

#endif
