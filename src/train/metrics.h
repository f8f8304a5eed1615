/* metrics.jsonl and hashes.jsonl: one JSON object a line, whole lines only; and
 * the other forms of the former. */
#ifndef SP_TRAIN_METRICS_H
#define SP_TRAIN_METRICS_H

#include <stdio.h>

#include "base/hash.h"
#include "sprat/graph.h"
#include "train/sinks.h"
#include "train/state.h"

enum { SP_HASH_STEPS = 100 }; /* from one parameter hash to the next */

/* The key of a line's time of day, seconds since 1970. */
#define SP_WALL_TIME "wall_time"

typedef struct sp_metrics {
    char *metrics_path, *hashes_path;
    FILE *metrics, *hashes;
    sp_sinks sinks;
} sp_metrics;

/* Open a run's files to append to them, after cutting them back to where `at`
 * stands: later lines, and one that a crash has torn, are dropped. `log` says
 * which other forms there are. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_metrics_open(sp_metrics *m, const char *run,
                               const sp_train_state *at, const sp_log_cfg *log);
void sp_metrics_close(sp_metrics *m);

/* What a step line says; means over the steps since the line before. NAN: does
 * not apply, left out. */
typedef struct sp_step_line {
    double epoch, step; /* both from 1 */
    double lr, train_loss;
    double train_top1; /* of images */
    double grad_norm, items_per_s;
    double packet_bytes, mpi_bytes, net_bytes; /* of what is exchanged */
} sp_step_line;

/* Where the time of an epoch went; `times` as in sp_train_state. */
typedef struct sp_time_line {
    double epoch, step, round; /* round: NAN without pruning */
    const double *times;
    double other; /* seconds beside all of those */
} sp_time_line;

/* Append one line, which is in the file, and in its other forms, when the call
 * returns. With files that are not open, as on all ranks but 0, nothing.
 * Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_metrics_step(sp_metrics *m, const sp_step_line *line);
SP_MUST sp_err sp_metrics_epoch(sp_metrics *m, const sp_epoch_line *line);
SP_MUST sp_err sp_metrics_times(sp_metrics *m, const sp_time_line *line);
SP_MUST sp_err sp_metrics_hash(sp_metrics *m, int64_t step,
                               const char hex[SP_HASH_HEX]);

/* Key i that lines of a kind ("step", "epoch", "time") can have, beside "kind"
 * and in their order; NULL past the last. */
const char *sp_metrics_key(const char *kind, int i);

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
