/* What the tests of pruning share: runs of small networks through their rounds.
 * Failures end the test. */
#ifndef SPRAT_TESTS_PRUNED_H
#define SPRAT_TESTS_PRUNED_H

#include "runs.h"

enum { PRUNED_NETWORKS = 4 };

/* Overrides of networks with convolutions and running statistics, of linear
 * layers, of a recurrent one, and of one that goes back to the weights after an
 * epoch, under a schedule that watches: two prunings each. Steps of an epoch:
 * 3, 6, 6, 5; epochs of a training: 2, 2, 2, 3. */
extern const char *const *const pruned_networks[PRUNED_NETWORKS];
extern const char *const pruned_mlp[], *const pruned_late[];

void pruned_train(const runs *r, const char *run, const char *const *overrides);
void pruned_resume(const runs *r, const char *run,
                   const char *const *overrides);

#endif
