/* The thread that makes all calls of MPI, from within. */
#ifndef SP_DIST_THREAD_H
#define SP_DIST_THREAD_H

#include <mpi.h>
#include <pthread.h>

#include "dist/team.h"

/* What ranks tell each other when one has waited too long. */
typedef struct sp_roll sp_roll;

/* What the thread starts with. */
typedef struct sp_opening {
    sp_team *team;
    int expected;         /* ranks by the launcher; 0: not known */
    const char *variable; /* that said so */
    int *lowest;          /* see sp_team_open() */
} sp_opening;

struct sp_team {
    sp_comm *comm;
    pthread_t thread;

    /* The lock guards all up to the next remark. */
    pthread_mutex_t lock;
    pthread_cond_t work, change; /* for the thread, for the others */
    sp_pending *begun, **last;   /* not yet taken up */
    int64_t numbers[SP_LANES];   /* operations begun */
    int64_t *swaps[SP_LANES];    /* swaps begun, by peer */
    int waiting;                 /* threads that wait for an operation */
    bool opened, closing, closed, aborting, calling, called;
    int status; /* to abort with */
    sp_err e;   /* why nothing goes any more */
    char text[1024];
    sp_roll *roll;
    sp_opening opening;

    /* The thread's own. */
    MPI_Comm world;
    int lanes_under_way[SP_LANES];
    int64_t tags;
    sp_pending *active;
};

/* The thread's body. */
void *sp_thread(void *opening);

/* Seconds of a clock that goes on evenly. */
double sp_moment(void);

/* Wait for a condition until a moment of it; false: it is over. */
bool sp_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double moment);

/* Record the failure of an MPI call, by MPI's text. Returns SP_EPEER. */
sp_err sp_mpi_fail(const char *call, int code);

/* Start an operation that has its number. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_progress_begin(sp_pending *p);

/* Carry it on as far as it goes without waiting. *moved becomes true if it did,
 * *over when it is done. Errors: SP_EPEER. */
SP_MUST sp_err sp_progress(sp_team *t, sp_pending *p, bool *moved, bool *over);

void sp_progress_free(sp_pending *p);

/* The roll call. The team's thread: ask all others how far they are; answer
 * those who ask and take in answers; whether nothing is left to come. Other
 * threads, when it is over: name those that keep `p` waiting. */
SP_MUST sp_err sp_roll_new(sp_team *t);
void sp_roll_free(sp_roll *r);
SP_MUST sp_err sp_roll_ask(sp_team *t);
SP_MUST sp_err sp_roll_answer(sp_team *t);
bool sp_roll_complete(const sp_team *t);
sp_err sp_roll_blame(const sp_team *t, const sp_pending *p, double waited);

#endif
