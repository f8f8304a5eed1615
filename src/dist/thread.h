/* The thread that makes all calls of MPI, from within. */
#ifndef SP_DIST_THREAD_H
#define SP_DIST_THREAD_H

#include <mpi.h>
#include <pthread.h>

#include "base/clock.h"
#include "dist/team.h"

/* What ranks tell each other when one has waited too long. */
typedef struct sp_roll sp_roll;

enum {
    SP_ACTIVE = 4 /* operations of a lane under way, at most: enough that one
                     goes on while another is between its rounds */
};

/* What the thread starts with, and what it finds. */
typedef struct sp_opening {
    sp_team *team;
    int expected;         /* ranks by the launcher; 0: not known */
    const char *variable; /* that said so */
    int lowest;           /* see sp_team_open() */
} sp_opening;

struct sp_team {
    sp_comm *comm;
    pthread_t thread;

    /* The lock guards all up to the next remark. */
    pthread_mutex_t lock;
    pthread_cond_t work, change; /* for the thread, for the others */
    sp_pending *begun, **last;   /* not yet taken up */
    sp_pending *spare;           /* to be used again */
    int64_t numbers[SP_LANES];   /* operations begun */
    int64_t *swaps[SP_LANES];    /* swaps begun, by peer */
    int waiting;                 /* threads that wait for an operation */
    const sp_pending *missed;    /* what was waited for too long */
    double stopped; /* the longest time in which this process did not
                       run while it waited */
    bool opened, closing, closed, aborting;
    int status; /* to abort with */
    sp_err e;   /* why nothing goes any more, and its text: no MPI call is made
                   then but MPI_Abort, since arrays may be gone */
    char text[1024];
    sp_roll *roll;
    sp_opening opening;

    /* The thread's own. */
    MPI_Comm world;
    int lanes_under_way[SP_LANES];
    int64_t tags;
    sp_pending *active;
    char *scratch[SP_LANES];         /* SP_ACTIVE of them, one after another,
                                        from a lane's first sum on */
    unsigned scratch_used[SP_LANES]; /* a bit for each */
};

/* The thread's body. */
void *sp_thread(void *opening);

/* Wait for a condition until a moment of sp_now(); false: it is over. */
bool sp_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, double moment);

/* Record the failure of an MPI call, by MPI's text. Returns SP_EPEER. */
sp_err sp_mpi_fail(const char *call, int code);

/* Nothing goes any more, because of the error that this thread has last
 * recorded. With the lock. */
void sp_team_break(sp_team *t, sp_err e);

/* An operation to be filled in, with room for its messages; NULL: out of
 * memory. Its messages stay where they are when it is overwritten. */
sp_pending *sp_progress_new(void);
void sp_progress_free(sp_pending *p);

/* Start an operation that has its number. */
void sp_progress_begin(sp_pending *p);

/* Carry it on as far as it goes without waiting. *moved becomes true if it did,
 * *over when it is done. Errors: SP_EPEER, SP_ENOMEM. */
SP_MUST sp_err sp_progress(sp_team *t, sp_pending *p, bool *moved, bool *over);

/* It is over: others may have its scratch. */
void sp_progress_end(sp_team *t, sp_pending *p);

/* The roll call. The team's thread: ask all others how far they are; answer
 * those who ask and take in answers; whether nothing is left to come or to
 * leave. Then: name those that keep `p` waiting. */
SP_MUST sp_err sp_roll_new(sp_team *t);
void sp_roll_free(sp_roll *r);
SP_MUST sp_err sp_roll_ask(sp_team *t);
SP_MUST sp_err sp_roll_answer(sp_team *t);
bool sp_roll_complete(const sp_team *t);
sp_err sp_roll_blame(const sp_team *t, const sp_pending *p, double waited);

#endif
