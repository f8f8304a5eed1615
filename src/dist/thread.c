/* The thread that makes all calls of MPI: its loop. */
#include "dist/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LOOKS = 200,   /* that find nothing new, before making room for others */
    YIELDS = 2000, /* before sleeping in between */
    LINGERS = 25   /* with nothing under way: what MPI has taken may need some
                      more calls to leave */
};

/* Seconds to sleep. A look while the others compute costs some 16 microseconds
 * with TCP: 8 % of a core's time at 5,000 a second (as a 200 microseconds'
 * sleep has it, with 10 MB at 100 Mbit/s), half of it at 2,500. Sockets hold
 * what comes in meanwhile. */
#define IDLE 0.25
#define NAP 400e-6
#define SHORT_NAP 50e-6
#define ANSWERS 0.1 /* between looks for a roll call */

static sp_err find_neighbours(sp_team *t, int *lowest)
{
    MPI_Comm host;
    MPI_Group all, near;
    int zero = 0;
    int code = MPI_Comm_split_type(t->world, MPI_COMM_TYPE_SHARED,
                                   t->comm->rank, MPI_INFO_NULL, &host);

    if (code != MPI_SUCCESS)
        return sp_mpi_fail("MPI_Comm_split_type", code);
    MPI_Comm_group(t->world, &all);
    MPI_Comm_group(host, &near);
    MPI_Group_translate_ranks(near, 1, &zero, all, lowest);
    MPI_Group_free(&near);
    MPI_Group_free(&all);
    MPI_Comm_free(&host);
    return SP_OK;
}

static sp_err set_up(sp_opening *o)
{
    sp_team *t = o->team;
    sp_comm *c = t->comm;
    int *bound, found, code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Comm_dup(MPI_COMM_WORLD, &t->world);
    if (code != MPI_SUCCESS)
        return sp_mpi_fail("MPI_Comm_dup", code);
    MPI_Comm_rank(t->world, &c->rank);
    MPI_Comm_size(t->world, &c->ranks);
    if (o->expected && c->ranks != o->expected)
        return sp_fail(SP_EPEER,
                       "started as one of %d ranks (%s), but MPI knows of %d: "
                       "start with the mpirun of the MPI that this program is "
                       "linked with, or srun --mpi=pmix",
                       o->expected, o->variable, c->ranks);
    MPI_Comm_get_attr(t->world, MPI_TAG_UB, &bound, &found);
    t->tags = ((found ? *bound : 32767) - 1) / (2 * SP_LANES) - 1;
    return find_neighbours(t, &o->lowest);
}

static sp_err begin_mpi(sp_opening *o)
{
    int before, provided;
    sp_err e;

    MPI_Initialized(&before);
    if (before)
        return sp_fail(SP_EPEER, "MPI cannot be begun twice in a process");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) !=
        MPI_SUCCESS)
        return sp_fail(SP_EPEER, "MPI_Init_thread failed");
    if (provided < MPI_THREAD_FUNNELED)
        e = sp_fail(SP_EPEER, "this MPI was built without threads, which "
                              "MPI_THREAD_FUNNELED needs: use another");
    else
        e = set_up(o);
    if (e != SP_OK)
        MPI_Finalize();
    return e;
}

/* What needs the number of ranks. */
static sp_err make_room(sp_team *t)
{
    for (int i = 0; i < SP_LANES; i++) {
        t->swaps[i] = calloc((size_t)t->comm->ranks, sizeof *t->swaps[i]);
        if (!t->swaps[i])
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    return sp_roll_new(t);
}

void sp_team_break(sp_team *t, sp_err e)
{
    t->e = e;
    snprintf(t->text, sizeof t->text, "%s", sp_last_error());
    pthread_cond_broadcast(&t->change);
}

/* With the lock: when the operation is waited for, it was told. */
static void tell(const sp_team *t, const sp_pending *p)
{
    sp_comm_done d = { .on = p->on,
                       .leader = t->comm->group[p->on.group].world[0],
                       .number = p->script->swaps ? -1 : p->number,
                       .begun = p->begun,
                       .taken = p->taken,
                       .ended = sp_now(),
                       .bytes = p->count.bytes };

    p->watch->done(p->watch->arg, &d);
}

static void finish(sp_team *t, sp_pending *p, sp_err e)
{
    sp_ledger_entry *entry = &t->comm->ledger.use[p->on.use];

    if (p->watch && e == SP_OK)
        tell(t, p);
    entry->calls += p->count.calls;
    entry->bytes += p->count.bytes;
    entry->net += p->count.net;
    p->e = e;
    p->done = true;
    pthread_cond_broadcast(&t->change);
}

/* Take up operations that have been begun, in their order; those of one lane
 * are the same on all ranks. */
static void take_up(sp_team *t)
{
    sp_pending **end = &t->active, **at = &t->begun;

    while (*end)
        end = &(*end)->next;
    while (*at && t->e == SP_OK) {
        sp_pending *p = *at;
        int lane = sp_lane(p->on);

        if (!p->script->swaps && t->lanes_under_way[lane] == SP_ACTIVE) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = NULL;
        *end = p;
        end = &p->next;
        if (!p->script->swaps)
            t->lanes_under_way[lane]++;
        p->taken = p->watch ? sp_now() : 0;
        sp_progress_begin(p);
    }
    t->last = &t->begun;
    while (*t->last)
        t->last = &(*t->last)->next;
}

static void fail_all(sp_team *t)
{
    sp_pending **lists[] = { &t->active, &t->begun };

    for (int i = 0; i < 2; i++)
        while (*lists[i]) {
            sp_pending *p = *lists[i];

            *lists[i] = p->next;
            finish(t, p, t->e);
        }
    t->last = &t->begun;
}

/* Carry on everything that is under way; whether anything moved. Those that
 * are done are moved to *over. Without the lock. */
static sp_err carry_on(sp_team *t, bool *moved, sp_pending **over)
{
    sp_pending **at = &t->active;

    while (*at) {
        sp_pending *p = *at;
        bool done = false;

        SP_TRY(sp_progress(t, p, moved, &done));
        if (!done) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = *over;
        *over = p;
        sp_progress_end(t, p);
        if (!p->script->swaps)
            t->lanes_under_way[sp_lane(p->on)]--;
    }
    return SP_OK;
}

static bool look(sp_team *t)
{
    bool moved = false;
    sp_pending *over = NULL;
    sp_err e;

    pthread_mutex_unlock(&t->lock);
    e = carry_on(t, &moved, &over);
    pthread_mutex_lock(&t->lock);
    while (over) {
        sp_pending *p = over;

        over = p->next;
        finish(t, p, SP_OK);
    }
    if (e != SP_OK)
        sp_team_break(t, e);
    return moved;
}

/* What there is of a roll call. When one of this rank's own is over, so is all
 * else. */
static void call_roll(sp_team *t, double *looked)
{
    sp_err e = SP_OK;

    if (!t->missed && t->active && sp_now() < *looked + ANSWERS)
        return;
    *looked = sp_now();
    if (t->missed)
        e = sp_roll_ask(t);
    if (e == SP_OK)
        e = sp_roll_answer(t);
    if (e == SP_OK && t->missed && sp_roll_complete(t))
        e = sp_roll_blame(t, t->missed, t->comm->timeout);
    if (e != SP_OK)
        sp_team_break(t, e);
}

/* Leave the core to those who compute, unless somebody waits. */
static void rest(sp_team *t, int looks)
{
    double time = NAP;

    if (!t->active && looks > LINGERS)
        time = IDLE;
    else if (t->waiting && looks > YIELDS)
        time = SHORT_NAP;
    else if (t->waiting && t->active) {
        pthread_mutex_unlock(&t->lock);
        if (looks > LOOKS)
            sched_yield();
        pthread_mutex_lock(&t->lock);
        return;
    }
    sp_wait_until(&t->work, &t->lock, sp_now() + time);
}

/* Whether something else is to be done at once. */
static bool wanted(const sp_team *t)
{
    return t->closing || t->aborting || (t->missed && t->e == SP_OK) ||
           (t->begun && !t->active);
}

static void work(sp_team *t)
{
    double looked = 0;
    int looks = 0;

    while (!t->closing || t->active || t->begun) {
        if (t->aborting) {
            pthread_mutex_unlock(&t->lock);
            MPI_Abort(t->world, t->status);
            pthread_mutex_lock(&t->lock);
            t->aborting = false;
        }
        take_up(t);
        looks = t->e == SP_OK && look(t) ? 0 : looks + 1;
        if (t->e == SP_OK)
            call_roll(t, &looked);
        if (t->e != SP_OK)
            fail_all(t);
        if ((looks > 0 || t->e != SP_OK) && !wanted(t))
            rest(t, looks);
    }
}

void *sp_thread(void *opening)
{
    sp_opening *o = opening;
    sp_team *t = o->team;
    sp_err e = begin_mpi(o);

    pthread_mutex_lock(&t->lock);
    if (e == SP_OK)
        e = make_room(t);
    if (e != SP_OK)
        sp_team_break(t, e);
    t->opened = true;
    pthread_cond_broadcast(&t->change);
    if (e == SP_OK) {
        work(t);
        pthread_mutex_unlock(&t->lock);
        MPI_Comm_free(&t->world);
        MPI_Finalize();
        pthread_mutex_lock(&t->lock);
    }
    t->closed = true;
    pthread_cond_broadcast(&t->change);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}
