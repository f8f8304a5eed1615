/* A run from its folder's creation to its result. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/checkpoint.h"
#include "train/config_text.h"
#include "train/launcher.h"
#include "train/trainer.h"

static void report_warnings(sp_trainer *t)
{
    sp_text text = { 0 };

    sp_settings_warn(&t->session.set, &text);
    for (char *line = text.bytes, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        sp_report_line(&t->report, "%s", line);
    }
    sp_text_free(&text);
}

/* A network of convolutions may go on at another size on purpose. */
static void report_size(sp_trainer *t, const sp_manifest *m)
{
    const sp_data_info *i = &t->session.info;

    if (m->h != i->h || m->w != i->w || m->c != i->c)
        sp_report_line(&t->report,
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
    sp_err told = sp_trainer_result(t, status_of(e), reason);

    if (e == SP_OK) {
        sp_report_line(&t->report, "result   %s/result.json", t->dir.path);
        e = told;
    } else if (reason) {
        sp_report_note(&t->report, "%s", reason);
        sp_fail(e, "%s", reason);
    }
    free(reason);
    return e;
}

/* All that can still be found wrong before step 0. */
static sp_err prepare(sp_trainer *t)
{
    t->lap = t->saved = sp_now();
    t->first = t->state.step;
    SP_TRY(sp_metrics_open(&t->metrics, t->dir.path, &t->state));
    return sp_trainer_result(t, "running", NULL);
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

static sp_err begin_new(sp_trainer *t, const sp_config *c)
{
    SP_TRY(sp_launcher_check());
    SP_TRY(sp_session_open(
        &t->session, c,
        (sp_session_opt){ .train = true, .eval = true, .data = true }));
    SP_TRY(sp_trainer_load(t));
    SP_TRY(sp_config_text(c, &t->config_text));
    SP_TRY(sp_rundir_create(&t->dir, t->job));
    SP_TRY(write_config(t));
    SP_TRY(sp_report_log(&t->report, t->dir.path));
    sp_trainer_header(t);
    report_warnings(t);
    SP_TRY(prepare(t));
    return sp_trainer_save(t, false);
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
    } else if (t.metrics.metrics) {
        e = finish(&t, e);
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

/* Everything of the run as the checkpoint has it. */
static sp_err begin_again(sp_trainer *t, sp_config *c, const sp_checkpoint *p)
{
    SP_TRY(sp_config_text(c, &t->config_text));
    SP_TRY(sp_config_keep_isa(c, p->manifest.isa));
    SP_TRY(sp_session_open(&t->session, c,
                           (sp_session_opt){ .train = true,
                                             .eval = true,
                                             .data = true,
                                             .no_init = true,
                                             .tiles = p->manifest.winograd }));
    SP_TRY(sp_checkpoint_fits(p, &t->session.info));
    SP_TRY(sp_trainer_load(t));
    SP_TRY(check_position(t, &p->manifest));
    SP_TRY(sp_checkpoint_load_all(p, &t->session));
    t->state = p->manifest.state;
    SP_TRY(sp_report_log(&t->report, t->dir.path));
    sp_trainer_header(t);
    report_warnings(t);
    report_size(t, &p->manifest);
    sp_report_line(&t->report, "resume   after step %lld, from %s",
                   (long long)t->state.step, p->folder);
    return SP_OK;
}

static sp_err go_on(sp_trainer *t, sp_config *c, bool changed)
{
    sp_checkpoint p;
    sp_err e = sp_checkpoint_open(&p, t->dir.path, "last");

    if (e == SP_OK)
        e = begin_again(t, c, &p);
    sp_checkpoint_close(&p);
    if (e != SP_OK)
        return e;
    if (sp_trainer_complete(t)) {
        sp_report_line(&t->report,
                       "nothing to do: the run is complete; a larger %s would "
                       "continue it",
                       t->state.epoch < t->session.set.train->epochs
                           ? "train.max_steps"
                           : "train.epochs");
        t->job->started = true;
        return finish(t, sp_trainer_run(t)); /* what is left is the test */
    }
    if (changed)
        SP_TRY(write_config(t));
    SP_TRY(prepare(t));
    t->job->started = true;
    return finish(t, sp_trainer_run(t));
}

sp_err sp_resume(const sp_registry *r, const char *const *overrides,
                 size_t override_count, sp_job *job)
{
    sp_trainer t = sp_trainer_start(job);
    sp_config *c = NULL;
    sp_err e;

    job->started = false;
    e = sp_launcher_check();
    if (e == SP_OK)
        e = sp_rundir_open(&t.dir, job->run);
    if (e == SP_OK)
        e = sp_checkpoint_clean(job->run);
    if (e == SP_OK)
        e = sp_config_of_run(&c, r, job->run, overrides, override_count);
    if (e == SP_OK)
        e = go_on(&t, c, override_count > 0);
    sp_trainer_close(&t);
    sp_config_free(c);
    return e;
}
