/* A run's switch to low rank, between two epochs. */
#include "train/alike.h"
#include "train/switch.h"
#include "train/trainer.h"

static bool due(const sp_trainer *t)
{
    const sp_lowrank_cfg *cfg = t->session.set.lowrank;

    return cfg && !t->session.low && t->state.batch == 0 &&
           t->state.epoch >= cfg->warmup_epochs;
}

/* It is another network from here on: what its epochs are compared with begins
 * anew, or the best would stay one of full rank, and a schedule that waits for
 * progress would take the loss at the switch for none. */
static void begin_anew(sp_trainer *t)
{
    sp_train_state *s = &t->state;

    s->switched = s->epoch;
    s->begun = s->step;
    s->best = sp_epoch_line_none();
    s->schedule.best = sp_schedule_start().best;
    s->schedule.bad = 0;
    t->counted = s->step;
    t->sent = (sp_sent){ 0 };
    if (t->session.exchange)
        t->sent = sp_exchange_sent(t->session.exchange);
}

sp_err sp_trainer_switch(sp_trainer *t)
{
    sp_text told = { 0 };
    sp_err e;

    if (!due(t))
        return SP_OK;
    e = sp_switch(&t->session, t->state.lr, &told);
    if (e == SP_OK) {
        begin_anew(t);
        sp_report_text(&t->report, &told);
        sp_trainer_model(t);
        e = sp_session_agree(&t->session);
    }
    sp_text_free(&told);
    return e;
}
