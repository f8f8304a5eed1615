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

double sp_moment(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool sp_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double moment)
{
    struct timespec t = { .tv_sec = (time_t)moment };

    t.tv_nsec = (long)((moment - (double)t.tv_sec) * 1e9);
    return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
}

static void free_team(sp_team *t)
{
    for (int i = 0; i < SP_LANES; i++)
        free(t->swaps[i]);
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

/* Wait until the thread has begun MPI. One that hangs in there keeps what it
 * was given. */
static sp_err await_opening(sp_team *t)
{
    double end = sp_moment() + t->comm->timeout;
    bool opened;
    sp_err e;

    pthread_mutex_lock(&t->lock);
    while (!t->opened && sp_wait_until(&t->change, &t->lock, end))
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
        return make_room(t);
    pthread_join(t->thread, NULL);
    sp_fail(e, "%s", t->text);
    free_team(t);
    return e;
}

static void team_close(sp_team *t)
{
    double end = sp_moment() + t->comm->timeout;

    pthread_mutex_lock(&t->lock);
    t->closing = true;
    pthread_cond_signal(&t->work);
    while (!t->closed && sp_wait_until(&t->change, &t->lock, end))
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

static void team_begin(sp_team *t, sp_pending *p)
{
    int lane = sp_lane(p->on);

    pthread_mutex_lock(&t->lock);
    p->number =
        p->script->swaps ? t->swaps[lane][p->peer]++ : t->numbers[lane]++;
    *t->last = p;
    t->last = &p->next;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
}

static bool team_done(sp_team *t, const sp_pending *p)
{
    bool done;

    pthread_mutex_lock(&t->lock);
    done = p->done;
    pthread_mutex_unlock(&t->lock);
    return done;
}

/* Find out who keeps an operation waiting. With the lock. */
static sp_err find_missing(sp_team *t, const sp_pending *p)
{
    double end = sp_moment() + ROLL_TIME;

    t->calling = true;
    pthread_cond_signal(&t->work);
    while (!t->called && sp_wait_until(&t->change, &t->lock, end))
        ;
    return sp_roll_blame(t, p, t->comm->timeout);
}

static sp_err team_wait(sp_team *t, sp_pending *p)
{
    double end = sp_moment() + t->comm->timeout;
    sp_err e;

    pthread_mutex_lock(&t->lock);
    t->waiting++;
    pthread_cond_signal(&t->work);
    while (!p->done && sp_wait_until(&t->change, &t->lock, end))
        ;
    t->waiting--;
    if (p->done) {
        e = p->e;
        if (e != SP_OK)
            sp_fail(e, "%s", t->text);
        else
            free(p);
    } else {
        e = find_missing(t, p);
    }
    pthread_mutex_unlock(&t->lock);
    return e;
}

static void team_abort(sp_team *t, int status)
{
    double end = sp_moment() + ABORT_TIME;

    pthread_mutex_lock(&t->lock);
    t->status = status;
    t->aborting = true;
    pthread_cond_signal(&t->work);
    while (sp_wait_until(&t->change, &t->lock, end))
        ;
    _exit(status);
}

static const sp_carrier over_mpi = { team_begin, team_done, team_wait,
                                     team_close, team_abort };

sp_err sp_team_open(sp_comm *c, int expected, const char *variable, int *lowest)
{
    sp_team *t = calloc(1, sizeof *t);

    if (!t)
        return sp_fail(SP_ENOMEM, "out of memory");
    t->comm = c;
    t->opening = (sp_opening){ t, expected, variable, lowest };
    prepare(t);
    if (start(t) != 0) {
        free_team(t);
        return sp_fail(SP_EPEER, "cannot start a thread for MPI: the limit of "
                                 "processes (ulimit -u) may be reached");
    }
    SP_TRY(await_opening(t));
    c->team = t;
    c->carrier = &over_mpi;
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
