/* A run's switch to low rank, between two epochs. */
#include <math.h>
#include <stdlib.h>

#include "dist/agree.h"
#include "train/alike.h"
#include "train/autorank_look.h"
#include "train/switch.h"
#include "train/trainer.h"

/* Whether ranks are to be chosen yet. */
static bool chooses(const sp_trainer *t)
{
    const sp_lowrank_cfg *cfg = t->session.set.lowrank;

    return cfg && cfg->rank == SP_RANK_AUTO && !t->session.low;
}

/* ---- Looking at ranks ---------------------------------------------------- */

/* Seconds that are worth a word. */
static const double long_time = 1;

static void tell_ranks(sp_trainer *t, double seconds)
{
    const sp_autorank *a = &t->autorank;
    int least = sp_autorank_estimate(&a->layers[0]), most = least;
    char took[32] = "";

    for (int i = 1; i < a->count; i++) {
        int rank = sp_autorank_estimate(&a->layers[i]);
        least = rank < least ? rank : least;
        most = rank > most ? rank : most;
    }
    if (seconds > long_time)
        snprintf(took, sizeof took, " (found in %.1f s)", seconds);
    sp_console_line(
        &t->console,
        "ranks    %d of %d layers are stable; they would be from %d "
        "to %d%s",
        a->count - sp_autorank_left(a), a->count, least, most, took);
}

static sp_err look_at_ranks(sp_trainer *t)
{
    sp_autorank *a = &t->autorank;
    double start = sp_now(), *ranks = NULL;
    bool first = a->count == 0;
    sp_err e;

    if (first)
        SP_TRY(sp_agree(t->job->comm, sp_autorank_copy(a, &t->layers)));
    ranks = calloc((size_t)a->count + 1, sizeof *ranks);
    e = sp_agree(t->job->comm,
                 ranks ? SP_OK : sp_fail(SP_ENOMEM, "autorank: out of memory"));
    if (e == SP_OK)
        e = sp_autorank_look(&t->session, a, ranks);
    if (e == SP_OK && first)
        sp_autorank_start(a, ranks);
    else if (e == SP_OK)
        sp_autorank_add(a, ranks, t->session.set.lowrank->warmup_epochs);
    if (e == SP_OK)
        tell_ranks(t, sp_now() - start);
    free(ranks);
    return e;
}

/* At the start, and behind an epoch that was not looked at yet. */
static bool looks(const sp_trainer *t)
{
    const sp_autorank *a = &t->autorank;

    return chooses(t) && t->state.batch == 0 &&
           (a->count == 0 || a->epochs < t->state.epoch);
}

static void tell_full(sp_trainer *t)
{
    const sp_autorank *a = &t->autorank;

    for (int i = 0; i < a->count; i++)
        if (a->layers[i].rank == 0)
            sp_console_line(&t->console,
                            "switch   %s stays at full rank: factors of rank "
                            "%d would not be smaller",
                            a->layers[i].whole,
                            sp_autorank_estimate(&a->layers[i]));
}

void sp_trainer_unswitched(sp_trainer *t)
{
    const sp_autorank *a = &t->autorank;
    int unstable = sp_autorank_left(a);

    if (!chooses(t) || a->count == 0)
        return;
    if (unstable > 0)
        sp_console_line(&t->console,
                        "ranks    the run ends at full rank: those of %d of %d "
                        "layers have not become stable",
                        unstable, a->count);
    else
        sp_console_line(&t->console,
                        "ranks    the run ends at full rank: no layer would "
                        "have become smaller");
}

/* ---- The switch ---------------------------------------------------------- */

static bool due(sp_trainer *t)
{
    const sp_lowrank_cfg *cfg = t->session.set.lowrank;

    if (!cfg || t->session.low || t->state.batch != 0 ||
        t->state.epoch < cfg->warmup_epochs)
        return false;
    return !chooses(t) || sp_autorank_choose(&t->autorank);
}

/* It is another network from here on: what its epochs are compared with begins
 * anew, or the best would stay one of full rank, and a schedule that waits for
 * progress would take the loss at the switch for none. So do the sums of bytes:
 * `before` is what they were before the switch. */
static void begin_anew(sp_trainer *t, const sp_ledger *before)
{
    sp_train_state *s = &t->state;

    s->switched = s->epoch;
    s->begun = s->step;
    s->best = sp_epoch_line_none();
    s->schedule.best = sp_schedule_start().best;
    s->schedule.bad = 0;
    t->counted = s->step;
    t->before = *before;
    t->sent = (sp_sent){ 0 };
    if (t->session.exchange)
        t->sent = sp_exchange_sent(t->session.exchange);
}

/* No step's sums have them. */
static void tell_bytes(sp_trainer *t)
{
    const sp_ledger_entry *now =
        &sp_comm_ledger(t->job->comm)->use[SP_USE_SWITCH];
    int64_t bytes = now->bytes - t->before.use[SP_USE_SWITCH].bytes;

    if (bytes > 0)
        sp_console_line(&t->console,
                        "switch   %lld bytes handed to MPI, beside those of "
                        "steps",
                        (long long)bytes);
}

static sp_err do_switch(sp_trainer *t)
{
    sp_ledger before = *sp_comm_ledger(t->job->comm);
    const sp_autorank *chosen = t->autorank.chosen ? &t->autorank : NULL;
    sp_text told = { 0 };
    sp_err e = sp_switch(&t->session, t->state.lr, chosen, &told);

    if (e == SP_OK) {
        begin_anew(t, &before);
        tell_full(t);
        sp_console_text(&t->console, &told);
        tell_bytes(t);
        sp_trainer_model(t);
        e = sp_session_agree(&t->session);
    }
    sp_text_free(&told);
    return e;
}

sp_err sp_trainer_switch(sp_trainer *t)
{
    if (looks(t))
        SP_TRY(look_at_ranks(t));
    if (due(t))
        SP_TRY(do_switch(t));
    sp_trainer_lap(t); /* it is no part of the next step's time */
    return SP_OK;
}
