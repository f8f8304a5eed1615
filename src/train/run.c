/* A run from its folder's creation to its result. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "dist/agree.h"
#include "train/alike.h"
#include "train/autorank_look.h"
#include "train/changes.h"
#include "train/checkpoint.h"
#include "train/config_text.h"
#include "train/launcher.h"
#include "train/switch.h"
#include "train/trainer.h"

static int hosts(const sp_session *s)
{
    return sp_group_ranks(s->comm, SP_LEADERS);
}

static void report_warnings(sp_trainer *t)
{
    const sp_session *s = &t->session;
    sp_text text = { 0 };

    sp_session_warn(s, t->batches, &text);
    if (s->crowded)
        sp_text_add(&text,
                    "warning: a host has fewer cores than its ranks have "
                    "threads: start fewer ranks on it, or lower "
                    "train.threads\n");
    if (s->exchange && s->set.dist->hierarchy && hosts(s) == 1)
        sp_text_add(&text,
                    "warning: dist.hierarchy is node, but there is one host: "
                    "nothing is sent between hosts, or compressed\n");
    if (s->set.dist->exchange && !s->set.compressor->encode)
        sp_text_add(&text, "warning: dist.exchange=merge has no effect without "
                           "a compressor\n");
    if (s->exchange && sp_comm_ranks(s->comm) == 1)
        sp_text_add(&text,
                    "warning: compress.name is %s, but this is the only rank: "
                    "gradients are compressed, and nothing is sent\n",
                    s->set.compressor->entry.name);
    sp_console_text(&t->console, &text);
    sp_text_free(&text);
}

/* A network of convolutions may go on at another size on purpose. */
static void report_size(sp_trainer *t, const sp_manifest *m)
{
    const sp_data_info *i = &t->session.info;

    if (m->h != i->h || m->w != i->w || m->c != i->c)
        sp_console_line(&t->console,
                        "warning: the images are %dx%dx%d now, up to here they "
                        "were %dx%dx%d",
                        i->h, i->w, i->c, m->h, m->w, m->c);
}

static const char *status_of(sp_err e)
{
    switch (e) {
    case SP_OK:
        return "done";
    case SP_ESTOPPED:
        return "stopped";
    case SP_ENUMERIC:
        return "not_finite";
    default:
        return "failed";
    }
}

/* Record how the run ended. An error that the run ended with is handed on with
 * its text; else that of recording counts. */
static sp_err finish(sp_trainer *t, sp_err e)
{
    const char *text = sp_last_error();
    char *reason = e == SP_OK ? NULL : sp_copy(text, strlen(text));
    sp_err told = e == SP_OK ? sp_trainer_gather_sent(t) : SP_OK;

    if (told == SP_OK && sp_trainer_speaks(t))
        told = sp_trainer_result(t, status_of(e), reason);
    if (e == SP_OK) {
        sp_trainer_bytes(t);
        sp_console_line(&t->console, "result   %s/result.json", t->dir.path);
        e = sp_agree(t->job->comm, told);
    } else if (reason) {
        sp_console_note(&t->console, "%s", reason);
        sp_fail(e, "%s", reason);
    }
    free(reason);
    return e;
}

static sp_err write_config(const sp_trainer *t)
{
    char *path = sp_rundir_config(t->dir.path);
    sp_err e = path ? sp_file_write_synced(path, t->config_text,
                                           strlen(t->config_text))
                    : sp_fail(SP_ENOMEM, "out of memory");

    free(path);
    return e;
}

static sp_err open_lines(sp_trainer *t)
{
    const sp_log_cfg *log = t->session.set.log;

    SP_TRY(sp_metrics_open(&t->metrics, t->dir.path, &t->state, log));
    return log->tensors ? sp_tensors_open(&t->tensors, t->dir.path, &t->state)
                        : SP_OK;
}

/* What the rank that speaks writes before step 0, with the configuration where
 * that is new; in a run that is complete there is none. */
static sp_err open_folder(sp_trainer *t, bool config)
{
    bool complete = sp_trainer_complete(t);

    t->lap = t->saved = sp_now();
    t->first = t->counted = t->state.step;
    if (!sp_trainer_speaks(t))
        return SP_OK;
    if (config && !complete)
        SP_TRY(write_config(t));
    if (!complete)
        SP_TRY(open_lines(t));
    SP_TRY(sp_console_log(&t->console, t->dir.path));
    sp_trainer_header(t);
    report_warnings(t);
    return complete ? SP_OK : sp_trainer_result(t, "running", NULL);
}

/* Batches, the configuration's text, and what the ranks must have in common. */
static sp_err load(sp_trainer *t, const sp_config *c)
{
    sp_err e = sp_trainer_load(t);

    if (e == SP_OK)
        e = sp_config_text(c, &t->config_text);
    SP_TRY(sp_agree(t->job->comm, e));
    return sp_session_agree(&t->session);
}

/* Ranks that a launcher started, but that do not know of each other, would all
 * train the same into the same folder. */
static sp_err check_launcher(const sp_job *job)
{
    return job->comm ? SP_OK : sp_launcher_check();
}

static sp_err open_new(sp_trainer *t, const sp_config *c)
{
    bool low;

    SP_TRY(sp_switch_from_start(c, t->job->comm, &low));
    return sp_session_open(&t->session, c,
                           (sp_session_opt){ .train = true,
                                             .eval = true,
                                             .data = true,
                                             .low = low,
                                             .comm = t->job->comm });
}

static sp_err begin_new(sp_trainer *t, const sp_config *c)
{
    sp_text warnings = { 0 };
    sp_err e;

    SP_TRY(check_launcher(t->job));
    SP_TRY(open_new(t, c));
    e = sp_switch_check(&t->session, &t->layers, &warnings);
    if (e == SP_OK)
        e = load(t, c);
    if (e == SP_OK)
        e = sp_rundir_create(&t->dir, t->job);
    if (e == SP_OK)
        e = sp_agree(t->job->comm, open_folder(t, true));
    if (e == SP_OK)
        sp_console_text(&t->console, &warnings);
    sp_text_free(&warnings);
    return e == SP_OK ? sp_trainer_save(t, false) : e;
}

/* Nothing was trained, and without a checkpoint nothing can go on. */
static sp_err withdraw(sp_trainer *t, sp_err e)
{
    sp_metrics_close(&t->metrics);
    sp_tensors_close(&t->tensors);
    sp_console_close(&t->console);
    return sp_rundir_withdraw(&t->dir, e);
}

sp_err sp_train(const sp_config *c, sp_job *job)
{
    sp_trainer t = sp_trainer_start(job);
    sp_err e;

    job->started = false;
    e = begin_new(&t, c);
    if (e == SP_OK) {
        job->started = true;
        e = finish(&t, sp_trainer_run(&t));
    } else {
        e = withdraw(&t, e);
    }
    sp_trainer_close(&t);
    return e;
}

/* The batches done so far must be those that the configuration speaks of. */
static sp_err check_position(const sp_trainer *t, const sp_manifest *m)
{
    int64_t batch = t->session.set.train->batch;
    int64_t bptt = t->session.set.train->bptt;

    if (m->state.batch == 0)
        return SP_OK;
    if (m->text && m->bptt != bptt)
        return sp_fail(SP_ECONFIG,
                       "%s: stands within epoch %d, after batch %lld of %lld "
                       "of %lld tokens a column; that epoch cannot go on with "
                       "%lld: change train.bptt between epochs only",
                       t->dir.path, m->state.epoch + 1,
                       (long long)m->state.batch, (long long)m->batches,
                       (long long)m->bptt, (long long)bptt);
    if (m->batch == batch && m->batches == t->batches)
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "%s: stands within epoch %d, after batch %lld of %lld of "
                   "%lld samples; that epoch cannot go on with %lld batches of "
                   "%lld: change train.batch and the data between epochs only",
                   t->dir.path, m->state.epoch + 1, (long long)m->state.batch,
                   (long long)m->batches, (long long)m->batch,
                   (long long)t->batches, (long long)batch);
}

/* The configuration's text, before it is bound to the instruction set that has
 * computed up to here. */
static sp_err keep_machine(sp_trainer *t, sp_config *c, const sp_checkpoint *p)
{
    SP_TRY(sp_config_text(c, &t->config_text));
    return sp_config_keep_isa(c, p->manifest.isa);
}

/* A record of tiles that does not fit is of another network, of which names and
 * shapes say more. The error is that of opening the session. */
static sp_err explain(const sp_config *c, const sp_checkpoint *p,
                      sp_session_opt opt, sp_err e)
{
    char *text = sp_error_keep();
    sp_err other = SP_OK;
    sp_session s;

    opt.tiles = NULL;
    opt.no_memory = true;
    if (sp_session_open(&s, c, opt) == SP_OK) {
        other = sp_agree(opt.comm, sp_checkpoint_compare(p, s.params));
        sp_session_close(&s);
    }
    if (other == SP_OK)
        return sp_error_restore(e, text);
    free(text);
    return other;
}

/* The session that the checkpoint is of. */
static sp_err open_again(sp_trainer *t, const sp_config *c,
                         const sp_checkpoint *p, const sp_changes *changes)
{
    sp_session_opt opt = { .train = true,
                           .eval = true,
                           .data = true,
                           .no_init = true,
                           .low = p->manifest.low,
                           .chosen = sp_manifest_ranks(&p->manifest),
                           .tiles = p->manifest.winograd,
                           .comm = t->job->comm };
    sp_err e = sp_session_open(&t->session, c, opt);

    if (e == SP_EARG)
        e = explain(c, p, opt, e);
    return e == SP_EARG || e == SP_EFORMAT ? sp_changes_blame(changes, e) : e;
}

/* What is still to come of low rank, and was seen up to here. */
static sp_err check_switch(sp_trainer *t, const sp_manifest *m,
                           sp_text *warnings)
{
    if (!m->low)
        SP_TRY(sp_switch_check(&t->session, &t->layers, warnings));
    return sp_autorank_resume(&t->session, m, &t->layers, &t->autorank);
}

/* Everything of the run as the checkpoint has it. */
static sp_err begin_again(sp_trainer *t, sp_config *c, const sp_checkpoint *p,
                          const sp_changes *changes, sp_text *told)
{
    sp_err e;

    SP_TRY(sp_agree(t->job->comm, keep_machine(t, c, p)));
    SP_TRY(open_again(t, c, p, changes));
    SP_TRY(check_switch(t, &p->manifest, told));
    sp_changes_warn(changes, &p->manifest, told);
    e = sp_checkpoint_fits(p, &t->session.info);
    if (e == SP_OK)
        e = sp_trainer_load(t);
    if (e == SP_OK)
        e = check_position(t, &p->manifest);
    SP_TRY(sp_agree(t->job->comm, e));
    e = sp_checkpoint_load_all(p, &t->session, told);
    if (e == SP_EFORMAT)
        e = sp_changes_blame(changes, e);
    SP_TRY(e);
    t->state = p->manifest.state;
    SP_TRY(sp_session_agree(&t->session));
    SP_TRY(sp_trainer_check_rounds(t));
    SP_TRY(sp_agree(t->job->comm, open_folder(t, changes->count > 0)));
    report_size(t, &p->manifest);
    sp_console_line(&t->console, "resume   after step %lld, from %s",
                    (long long)t->state.step, p->folder);
    sp_console_text(&t->console, told);
    return SP_OK;
}

static sp_err go_on(sp_trainer *t, sp_config *c, const sp_changes *changes)
{
    sp_text told = { 0 };
    sp_checkpoint p;
    sp_err e = sp_checkpoint_open_whole(&p, t->dir.path, "last", t->job->comm);

    if (e == SP_OK)
        e = begin_again(t, c, &p, changes, &told);
    sp_text_free(&told);
    sp_checkpoint_close(&p);
    if (e != SP_OK)
        return e;
    t->job->started = true;
    if (sp_trainer_complete(t))
        sp_console_line(&t->console,
                        "nothing to do: the run is complete; a larger %s would "
                        "continue it",
                        !sp_trainer_finished(t) ? "train.max_steps"
                        : t->session.set.prune  ? "prune.rounds"
                                                : "train.epochs");
    return finish(t, sp_trainer_run(t)); /* at least the test may be left */
}

sp_err sp_resume(const sp_registry *r, const char *const *overrides,
                 size_t override_count, sp_job *job)
{
    sp_changes changes = { overrides, override_count };
    sp_trainer t = sp_trainer_start(job);
    sp_config *c = NULL;
    sp_err e;

    job->started = false;
    e = check_launcher(job);
    if (e == SP_OK)
        e = sp_rundir_open(&t.dir, job->run, job->comm);
    if (e == SP_OK)
        e = sp_agree(job->comm, sp_trainer_speaks(&t)
                                    ? sp_checkpoint_clean(job->run)
                                    : SP_OK);
    if (e == SP_OK)
        e = sp_agree(job->comm, sp_config_of_run(&c, r, job->run, overrides,
                                                 override_count));
    if (e == SP_OK)
        e = go_on(&t, c, &changes);
    sp_trainer_close(&t);
    sp_config_free(c);
    return e;
}
