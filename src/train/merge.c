/* Packets are merged on the way between the ranks, by recursive doubling: in
 * round i each rank swaps what it has with the one whose number differs in bit
 * i, and both merge the two. Ranks beyond the largest power of two hand theirs
 * to a partner first and get the result from it at the end.
 *
 * Both sides of a swap merge the same two packets, so all ranks have the same
 * bits at the end. A rank that cannot go on with a bucket still swaps, and
 * sends its reason instead: who has got it hands it on, and nobody waits in
 * vain.
 *
 * Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective
 *         communication operations in MPICH", section 4.1; the exchange that
 *         Lin et al. 2018, section 5, assume.
 */
#include <stdio.h>
#include <string.h>

#include "compress/bytes.h"
#include "train/packets_parts.h"

/* Stands for the size of what cannot be sent. */
#define FAILED UINT64_MAX

enum {
    THEIRS = SP_MERGED - 1, /* in sp_packets.merged */
    REASON_ROOM = 512
};

/* A bucket on its way. */
typedef struct way {
    sp_packets *p;
    const sp_bucket *b;
    const uint8_t *bytes; /* the sum so far: of one rank at first, of all at */
    size_t size;          /* the end */
    int next;             /* where in sp_packets.merged the next sum goes */
    sp_err e; /* why there is none, and in words, with the rank that */
    char reason[REASON_ROOM]; /* could not go on */
} way;

/* Of the packets of all ranks. */
static size_t most_of_all(const way *w)
{
    return (size_t)w->p->ranks * w->b->most;
}

/* This rank is the one that cannot go on. */
static void give_up(way *w, sp_err e)
{
    char name[SP_RANK_NAME];

    w->e = e;
    snprintf(w->reason, sizeof w->reason, "merging on %s: %.*s",
             sp_packets_rank(w->p, w->p->rank, name),
             (int)(REASON_ROOM - SP_RANK_NAME - 16), sp_last_error());
}

/* Tell a partner the size of what it will get, and hear what comes. */
static sp_err swap_sizes(way *w, int peer, size_t size, uint64_t *theirs)
{
    sp_comm *c = w->p->args.comm;
    sp_on on = { w->p->args.group, SP_CHANNEL_GATHER, SP_USE_SIZES };
    uint64_t out = w->e == SP_OK ? size : FAILED;
    char name[SP_RANK_NAME];

    SP_TRY(sp_op_wait(
        c, sp_swap(c, on, peer, &out, sizeof out, theirs, sizeof *theirs)));
    if (*theirs == FAILED || *theirs <= most_of_all(w))
        return SP_OK;
    return sp_fail(SP_EPEER,
                   "%s announces packets of %llu bytes for %zu parameters, "
                   "which have %zu at the most: the ranks do not run the same "
                   "program",
                   sp_packets_rank(w->p, peer, name),
                   (unsigned long long)*theirs, w->b->count, most_of_all(w));
}

/* Either of the two has none to send; a reason of its own comes first. */
static sp_err swap_reasons(way *w, int peer)
{
    sp_comm *c = w->p->args.comm;
    sp_on on = { w->p->args.group, SP_CHANNEL_GATHER, SP_USE_SIZES };
    char theirs[REASON_ROOM];

    SP_TRY(sp_op_wait(c, sp_swap(c, on, peer, w->reason, sizeof w->reason,
                                 theirs, sizeof theirs)));
    if (w->e != SP_OK)
        return SP_OK;
    theirs[REASON_ROOM - 1] = '\0';
    memcpy(w->reason, theirs, sizeof theirs);
    w->e = SP_EFORMAT;
    return SP_OK;
}

/* Send the sum so far, if `send`, and receive a partner's, of *theirs bytes;
 * without `theirs` it sends none. */
static sp_err swap(way *w, int peer, bool send, size_t *theirs)
{
    sp_comm *c = w->p->args.comm;
    sp_on on = { w->p->args.group, SP_CHANNEL_GATHER, SP_USE_PACKET };
    size_t out = send ? w->size : 0;
    uint64_t in = 0;

    SP_TRY(swap_sizes(w, peer, out, &in));
    if (w->e != SP_OK || in == FAILED)
        return swap_reasons(w, peer);
    if (theirs)
        *theirs = (size_t)in;
    return sp_op_wait(c, sp_swap(c, on, peer, send ? w->bytes : NULL, out,
                                 theirs ? w->p->merged[THEIRS].bytes : NULL,
                                 theirs ? (size_t)in : 0));
}

/* Slot by slot. `ax`, `ay`: where the packets of both sums begin. */
static sp_err merge_slots(way *w, const size_t *ax, const size_t *ay)
{
    const sp_packets *p = w->p;
    const uint8_t *x = w->bytes, *y = p->merged[THEIRS].bytes;
    uint8_t *out = p->merged[w->next].bytes;
    size_t size = SP_SIZE_BYTES * w->b->count;

    for (size_t k = 0; k < w->b->count; k++) {
        const sp_slot *s = &p->args.slots[p->order[w->b->first + k]];
        sp_packet q = { .bytes = out + size };

        SP_TRY(p->args.compressor->merge(s, x + ax[k], ax[k + 1] - ax[k],
                                         y + ay[k], ay[k + 1] - ay[k], &q));
        sp_put32(out + SP_SIZE_BYTES * k, (uint32_t)sp_packet_size(&q));
        size += sp_packet_size(&q);
    }
    w->bytes = out;
    w->size = size;
    w->next = !w->next;
    return SP_OK;
}

/* The sum becomes that of both. */
static sp_err merge(way *w, int peer, size_t theirs)
{
    sp_packets *p = w->p;
    size_t *ax = p->at, *ay = p->at + w->b->count + 1;

    SP_TRY(sp_bucket_open(p, w->b, w->bytes, w->size, p->rank, ax));
    SP_TRY(sp_bucket_open(p, w->b, p->merged[THEIRS].bytes, theirs, peer, ay));
    return merge_slots(w, ax, ay);
}

static sp_err swap_and_merge(way *w, int peer, bool send)
{
    size_t theirs = 0;
    sp_err e;

    SP_TRY(swap(w, peer, send, &theirs));
    if (w->e != SP_OK)
        return SP_OK;
    e = merge(w, peer, theirs);
    if (e != SP_OK)
        give_up(w, e);
    return SP_OK;
}

/* Of a rank beyond the largest power of two. */
static sp_err let_merge(way *w, int partner)
{
    SP_TRY(swap(w, partner, true, NULL));
    SP_TRY(swap(w, partner, false, &w->size));
    w->bytes = w->p->merged[THEIRS].bytes;
    return SP_OK;
}

static sp_err double_up(way *w)
{
    int even = 1, rank = w->p->rank, ranks = w->p->ranks;

    while (2 * even <= ranks)
        even *= 2;
    if (rank >= even)
        return let_merge(w, rank - even);
    if (rank + even < ranks)
        SP_TRY(swap_and_merge(w, rank + even, false));
    for (int bit = 1; bit < even; bit *= 2)
        SP_TRY(swap_and_merge(w, rank ^ bit, true));
    return rank + even < ranks ? swap(w, rank + even, true, NULL) : SP_OK;
}

sp_err sp_merge_end(sp_packets *p, sp_bucket *b)
{
    way w = { .p = p, .b = b, .bytes = b->bytes, .size = b->size };

    for (int i = 0; w.e == SP_OK && i < SP_MERGED; i++) {
        sp_err e = sp_room_grow(&p->merged[i], most_of_all(&w));

        if (e != SP_OK)
            give_up(&w, e);
    }
    SP_TRY(double_up(&w));
    if (w.e != SP_OK)
        return sp_fail(w.e, "%s", w.reason);
    return sp_bucket_decode(p, b,
                            &(sp_arrived){ .fresh = true,
                                           .first = p->rank,
                                           .count = 1,
                                           .bytes = { w.bytes },
                                           .size = { w.size } });
}
