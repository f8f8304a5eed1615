/* A configuration by its sections' types, and the checks across keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/session.h"

/* Add the text of a failed check to the list of mistakes. */
static void note(sp_text *mistakes, sp_err e)
{
    if (e != SP_OK)
        sp_text_add(mistakes, "%s%s", mistakes->size ? "\n" : "",
                    sp_last_error());
}

static sp_err check_micro_batch(const sp_settings *s)
{
    int micro = s->train->micro_batch, batch = s->train->batch;

    if (micro == 0 || (micro <= batch && batch % micro == 0))
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "train.micro_batch: %d does not divide train.batch, %d",
                   micro, batch);
}

/* The reference has no tiles; auto and off say nothing else. */
static sp_err check_reference(const sp_settings *s)
{
    int tile = s->train->winograd == SP_WINOGRAD_2   ? 2
               : s->train->winograd == SP_WINOGRAD_4 ? 4
                                                     : 0;

    if (!s->train->reference || !tile)
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "train.winograd: %d contradicts train.reference=true, which "
                   "computes without Winograd's tiles: leave one of them out",
                   tile);
}

/* Ranks with different numbers of passes would wait for each other for ever. */
static sp_err check_sync_bn(const sp_settings *s)
{
    if (!s->dist->sync_bn || s->train->micro_batch == 0)
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "dist.sync_bn: needs the whole batch in one pass, but "
                   "train.micro_batch is %d: leave one of them out",
                   s->train->micro_batch);
}

static sp_err check_compressor(const sp_settings *s)
{
    const sp_optimizer *o = s->optimizer;
    sp_compress_use use = { .optimizer = o->entry.name,
                            .has_momentum = o->momentum != NULL,
                            .clip = s->optim->clip };

    if (o->momentum)
        o->momentum(s->optimizer_own, &use.momentum, &use.nesterov);
    return sp_compressor_check(s->compressor, s->compressor_own, &use);
}

/* Momentum can follow the weights into their factors where it is linear in the
 * gradients. */
static sp_err check_projection(const sp_settings *s)
{
    if (!s->lowrank || s->lowrank->at_switch == SP_AT_SWITCH_RESTART ||
        s->optimizer->momentum)
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "lowrank.at_switch: project needs an optimizer with SGD's "
                   "momentum, optim.name is %s: use restart",
                   s->optimizer->entry.name);
}

/* Decay of products replaces that of factors; with a norm between them their
 * product is not the layer. */
static sp_err check_frobenius(const sp_settings *s)
{
    if (!s->lowrank || !s->lowrank->frobenius_decay)
        return SP_OK;
    if (s->lowrank->extra_norm)
        return sp_fail(SP_ECONFIG,
                       "lowrank.frobenius_decay: contradicts "
                       "lowrank.extra_norm: with a batch norm between the "
                       "factors their product is not the layer: leave one of "
                       "them out");
    if (!s->optimizer->pulls)
        return sp_fail(SP_ECONFIG,
                       "lowrank.frobenius_decay: the optimizer %s can only "
                       "decay the weights themselves: take another one",
                       s->optimizer->entry.name);
    return SP_OK;
}

/* A baseline as it was published: dense, and of nothing but pruning. What a
 * compressor or a factor keeps of a removed weight would come back. */
static sp_err check_prune(const sp_settings *s)
{
    const char *lowrank = sp_config_entry(s->config, "lowrank")->name;
    const sp_prune_cfg *p = s->prune;

    if (!p)
        return SP_OK;
    if (!(p->share > 0 && p->share < 1))
        return sp_fail(SP_ECONFIG,
                       "prune.share: %g is not between 0 and 1, exclusive",
                       p->share);
    if (p->rewind_epoch >= s->train->epochs)
        return sp_fail(SP_ECONFIG,
                       "prune.rewind_epoch: is %d, but a round ends after %d, "
                       "train.epochs: go back to an earlier one",
                       p->rewind_epoch, s->train->epochs);
    if (s->compressor->encode)
        return sp_fail(SP_ECONFIG,
                       "prune.name: magnitude needs compress.name=none, not "
                       "%s: leave one of them out",
                       s->compressor->entry.name);
    if (s->lowrank)
        return sp_fail(SP_ECONFIG,
                       "prune.name: magnitude needs lowrank.name=none, not "
                       "%s: leave one of them out",
                       lowrank);
    return SP_OK;
}

/* What set the key that a message begins with, "section.key"; NULL where it
 * begins with none. */
static const char *source_of(const sp_config *c, const char *message)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    char section[32], key[32];
    size_t first = strspn(message, letters), second;

    if (message[first] != '.' || first >= sizeof section)
        return NULL;
    second = strspn(message + first + 1, letters);
    if (second >= sizeof key)
        return NULL;
    snprintf(section, sizeof section, "%.*s", (int)first, message);
    snprintf(key, sizeof key, "%.*s", (int)second, message + first + 1);
    return sp_config_source(c, section, key);
}

sp_err sp_settings_locate(const sp_config *c, sp_err e)
{
    const char *source = e == SP_OK ? NULL : source_of(c, sp_last_error());

    if (source && strcmp(source, "default") != 0)
        sp_fail(e, "%s: %s", source, sp_last_error());
    return e;
}

sp_err sp_settings_view(const sp_config *c, sp_settings *s)
{
    sp_text mistakes = { 0 };
    sp_err e = SP_OK;

    *s = (sp_settings){
        .config = c,
        .model = (const sp_model *)sp_config_entry(c, "model"),
        .model_own = sp_config_own(c, "model"),
        .model_cfg = sp_config_section(c, "model"),
        .set = (const sp_data_set *)sp_config_entry(c, "data"),
        .set_own = sp_config_own(c, "data"),
        .data = sp_config_section(c, "data"),
        .train = sp_config_section(c, "train"),
        .optimizer = (const sp_optimizer *)sp_config_entry(c, "optim"),
        .optimizer_own = sp_config_own(c, "optim"),
        .optim = sp_config_section(c, "optim"),
        .schedule = (const sp_schedule *)sp_config_entry(c, "schedule"),
        .schedule_own = sp_config_own(c, "schedule"),
        .schedule_cfg = sp_config_section(c, "schedule"),
        .compressor = (const sp_compressor *)sp_config_entry(c, "compress"),
        .compressor_own = sp_config_own(c, "compress"),
        .lowrank = sp_config_own(c, "lowrank"),
        .prune = sp_config_own(c, "prune"),
        .dist = sp_config_section(c, "dist"),
        .log = sp_config_section(c, "log"),
    };
    note(&mistakes, sp_settings_locate(c, check_micro_batch(s)));
    note(&mistakes, sp_settings_locate(c, check_reference(s)));
    note(&mistakes, sp_settings_locate(
                        c, sp_schedule_check(s->schedule, s->schedule_own)));
    note(&mistakes, sp_settings_locate(
                        c, sp_optimizer_check(s->optimizer, s->optimizer_own)));
    note(&mistakes, sp_settings_locate(c, check_sync_bn(s)));
    note(&mistakes, sp_settings_locate(c, check_compressor(s)));
    note(&mistakes, sp_settings_locate(c, check_projection(s)));
    note(&mistakes, sp_settings_locate(c, check_frobenius(s)));
    note(&mistakes, sp_settings_locate(c, check_prune(s)));
    e = sp_text_check(&mistakes);
    if (e == SP_OK && mistakes.size)
        e = sp_fail(SP_ECONFIG, "%s", sp_text_string(&mistakes));
    sp_text_free(&mistakes);
    return e;
}
