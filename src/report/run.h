/* A run folder, read into memory: what it measured, settled and warned of.
 *
 *   runs.c         which folders are runs; opening several
 *   run.c          one run: result.json, names, what the parts have in common
 *   run_metrics.c  metrics.jsonl -> series, times
 *   run_config.c   config.yaml -> settings; log.txt -> warnings
 *   run_tensors.c  tensors.jsonl -> statistics of each tensor
 */
#ifndef SPRAT_REPORT_RUN_H
#define SPRAT_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"
#include "report/lines.h"
#include "sprat/base.h"

/* What is drawn over time, as the lines of metrics.jsonl name it. */
#define SP_RUN_METRICS(X)              \
    X(SP_TRAIN_LOSS, "train_loss")     \
    X(SP_VALID_LOSS, "valid_loss")     \
    X(SP_TEST_LOSS, "test_loss")       \
    X(SP_TRAIN_TOP1, "train_top1")     \
    X(SP_VALID_TOP1, "valid_top1")     \
    X(SP_TEST_TOP1, "test_top1")       \
    X(SP_TRAIN_PPL, "train_ppl")       \
    X(SP_VALID_PPL, "valid_ppl")       \
    X(SP_TEST_PPL, "test_ppl")         \
    X(SP_RATE, "lr")                   \
    X(SP_ITEMS, "items_per_s")         \
    X(SP_GRAD_NORM, "grad_norm")       \
    X(SP_PACKET_BYTES, "packet_bytes") \
    X(SP_MPI_BYTES, "mpi_bytes")       \
    X(SP_NET_BYTES, "net_bytes")       \
    X(SP_COMPRESSION_RATIO, "compression_ratio")

typedef enum sp_run_metric {
#define X(name, key) name,
    SP_RUN_METRICS(X)
#undef X
        SP_METRIC_COUNT,
    SP_NO_METRIC = SP_METRIC_COUNT
} sp_run_metric;

/* Where the time of a run went, by the keys of "time" lines. */
enum { SP_RUN_TIMES = 9 };
extern const char *const sp_run_time_keys[SP_RUN_TIMES];
extern const char *const sp_run_time_names[SP_RUN_TIMES];

/* A point; y NAN: not known or not finite, the curve has a gap. */
typedef struct sp_xy {
    double x, y;
} sp_xy;

/* A growing list of points: the bytes of sp_xy one after the other. */
typedef struct sp_xy_list {
    sp_text bytes;
} sp_xy_list;

void sp_xy_list_add(sp_xy_list *p, double x, double y);
size_t sp_xy_list_count(const sp_xy_list *p);
const sp_xy *sp_xy_list_at(const sp_xy_list *p); /* NULL: none */
void sp_xy_list_free(sp_xy_list *p);

/* One key of config.yaml, as it stands there; texts are the run's. */
typedef struct sp_run_setting {
    const char *section, *key, *value, *source; /* source: "" if none */
} sp_run_setting;

/* Statistics of one tensor after an epoch; NAN: not known. */
typedef struct sp_run_stat {
    size_t tensor; /* index of its name */
    double epoch;  /* counted over all rounds: by its step */
    double weight_norm, grad_norm;
} sp_run_stat;

/* A parameter of tensors.jsonl. */
typedef struct sp_run_tensor {
    char *name;
    double elements;
} sp_run_tensor;

typedef struct sp_run_record {
    char *path, *name;  /* names differ from run to run of a report */
    char *row;          /* what runs share that differ in their seeds: "dgc" of
                           "dgc/seed-1"; of any other run its name */
    size_t look, seeds; /* of the row: number of its colour, dash and mark; how
                           many runs it has. Set by sp_runs_open(). */
    sp_json_doc *result;
    const sp_json_value *root; /* of result.json; NULL: there is none */
    uint8_t *config;           /* the bytes that settings point into */
    sp_text settings;          /* sp_run_setting, in the file's order */
    double batches;            /* steps of an epoch; NAN: not known */
    double last_step;          /* of metrics.jsonl; 0: none */
    /* By step, from lines of kind "step" and "epoch". */
    sp_xy_list steps[SP_METRIC_COUNT], epochs[SP_METRIC_COUNT];
    size_t epoch_count;
    bool timed;
    double times[SP_RUN_TIMES]; /* seconds, summed */
    sp_text tensors;            /* sp_run_tensor */
    sp_text stats;              /* sp_run_stat, in the file's order */
    sp_text warnings;           /* of log.txt, each once, one a line */
    sp_text notes;              /* what was left out here, one a line */
} sp_run_record;

/* Several runs, in the order of their colours. */
typedef struct sp_runs {
    sp_run_record *run;
    size_t count;
} sp_runs;

/* Open the runs at and below some paths. On success sp_runs_free() frees them;
 * {0} may be freed, too. Errors: as sp_report_write(). */
SP_MUST sp_err sp_runs_open(sp_runs *r, const char *const *paths, size_t count);
void sp_runs_free(sp_runs *r);

/* Whether a folder is one of a run: has one of the files that runs write.
 * Errors: SP_ENOMEM. */
SP_MUST sp_err sp_run_is(const char *path, bool *is);

/* Open one run; `name` is copied. *r is zeroed first; sp_run_free() may always
 * be called. */
SP_MUST sp_err sp_run_open(sp_run_record *r, const char *path,
                           const char *name);
void sp_run_free(sp_run_record *r);

/* The parts of sp_run_open(). */
SP_MUST sp_err sp_run_read_metrics(sp_run_record *r);
SP_MUST sp_err sp_run_read_config(sp_run_record *r);
SP_MUST sp_err sp_run_read_log(sp_run_record *r);
SP_MUST sp_err sp_run_read_tensors(sp_run_record *r);

/* Call `each` with every line of a file in the run's folder, as sp_run_lines()
 * does. That the last one was cut off becomes a note. */
SP_MUST sp_err sp_run_read_lines(sp_run_record *r, const char *name,
                                 sp_err (*each)(void *arg, const sp_line *line),
                                 void *arg);

/* Append one line to the notes. */
void sp_run_note(sp_run_record *r, const char *fmt, ...) SP_PRINTF(2, 3);

/* A number or text of result.json by a path such as "final", "test_top1"
 * (second NULL: of the top); NAN or NULL: there is none. */
double sp_run_number(const sp_run_record *r, const char *first,
                     const char *second);
const char *sp_run_text(const sp_run_record *r, const char *first,
                        const char *second);

/* The value of a key of config.yaml, or NULL. */
const char *sp_run_setting_of(const sp_run_record *r, const char *section,
                              const char *key);

/* The i-th setting, or NULL past the last. */
const sp_run_setting *sp_run_setting_at(const sp_run_record *r, size_t i);

/* How the run ended: "done"; "under way or killed" without result.json. */
const char *sp_run_status(const sp_run_record *r);

/* The metric that the run is judged by: its perplexity or accuracy, else loss,
 * of the part that it was evaluated on. SP_NO_METRIC: never evaluated. */
sp_run_metric sp_run_score(const sp_run_record *r);

/* Whether metrics.jsonl is beyond result.json, as in a run under way, whose
 * result is that of its last checkpoint. */
bool sp_run_is_ahead(const sp_run_record *r);

/* A metric at the run's end: from result.json, or else of its last epoch. NAN:
 * not known. */
double sp_run_final(const sp_run_record *r, sp_run_metric m);

const char *sp_run_metric_key(sp_run_metric m);
bool sp_run_metric_percent(sp_run_metric m); /* else the smaller the better */

#endif
