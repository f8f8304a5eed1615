/* A session: everything that a configuration describes, opened: parameters,
 * programs, data, optimizer. Training, evaluation, benchmarks and reports all
 * start from one. */
#ifndef SP_TRAIN_SESSION_H
#define SP_TRAIN_SESSION_H

#include "base/text.h"
#include "data/loader.h"
#include "optim/optim.h"
#include "sprat/compress.h"
#include "sprat/model.h"
#include "sprat/op.h"
#include "sprat/train.h"
#include "train/carry.h"
#include "train/exchange.h"
#include "train/frobenius.h"
#include "train/lowrank.h"
#include "train/prune.h"
#include "train/trace.h"

/* A configuration, by its sections' types. Pointers into the sp_config. */
typedef struct sp_settings {
    const sp_config *config;
    const sp_model *model;
    const void *model_own;
    const sp_model_cfg *model_cfg;
    const sp_data_set *set;
    const void *set_own;
    const sp_data_cfg *data;
    const sp_train_cfg *train;
    const sp_optimizer *optimizer;
    const void *optimizer_own;
    const sp_optim_cfg *optim;
    const sp_schedule *schedule;
    const void *schedule_own;
    const sp_schedule_cfg *schedule_cfg;
    const sp_compressor *compressor;
    const void *compressor_own;
    const sp_lowrank_cfg *lowrank; /* NULL: none */
    const sp_prune_cfg *prune;     /* NULL: none */
    const sp_dist_cfg *dist;
    const sp_log_cfg *log;
} sp_settings;

/* View a configuration and check what no single key can show: micro_batch
 * divides batch, keys that contradict each other, ... Errors: SP_ECONFIG with
 * all mistakes in one message. */
SP_MUST sp_err sp_settings_view(const sp_config *c, sp_settings *s);

/* Put what set a key ("file:line:column", "argument ...") before the last
 * error's text, where that begins with a key, "section.key"; returns `e`. */
sp_err sp_settings_locate(const sp_config *c, sp_err e);

/* A recorded and compiled program with the tensors that matter. */
typedef struct sp_program {
    sp_graph *graph;
    sp_tensor *input, *label;
    sp_tensor *logits; /* NULL: not kept, as for training on text, where they
                          are large */
    int rows, steps;   /* capacity of this rank; steps: of time, 1 for images */
    sp_carry carry;    /* states between batches; of text */
} sp_program;

typedef struct sp_session {
    sp_settings set;
    sp_data_info info; /* image size and classes, or text */
    int classes;
    int threads;
    bool crowded; /* some host has fewer cores than its ranks have threads */
    const char *isa;
    bool low;               /* layers are of low rank, by ... */
    sp_lowrank_ranks ranks; /* ... this rule */
    sp_params *params;
    sp_program train, eval;  /* graph NULL: not asked for */
    sp_dataset *data;        /* NULL: not asked for */
    bool borrowed;           /* the data are another session's to close */
    sp_optim *optim;         /* NULL: not asked for */
    sp_frobenius *frobenius; /* what its decay pulls on; NULL: on values */
    sp_comm *comm;           /* NULL: one rank; the caller's */
    sp_exchange *exchange;   /* with the optimizer */
    sp_across across; /* sums for dist.sync_bn; sum NULL: there are none */
    sp_err lost;      /* what has become of them */
    const struct sp_watch *watch; /* of training's runs; NULL: nobody */
    sp_trace *trace;              /* of training's steps; NULL: none */
} sp_session;

/* What to open. */
typedef struct sp_session_opt {
    bool train;        /* a training program and the optimizer */
    bool eval;         /* an evaluation program over the same parameters */
    bool data;         /* the data set; without it only its description */
    bool no_memory;    /* plan but allocate nothing: for reports */
    bool exchange;     /* then, too, see that gradients can be exchanged */
    bool no_init;      /* leave `model.init` out: weights come from elsewhere */
    int eval_rows;     /* 0: train.eval_batch */
    int eval_steps;    /* 0: train.bptt; of text */
    const char *tiles; /* sp_graph_opt.tiles: of the run's checkpoint */
    bool low;          /* the program of low rank: set.lowrank is not
                          NULL */
    const sp_autorank *chosen; /* ranks of `low` that training has chosen, which
                                  lasts until it is open; NULL: by
                                  set.lowrank */
    const struct sp_session *from; /* whose data set to borrow */
    const sp_data_info *info;      /* instead of the data set's description */
    sp_comm *comm;      /* the ranks to train with; NULL: this alone */
    bool always_gather; /* and `window`: as in sp_packets_args, for tests */
    int window;
} sp_session_opt;

/* Open what `opt` asks for, on all ranks of opt.comm with one configuration;
 * collective over them. Parameters have their first values, from the seed
 * and `model.init`. On failure nothing stays open. `c` must outlive it.
 * Errors: SP_ECONFIG, and those of data, files and memory. */
SP_MUST sp_err sp_session_open(sp_session *s, const sp_config *c,
                               sp_session_opt opt);
void sp_session_close(sp_session *s);

/* This rank's share of the batches of the training part of an open session that
 * has data; the caller frees them before it closes the session. Not collective.
 * Errors: those of sp_loader_new(). */
SP_MUST sp_err sp_session_batches(const sp_session *s, sp_loader **out);

/* What is allowed but hardly meant, such as a milestone beyond the last epoch:
 * one line each, appended to `out`. `batches`: of an epoch (warnings.c). */
void sp_session_warn(const sp_session *s, int64_t batches, sp_text *out);

/* What the session's model, opened data and batches are, in a line each, for
 * people (describe.c). */
enum { SP_DESCRIBE_ROOM = 4096 + 512 }; /* a path is among it */

void sp_describe_model(const sp_session *s, char out[SP_DESCRIBE_ROOM]);
void sp_describe_data(const sp_session *s, char out[SP_DESCRIBE_ROOM]);
void sp_describe_batch(const sp_session *s, char out[SP_DESCRIBE_ROOM]);

#endif
