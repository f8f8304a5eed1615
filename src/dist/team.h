/* How operations are carried out between several ranks. Of this there are two
 * versions: over MPI, and none, for builds without it. */
#ifndef SP_DIST_TEAM_H
#define SP_DIST_TEAM_H

#include "dist/operation.h"

enum { SP_HOST_ROOM = 64 };

typedef struct sp_team sp_team;

typedef struct sp_members {
    int rank, ranks; /* rank -1: not among them */
    int *world;      /* their ranks among all */
} sp_members;

/* What a team can do; as the functions of comm.h that are called alike. */
typedef struct sp_carrier {
    void (*begin)(sp_team *t, sp_pending *p);
    bool (*done)(sp_team *t, const sp_pending *p);
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
    sp_members group[SP_GROUPS];
    int *lowest;                 /* of all ranks: the lowest of those with whom
                                    it shares memory */
    int *leader;                 /* the same, or as sp_comm_nodes() has it */
    bool nodes;                  /* which the ledger goes by */
    char (*hosts)[SP_HOST_ROOM]; /* of all ranks */
    sp_ledger ledger;
};

/* Begin MPI in a thread of the team's own; sets the team, its carrier, rank and
 * ranks of `c`. *lowest: of those with whom this rank shares memory. The
 * launcher said by `variable` that there are so many ranks (0: not known).
 * Errors: see sp_comm_open(). */
SP_MUST sp_err sp_team_open(sp_comm *c, int expected, const char *variable,
                            int *lowest);

/* Bytes of a piece, a multiple of 8, the same on all ranks: for tests. */
void sp_comm_piece(sp_comm *c, size_t bytes);

/* Ranks that a launcher has started, by its environment variable, which is
 * *variable; 0 when one has, but does not tell how many. Without: 1, NULL. */
int sp_launched(const char **variable);

#endif
