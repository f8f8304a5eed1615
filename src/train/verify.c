/* Replaying a run's first steps, and comparing the hashes of all parameters
 * with those that the run has left. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/checkpoint.h"
#include "train/config_text.h"
#include "train/step.h"
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

static sp_err compare(replay *r)
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

/* Schedules that watch results are told them, as in the run. */
static sp_err end_epoch(sp_trainer *t)
{
    sp_epoch_line line = sp_epoch_line_none();

    if (t->session.set.schedule->observe)
        SP_TRY(sp_trainer_evaluate(t, &line));
    sp_trainer_next_epoch(t, &line);
    return SP_OK;
}

static sp_err step(replay *r)
{
    sp_trainer *t = &r->trainer;
    sp_step_result result;
    sp_batch b;

    SP_TRY(sp_loader_next(t->loader, &b));
    if (b.end)
        return end_epoch(t);
    SP_TRY(sp_train_step(&t->session, &b, t->state.step, sp_trainer_rate(t),
                         &result));
    t->state.step++;
    t->state.batch = (int64_t)b.index + 1;
    return compare(r);
}

static sp_err replay_steps(replay *r)
{
    while (r->trainer.state.step < r->steps && !sp_trainer_ended(&r->trainer))
        SP_TRY(step(r));
    return SP_OK;
}

static sp_err open_replay(replay *r, const sp_config *c, const char *run,
                          const sp_checkpoint *start)
{
    bool some = false;

    SP_TRY(sp_hashes_read(run, &r->lines, &r->count));
    for (size_t i = 0; i < r->count; i++)
        some = some || r->lines[i].step <= r->steps;
    if (!some)
        return sp_fail(SP_EARG,
                       "%s: has no parameter hash within its first %" PRId64
                       " steps: there is one every %d steps, so a run (and "
                       "--steps) must have at least as many",
                       run, r->steps, SP_HASH_STEPS);
    SP_TRY(
        sp_session_open(&r->trainer.session, c,
                        (sp_session_opt){ .train = true,
                                          .eval = true,
                                          .data = true,
                                          .tiles = start->manifest.winograd }));
    SP_TRY(sp_checkpoint_fits(start, &r->trainer.session.info));
    return sp_trainer_load(&r->trainer);
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
    if (e == SP_OK) /* the run's limit is none of a replay's */
        e = sp_config_set(*c, "train.max_minutes=0", "replay");
    return e;
}

sp_err sp_verify(const sp_registry *r, const char *run, int64_t steps,
                 int *compared)
{
    sp_job job = { .run = run };
    replay all = { .trainer = sp_trainer_start(&job), .steps = steps };
    sp_checkpoint start = { 0 };
    sp_config *c = NULL;
    sp_err e = sp_rundir_check(run);

    if (e == SP_OK)
        e = sp_checkpoint_open(&start, run, "start");
    if (e == SP_OK)
        e = first_config(&c, r, &start.manifest);
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
