/* Operations between ranks, which are MPI's non-blocking collectives in all but
 * how they are carried out. All MPI calls are made by one thread of the
 * communicator's own, never a blocking one; other threads queue to it and
 * wait. Open MPI 4.1 makes no progress in the background, so that thread is
 * what lets an exchange go on while the others compute.
 *
 * Every operation is collective over its group: all its ranks must begin the
 * same operations of one channel in the same order. Arrays belong to an
 * operation until it was waited for.
 *
 *   SP_TRY(sp_op_wait(c, sp_sum_floats(c, on, x, n)));
 *
 * A job of one rank does each operation at once and hands nothing to MPI. In
 * every function a communicator of NULL stands for such a job.
 */
#ifndef SP_DIST_COMM_H
#define SP_DIST_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dist/ledger.h"
#include "sprat/dist.h"

/* Who takes part; MPI would have a communicator for each. */
typedef enum sp_group {
    SP_ALL,
    SP_NODE,    /* the ranks of one host, its leader (lowest rank) first */
    SP_LEADERS, /* the leaders of all hosts; others must not call */
    SP_GROUPS
} sp_group;

/* Where an operation belongs: operations of different channels may be begun in
 * different orders on different ranks, as in duplicated communicators. */
typedef enum sp_channel { SP_CHANNEL_MAIN, SP_CHANNEL_GATHER } sp_channel;

typedef struct sp_on {
    sp_group group;
    sp_channel channel;
    sp_use use; /* what the ledger counts it as */
} sp_on;

/* Rank and number of ranks within a group; the rank is -1 outside of it. */
int sp_group_rank(const sp_comm *c, sp_group g);
int sp_group_ranks(const sp_comm *c, sp_group g);

/* Let so many successive ranks count as one host, for SP_NODE, SP_LEADERS and
 * the ledger; 0: those that share memory, as it is from the start. All ranks
 * say the same, while nothing is under way. Errors: SP_EARG for a negative
 * number. */
SP_MUST sp_err sp_comm_nodes(sp_comm *c, int ranks_per_node);

/* Give up waiting after so many seconds (600 at first). */
void sp_comm_timeout(sp_comm *c, double seconds);

/* The host's name, for messages. */
const char *sp_comm_host(const sp_comm *c);

/* Bytes of a rank's name, at most, with its end. */
enum { SP_RANK_NAME = 96 };

/* "rank 3 (node2)", in `out`: what messages call a rank of a group, by its
 * place among all ranks. Returns out. */
const char *sp_rank_name(const sp_comm *c, sp_group g, int rank,
                         char out[SP_RANK_NAME]);

/* Ranks that a launcher has started, by its environment variable, which is
 * *variable; 0 when one has, but does not tell how many. Without: 1, NULL. */
int sp_launched(const char **variable);

/* What went over MPI so far, of operations that are done: to be read while none
 * is under way. */
const sp_ledger *sp_comm_ledger(const sp_comm *c);

/* An operation that is done, as this rank has seen it; times in seconds of the
 * monotonic clock. */
typedef struct sp_comm_done {
    sp_on on;
    int leader;     /* the group's lowest rank, among all */
    int64_t number; /* among those of the group and channel, on all its ranks
                       the same; -1: it was between two ranks */
    double begun;   /* when it was begun, ... */
    double taken;   /* ... its first message could go, and ... */
    double ended;
    int64_t bytes; /* handed to MPI by this rank */
} sp_comm_done;

/* Who follows operations. `done` is called by the thread that carries them out,
 * in the order in which they end, and holds up all others: it must be short,
 * and call nothing here. */
typedef struct sp_comm_watch {
    void (*done)(void *arg, const sp_comm_done *d);
    void *arg;
} sp_comm_watch;

/* Let `w` follow all operations that are begun from here on, and last until
 * those are over; NULL: nobody. In a job of one there is nothing to follow. */
void sp_comm_follow(sp_comm *c, const sp_comm_watch *w);

/* ---- Operations -------------------------------------------------------- */

/* An operation under way (MPI's request); NULL: it could not be begun, which
 * sp_op_wait() tells. They are used again, so that a program that does the same
 * over and over allocates only at first. */
typedef struct sp_pending sp_pending;

/* All-reduce: x becomes the sum over the ranks, with the same bits on each and
 * each time, whoever comes first; of halfs, every addition rounds. */
sp_pending *sp_sum_floats(sp_comm *c, sp_on on, float *x, size_t n);
sp_pending *sp_sum_halfs(sp_comm *c, sp_on on, uint16_t *x, size_t n);
sp_pending *sp_sum_doubles(sp_comm *c, sp_on on, double *x, size_t n);
sp_pending *sp_max_doubles(sp_comm *c, sp_on on, double *x, size_t n);

/* Reduce: the sum reaches rank 0 of the group only; x of others is scratch
 * then. */
sp_pending *sp_reduce_floats(sp_comm *c, sp_on on, float *x, size_t n);

/* Broadcast: `bytes` of rank `root` of the group reach all. */
sp_pending *sp_broadcast(sp_comm *c, sp_on on, int root, void *x, size_t bytes);

/* All-gather: `bytes` of every rank, in their order, at `all`. */
sp_pending *sp_gather_all(sp_comm *c, sp_on on, const void *x, size_t bytes,
                          void *all);

/* All-gather of packets of different sizes (Allgatherv): sizes[r] bytes of rank
 * r of the group, known to all, stand at all + offsets[r]; this rank's are at
 * x, or there already. Ranks with size 0 give nothing. Both lists, too, belong
 * to the operation. */
sp_pending *sp_gather_packets(sp_comm *c, sp_on on, const void *x,
                              const size_t *sizes, const size_t *offsets,
                              void *all);

/* Send-receive: send to one rank of the group and receive from it, or only one
 * of the two (NULL, 0): not collective. The two must swap in the same order. */
sp_pending *sp_swap(sp_comm *c, sp_on on, int peer, const void *send,
                    size_t send_bytes, void *receive, size_t receive_bytes);

/* Barrier: done when all have come. */
sp_pending *sp_barrier(sp_comm *c, sp_on on);

/* Wait until it is done; it is gone then. Errors: SP_EPEER after the timeout,
 * naming the ranks that have not come and their hosts, or when MPI fails;
 * SP_ENOMEM. After either, on one of several ranks, nothing is sent or received
 * any more (so that arrays may be freed), all operations fail, and nothing but
 * sp_comm_abort() can follow. */
SP_MUST sp_err sp_op_wait(sp_comm *c, sp_pending *p);

#endif
