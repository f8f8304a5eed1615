/* Where a training run stands: all that a checkpoint holds besides arrays. */
#ifndef SP_TRAIN_STATE_H
#define SP_TRAIN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "sprat/optim.h"

/* What an epoch line of metrics.jsonl says. NAN: does not apply, left out. */
typedef struct sp_epoch_line {
    double epoch, step; /* epochs begun and steps done, both from 1 */
    double lr;
    double train_loss, train_top1;
    double valid_loss, valid_top1, valid_top5;
    double test_loss, test_top1, test_top5;
    double train_ppl, valid_ppl, test_ppl; /* of text: e^loss */
    double seconds, items_per_s;
    double dense_bytes, packet_bytes, mpi_bytes, compression_ratio;
    double peak_rss_mib;
    double round;     /* of pruning, from 0, and ... */
    double remaining; /* ... percent of the weights that can be pruned that are
                         not */
} sp_epoch_line;

/* A line to which nothing applies yet. */
sp_epoch_line sp_epoch_line_none(void);

/* Key i, in the order in which they are written; NULL past the last. */
const char *sp_epoch_line_key(int i);

/* Write the line's keys into an open object. */
void sp_epoch_line_write(sp_json *j, const sp_epoch_line *line);

/* Read them back. Errors: SP_EFORMAT for a key that is no number. */
SP_MUST sp_err sp_epoch_line_read(const sp_json_value *object,
                                  sp_epoch_line *line);

/* Sums since the last step line of metrics.jsonl. */
typedef struct sp_window {
    double loss, norm, seconds, packet_bytes, mpi_bytes, net_bytes;
    int64_t correct, samples, steps;
} sp_window;

/* What an epoch's time is spent on. */
typedef enum sp_time {
    SP_TIME_DATA, /* waiting for a batch */
    SP_TIME_FORWARD,
    SP_TIME_BACKWARD,
    SP_TIME_COMPRESS, /* encoding and decoding */
    SP_TIME_EXCHANGE, /* waiting for other ranks */
    SP_TIME_OPTIM,
    SP_TIME_EVAL,
    SP_TIME_CHECKPOINT,
    SP_TIMES
} sp_time;

/* "data_s", "forward_s", ... */
const char *sp_time_key(sp_time time);

/* The next step is batch `batch` of epoch `epoch`. */
typedef struct sp_train_state {
    int64_t step;  /* steps done */
    int epoch;     /* epochs finished, evaluation included */
    int64_t batch; /* batches done in the epoch under way */
    int switched;  /* epoch from which on layers are of low rank by a switch;
                      -1: there was none */
    int round;     /* prunings done, each with a training from an early epoch */
    int64_t begun; /* step at which the optimizer's state last began anew */
    /* Sums over the epoch under way. */
    double loss_sum; /* of the samples */
    int64_t correct, samples;
    double epoch_seconds;   /* spent in training */
    double packet_bytes;    /* this rank's gradients, as they were sent */
    double mpi_bytes;       /* handed to MPI for them */
    double seconds;         /* of the whole run, evaluation included */
    double times[SP_TIMES]; /* of this rank, in seconds */
    double times_since;     /* `seconds` when that epoch began */
    double lr;              /* of the last step */
    sp_window window;
    sp_schedule_state schedule;
    sp_epoch_line last, best; /* epoch is NAN: none yet */
} sp_train_state;

/* Before the first step. */
sp_train_state sp_train_state_start(void);

/* Write the state's keys into an open object, and read them back.
 * Errors: SP_EFORMAT naming the key that is missing or wrong. */
void sp_train_state_write(sp_json *j, const sp_train_state *s);
SP_MUST sp_err sp_train_state_read(const sp_json_value *object,
                                   sp_train_state *s);

/* The score by which epochs are compared (higher is better), and the name of
 * what it is: accuracy, or for text less perplexity, on the validation part,
 * without one on the test part. NAN: none. */
double sp_epoch_line_score(const sp_epoch_line *line);
const char *sp_epoch_line_score_name(const sp_epoch_line *line);

#endif
