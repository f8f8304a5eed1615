/* Replaying a run's first steps, and comparing the hashes of all parameters
 * with those that the run has left. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "dist/agree.h"
#include "train/alike.h"
#include "train/checkpoint.h"
#include "train/config_text.h"
#include "train/step.h"
#include "train/switch.h"
#include "train/trainer.h"

/* What is replayed, and what it is compared with. */
typedef struct replay {
    sp_trainer trainer;
    sp_hash_line *lines;
    size_t count;
    int64_t steps, agreed_at;
    int agreed;
} replay;

static const sp_hash_line *line_at(const replay *r, int64_t step)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->lines[i].step == step)
            return &r->lines[i];
    return NULL;
}

static sp_err compare_first(replay *r)
{
    int64_t step = r->trainer.state.step;
    const sp_hash_line *line = line_at(r, step);
    char hex[SP_HASH_HEX];

    if (!line)
        return SP_OK;
    sp_params_hash(r->trainer.session.params, hex);
    if (strcmp(hex, line->hex) != 0)
        return sp_fail(SP_ENUMERIC,
                       "step %" PRId64 ": the parameters differ from the "
                       "run's (SHA-256 %.16s here, %.16s there); they agree up "
                       "to step %" PRId64,
                       step, hex, line->hex, r->agreed_at);
    r->agreed++;
    r->agreed_at = step;
    return SP_OK;
}

/* The hashes are rank 0's. */
static sp_err compare(replay *r)
{
    sp_comm *comm = r->trainer.job->comm;
    sp_err e = SP_OK;

    if (r->trainer.state.step % SP_HASH_STEPS != 0)
        return SP_OK;
    if (sp_comm_rank(comm) == 0)
        e = compare_first(r);
    return sp_agree(comm, e);
}

/* Schedules that watch results are told them, as in the run. */
static sp_err end_epoch(sp_trainer *t)
{
    sp_epoch_line line = sp_epoch_line_none();

    if (t->session.set.schedule->observe)
        SP_TRY(sp_trainer_evaluate(t, &line));
    sp_trainer_next_epoch(t, &line);
    return sp_trainer_keep_origin(t);
}

/* As a run does where an epoch begins, and not behind its last one. */
static sp_err begin_epoch(sp_trainer *t)
{
    if (t->state.batch != 0)
        return SP_OK;
    SP_TRY(sp_trainer_switch(t));
    return sp_trainer_round(t);
}

static sp_err step(replay *r)
{
    sp_trainer *t = &r->trainer;
    sp_step_at at = { .step = t->state.step,
                      .lr = sp_trainer_rate(t),
                      .begun = t->state.begun,
                      .pruned = t->state.round > 0 };
    sp_step_result result;
    sp_batch b;

    SP_TRY(sp_agree(t->job->comm, sp_loader_next(t->loader, &b)));
    if (b.end)
        return end_epoch(t);
    at.progress = sp_trainer_progressed(t);
    SP_TRY(sp_train_step(&t->session, &b, &at, &result));
    t->state.lr = at.lr;
    t->state.step++;
    t->state.batch = (int64_t)b.index + 1;
    return compare(r);
}

/* The rank that compares has done so at least once. */
static sp_err check_compared(const replay *r)
{
    const sp_trainer *t = &r->trainer;

    if (r->agreed > 0 || !sp_trainer_speaks(t))
        return SP_OK;
    return sp_fail(SP_EARG,
                   "%s: nothing could be compared: by the settings that it "
                   "began with it ends after %" PRId64
                   " steps, before its first parameter hash",
                   t->job->run, t->state.step);
}

static sp_err replay_steps(replay *r)
{
    sp_trainer *t = &r->trainer;

    SP_TRY(sp_trainer_keep_origin(t));
    while (t->state.step < r->steps && !sp_trainer_ended(t)) {
        SP_TRY(begin_epoch(t));
        SP_TRY(step(r));
    }
    return sp_agree(t->job->comm, check_compared(r));
}

static sp_err read_hashes(replay *r, const char *run)
{
    SP_TRY(sp_hashes_read(run, &r->lines, &r->count));
    for (size_t i = 0; i < r->count; i++)
        if (r->lines[i].step <= r->steps)
            return SP_OK;
    return sp_fail(SP_EARG,
                   "%s: has no parameter hash within its first %" PRId64
                   " steps: there is one every %d steps, so a run (and "
                   "--steps) must have at least as many",
                   run, r->steps, SP_HASH_STEPS);
}

/* Other ranks would see other shares of each batch. */
static sp_err check_ranks(const char *run, const sp_manifest *m, sp_comm *comm)
{
    int ranks = sp_comm_ranks(comm);

    if (m->ranks == ranks)
        return SP_OK;
    return sp_fail(SP_EARG,
                   "%s: began on %d rank%s, here there %s %d: replay it with "
                   "`mpirun -n %d sprat verify %s`",
                   run, m->ranks, m->ranks == 1 ? "" : "s",
                   ranks == 1 ? "is" : "are", ranks, m->ranks, run);
}

static sp_err open_replay(replay *r, const sp_config *c, const char *run,
                          const sp_checkpoint *start)
{
    sp_trainer *t = &r->trainer;
    sp_comm *comm = t->job->comm;
    sp_err e = SP_OK;

    if (sp_comm_rank(comm) == 0)
        e = read_hashes(r, run);
    SP_TRY(sp_agree(comm, e));
    SP_TRY(
        sp_session_open(&t->session, c,
                        (sp_session_opt){ .train = true,
                                          .eval = true,
                                          .data = true,
                                          .low = start->manifest.low,
                                          .comm = comm,
                                          .tiles = start->manifest.winograd }));
    SP_TRY(sp_switch_check(&t->session, &t->layers, NULL));
    e = sp_checkpoint_fits(start, &t->session.info);
    if (e == SP_OK)
        e = sp_trainer_load(t);
    SP_TRY(sp_agree(comm, e));
    return sp_session_agree(&t->session);
}

/* The configuration that the run began with: a resume may have changed
 * config.yaml since. */
static sp_err first_config(sp_config **c, const sp_registry *r,
                           const sp_manifest *m)
{
    const char *folder = getenv("TMPDIR");
    char *path =
        sp_path(folder && folder[0] ? folder : "/tmp", "sprat-verify-XXXXXX");
    int file = path ? mkstemp(path) : -1;
    sp_err e = SP_OK;

    if (file < 0) {
        e = path ? sp_io_fail("create", path)
                 : sp_fail(SP_ENOMEM, "out of memory");
        free(path);
        return e;
    }
    close(file);
    e = sp_file_write_synced(path, m->config, strlen(m->config));
    if (e == SP_OK)
        e = sp_config_load(c, r, (const char *const[]){ path }, 1, NULL, 0);
    unlink(path);
    free(path);
    if (e == SP_OK)
        e = sp_config_keep_isa(*c, m->isa);
    /* The run's limits are none of a replay's. */
    if (e == SP_OK)
        e = sp_config_set(*c, "train.max_minutes=0", "replay");
    if (e == SP_OK)
        e = sp_config_set(*c, "train.max_steps=0", "replay");
    return e;
}

sp_err sp_verify(const sp_registry *r, const char *run, int64_t steps,
                 sp_comm *comm, int *compared)
{
    sp_job job = { .run = run, .comm = comm };
    replay all = { .trainer = sp_trainer_start(&job), .steps = steps };
    sp_checkpoint start = { 0 };
    sp_config *c = NULL;
    sp_err e = sp_agree(comm, sp_rundir_check(run));

    if (e == SP_OK)
        e = sp_checkpoint_open_whole(&start, run, "start", comm);
    if (e == SP_OK)
        e = sp_agree(comm, check_ranks(run, &start.manifest, comm));
    if (e == SP_OK)
        e = sp_agree(comm, first_config(&c, r, &start.manifest));
    if (e == SP_OK)
        e = open_replay(&all, c, run, &start);
    if (e == SP_OK)
        e = replay_steps(&all);
    if (e == SP_OK)
        *compared = all.agreed;
    sp_checkpoint_close(&start);
    sp_trainer_close(&all.trainer);
    free(all.lines);
    sp_config_free(c);
    return e;
}
