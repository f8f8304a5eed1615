/* A run's timeline: when it is recorded and written. */
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "train/trainer.h"

sp_err sp_trainer_trace_open(sp_trainer *t)
{
    const sp_log_cfg *log = t->session.set.log;

    if (!log->trace)
        return SP_OK;
    return sp_trace_open(&t->trace, &(sp_trace_args){
                                        .run = t->dir.path,
                                        .comm = t->job->comm,
                                        .steps = log->trace_steps,
                                        .at = &t->state,
                                    });
}

/* The session is another one after a switch, so it is told each time. */
static void follow(sp_trainer *t, sp_trace *trace)
{
    t->session.trace = trace;
    t->session.watch = sp_trace_watch(trace);
    if (t->session.exchange)
        sp_exchange_trace(t->session.exchange, trace);
}

void sp_trainer_trace_step(sp_trainer *t)
{
    const sp_train_state *s = &t->state;
    bool records;

    if (!t->trace || s->batch == t->batches) /* the epoch's end comes */
        return;
    records = sp_trace_step(t->trace, s->step + 1, s->times);
    follow(t, records ? t->trace : NULL);
}

void sp_trainer_trace_batch(sp_trainer *t, const sp_batch *b, double start)
{
    sp_trace_span(
        t->trace,
        &(sp_span_of){ .kind = SP_SPAN_DATA, .name = "data", .begin = start });
    if (b->ended > 0)
        sp_trace_span(t->trace, &(sp_span_of){ .kind = SP_SPAN_WORKER,
                                               .name = "batch",
                                               .begin = b->begun,
                                               .end = b->ended,
                                               .worker = b->worker });
}

sp_err sp_trainer_trace_write(sp_trainer *t)
{
    return t->trace ? sp_agree(t->job->comm, sp_trace_write(t->trace)) : SP_OK;
}

sp_err sp_trainer_trace_stepped(sp_trainer *t)
{
    if (!t->trace || !sp_trace_stepped(t->trace, t->state.times))
        return SP_OK;
    follow(t, NULL);
    return sp_trainer_trace_write(t);
}

/* All ranks come here, done or stopped. */
static sp_err put_together(sp_trainer *t)
{
    sp_text told = { 0 };
    sp_err e = sp_trace_end(t->trace, &told);

    if (e == SP_OK && sp_trainer_speaks(t))
        sp_console_text(&t->console, &told);
    sp_text_free(&told);
    return e;
}

sp_err sp_trainer_trace_end(sp_trainer *t, sp_err e)
{
    const char *text = sp_last_error();
    char *reason;
    sp_err written;

    if (!t->trace)
        return e;
    follow(t, NULL);
    if (e == SP_OK)
        return put_together(t);
    reason = sp_copy(text, strlen(text));
    written = e == SP_ESTOPPED ? put_together(t) : sp_trace_write(t->trace);
    /* Why training has ended counts, but for a stop that was not complete. */
    if (e == SP_ESTOPPED && written != SP_OK)
        e = written;
    else
        sp_fail(e, "%s", reason ? reason : "out of memory");
    free(reason);
    return e;
}
