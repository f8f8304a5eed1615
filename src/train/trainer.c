/* Steps, and the checkpoints between them. */
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "dist/agree.h"
#include "train/alike.h"
#include "train/checkpoint.h"
#include "train/rotate.h"
#include "train/step.h"

static const sp_train_cfg *settings(const sp_trainer *t)
{
    return t->session.set.train;
}

sp_trainer sp_trainer_start(sp_job *job)
{
    double now = sp_now();
    sp_console console = sp_console_to(job->terminal);

    /* A launcher gives ranks a terminal whose other end may be a file. */
    if (sp_comm_ranks(job->comm) > 1)
        console.live = false;
    return (sp_trainer){
        .job = job,
        .dir = { .lock = -1 },
        .console = console,
        .state = sp_train_state_start(),
        .opened = now,
        .lap = now,
        .saved = now,
    };
}

sp_err sp_trainer_load(sp_trainer *t)
{
    SP_TRY(sp_session_batches(&t->session, &t->loader));
    t->batches = (int64_t)sp_loader_batches(t->loader);
    return SP_OK;
}

void sp_trainer_close(sp_trainer *t)
{
    sp_loader_free(t->loader);
    sp_metrics_close(&t->metrics);
    sp_tensors_close(&t->tensors);
    sp_trace_free(t->trace);
    sp_console_close(&t->console);
    sp_rundir_close(&t->dir);
    sp_session_close(&t->session);
    sp_autorank_free(&t->layers);
    sp_autorank_free(&t->autorank);
    free(t->config_text);
    free(t->ranks_sent);
    free(t->origin.values);
    *t = (sp_trainer){ .dir = { .lock = -1 } };
}

bool sp_trainer_ended(const sp_trainer *t)
{
    const sp_train_cfg *cfg = settings(t);

    return sp_trainer_finished(t) ||
           (cfg->max_steps > 0 && t->state.step >= cfg->max_steps);
}

bool sp_trainer_complete(const sp_trainer *t)
{
    const sp_train_state *s = &t->state;

    return sp_trainer_ended(t) &&
           (sp_trainer_finished(t) || s->last.step == (double)s->step);
}

int64_t sp_trainer_steps(const sp_trainer *t, bool *limited)
{
    const sp_train_cfg *cfg = settings(t);
    const sp_prune_cfg *prune = t->session.set.prune;
    int64_t epochs = cfg->epochs, all;
    bool less;

    if (prune)
        epochs += prune->rounds * (epochs - prune->rewind_epoch);
    all = t->batches * epochs;
    less = cfg->max_steps > 0 && cfg->max_steps < all;
    if (limited)
        *limited = less;
    return less ? cfg->max_steps : all;
}

double sp_trainer_progressed(const sp_trainer *t)
{
    return t->state.epoch + (double)t->state.batch / (double)t->batches;
}

double sp_trainer_rate(const sp_trainer *t)
{
    const sp_settings *set = &t->session.set;
    sp_schedule_at at = {
        .epoch = t->state.epoch,
        .epochs = set->train->epochs,
        .progress = sp_trainer_progressed(t),
    };
    double factor =
        sp_schedule_factor(set->schedule, set->schedule_own, set->schedule_cfg,
                           &at, &t->state.schedule);

    if (t->state.switched >= 0)
        factor *=
            sp_lowrank_rate(set->lowrank, at.progress - t->state.switched);
    return set->optim->lr * factor;
}

double sp_trainer_lap(sp_trainer *t)
{
    double now = sp_now(), passed = now - t->lap;

    t->lap = now;
    t->state.seconds += passed;
    return passed;
}

sp_err sp_trainer_save(sp_trainer *t, bool best)
{
    double start = sp_now();

    sp_trainer_lap(t);
    t->save = false;
    SP_TRY(sp_agree(t->job->comm, sp_rundir_present(&t->dir)));
    SP_TRY(sp_trainer_trace_write(t)); /* what the checkpoint is behind */
    SP_TRY(sp_checkpoint_save(&(sp_checkpoint_args){
        .run = t->dir.path,
        .session = &t->session,
        .state = &t->state,
        .autorank = &t->autorank,
        .config = t->config_text,
        .batches = t->batches,
        .best = best,
        .rewind = sp_trainer_at_rewind(t),
    }));
    t->unsaved = false;
    /* What stays costs room only. */
    if (sp_trainer_speaks(t) &&
        sp_rotate(t->dir.path, settings(t)->keep) != SP_OK)
        sp_console_line(&t->console, "warning: an old checkpoint stays: %s",
                        sp_last_error());
    t->saved = sp_now();
    t->state.times[SP_TIME_CHECKPOINT] += t->saved - start;
    sp_trace_span(t->trace, &(sp_span_of){ .kind = SP_SPAN_SAVE,
                                           .name = "checkpoint",
                                           .begin = start });
    sp_trainer_lap(t);
    return SP_OK;
}

bool sp_trainer_speaks(const sp_trainer *t)
{
    return sp_comm_rank(t->job->comm) == 0;
}

static bool several(const sp_trainer *t)
{
    return sp_comm_ranks(t->job->comm) > 1;
}

bool sp_trainer_must_stop(const void *trainer)
{
    const sp_trainer *t = trainer;
    double minutes = settings(t)->max_minutes;

    return (t->job->stop && *t->job->stop) ||
           (minutes > 0 && sp_now() - t->opened >= 60 * minutes);
}

sp_err sp_trainer_stop(sp_trainer *t)
{
    if (t->unsaved)
        SP_TRY(sp_trainer_save(t, false));
    return sp_fail(SP_ESTOPPED,
                   "stopped after step %" PRId64 ", which is saved: continue "
                   "with `sprat resume %s`",
                   t->state.step, t->dir.path);
}

static sp_err log_step(sp_trainer *t)
{
    const sp_window *w = &t->state.window;
    double samples = (double)w->samples, steps = (double)w->steps;
    bool exchanged = t->session.exchange != NULL;
    sp_step_line line = {
        .epoch = t->state.epoch + 1,
        .step = (double)t->state.step,
        .lr = t->state.lr,
        .train_loss = w->loss / samples,
        .train_top1 = sp_trainer_top1(t, w->correct, samples),
        .grad_norm = w->norm / steps,
        .items_per_s = samples / w->seconds,
        .packet_bytes = exchanged ? w->packet_bytes / steps : NAN,
        .mpi_bytes = exchanged ? w->mpi_bytes / steps : NAN,
        .net_bytes = exchanged ? w->net_bytes / steps : NAN,
    };

    sp_trainer_progress(t, false);
    t->state.window = (sp_window){ 0 };
    return sp_metrics_step(&t->metrics, &line);
}

/* Bytes since the last call: of this rank's gradients as they were sent, what
 * was handed to MPI, and what of that went to other hosts. */
static sp_sent count_bytes(sp_trainer *t)
{
    const sp_exchange *x = t->session.exchange;
    sp_sent all = { 0 }, step;

    if (!x)
        return (sp_sent){ .packet = sizeof(float) * (double)sp_params_count(
                                                        t->session.params) };
    all = sp_exchange_sent(x);
    step = (sp_sent){ all.packet - t->sent.packet, all.mpi - t->sent.mpi,
                      all.net - t->sent.net };
    t->sent = all;
    return step;
}

static void count_times(sp_trainer *t, const sp_step_result *r)
{
    double *times = t->state.times;

    times[SP_TIME_FORWARD] += r->forward_s;
    times[SP_TIME_BACKWARD] += r->backward_s;
    times[SP_TIME_COMPRESS] += r->compress_s;
    times[SP_TIME_EXCHANGE] += r->exchange_s;
    times[SP_TIME_OPTIM] += r->optim_s;
}

static void count(sp_trainer *t, const sp_batch *b, const sp_step_result *r)
{
    sp_train_state *s = &t->state;
    sp_window *w = &t->state.window;
    double targets = (double)b->targets;
    double seconds = sp_trainer_lap(t), loss = r->loss * targets;
    int64_t samples = (int64_t)b->targets;
    sp_sent sent = count_bytes(t);

    s->packet_bytes += sent.packet;
    s->mpi_bytes += sent.mpi;
    w->packet_bytes += sent.packet;
    w->mpi_bytes += sent.mpi;
    w->net_bytes += sent.net;
    s->step++;
    s->batch = (int64_t)b->index + 1;
    s->loss_sum += loss;
    s->correct += (int64_t)r->correct;
    s->samples += samples;
    s->epoch_seconds += seconds;
    w->steps++;
    w->loss += loss;
    w->correct += (int64_t)r->correct;
    w->samples += samples;
    w->norm += r->norm;
    w->seconds += seconds;
    count_times(t, r);
    t->unsaved = true;
}

static sp_err log_hash(sp_trainer *t)
{
    char hex[SP_HASH_HEX];

    sp_params_hash(t->session.params, hex);
    return sp_metrics_hash(&t->metrics, t->state.step, hex);
}

/* Minutes are those of the rank that speaks. */
static bool minutes_due(const sp_trainer *t)
{
    double minutes = settings(t)->checkpoint_minutes;

    return sp_trainer_speaks(t) && minutes > 0 &&
           sp_now() - t->saved >= 60 * minutes;
}

/* All ranks' parameters must be the same for ever. */
static sp_err check_ranks(const sp_trainer *t)
{
    int every = t->session.set.dist->check_every;

    if (!several(t) || every == 0 || t->state.step % every != 0)
        return SP_OK;
    return sp_params_agree(t->session.params, t->job->comm);
}

static sp_err one_step(sp_trainer *t, const sp_batch *b, sp_err failed)
{
    sp_step_at at = { .step = t->state.step,
                      .progress = sp_trainer_progressed(t),
                      .lr = sp_trainer_rate(t),
                      .begun = t->state.begun,
                      .pruned = t->state.round > 0,
                      .stop = sp_trainer_must_stop(t),
                      .save = minutes_due(t),
                      .failed = failed };
    sp_step_result r;

    t->state.lr = at.lr;
    SP_TRY(sp_train_step(&t->session, b, &at, &r));
    t->stop = r.stop;
    t->save = r.save;
    count(t, b, &r);
    sp_trainer_density(t);
    SP_TRY(check_ranks(t));
    sp_trainer_progress(t, true);
    if (t->state.step % t->session.set.log->every == 0)
        SP_TRY(sp_agree(t->job->comm, log_step(t)));
    if (t->state.step % SP_HASH_STEPS == 0)
        SP_TRY(sp_agree(t->job->comm, log_hash(t)));
    return SP_OK;
}

static bool checkpoint_due(const sp_trainer *t)
{
    const sp_train_cfg *cfg = settings(t);

    return (cfg->checkpoint_steps > 0 &&
            t->state.step % cfg->checkpoint_steps == 0) ||
           t->save || (!several(t) && minutes_due(t));
}

/* Of several ranks, one that cannot read its share goes on without it, to fail
 * with the others. */
static sp_err next_batch(sp_trainer *t, sp_batch *b, sp_err *failed)
{
    double start = sp_now();
    sp_err e = sp_loader_next(t->loader, b);

    t->state.times[SP_TIME_DATA] += sp_now() - start;
    if (e == SP_OK)
        sp_trainer_trace_batch(t, b, start);
    *failed = SP_OK;
    if (e == SP_OK || !several(t))
        return e;
    *failed = e;
    *b = (sp_batch){
        .index = (size_t)t->state.batch, .rows = 1, .targets = 1, .t = 1
    };
    return SP_OK;
}

/* The rest of the epoch under way, or less when the steps run out. */
static sp_err train_epoch(sp_trainer *t)
{
    sp_err failed;
    sp_batch b;

    while (!sp_trainer_ended(t)) {
        if (several(t) ? t->stop : sp_trainer_must_stop(t))
            return sp_trainer_stop(t);
        sp_trainer_trace_step(t);
        SP_TRY(next_batch(t, &b, &failed));
        if (b.end)
            return SP_OK;
        SP_TRY(one_step(t, &b, failed));
        SP_TRY(sp_trainer_trace_stepped(t));
        /* At the end of an epoch the checkpoint waits for the evaluation. */
        if (!b.last && !sp_trainer_ended(t) && checkpoint_due(t))
            SP_TRY(sp_trainer_save(t, false));
    }
    return SP_OK;
}

static sp_err run(sp_trainer *t)
{
    sp_err e;

    while (!sp_trainer_complete(t)) {
        SP_TRY(sp_trainer_switch(t));
        SP_TRY(sp_trainer_round(t));
        SP_TRY(sp_agree(t->job->comm, sp_tensors_begin(&t->tensors, &t->session,
                                                       t->state.step)));
        SP_TRY(train_epoch(t));
        SP_TRY(sp_trainer_end_epoch(t));
    }
    sp_trainer_unswitched(t);
    e = sp_trainer_test(t);
    return e == SP_ESTOPPED ? sp_trainer_stop(t) : e;
}

sp_err sp_trainer_run(sp_trainer *t)
{
    t->begun = sp_now();
    if (sp_trainer_complete(t))
        return run(t);
    SP_TRY(sp_loader_seek(t->loader, t->state.epoch, (size_t)t->state.batch));
    SP_TRY(sp_trainer_trace_open(t));
    return sp_trainer_trace_end(t, run(t));
}
