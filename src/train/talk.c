/* What the terminal and the log are told while a run goes on. */
#include <inttypes.h>
#include <math.h>

#include "train/trainer.h"

/* Accuracy or perplexity, whichever applies; a loss may stand alone. */
enum { MARK_ROOM = 64 };

static const char *mark(char out[MARK_ROOM], const char *name, double top1,
                        double ppl)
{
    out[0] = '\0';
    if (!isnan(top1))
        snprintf(out, MARK_ROOM, "%s%.2f %%", name, top1);
    else if (!isnan(ppl))
        snprintf(out, MARK_ROOM, ppl < 1e6 ? "ppl %.2f" : "ppl %.3g", ppl);
    return out;
}

void sp_trainer_progress(sp_trainer *t, bool live)
{
    const sp_train_state *s = &t->state;
    const sp_train_cfg *cfg = t->session.set.train;
    int64_t done = s->step - t->first, all = sp_trainer_steps(t, NULL);
    double spent = sp_now() - t->begun;
    double left = done > 0 ? spent / (double)done * (double)(all - s->step) : 0;
    double samples = (double)s->samples, loss = s->loss_sum / samples;
    char what[MARK_ROOM], span[SP_SPAN_ROOM];

    (live ? sp_console_live : sp_console_progress)(
        &t->console,
        "epoch %d/%d  step %" PRId64 "/%" PRId64
        "  loss %.4f  %s  %.0f items/s  %s left",
        s->epoch + 1, cfg->epochs, s->step, all, loss,
        mark(what, "top1 ", sp_trainer_top1(t, s->correct, samples),
             sp_trainer_perplexity(t, loss)),
        samples / s->epoch_seconds, sp_span(span, left));
}

/* "round 2/5, 64.00 % left  ", or nothing where nothing is pruned. */
static const char *round_of(char out[MARK_ROOM], const sp_trainer *t,
                            const sp_epoch_line *l)
{
    out[0] = '\0';
    if (t->session.set.prune)
        snprintf(out, MARK_ROOM, "round %.0f/%d, %.2f %% left  ", l->round,
                 t->session.set.prune->rounds, l->remaining);
    return out;
}

/* "  valid 4.9012 ppl 134.45", or nothing for a part that is not scored. */
static const char *part(char out[2 * MARK_ROOM], const char *name, double loss,
                        const char *what)
{
    snprintf(out, 2 * MARK_ROOM, "  %s %.4f%s%s", name, loss,
             what[0] ? " " : "", what);
    return out;
}

void sp_trainer_epoch_line(sp_trainer *t, const sp_epoch_line *l, bool best)
{
    char round[MARK_ROOM], train[2 * MARK_ROOM], valid[2 * MARK_ROOM] = "";
    char test[2 * MARK_ROOM] = "", what[MARK_ROOM], span[SP_SPAN_ROOM];

    part(train, "train", l->train_loss,
         mark(what, "", l->train_top1, l->train_ppl));
    if (sp_trainer_scores(t, SP_PART_VALID))
        part(valid, "valid", l->valid_loss,
             mark(what, "", l->valid_top1, l->valid_ppl));
    if (sp_trainer_scores(t, SP_PART_TEST))
        part(test, "test", l->test_loss,
             mark(what, "", l->test_top1, l->test_ppl));
    sp_console_line(
        &t->console, "%sepoch %.0f/%d done%s%s%s%s  lr %g  %.0f items/s  %s",
        round_of(round, t, l), l->epoch, t->session.set.train->epochs, train,
        valid, test, best ? " (best)" : "", l->lr, l->items_per_s,
        sp_span(span, l->seconds));
}
