/* What is allowed but hardly meant. */
#include <math.h>
#include <string.h>

#include "train/session.h"

/* Keys that say nothing of text, or of images. */
static const struct {
    const char *section, *key;
    bool text;
} of_one_kind[] = {
    { "train", "drop_last", false }, { "train", "winograd", false },
    { "train", "recompute", false }, { "data", "workers", false },
    { "data", "pad", false },        { "data", "pad_mode", false },
    { "data", "pad_raw", false },    { "train", "bptt", true },
};

static void warn_of_kind(const sp_settings *s, sp_text *out)
{
    bool text = s->model->text;

    for (size_t i = 0; i < sizeof of_one_kind / sizeof *of_one_kind; i++) {
        const char *source = sp_config_source(s->config, of_one_kind[i].section,
                                              of_one_kind[i].key);

        if (of_one_kind[i].text != text && strcmp(source, "default") != 0)
            sp_text_add(out, "warning: %s: %s.%s has no effect on %s\n", source,
                        of_one_kind[i].section, of_one_kind[i].key,
                        text ? "text" : "images");
    }
}

/* Epochs, or a part of one, after which the run, or its first round of several,
 * ends. */
static double last_epoch(const sp_settings *s, int64_t batches)
{
    const sp_train_cfg *cfg = s->train;
    double limit = batches > 0 ? (double)cfg->max_steps / (double)batches : 0;

    return limit > 0 ? fmin(cfg->epochs, limit) : cfg->epochs;
}

static const char *ended_by(const sp_settings *s, double epochs)
{
    return epochs < s->train->epochs ? " (train.max_steps)" : "";
}

/* Of a network that is to become one of low rank. */
static void warn_of_switch(const sp_settings *s, double epochs, sp_text *out)
{
    const sp_lowrank_cfg *cfg = s->lowrank;

    if (cfg->warmup_epochs >= epochs)
        sp_text_add(out,
                    "warning: lowrank.warmup_epochs is %d, but the run ends "
                    "after %g%s: it never becomes one of low rank\n",
                    cfg->warmup_epochs, epochs, ended_by(s, epochs));
    else if (cfg->rank == SP_RANK_AUTO && epochs <= SP_AUTORANK_SLOPES)
        sp_text_add(out,
                    "warning: lowrank.rank: auto needs %d epochs at full rank, "
                    "but the run ends after %g%s: it never becomes one of low "
                    "rank\n",
                    SP_AUTORANK_SLOPES, epochs, ended_by(s, epochs));
    if (cfg->extra_norm)
        sp_text_add(out,
                    "warning: lowrank.extra_norm: the batch norms between "
                    "factors are new at the switch: the network is not what "
                    "it was before, until they are trained\n");
    if (cfg->lr_factor == 0)
        sp_text_add(out, "warning: lowrank.lr_factor is 0: nothing is trained "
                         "after the switch\n");
}

static void warn_of_lowrank(const sp_session *s, double epochs, sp_text *out)
{
    const sp_lowrank_cfg *cfg = s->set.lowrank;

    if (cfg && !s->low)
        warn_of_switch(&s->set, epochs, out);
    if (cfg && cfg->frobenius_decay && s->set.optim->weight_decay == 0)
        sp_text_add(out, "warning: lowrank.frobenius_decay has no effect: "
                         "optim.weight_decay is 0\n");
}

static void warn_of_prune(const sp_session *s, double epochs, sp_text *out)
{
    const sp_prune_cfg *cfg = s->set.prune;
    size_t left = cfg ? sp_prunable(s->params) : 0, less;

    if (cfg && epochs < s->set.train->epochs)
        sp_text_add(out,
                    "warning: prune: the first pruning is after %d epochs, but "
                    "the run ends after %g (train.max_steps): nothing is "
                    "removed\n",
                    s->set.train->epochs, epochs);
    for (int i = 0; cfg && i < cfg->rounds; i++, left -= less) {
        less = sp_prune_count(cfg, left);
        if (less > 0)
            continue;
        sp_text_add(out,
                    "warning: prune.share: %g of %zu weights is less than one: "
                    "the last %d of %d prunings remove nothing\n",
                    cfg->share, left, cfg->rounds - i, cfg->rounds);
        return;
    }
}

static void warn_of_length(const sp_settings *s, double end, sp_text *out)
{
    double epochs = s->train->epochs;
    double last =
        s->schedule->last_epoch ? s->schedule->last_epoch(s->schedule_own) : 0;

    if (last >= epochs)
        sp_text_add(out,
                    "warning: the schedule, %s, has a change after %g epochs, "
                    "but the run ends after %g\n",
                    s->schedule->entry.name, last, epochs);
    if (s->schedule_cfg->warmup_epochs >= epochs)
        sp_text_add(out,
                    "warning: schedule.warmup_epochs is %g, but the run ends "
                    "after %g\n",
                    s->schedule_cfg->warmup_epochs, epochs);
    if (s->compressor->settled &&
        s->compressor->settled(s->compressor_own) >= end)
        sp_text_add(out,
                    "warning: compress.warmup_epochs is %g, but the run ends "
                    "after %g%s: it never reaches its density\n",
                    s->compressor->settled(s->compressor_own), end,
                    ended_by(s, end));
}

/* Training would blame the rate or the data for them. */
static void warn_of_init(const sp_session *s, sp_text *out)
{
    const sp_param *p;

    if (!s->params || !s->set.model_cfg->init[0])
        return;
    for (int i = 0; (p = sp_params_at(s->params, i)); i++)
        for (size_t k = 0; k < p->count; k++)
            if (!isfinite(p->value[k])) {
                sp_text_add(out,
                            "warning: model.init: value %zu of %s is %g: "
                            "nothing can be trained from such weights\n",
                            k, p->name, (double)p->value[k]);
                return;
            }
}

void sp_session_warn(const sp_session *s, int64_t batches, sp_text *out)
{
    double end = last_epoch(&s->set, batches);

    warn_of_length(&s->set, end, out);
    warn_of_lowrank(s, end, out);
    warn_of_prune(s, end, out);
    warn_of_init(s, out);
    warn_of_kind(&s->set, out);
}
