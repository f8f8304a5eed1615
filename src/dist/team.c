/* What threads that compute hand to the one that makes all calls of MPI. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dist/thread.h"

/* Seconds. */
#define ABORT_TIME 5.0 /* for MPI to end the process */
#define ROLL_TIME 10.0 /* for the thread to come back from a call of MPI */
#define SLICE 1.0      /* of waiting, at most, between looks at the clock */
#define LATE 1.0       /* that a busy host may be at the end of one */

bool sp_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double moment)
{
    struct timespec t = { .tv_sec = (time_t)moment };

    t.tv_nsec = (long)((moment - (double)t.tv_sec) * 1e9);
    return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
}

/* Wait for a change, for a part of the time that is left; false: there is none.
 * A time in which this process did not run, being stopped, say, does
 * not count: a job that was stopped as a whole goes on. With the lock. */
static bool wait_some(sp_team *t, double *left)
{
    double slice = *left < SLICE ? *left : SLICE, begin = sp_now(), late;

    if (*left <= 0)
        return false;
    sp_wait_until(&t->change, &t->lock, begin + slice);
    late = sp_now() - begin - slice;
    *left -= slice;
    if (late < LATE)
        *left -= late;
    else if (late > t->stopped)
        t->stopped = late;
    return true;
}

static void free_team(sp_team *t)
{
    while (t->spare) {
        sp_pending *p = t->spare;

        t->spare = p->next;
        sp_progress_free(p);
    }
    for (int i = 0; i < SP_LANES; i++) {
        free(t->swaps[i]);
        free(t->scratch[i]);
    }
    sp_roll_free(t->roll);
    pthread_cond_destroy(&t->change);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void prepare(sp_team *t)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->work, &attr);
    pthread_cond_init(&t->change, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&t->lock, NULL);
    t->last = &t->begun;
}

/* Signals are for the other threads. */
static int start(sp_team *t)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&t->thread, NULL, sp_thread, &t->opening);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Wait until the thread has begun MPI. One that hangs in there keeps what it
 * was given: team and communicator stay as they are. */
static sp_err await_opening(sp_team *t)
{
    sp_comm *c = t->comm;
    double left = c->timeout;
    bool opened;
    sp_err e;

    pthread_mutex_lock(&t->lock);
    while (!t->opened && wait_some(t, &left))
        ;
    opened = t->opened;
    e = t->e;
    pthread_mutex_unlock(&t->lock);
    if (!opened) {
        pthread_detach(t->thread);
        return sp_fail(SP_EPEER,
                       "MPI has not begun within %g s: a rank has not come, "
                       "or the hosts cannot reach each other",
                       t->comm->timeout);
    }
    if (e == SP_OK)
        return SP_OK;
    pthread_join(t->thread, NULL);
    c->team = NULL;
    sp_fail(e, "%s", t->text);
    free_team(t);
    return e;
}

static void team_close(sp_team *t)
{
    double left = t->comm->timeout;

    pthread_mutex_lock(&t->lock);
    t->closing = true;
    pthread_cond_signal(&t->work);
    while (!t->closed && wait_some(t, &left))
        ;
    if (!t->closed) {
        fprintf(stderr, "sprat: MPI has not ended within %g s\n",
                t->comm->timeout);
        _exit(1);
    }
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    free_team(t);
}

/* One that was used before, or a new one. With the lock. */
static sp_pending *take_spare(sp_team *t)
{
    sp_pending *p = t->spare;

    if (!p)
        return sp_progress_new();
    t->spare = p->next;
    return p;
}

static void queue(sp_team *t, sp_pending *p)
{
    int lane = sp_lane(p->on);

    p->number =
        p->script->swaps ? t->swaps[lane][p->peer]++ : t->numbers[lane]++;
    *t->last = p;
    t->last = &p->next;
    pthread_cond_signal(&t->work);
}

static sp_pending *team_begin(sp_team *t, const sp_pending *what)
{
    sp_pending *p;

    pthread_mutex_lock(&t->lock);
    p = take_spare(t);
    if (p) {
        struct sp_progress *under = p->under;

        *p = *what;
        p->under = under;
        p->begun = p->watch ? sp_now() : 0;
        queue(t, p);
    }
    pthread_mutex_unlock(&t->lock);
    return p;
}

/* Find out who keeps an operation waiting, and end all. Should the thread hang
 * in a call of MPI, that is its last one. With the lock. */
static sp_err give_up(sp_team *t, const sp_pending *p)
{
    double end = sp_now() + ROLL_TIME;

    if (!t->missed)
        t->missed = p;
    pthread_cond_signal(&t->work);
    while (t->e == SP_OK && sp_wait_until(&t->change, &t->lock, end))
        ;
    if (t->e == SP_OK)
        sp_team_break(t, sp_roll_blame(t, p, t->comm->timeout));
    return t->e;
}

static sp_err team_wait(sp_team *t, sp_pending *p)
{
    double left = t->comm->timeout;
    sp_err e;

    pthread_mutex_lock(&t->lock);
    t->waiting++;
    pthread_cond_signal(&t->work);
    while (!p->done && wait_some(t, &left))
        ;
    t->waiting--;
    e = p->done ? p->e : give_up(t, p);
    if (e == SP_OK) {
        p->next = t->spare;
        t->spare = p;
    } else {
        sp_fail(e, "%s", t->text); /* MPI may still have its messages */
    }
    pthread_mutex_unlock(&t->lock);
    return e;
}

static void team_abort(sp_team *t, int status)
{
    double end = sp_now() + ABORT_TIME;

    pthread_mutex_lock(&t->lock);
    t->status = status;
    t->aborting = true;
    pthread_cond_signal(&t->work);
    while (sp_wait_until(&t->change, &t->lock, end))
        ;
    _exit(status);
}

static const sp_carrier over_mpi = { team_begin, team_wait, team_close,
                                     team_abort };

sp_err sp_team_open(sp_comm *c, int expected, const char *variable, int *lowest)
{
    sp_team *t = calloc(1, sizeof *t);

    if (!t)
        return sp_fail(SP_ENOMEM, "out of memory");
    t->comm = c;
    t->opening = (sp_opening){ t, expected, variable, 0 };
    prepare(t);
    if (start(t) != 0) {
        free_team(t);
        return sp_fail(SP_EPEER, "cannot start a thread for MPI: the limit of "
                                 "processes (ulimit -u) may be reached");
    }
    c->team = t;
    c->carrier = &over_mpi;
    SP_TRY(await_opening(t));
    *lowest = t->opening.lowest;
    return SP_OK;
}

char *sp_mpi_version(char *out, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    /* One of the few calls that may come before MPI is begun. */
    MPI_Get_library_version(text, &n);
    snprintf(out, room, "%.*s", (int)strcspn(text, ",\n"), text);
    return out;
}
