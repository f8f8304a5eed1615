/* metrics.jsonl and hashes.jsonl: one JSON object a line, whole lines only. */
#ifndef SP_TRAIN_METRICS_H
#define SP_TRAIN_METRICS_H

#include <stdio.h>

#include "base/hash.h"
#include "sprat/graph.h"
#include "train/state.h"

enum { SP_HASH_STEPS = 100 }; /* from one parameter hash to the next */

typedef struct sp_metrics {
    char *metrics_path, *hashes_path;
    FILE *metrics, *hashes;
} sp_metrics;

/* Open a run's files to append to them, after cutting them back to where `at`
 * stands: later lines, and one that a crash has torn, are dropped.
 * Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_metrics_open(sp_metrics *m, const char *run,
                               const sp_train_state *at);
void sp_metrics_close(sp_metrics *m);

/* What a step line says; means over the steps since the line before. */
typedef struct sp_step_line {
    int64_t epoch, step; /* both from 1 */
    double lr, loss;
    double top1; /* NAN: text, left out */
    double norm, items_per_s;
    double packet_bytes, mpi_bytes, net_bytes; /* NAN: nothing is exchanged,
                                                  left out */
} sp_step_line;

/* Append one line, which is in the file when the call returns. With files that
 * are not open, as on all ranks but 0, nothing. Errors: SP_EIO. */
SP_MUST sp_err sp_metrics_step(sp_metrics *m, const sp_step_line *line);
SP_MUST sp_err sp_metrics_epoch(sp_metrics *m, const sp_epoch_line *line);
SP_MUST sp_err sp_metrics_hash(sp_metrics *m, int64_t step,
                               const char hex[SP_HASH_HEX]);

/* The hash of all parameters and buffers. Running statistics differ from rank
 * to rank: a run has the hashes of rank 0. */
void sp_params_hash(const sp_params *p, char hex[SP_HASH_HEX]);

/* The hashes of a run, by step. */
typedef struct sp_hash_line {
    int64_t step;
    char hex[SP_HASH_HEX];
} sp_hash_line;

/* Read hashes.jsonl, leaving out a torn last line; *lines is the caller's to
 * free. Errors: SP_EIO, SP_EFORMAT, SP_ENOMEM. */
SP_MUST sp_err sp_hashes_read(const char *run, sp_hash_line **lines,
                              size_t *count);

#endif
