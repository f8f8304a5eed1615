/* The section `lowrank`. */
#include "train/lowrank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/factorize.h"
#include "train/keys.h"

#define AT(field) offsetof(sp_lowrank_cfg, field)

static const sp_key keys[] = {
    { "rank", SP_CHOICE, AT(rank), "ratio", 0, 0,
      "ratio: rank_ratio, after warmup_epochs; auto: for each layer by the "
      "stable rank of its weights, once those of all layers change no more "
      "(Wang et al. 2023, Cuttlefish)",
      "ratio|auto" },
    { "rank_ratio", SP_FLOAT, AT(rank_ratio), "0.25", 1e-6, 1,
      "rank over the smaller side of a layer's weights as a matrix, rounded "
      "down, at least 1; with rank=auto of no effect on training",
      NULL },
    { "warmup_epochs", SP_INT, AT(warmup_epochs), "15", 0, 1e6,
      "epochs at full rank, before the weights are factorized; 0: low rank "
      "from the start; with rank=auto at least so many, and at least 11",
      NULL },
    { "full", SP_TEXT, AT(full), "auto", 0, 0,
      "layers that stay at full rank, separated by spaces: names or their "
      "first parts (\"conv1 layer1.0\"), or \".PART\" anywhere in a name; "
      "auto: as published for the model",
      NULL },
    { "gates", SP_CHOICE, AT(gates), "each", 0, 0,
      "recurrent layers: factors of each gate's matrix, or of all gates "
      "together",
      "each|joined" },
    { "extra_norm", SP_BOOL, AT(extra_norm), "false", 0, 0,
      "a batch norm between the factors of a convolution", NULL },
    { "frobenius_decay", SP_BOOL, AT(frobenius_decay), "false", 0, 0,
      "optim.weight_decay pulls on the product of two factors, not on each: "
      "the gradient of half its squared norm",
      NULL },
    { "at_switch", SP_CHOICE, AT(at_switch), "restart", 0, 0,
      "momentum: starts anew, as published, or is projected into the factors",
      "restart|project" },
    { "residual", SP_CHOICE, AT(residual), "flush", 0, 0,
      "what a compressor has not sent yet: applied before the switch, by one "
      "dense exchange, or projected into the factors",
      "flush|project" },
    { "lr_factor", SP_FLOAT, AT(lr_factor), "1", 0, 1e6,
      "factor on the learning rate from the switch on", NULL },
    { "rewarm_epochs", SP_FLOAT, AT(rewarm_epochs), "0", 0, 1e6,
      "epochs behind the switch over which the rate rises linearly from 0",
      NULL },
};

const sp_entry sp_lowrank_none = {
    .name = "none",
    .help = "all layers have full rank",
};

const sp_entry sp_lowrank_pufferfish = {
    .name = "pufferfish",
    .help = "full rank first, then products of two factors (Wang et al. 2021)",
    .cfg_size = sizeof(sp_lowrank_cfg),
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
};

const sp_section sp_lowrank_section = {
    .name = "lowrank",
    .fallback = "none",
    .plural = "low-rank methods",
};

static int rank_of(void *arg, const char *layer, int rows, int columns)
{
    const sp_lowrank_ranks *r = arg;
    int least = rows < columns ? rows : columns;

    if (r->chosen) {
        const sp_autorank_layer *l = sp_autorank_find(r->chosen, layer);
        /* That of joined gates may be above what one gate can have. */
        return l ? (int)fmin(l->rank, least) : 0;
    }
    if (sp_layer_listed(r->full, layer))
        return 0;
    return (int)fmax(1, floor(r->ratio * least));
}

static bool is_auto(const sp_lowrank_cfg *cfg)
{
    return strcmp(cfg->full, "auto") == 0;
}

sp_rank_rule sp_lowrank_rule(const sp_lowrank_cfg *cfg, const sp_model *model,
                             const void *model_own, sp_lowrank_ranks *ranks)
{
    const char *full = cfg->full;

    if (is_auto(cfg))
        full = model->full ? model->full(model_own) : "";
    *ranks = (sp_lowrank_ranks){ .ratio = cfg->rank_ratio, .full = full };
    return (sp_rank_rule){ .rank = rank_of,
                           .arg = ranks,
                           .extra_norm = cfg->extra_norm,
                           .joined = cfg->gates == SP_GATES_JOINED };
}

/* Whether a name of the list means a layer with this parameter: the part before
 * the last dot, or all of a recurrent layer's. */
static bool names(const char *entry, const sp_param *p)
{
    char layer[512];
    const char *full = p->whole ? p->whole : p->name;
    const char *dot = strrchr(full, '.');

    if (sp_layer_listed(entry, full))
        return true;
    snprintf(layer, sizeof layer, "%.*s", dot ? (int)(dot - full) : 0, full);
    return sp_layer_listed(entry, layer);
}

static sp_err check_entry(const char *entry, const sp_params *params)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        if (names(entry, p))
            return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "lowrank.full: %s is no layer of this model: `sprat info` "
                   "lists its parameters",
                   entry);
}

/* Each name by itself. */
static sp_err check_full(const char *list, const sp_params *params)
{
    while (*list) {
        char entry[256];
        size_t blank = strspn(list, " "), word;

        list += blank;
        word = strcspn(list, " ");
        if (word >= sizeof entry)
            return sp_fail(SP_ECONFIG,
                           "lowrank.full: a name of %zu letters is no layer's",
                           word);
        memcpy(entry, list, word);
        entry[word] = '\0';
        if (word)
            SP_TRY(check_entry(entry, params));
        list += word;
    }
    return SP_OK;
}

sp_err sp_lowrank_check(const sp_lowrank_cfg *cfg, const sp_params *params)
{
    const sp_param *p;

    if (!is_auto(cfg))
        SP_TRY(check_full(cfg->full, params));
    for (int i = 0; (p = sp_params_at(params, i)); i++)
        if (p->other)
            return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "lowrank.name: pufferfish would factorize no layer of this "
                   "model: all are in lowrank.full, or have no matrix to "
                   "factorize");
}

/* ---- Warnings ------------------------------------------------------------ */

/* By the names that sp_rnn() gives. */
static bool is_recurrent(const sp_param *u)
{
    return strstr(u->whole, "weight_ih_l") || strstr(u->whole, "weight_hh_l");
}

/* Weights of the layer that u is a factor of. */
static size_t whole_count(const sp_param *u)
{
    return (size_t)u->other->dims[0] * (u->count / (size_t)u->dims[0]);
}

static void warn_of_size(const sp_params *low, sp_text *out)
{
    const char *first = NULL;
    const sp_param *p;
    int count = 0;

    for (int i = 0; (p = sp_params_at(low, i)); i++) {
        if (!sp_is_right_factor(p) ||
            p->count + p->other->count < whole_count(p))
            continue;
        if (count++ == 0)
            first = p->whole;
    }
    if (count > 0)
        sp_text_add(out,
                    "warning: lowrank.rank_ratio: the factors of %d layer%s "
                    "(%s%s) are no smaller than the weights that they replace: "
                    "lower it, or name them in lowrank.full\n",
                    count, count == 1 ? "" : "s", first,
                    count > 1 ? ", ..." : "");
}

static void warn_of_gates(const sp_params *low, sp_text *out)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(low, i)); i++)
        if (sp_is_right_factor(p) && is_recurrent(p))
            return;
    sp_text_add(out, "warning: lowrank.gates=joined has no effect: no "
                     "recurrent layer is of low rank\n");
}

void sp_lowrank_warn(const sp_lowrank_cfg *cfg, const sp_params *low,
                     sp_text *out)
{
    if (cfg->rank == SP_RANK_RATIO)
        warn_of_size(low, out);
    if (cfg->gates == SP_GATES_JOINED)
        warn_of_gates(low, out);
}

/* ---- Over time ----------------------------------------------------------- */

bool sp_lowrank_from_start(const sp_lowrank_cfg *cfg)
{
    return cfg && cfg->rank == SP_RANK_RATIO && cfg->warmup_epochs == 0;
}

double sp_lowrank_rate(const sp_lowrank_cfg *cfg, double epochs)
{
    double risen = cfg->rewarm_epochs > 0 ? epochs / cfg->rewarm_epochs : 1;

    return cfg->lr_factor * fmin(1, risen);
}
