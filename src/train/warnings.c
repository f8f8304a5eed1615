/* What is allowed but hardly meant. */
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

/* Of a network that is to become one of low rank. */
static void warn_of_switch(const sp_settings *s, sp_text *out)
{
    const sp_lowrank_cfg *cfg = s->lowrank;

    if (cfg->warmup_epochs >= s->train->epochs)
        sp_text_add(out,
                    "warning: lowrank.warmup_epochs is %d, but the run ends "
                    "after %d: it never becomes one of low rank\n",
                    cfg->warmup_epochs, s->train->epochs);
    else if (cfg->rank == SP_RANK_AUTO &&
             s->train->epochs <= SP_AUTORANK_SLOPES)
        sp_text_add(out,
                    "warning: lowrank.rank: auto needs %d epochs at full rank, "
                    "but the run ends after %d: it never becomes one of low "
                    "rank\n",
                    SP_AUTORANK_SLOPES, s->train->epochs);
    if (cfg->extra_norm)
        sp_text_add(out,
                    "warning: lowrank.extra_norm: the batch norms between "
                    "factors are new at the switch: the network is not what "
                    "it was before, until they are trained\n");
    if (cfg->lr_factor == 0)
        sp_text_add(out, "warning: lowrank.lr_factor is 0: nothing is trained "
                         "after the switch\n");
}

static void warn_of_lowrank(const sp_session *s, sp_text *out)
{
    const sp_lowrank_cfg *cfg = s->set.lowrank;

    if (cfg && !s->low)
        warn_of_switch(&s->set, out);
    if (cfg && cfg->frobenius_decay && s->set.optim->weight_decay == 0)
        sp_text_add(out, "warning: lowrank.frobenius_decay has no effect: "
                         "optim.weight_decay is 0\n");
}

static void warn_of_prune(const sp_session *s, sp_text *out)
{
    const sp_prune_cfg *cfg = s->set.prune;
    size_t left = cfg ? sp_prunable(s->params) : 0, less;

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

static void warn_of_length(const sp_settings *s, sp_text *out)
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
        s->compressor->settled(s->compressor_own) >= epochs)
        sp_text_add(out,
                    "warning: compress.warmup_epochs is %g, but the run ends "
                    "after %g: it never reaches its density\n",
                    s->compressor->settled(s->compressor_own), epochs);
}

void sp_session_warn(const sp_session *s, sp_text *out)
{
    warn_of_length(&s->set, out);
    warn_of_lowrank(s, out);
    warn_of_prune(s, out);
    warn_of_kind(&s->set, out);
}
