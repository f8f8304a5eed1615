/* The messages of each kind of operation.
 *
 * Sum (all-reduce) of n numbers over R ranks: the array is cut in R parts; rank
 * r gets part r of all others, nearest below first, and adds them up (round 0,
 * a reduce-scatter); then it gives the sum of its part to all (round 1, an
 * all-gather). Everyone sends 2 (R - 1) / R of the array in two rounds,
 * and in what order numbers are added follows from their place alone:
 *
 *   three ranks     part 0       part 1       part 2
 *   round 0         0 + 2 + 1    1 + 0 + 2    2 + 1 + 0
 *   round 1         from 0       from 1       from 2
 *
 * Reduce: the same, with a gather to rank 0 as its round 1. Broadcast: the root
 * sends one of R - 1 parts to each (a scatter), which pass them on to one
 * another (an all-gather). Gather: one round of it.
 *
 * In step i, rank r sends to r + 1 + i and receives from r - 1 - i: no two send
 * to the same rank at once.
 *
 * Source: Rabenseifner 2004, "Optimization of collective reduction operations"
 *         (parts summed, then gathered); van de Geijn 1994 (broadcast by
 *         scattering and gathering); Hensgen, Finkel, Manber 1988, "Two
 *         algorithms for barrier synchronization".
 * Differs: every part goes straight to its owner, where Rabenseifner's go by
 *          halving: as many bytes, and sums whose order is easily told.
 */
#include <string.h>

#include "dist/operation.h"

/* Part i of `parts` of the array. */
static sp_move part(const sp_pending *p, int i, int parts, int peer)
{
    size_t first = p->n * (size_t)i / (size_t)parts;
    size_t end = p->n * (size_t)(i + 1) / (size_t)parts;

    return (sp_move){ .peer = peer,
                      .at = p->x + first * p->unit,
                      .bytes = (end - first) * p->unit };
}

/* Whom message i of a round of all with all goes to or comes from. */
static int partner(const sp_pending *p, sp_way way, int i)
{
    int apart = way == SP_SEND ? i + 1 : p->ranks - 1 - i;

    return (p->rank + apart) % p->ranks;
}

static int one(int ranks)
{
    (void)ranks;
    return 1;
}

static int two(int ranks)
{
    (void)ranks;
    return 2;
}

static bool all_with_all(const sp_pending *p, int round, sp_way way, int i,
                         sp_move *m)
{
    int peer;

    if (i >= p->ranks - 1)
        return false;
    peer = partner(p, way, i);
    *m = part(p, (round == 0) == (way == SP_SEND) ? peer : p->rank, p->ranks,
              peer);
    return true;
}

static bool reduce(const sp_pending *p, int round, sp_way way, int i,
                   sp_move *m)
{
    if (round == 0)
        return all_with_all(p, round, way, i, m);
    if (p->rank == 0 && way == SP_RECEIVE)
        return all_with_all(p, round, way, i, m);
    if (p->rank == 0 || way == SP_RECEIVE || i > 0)
        return false;
    *m = part(p, p->rank, p->ranks, 0);
    return true;
}

/* `place` is a rank's distance from the root; part place - 1 is its own. */
static bool broadcast(const sp_pending *p, int round, sp_way way, int i,
                      sp_move *m)
{
    int ranks = p->ranks, place = (p->rank - p->peer + ranks) % ranks;
    int peer, its;

    if (round == 0) {
        bool root = place == 0;

        if (root != (way == SP_SEND) || i >= (root ? ranks - 1 : 1))
            return false;
        peer = root ? partner(p, SP_SEND, i) : p->peer;
        *m = part(p, root ? i : place - 1, ranks - 1, peer);
        return true;
    }
    if (place == 0 || i >= ranks - 1)
        return false;
    peer = partner(p, way, i);
    its = (peer - p->peer + ranks) % ranks;
    if (its == 0)
        *m = (sp_move){ .peer = peer };
    else
        *m = part(p, (way == SP_SEND ? place : its) - 1, ranks - 1, peer);
    return true;
}

static bool gather(const sp_pending *p, int round, sp_way way, int i,
                   sp_move *m)
{
    int peer, whose;

    (void)round;
    if (i >= p->ranks - 1)
        return false;
    peer = partner(p, way, i);
    whose = way == SP_SEND ? p->rank : peer;
    m->peer = peer;
    m->bytes = p->sizes ? p->sizes[whose] : p->bytes;
    if (way == SP_SEND)
        m->at = (char *)p->own;
    else
        m->at = p->x + (p->sizes ? p->offsets[peer] : p->bytes * (size_t)peer);
    return true;
}

static bool swap(const sp_pending *p, int round, sp_way way, int i, sp_move *m)
{
    (void)round;
    if (i > 0)
        return false;
    if (way == SP_SEND)
        *m = (sp_move){ p->peer, (char *)p->own, p->bytes };
    else
        *m = (sp_move){ p->peer, p->x, p->n };
    return true;
}

/* 2^k >= ranks. */
static int doublings(int ranks)
{
    int k = 0;

    while (k < 30 && 1 << k < ranks)
        k++;
    return k;
}

/* After round k a rank knows that the 2^(k+1) - 1 before it have come. */
static bool barrier(const sp_pending *p, int round, sp_way way, int i,
                    sp_move *m)
{
    int apart = 1 << round;

    if (i > 0)
        return false;
    if (way == SP_RECEIVE)
        apart = p->ranks - apart;
    m->peer = (p->rank + apart) % p->ranks;
    m->at = (char *)&p->beat[way];
    m->bytes = 1;
    return true;
}

const sp_script sp_script_sum = { two, all_with_all, false };
const sp_script sp_script_reduce = { two, reduce, false };
const sp_script sp_script_broadcast = { two, broadcast, false };
const sp_script sp_script_gather = { one, gather, false };
const sp_script sp_script_swap = { one, swap, true };
const sp_script sp_script_barrier = { doublings, barrier, false };
