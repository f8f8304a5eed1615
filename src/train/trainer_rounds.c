/* A run's rounds of pruning, between two trainings. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "train/alike.h"
#include "train/checkpoint.h"
#include "train/statistics.h"
#include "train/trainer.h"

static const sp_prune_cfg *settings(const sp_trainer *t)
{
    return t->session.set.prune;
}

bool sp_trainer_finished(const sp_trainer *t)
{
    const sp_prune_cfg *cfg = settings(t);

    return t->state.epoch >= t->session.set.train->epochs &&
           (!cfg || t->state.round >= cfg->rounds);
}

/* Weights that can be pruned and are not: all in round 0, where one may be 0 by
 * chance. */
static size_t unpruned(const sp_trainer *t)
{
    const sp_params *p = t->session.params;

    return sp_prunable(p) - (t->state.round > 0 ? sp_prune_zeros(p) : 0);
}

double sp_trainer_remaining(const sp_trainer *t)
{
    return 100.0 * (double)unpruned(t) / (double)sp_prunable(t->session.params);
}

/* Whether weights stand as they do when rounds go back to them. */
static bool stands_at_origin(const sp_prune_cfg *cfg, const sp_train_state *s)
{
    return cfg && s->round == 0 && s->batch == 0 &&
           s->epoch == cfg->rewind_epoch;
}

bool sp_trainer_at_rewind(const sp_trainer *t)
{
    return t->state.epoch > 0 && stands_at_origin(settings(t), &t->state);
}

static const char *origin(const sp_prune_cfg *cfg)
{
    return cfg->rewind_epoch > 0 ? "rewind" : "start";
}

static sp_err check_origin(const sp_prune_cfg *cfg, const sp_checkpoint *c)
{
    const sp_train_state *s = &c->manifest.state;

    if (stands_at_origin(cfg, s))
        return SP_OK;
    return sp_fail(
        SP_ECONFIG,
        "prune.rewind_epoch: is %d, but %s was saved after %d epochs "
        "of round %d: leave it as it was",
        cfg->rewind_epoch, c->folder, s->epoch, s->round);
}

/* Of the rank that speaks. */
static sp_err check_before(const sp_trainer *t)
{
    const sp_prune_cfg *cfg = settings(t);
    const sp_train_state *s = &t->state;
    sp_checkpoint c;
    sp_err e;

    if (!cfg && s->round > 0)
        return sp_fail(SP_ECONFIG,
                       "prune.name: is none, but weights of this run are "
                       "pruned already: leave it as it was");
    if (!cfg || s->round >= cfg->rounds ||
        (s->round == 0 && s->epoch < cfg->rewind_epoch))
        return SP_OK;
    e = sp_checkpoint_open(&c, t->dir.path, origin(cfg));
    if (e == SP_EARG)
        return sp_fail(SP_ECONFIG,
                       "prune.rewind_epoch: is %d, but this run has no "
                       "checkpoints/%s with the weights of then: start another "
                       "run",
                       cfg->rewind_epoch, origin(cfg));
    if (e == SP_OK)
        e = check_origin(cfg, &c);
    sp_checkpoint_close(&c);
    return e;
}

sp_err sp_trainer_check_rounds(const sp_trainer *t)
{
    sp_err e = sp_trainer_speaks(t) ? check_before(t) : SP_OK;

    e = sp_settings_locate(t->session.set.config, e);
    return sp_agree(t->job->comm, e);
}

/* ---- Going back ---------------------------------------------------------- */

/* All values in memory, in recording order: to there, or back. */
static void copy_values(const sp_params *params, float *values, bool back)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++) {
        memcpy(back ? p->value : values, back ? values : p->value,
               p->count * sizeof *values);
        values += p->count;
    }
}

sp_err sp_trainer_keep_origin(sp_trainer *t)
{
    sp_origin *o = &t->origin;
    const sp_param *p;
    size_t n = 0;

    if (!stands_at_origin(settings(t), &t->state))
        return SP_OK;
    for (int i = 0; (p = sp_params_at(t->session.params, i)); i++)
        n += p->count;
    free(o->values);
    o->values = malloc(n * sizeof *o->values);
    SP_TRY(sp_agree(t->job->comm,
                    o->values ? SP_OK : sp_fail(SP_ENOMEM, "out of memory")));
    copy_values(t->session.params, o->values, false);
    o->schedule = t->state.schedule;
    return SP_OK;
}

/* Statistics that do not come back as they were. */
static void tell_average(sp_trainer *t, const sp_checkpoint *c)
{
    int ranks = sp_comm_ranks(t->job->comm);

    if (c->manifest.ranks != ranks &&
        sp_statistics_count(t->session.params) > 0)
        sp_console_line(&t->console,
                        "prune    running statistics go back to their average "
                        "over %d ranks: there %s %d now",
                        c->manifest.ranks, ranks == 1 ? "is" : "are", ranks);
}

/* Each rank's own running statistics, too, or their average on ranks that are
 * not those of then. What else is told of going on concerns what is not gone
 * back to. */
static sp_err load_origin(sp_trainer *t, sp_schedule_state *schedule)
{
    const sp_prune_cfg *cfg = settings(t);
    sp_text told = { 0 };
    sp_checkpoint c;
    sp_err e;

    SP_TRY(
        sp_checkpoint_open_whole(&c, t->dir.path, origin(cfg), t->job->comm));
    e = check_origin(cfg, &c);
    if (e == SP_OK)
        e = sp_checkpoint_load_all(&c, &t->session, &told);
    sp_text_free(&told);
    if (e == SP_OK)
        tell_average(t, &c);
    *schedule = c.manifest.state.schedule;
    sp_checkpoint_close(&c);
    return e;
}

static sp_err go_back(sp_trainer *t, sp_schedule_state *schedule)
{
    if (!t->origin.values)
        return load_origin(t, schedule);
    copy_values(t->session.params, t->origin.values, true);
    *schedule = t->origin.schedule;
    return SP_OK;
}

static void clear_momentum(const sp_session *s)
{
    int states = sp_optim_rule(s->optim)->state_count;
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(s->params, i)); i++)
        for (int k = 0; !p->buffer && k < states; k++)
            memset(sp_optim_state(s->optim, p, k), 0, p->count * sizeof(float));
}

/* ---- A round ------------------------------------------------------------- */

/* The ends of rounds are compared within one only. */
static sp_err begin_round(sp_trainer *t, const sp_schedule_state *schedule)
{
    sp_train_state *s = &t->state;

    clear_momentum(&t->session);
    s->round++;
    s->begun = s->step;
    s->epoch = settings(t)->rewind_epoch;
    s->schedule = *schedule;
    s->best = sp_epoch_line_none();
    t->unsaved = true;
    return sp_loader_seek(t->loader, s->epoch, 0);
}

static sp_err prune(sp_trainer *t, bool *gone, size_t removed)
{
    const sp_params *params = t->session.params;
    const sp_prune_cfg *cfg = settings(t);
    size_t all = sp_prunable(params), before = unpruned(t);
    sp_schedule_state schedule;
    sp_err e = gone ? sp_prune_smallest(params, all - before + removed, gone)
                    : sp_fail(SP_ENOMEM, "pruning: out of memory");

    SP_TRY(sp_agree(t->job->comm, e));
    SP_TRY(go_back(t, &schedule));
    sp_prune_apply(params, gone);
    SP_TRY(sp_agree(t->job->comm, begin_round(t, &schedule)));
    sp_console_line(&t->console,
                    "prune    %zu of %zu weights removed, %.2f %% are left; "
                    "round %d of %d starts from the weights after epoch %d",
                    removed, before, sp_trainer_remaining(t), t->state.round,
                    cfg->rounds, cfg->rewind_epoch);
    return sp_params_agree(params, t->job->comm);
}

sp_err sp_trainer_round(sp_trainer *t)
{
    const sp_train_state *s = &t->state;
    bool *gone;
    sp_err e;

    if (s->epoch < t->session.set.train->epochs || s->batch > 0 ||
        sp_trainer_finished(t))
        return SP_OK;
    gone = malloc(sp_prunable(t->session.params) + 1);
    e = prune(t, gone, sp_prune_count(settings(t), unpruned(t)));
    free(gone);
    return e;
}
