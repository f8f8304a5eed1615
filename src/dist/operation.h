/* What an operation between ranks (a collective) is made of: rounds of
 * point-to-point messages. A script is its algorithm, the schedule of its
 * messages; a move is one message; a lane is what MPI would have a communicator
 * for, a group's channel, in which operations match by their order.
 *
 * A round is over when all messages that this rank sends and receives in it
 * are; the others may be rounds ahead or behind. Messages go in pieces of some
 * ten kilobytes, which arrive in order.
 *
 * All are built from messages between two, and not MPI's own operations, since
 * Open MPI 4.1 sums without blocking by a tree with nothing in pieces: on a
 * link of 100 Mbit/s, 22 MB on two ranks took 2.3 times as long as the link
 * needs. Messages of 256 kB, too, took up to 2.5 times as long, as what grants
 * one waits behind another one's bytes; pieces that go without a grant took
 * 1.05 times.
 */
#ifndef SP_DIST_OPERATION_H
#define SP_DIST_OPERATION_H

#include "dist/comm.h"

enum {
    SP_LANES = 2 * SP_GROUPS, /* groups times channels */
    SP_PIECE = 60 * 1024      /* bytes; Open MPI's TCP sends up to 64 kB
                                 without asking the receiver */
};

typedef enum sp_way { SP_RECEIVE, SP_SEND, SP_WAYS } sp_way;

/* A message: `peer` is a rank of the group. */
typedef struct sp_move {
    int peer;
    char *at;
    size_t bytes; /* 0: none is sent */
} sp_move;

/* A kind of operation. */
typedef struct sp_script {
    int (*rounds)(int ranks);
    /* Message i of a round in one direction; false past the last. */
    bool (*move)(const sp_pending *p, int round, sp_way way, int i, sp_move *m);
    bool swaps; /* concerns two ranks, not all of the group */
} sp_script;

/* a += b, of so many bytes. */
typedef void (*sp_adder)(size_t bytes, const void *b, void *a);

struct sp_pending {
    const sp_script *script;
    sp_on on;
    int rank, ranks; /* in the group */
    int peer;        /* of a swap; a broadcast's root */
    char *x;         /* all; what a swap receives */
    const char *own; /* what this rank gives to a gather or swap */
    size_t n, unit;  /* numbers in x, bytes of one */
    size_t bytes;    /* of x; of each rank's part in a gather; at own */
    const size_t *sizes, *offsets; /* gather of packets */
    sp_adder add;                  /* what comes in round 0; else NULL */
    const sp_comm_watch *watch;    /* who follows it; NULL: nobody */
    double begun, taken;           /* for that: see sp_comm_done */
    char beat[2];                  /* the payload of a barrier's messages, sent
                                      and received: none of it matters */

    /* The rest belongs to the thread that carries it out. */
    int64_t number;            /* among those of its lane, or to its peer */
    struct sp_progress *under; /* its messages under way; made with it */
    sp_ledger_entry count;
    sp_pending *next;
    bool done; /* under the team's lock, as is what follows */
    sp_err e;
};

extern const sp_script sp_script_sum, sp_script_reduce, sp_script_broadcast,
    sp_script_gather, sp_script_swap, sp_script_barrier;

int sp_lane(sp_on on);

#endif
