/* The section `lowrank`: which layers become products of two factors, of which
 * rank, and from which epoch on.
 *
 * Source: Wang, Agarwal, Papailiopoulos 2021, "Pufferfish: Communication-
 *         efficient Models At No Extra Cost".
 */
#ifndef SP_TRAIN_LOWRANK_H
#define SP_TRAIN_LOWRANK_H

#include "base/text.h"
#include "sprat/config.h"
#include "sprat/graph.h"
#include "sprat/model.h"
#include "sprat/optim.h"
#include "train/autorank.h"

/* The keys of `lowrank` with name: pufferfish. */
typedef struct sp_lowrank_cfg {
    int rank;          /* choices: ratio|auto */
    double rank_ratio; /* rank over the smaller side of a layer's matrix */
    int warmup_epochs; /* at full rank; 0: low rank from the start */
    const char *full;  /* layers that stay at full rank; "auto": the model's */
    int gates;         /* choices below */
    bool extra_norm;
    bool frobenius_decay; /* weight decay acts on products of factors */
    int at_switch;        /* what happens to momentum, and ... */
    int residual; /* ... to what a compressor has not sent: choices below */
    double lr_factor, rewarm_epochs; /* of the rate, after the switch */
} sp_lowrank_cfg;

enum { SP_RANK_RATIO, SP_RANK_AUTO };
enum { SP_GATES_EACH, SP_GATES_JOINED };
enum { SP_AT_SWITCH_RESTART, SP_AT_SWITCH_PROJECT };
enum { SP_RESIDUAL_FLUSH, SP_RESIDUAL_PROJECT };

/* An sp_rank_rule by a configuration. */
typedef struct sp_lowrank_ranks {
    double ratio;
    const char *full;          /* names of layers, see sp_layer_listed() */
    const sp_autorank *chosen; /* ranks by name instead; NULL: none */
} sp_lowrank_ranks;

/* The rule for a model with these settings of its own. `ranks` is set, but for
 * `chosen`, which is the caller's to set; it has to last as long as the
 * rule. */
sp_rank_rule sp_lowrank_rule(const sp_lowrank_cfg *cfg, const sp_model *model,
                             const void *model_own, sp_lowrank_ranks *ranks);

/* Whether the settings and the parameters recorded by them fit: every name in
 * `full` is one of theirs, and something is of low rank. Errors: SP_ECONFIG. */
SP_MUST sp_err sp_lowrank_check(const sp_lowrank_cfg *cfg, const sp_params *p);

/* Whether nothing is trained at full rank; false for NULL. */
bool sp_lowrank_from_start(const sp_lowrank_cfg *cfg);

/* What is allowed but hardly meant with the parameters of the program of low
 * rank: factors that are no smaller than their layer, or a choice that none of
 * the layers has. One line each, appended to `out`. */
void sp_lowrank_warn(const sp_lowrank_cfg *cfg, const sp_params *low,
                     sp_text *out);

/* The factor on the learning rate, `epochs` (with fractions) after the
 * switch. */
double sp_lowrank_rate(const sp_lowrank_cfg *cfg, double epochs);

#endif
