/* A session: everything that a configuration describes, opened: parameters,
 * programs, data, optimizer. Training, evaluation, benchmarks and reports all
 * start from one. */
#ifndef SP_SESSION_H
#define SP_SESSION_H

#include "data/dataset.h"
#include "optim/optim.h"
#include "sprat/model.h"
#include "sprat/train.h"

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
    const sp_log_cfg *log;
} sp_settings;

/* View a configuration and check what no single key can show: micro_batch
 * divides batch, nesterov needs momentum, batch fits the data, ... All
 * mistakes in one message. */
SP_MUST sp_err sp_settings_view(const sp_config *c, sp_settings *s);

/* A recorded and compiled program with the tensors that matter. */
typedef struct sp_program {
    sp_graph *graph;
    sp_tensor *image, *label, *logits;
    int rows; /* capacity */
} sp_program;

typedef struct sp_session {
    sp_settings set;
    sp_data_info info; /* image size and classes */
    int classes;
    int threads;
    const char *isa;
    sp_params *params;
    sp_program train, eval; /* graph NULL: not asked for */
    sp_dataset *data;       /* NULL: not asked for */
    sp_optim *optim;        /* NULL: not asked for */
} sp_session;

/* What to open. */
typedef struct sp_session_opt {
    bool train, eval, data, no_memory;
    int eval_rows; /* 0: train.eval_batch */
} sp_session_opt;

/* Parameters are initialised from the seed and `model.init`. On failure
 * nothing stays open. */
SP_MUST sp_err sp_session_open(sp_session *s, const sp_config *c,
                               sp_session_opt opt);
void sp_session_close(sp_session *s);

#endif
