/* Whole jobs: train, resume, evaluate, inspect. What the program's verbs call,
 * and what a program of one's own may call in their place.
 *
 * Every call may fail; sp_last_error() then holds the text to show.
 */
#ifndef SPRAT_TRAIN_H
#define SPRAT_TRAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sprat/config.h"
#include "sprat/data.h"
#include "sprat/dist.h"
#include "sprat/graph.h"
#include "sprat/optim.h"

/* The keys of section `model` that all models share. */
typedef struct sp_model_cfg {
    int classes;      /* 0: as the data set says */
    const char *init; /* weights to start from, a safetensors file; "": none */
} sp_model_cfg;

/* The keys of section `train`. */
typedef struct sp_train_cfg {
    int epochs;
    int max_steps;      /* stop after so many steps; 0: no limit */
    double max_minutes; /* save and stop after so long; 0: no limit */
    int batch;       /* samples of one step, the whole job's; columns of text */
    int micro_batch; /* samples of one forward and backward; 0: all at once */
    bool drop_last;  /* leave out the last short batch of an epoch */
    int eval_batch;
    int bptt; /* of text: tokens of each column in a step */
    int seed;
    int threads; /* 0: as many as the affinity mask allows */
    bool planner;
    int recompute;  /* choices: none|norm; see sp_graph_opt.recompute */
    int isa;        /* choices: auto|base|avx2|avx512|neon */
    int winograd;   /* sp_winograd; choices: auto|off|2|4 */
    bool reference; /* convolution by im2col and BLAS */
    double label_smoothing;
    int checkpoint_steps;      /* also save every so many steps; 0: no */
    double checkpoint_minutes; /* also save after so long; 0: no */
    int keep; /* older checkpoints that stay beside last and best */
} sp_train_cfg;

/* The keys of section `dist`. */
typedef struct sp_dist_cfg {
    bool sync_bn;       /* batch norm over the batch of all ranks */
    int hierarchy;      /* choices: flat|node */
    int ranks_per_node; /* 0: those of one host */
    int exchange;       /* choices: gather|merge */
    double timeout_s;
    int check_every; /* steps between comparisons of all ranks' parameters; 0:
                        never */
} sp_dist_cfg;

/* The keys of section `log`. */
typedef struct sp_log_cfg {
    int every;    /* steps between lines of metrics.jsonl and of the terminal */
    bool tensors; /* tensors.jsonl: what becomes of each parameter */
    bool csv, tensorboard; /* metrics.jsonl in other forms, too */
    bool trace;            /* trace.json: a timeline of ... */
    int trace_steps;       /* ... the first steps of each call */
} sp_log_cfg;

/* ---- Training ---------------------------------------------------------- */

/* How a job reports and is told to stop. */
typedef struct sp_job {
    const char *run;  /* run folder; NULL: runs/NAME-YYYYmmdd-HHMMSS */
    const char *name; /* NAME above: of the last config file */
    bool overwrite;   /* an existing run folder is replaced */
    FILE *terminal;   /* header, progress and results; NULL: none */
    const volatile sig_atomic_t *stop; /* not 0: save and stop; NULL: never */
    sp_comm *comm; /* the ranks that train together, on each of which the same
                      call is made; NULL: this process alone */
    /* Set by the call: step 0 was reached, so that an error is the run's and
     * not the configuration's. */
    bool started;
} sp_job;

/* Train as configured, into a new run folder.
 * Errors: SP_ENUMERIC (loss or gradient not finite: nothing was saved; step
 * and layer are named), SP_ESTOPPED (saved first), and everything that config,
 * data and files can give. */
SP_MUST sp_err sp_train(const sp_config *c, sp_job *job);

/* Continue the run in folder job->run from its last checkpoint, with
 * `overrides` laid over its configuration. The result has the same bits as if
 * the run had never stopped. */
SP_MUST sp_err sp_resume(const sp_registry *r, const char *const *overrides,
                         size_t override_count, sp_job *job);

/* ---- Using what was trained -------------------------------------------- */

/* Means over every sample of a part, each counted once; of text, over every
 * token but the first. What does not apply is NAN. */
typedef struct sp_scores {
    size_t count;
    double loss; /* per sample or token, without label smoothing */
    double top1; /* of images: percent */
    double top5; /* the same, with more than 5 classes */
    double ppl;  /* of text: perplexity, e^loss; infinite where the loss is no
                    number, which is the worst there is */
} sp_scores;

/* Score a checkpoint ("last", "best" or a folder in RUN/checkpoints), as the
 * run's configuration says. */
SP_MUST sp_err sp_eval(const sp_registry *r, const char *run,
                       const char *checkpoint, sp_part part, sp_scores *out);

/* One image's answer. */
typedef struct sp_prediction {
    const char *file;
    int label;            /* true class, when the file's folder is named as one;
                             else -1 */
    int best[5];          /* classes, the most likely first; with fewer than 5
                             classes, so many */
    double confidence[5]; /* their softmax, 0 to 1 */
} sp_prediction;

/* Classify PNG files, or all in a folder and the class folders in it, with a
 * checkpoint of a run (NULL: the best). `each` gets them in the order of
 * `files`; class names are `names` (NULL: numbers). Images are scaled to the
 * network's input size. Opens no data set. */
typedef struct sp_predict_opt {
    const char *run, *checkpoint;
    const char *const *files;
    size_t file_count;
    void (*each)(void *arg, const sp_prediction *p, const char *const *names,
                 int classes);
    void *arg;
} sp_predict_opt;

SP_MUST sp_err sp_predict(const sp_registry *r, const sp_predict_opt *o);

/* Let a model of text write: `tokens` of them, each drawn with the probability
 * that the model gives it behind all before, at a temperature: logits are
 * divided by it; 0 takes the most likely token. The text before the first is
 * the end of a line (without one in the vocabulary, its first token), then
 * `prompt`. `out` gets the prompt's tokens, words apart by one space and those
 * that the vocabulary lacks as <unk>, and what follows. The same options give
 * the same text.
 * Errors: SP_EARG for a temperature below 0; SP_ECONFIG for a run on images;
 * SP_EDATA for a prompt with a word or character that the vocabulary lacks;
 * SP_ENUMERIC when the model's answer is not finite; those of reading the run.
 */
typedef struct sp_sample_opt {
    const char *run, *checkpoint; /* checkpoint NULL: the best */
    const char *prompt;           /* NULL: none */
    int64_t tokens;
    double temperature;
    uint64_t seed;
    FILE *out;
} sp_sample_opt;

SP_MUST sp_err sp_sample(const sp_registry *r, const sp_sample_opt *o);

/* Replay the first `steps` steps of a run and compare the hashes of all
 * parameters with those in hashes.jsonl. *compared: hashes that agreed.
 * With several ranks each makes the same call, and rank 0 compares.
 * Errors: SP_ENUMERIC names the first step that differs; SP_EARG when the run
 * has no hash within `steps`, or began on another number of ranks. */
SP_MUST sp_err sp_verify(const sp_registry *r, const char *run, int64_t steps,
                         sp_comm *comm, int *compared);

/* ---- Looking ahead ----------------------------------------------------- */

/* What each of so many ranks hands to MPI in a step, as configured and without
 * compression, when warm-ups are over. */
enum { SP_INFO_RANKS = 4 };

typedef struct sp_info_ranks {
    int ranks;
    double mpi_bytes, dense_bytes;
} sp_info_ranks;

/* What a configuration will need; opens no data. */
typedef struct sp_info {
    bool low;     /* it is that of the program of low rank */
    bool unknown; /* that one has ranks which are found in training: it is that
                     of full rank */
    size_t params, params_1d;
    bool text;                        /* on text, not images */
    double macs;                      /* one image, or one token */
    sp_memory memory;                 /* of one training step, bytes */
    double dense_bytes, packet_bytes; /* gradients of a step on the wire */
    sp_params *tensors;   /* the store, for names and shapes (no values) */
    double *tensor_bytes; /* of each, by its index: what of packet_bytes it is;
                             0 for buffers */
    sp_info_ranks on[SP_INFO_RANKS]; /* of 2, 8, 32, 128 */
} sp_info;

/* At the start of training, or `at_end`, behind the switch to low rank, if one
 * is configured and its ranks are known. On success sp_info_close() frees what
 * is in *out. */
SP_MUST sp_err sp_info_open(const sp_config *c, bool at_end, sp_info *out);
void sp_info_close(sp_info *i);

/* Everything that can be found wrong before step 0, data included, by all ranks
 * of `comm` together (NULL: by this alone); the first writes a summary of what
 * was found to `out` (may be NULL). */
SP_MUST sp_err sp_check(const sp_config *c, sp_comm *comm, FILE *out);

/* A pass over one operator in a step of training, or what else a step does: the
 * optimizer ("update"), and what belongs to neither ("outside").
 *
 * Flops are those of the direct products, 2 x MACs x rows, whatever algorithm
 * computes them. Bytes are the least that a pass must move: every array that it
 * reads or writes once, one more reading where a gradient is added to what is
 * there. In training, a batch norm needs the sums over the batch before it can
 * begin: forward reads x twice, backward x and dy (and y, where it reads it)
 * twice; the update's second reading of the gradient is for its norm. No
 * operator can be faster than its bound, unless arrays are still in the cache
 * from the pass before, few of an input's pixels are needed (a stride), or an
 * algorithm saves multiplications. */
typedef struct sp_bench_op {
    char *name;            /* "layer1.0.conv1" */
    const char *op;        /* its kind, "convolve" */
    const char *pass;      /* "forward", "backward" or a part of it,
                              "recompute", "update", "step" */
    const char *algorithm; /* NULL: there is only one */
    double ms;             /* in that step */
    double share;          /* of step_ms; all together 1 */
    double flops, bytes;   /* of a step; 0: none, unknown */
    double bound_ms;       /* max(flops / peak, bytes / bandwidth) */
    const char *bound_by;  /* "flops", "bytes"; NULL: nothing */
} sp_bench_op;

/* Times of training steps on made-up data; opens none. All but the extremes are
 * of one step, the median one (of two in the middle the shorter), so that parts
 * add up. */
typedef struct sp_bench {
    double step_ms, step_ms_min, step_ms_max;
    double forward_ms, backward_ms, optim_ms;
    double compress_ms; /* encoding and decoding of gradients */
    double exchange_ms; /* waiting for other ranks; what is sent while backward
                           goes on is not in it */
    double items_per_s; /* images or tokens */
    double gflops;      /* 2 x 3 x MACs over step_ms */
    double peak_gflops; /* measured by a loop of multiply-adds in this run */
    double fraction_of_peak;
    double peak_rss_mib;
    bool assumed; /* training would choose the ranks of layers: these are by
                     lowrank.rank_ratio */
    int threads, ranks;
    const char *isa;
    double dense_bytes;  /* of all gradients, as floats */
    double packet_bytes; /* of this rank's, as they are sent in a step */
    double mpi_bytes;    /* handed to MPI for them */
    double net_bytes;    /* of these, to other hosts */

    /* With sp_bench_opt.ops, in the order of a step. */
    sp_bench_op *ops;
    size_t op_count;
    double bandwidth_gbytes_per_s; /* of a = b + s * c in this run */
} sp_bench;

typedef struct sp_bench_opt {
    int steps;     /* measured, after 2 that are not */
    bool ops;      /* the time of every operator, too */
    sp_comm *comm; /* the ranks that are timed together; NULL: this alone */
} sp_bench_opt;

/* On success the caller frees what is in *out. Errors: SP_EARG for fewer than 1
 * step, SP_ENOMEM, and those of the configuration. */
SP_MUST sp_err sp_bench_run(const sp_config *c, sp_bench_opt opt,
                            sp_bench *out);
void sp_bench_free(sp_bench *b);

/* Threads this process may use: its affinity mask. */
int sp_threads_available(void);

/* The git commit that the library was built from; "unknown" outside of git. */
const char *sp_commit(void);

/* The i-th operator of the library, or NULL past the last. */
const struct sp_op *sp_op_at(int i);

#endif
