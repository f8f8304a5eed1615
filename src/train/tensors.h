/* RUN/tensors.jsonl: what an epoch has made of each trained parameter. One line
 * with the names and sizes, and again when a switch has made another network of
 * it; then a line an epoch, whose lists are in the order of the names:
 *
 *   {"kind":"names","names":[...],"elements":[...]}
 *   {"kind":"tensors","epoch":E,"step":S,"weight_norm":[...],"grad_norm":[...],
 *    "zero_share":[...],"packet_bytes":[...]}
 *
 * Norms are Euclidean; that of a gradient is of the epoch's last step, summed
 * over the ranks, before it is clipped. Packet bytes are this rank's, means per
 * step since the epoch, or this process, began; null where nothing is
 * exchanged. Both are null, too, where a process went on behind the epoch's
 * last step, only to evaluate. With pruning a line has its "round", too.
 */
#ifndef SP_TRAIN_TENSORS_H
#define SP_TRAIN_TENSORS_H

#include <stdio.h>

#include "train/session.h"
#include "train/state.h"

/* Starts as { 0 }, with which nothing is done. */
typedef struct sp_tensors {
    char *path;
    FILE *file;
    char *names;   /* the last line with names; NULL: none yet */
    double *bytes; /* of each parameter, at `step` */
    int64_t step;
} sp_tensors;

/* Open the file of a run to append to it, cut back to where `at` stands.
 * Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_tensors_open(sp_tensors *t, const char *run,
                               const sp_train_state *at);
void sp_tensors_close(sp_tensors *t);

/* Count packets from here, before step `step`, on. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_tensors_begin(sp_tensors *t, const sp_session *s,
                                int64_t step);

/* Append an epoch's line, after the names if they are others than before; of
 * the line, epoch, step and round are taken. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_tensors_epoch(sp_tensors *t, const sp_session *s,
                                const sp_epoch_line *line);

#endif
