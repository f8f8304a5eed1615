/* How operations are carried out between several ranks. Of this there are two
 * versions: over MPI, and none, for builds without it. A team is what one
 * version has to know of the ranks (its transport's state), a carrier the table
 * of its functions (the transport's interface). */
#ifndef SP_DIST_TEAM_H
#define SP_DIST_TEAM_H

#include <stdatomic.h>

#include "dist/operation.h"

enum { SP_HOST_ROOM = 64 };

typedef struct sp_team sp_team;

typedef struct sp_members {
    int rank, ranks; /* rank -1: not among them */
    int *world;      /* their ranks among all */
} sp_members;

/* What a team can do; as the functions of comm.h that are called alike. */
typedef struct sp_carrier {
    /* One that `what` describes, or NULL: out of memory. */
    sp_pending *(*begin)(sp_team *t, const sp_pending *what);
    sp_err (*wait)(sp_team *t, sp_pending *p);
    void (*close)(sp_team *t);             /* when nothing is under way */
    void (*abort)(sp_team *t, int status); /* does not return */
} sp_carrier;

struct sp_comm {
    sp_team *team; /* NULL: a job of one */
    const sp_carrier *carrier;
    int rank, ranks;
    char host[SP_HOST_ROOM];
    double timeout;
    size_t piece;
    const sp_comm_watch *watch; /* of operations to come; NULL: nobody */
    atomic_bool agreed; /* see sp_agreed(); any thread may begin operations */
    sp_members group[SP_GROUPS];
    int *lowest;                 /* of all ranks: the lowest of those with whom
                                    it shares memory */
    int *leader;                 /* the same, or as sp_comm_nodes() has it */
    char (*hosts)[SP_HOST_ROOM]; /* of all ranks */
    sp_ledger ledger;
};

/* Begin MPI in a thread of the team's own; sets the team, its carrier, rank and
 * ranks of `c`. *lowest: of those with whom this rank shares memory. The
 * launcher said by `variable` that there are so many ranks (0: not known).
 * Errors: see sp_comm_open(). After one, c->team is not NULL if its thread
 * still runs: then `c` must stay, since the thread goes on using it. */
SP_MUST sp_err sp_team_open(sp_comm *c, int expected, const char *variable,
                            int *lowest);

/* Bytes of a piece, a multiple of 8 and at most SP_PIECE, the same on all
 * ranks: for tests. */
void sp_comm_piece(sp_comm *c, size_t bytes);

#endif
