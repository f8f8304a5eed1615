/* One run after the other. */
#include "table/queue.h"

#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "sprat/train.h"
#include "train/shared.h"

typedef enum action { END, STOP, TRAIN, RESUME } action;

/* What all ranks do next. */
typedef struct task {
    int cell;
    action what;
} task;

static bool is_due(const sp_queue *q, const sp_cell *c)
{
    if (c->tried || c->state == SP_CELL_DONE)
        return false;
    return c->state != SP_CELL_FAILED || q->opt->retry;
}

static task next_task(const sp_queue *q)
{
    for (size_t i = 0; i < q->cells.count; i++)
        if (is_due(q, &q->cells.cell[i]))
            return (task){ (int)i, q->cells.cell[i].saved ? RESUME : TRAIN };
    return (task){ 0, END };
}

static void announce(const sp_queue *q, const task *t)
{
    const sp_cell *c = &q->cells.cell[t->cell];

    if (!q->opt->terminal || sp_comm_rank(q->opt->comm) != 0)
        return;
    fprintf(q->opt->terminal, "\ntable    run %d of %zu: %s, seed %d%s\n",
            t->cell + 1, q->cells.count, c->row->name, c->seed,
            t->what == RESUME ? ", resumed" : "");
    fflush(q->opt->terminal);
}

/* A folder without a checkpoint holds nothing that would be lost. */
static sp_err train(const sp_queue *q, const sp_registry *r, const sp_cell *c,
                    sp_job *job)
{
    sp_config *config = NULL;
    sp_err e = sp_agree(q->opt->comm, sp_cell_config(c, r, &config));

    job->overwrite = true;
    if (e == SP_OK)
        e = sp_train(config, job);
    sp_config_free(config);
    return e;
}

static sp_err resume(const sp_queue *q, const sp_registry *r, const sp_cell *c,
                     sp_job *job)
{
    sp_overrides change;
    sp_err e = sp_agree(q->opt->comm, sp_cell_change(c, r, &change));

    if (e == SP_OK)
        e = sp_resume(r, (const char *const *)change.setting, change.count,
                      job);
    sp_overrides_free(&change);
    return e;
}

/* What the run that was trained has left; where it could not write how it
 * ended, that. Of rank 0. */
static sp_err look_again(sp_queue *q, const sp_registry *r, sp_cell *c,
                         sp_err ended, const char *reason)
{
    FILE *terminal = q->opt->terminal;

    SP_TRY(sp_cell_look(c, &q->table, r));
    if (ended != SP_OK && ended != SP_ESTOPPED && c->state != SP_CELL_FAILED) {
        c->state = SP_CELL_FAILED;
        c->reason = sp_copy(reason, strlen(reason));
        if (!c->reason)
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    if (c->state == SP_CELL_FAILED && terminal)
        fprintf(terminal, "table    failed: %s\n", c->reason);
    return sp_queue_write(q);
}

/* Run a task. Ranks that have failed together can go on together. */
static sp_err perform(sp_queue *q, const sp_registry *r, const task *t,
                      bool *started)
{
    sp_cell *c = &q->cells.cell[t->cell];
    sp_job job = { .run = c->run,
                   .terminal = q->opt->terminal,
                   .stop = q->opt->stop,
                   .comm = q->opt->comm };
    sp_err e, looked = SP_OK;
    char *reason;

    c->tried = true;
    announce(q, t);
    e = t->what == RESUME ? resume(q, r, c, &job) : train(q, r, c, &job);
    *started = *started || job.started;
    if (e != SP_OK && e != SP_ESTOPPED &&
        (!job.started || !sp_agreed(q->opt->comm)))
        return e;
    reason = sp_error_keep();
    if (!reason)
        looked = sp_fail(SP_ENOMEM, "out of memory");
    else if (sp_comm_rank(q->opt->comm) == 0)
        looked = look_again(q, r, c, e, reason);
    looked = sp_agree(q->opt->comm, looked);
    if (looked == SP_OK && e == SP_ESTOPPED)
        looked = sp_fail(SP_ESTOPPED, "%s", reason);
    free(reason);
    return looked;
}

static bool must_stop(const sp_queue *q)
{
    return q->opt->stop && *q->opt->stop;
}

sp_err sp_queue_work(sp_queue *q, const sp_registry *r, bool *started)
{
    for (;;) {
        task t = must_stop(q) ? (task){ 0, STOP } : next_task(q);

        SP_TRY(sp_shared_bytes(q->opt->comm, SP_USE_CHECK, &t, sizeof t));
        if (t.what == END)
            return SP_OK;
        if (t.what == STOP)
            return sp_fail(SP_ESTOPPED, "%s: stopped between two runs",
                           q->folder);
        SP_TRY(perform(q, r, &t, started));
    }
}
