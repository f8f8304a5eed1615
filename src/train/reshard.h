/* Going on with other ranks than a checkpoint was written by.
 *
 * Weights, the optimizer's state and the position are common to all ranks and
 * stay as they are. Of what is a rank's own:
 *   columns of text  the batch's columns are in rank order, so that the states
 *                    which they are carried on with are cut anew, exactly
 *   what adds up     (gradients not yet sent) only the sum over ranks counts:
 *                    of K ranks that kept it, number k's goes to number
 *                    floor(k K' / K) of the K' that keep it now, where it is
 *                    added in rank order
 *   other arrays     (local momentum) start from zero, unless the same ranks
 *                    keep them
 *   statistics       start from the average, which is in the weights
 *
 *   4 -> 2 ranks:  0 1 | 2 3          4 -> 3:  0 1 | 2 | 3
 *   2 -> 4 ranks:  0 | - | 1 | -      ("-": zero)
 */
#ifndef SP_TRAIN_RESHARD_H
#define SP_TRAIN_RESHARD_H

#include "train/local.h"
#include "train/manifest.h"

/* Where this rank stands in the job that goes on. */
typedef struct sp_place {
    int rank, ranks;
    int keeper, keepers; /* its number among the ranks that keep arrays of the
                            compressor, and how many they are; -1: none */
} sp_place;

/* Whether the ranks that keep arrays now, keeps[0..ranks), are those of the
 * checkpoint: then every rank reads its own file as it is. */
bool sp_place_same(const sp_manifest *m, const bool *keeps, int ranks);

/* The place of `rank`. */
sp_place sp_place_of(const bool *keeps, int rank, int ranks);

/* Fill `to` from the files of the checkpoint in `folder`, of which only those
 * that matter are opened, one at a time. Buffers are left as they are unless
 * the ranks are as many as they were. Errors: SP_EIO, SP_EFORMAT, SP_ENOMEM;
 * SP_ECONFIG when the files hold other arrays of the compressor. */
SP_MUST sp_err sp_reshard(const char *folder, const sp_manifest *m,
                          const sp_local *to, sp_place at);

/* What going on with these ranks means: lines for people; `same` as above; none
 * for one rank as before. */
void sp_reshard_tell(const sp_manifest *m, const sp_local *to, sp_place at,
                     bool same, sp_text *out);

#endif
