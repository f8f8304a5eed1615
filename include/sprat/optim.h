/* Optimizers and learning-rate schedules by name. */
#ifndef SPRAT_OPTIM_H
#define SPRAT_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/config.h"

enum { SP_MAX_STATE = 3 };

/* One parameter's update. All arrays have n floats. */
typedef struct sp_update {
    size_t n;
    float *value;
    const float *grad;
    float *state[SP_MAX_STATE]; /* zero before the first step */
    float scale; /* of the gradient: below 1 where clipping is active */
    float lr, decay;
    const float *pull; /* what decay pulls on; NULL: on the values themselves.
                          Only for a rule that `pulls` */
    int64_t step;      /* from 0 */
    /* `grad` is a step with its momentum in it already, as a compressor has
     * sent it: it is applied as it is, and momentum acts on the decay alone.
     * Only for a rule that has `momentum`. */
    bool corrected;
    const void *own;
} sp_update;

/* An optimizer: its name in `optim.name`, its keys and its rule. */
typedef struct sp_optimizer {
    sp_entry entry;
    int state_count;                       /* arrays kept per parameter */
    const char *state_names[SP_MAX_STATE]; /* PyTorch's: "momentum_buffer" */
    bool pulls; /* its decay acts on sp_update.pull, where that is given */
    /* Refuse settings that contradict each other (SP_ECONFIG); NULL: none
     * can. */
    sp_err (*check)(const void *own);
    /* Update the elements; called for parts of a parameter by several threads
     * at once, so it must not look beyond them. */
    void (*update)(const sp_update *u);
    /* The rule's momentum where it is that of SGD, linear in the gradient with
     * its only state as sum, so that ranks may apply it before they exchange
     * gradients; NULL: it has none such. */
    void (*momentum)(const void *own, double *momentum, bool *nesterov);
} sp_optimizer;

/* The rule's check of its settings. Errors: SP_ECONFIG. */
SP_MUST sp_err sp_optimizer_check(const sp_optimizer *rule, const void *own);

typedef enum sp_decay {
    SP_DECAY_ALL,
    SP_DECAY_MATRICES /* parameters of more than one dimension */
} sp_decay;

/* The keys that all optimizers share. */
typedef struct sp_optim_cfg {
    double lr;
    double weight_decay;
    int decay;   /* an sp_decay */
    double clip; /* largest global gradient norm; 0: no clipping */
} sp_optim_cfg;

/* Where training stands, for a schedule. */
typedef struct sp_schedule_at {
    int epoch;       /* from 0 */
    int epochs;      /* in all */
    double progress; /* epochs done, with the fraction of the present one */
    double warmup;   /* epochs of warm-up; set by sp_schedule_factor() */
} sp_schedule_at;

/* What a schedule that watches results remembers; saved in checkpoints. */
typedef struct sp_schedule_state {
    double factor; /* starts at 1 */
    double best;   /* loss; starts at infinity */
    int bad;       /* epochs without improvement */
} sp_schedule_state;

/* The state before the first epoch. */
sp_schedule_state sp_schedule_start(void);

/* A schedule: its name in `schedule.name`, its keys and its rule. */
typedef struct sp_schedule {
    sp_entry entry;
    /* As for optimizers; may be NULL. */
    sp_err (*check)(const void *own);
    /* The last epoch that the settings name, so that one beyond the end of the
     * run can be warned of; NULL: they name none. */
    double (*last_epoch)(const void *own);
    /* The factor on optim.lr, before warm-up. */
    double (*factor)(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s);
    /* Told each epoch's validation (else test) loss; NULL: does not care. */
    void (*observe)(const void *own, double loss, sp_schedule_state *s);
} sp_schedule;

/* The schedule's check of its settings. Errors: SP_ECONFIG. */
SP_MUST sp_err sp_schedule_check(const sp_schedule *s, const void *own);

/* The keys that all schedules share. */
typedef struct sp_schedule_cfg {
    double warmup_epochs; /* the rate rises linearly over these */
    double warmup_from;   /* factor at the start of the warm-up */
} sp_schedule_cfg;

/* The learning-rate factor with warm-up:
 *   (from + (1 - from) * progress / warmup_epochs) * factor   in the warm-up,
 *   factor                                                   after it. */
double sp_schedule_factor(const sp_schedule *s, const void *own,
                          const sp_schedule_cfg *cfg, const sp_schedule_at *at,
                          const sp_schedule_state *state);

#endif
