/* Packets are merged on the way between the ranks, by recursive doubling: in
 * round i each rank swaps what it has with the one whose number differs in bit
 * i, and both merge the two. Ranks beyond the largest power of two hand theirs
 * to a partner first and get the result from it at the end.
 *
 * Both sides of a swap merge the same two packets, so all ranks have the same
 * bits at the end.
 *
 * Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective
 *         communication operations in MPICH", section 4.1; the exchange that
 *         Lin et al. 2018, section 5, assume.
 */
#include <stdlib.h>
#include <string.h>

#include "train/packets_parts.h"

/* A bucket's bytes on their way: of one rank at first, of all at the end. */
typedef struct sum {
    uint8_t *bytes;
    size_t size;
} sum;

/* Send `mine`, unless it is NULL, and receive *theirs, unless it is NULL;
 * theirs->bytes is the caller's to free. */
static sp_err swap(sp_packets *p, int peer, const sum *mine, sum *theirs)
{
    sp_comm *c = p->args.comm;
    sp_on on = { p->args.group, SP_CHANNEL_GATHER, SP_USE_SIZES };
    uint64_t out = mine ? mine->size : 0, in = 0;
    size_t out_bytes = mine ? sizeof out : 0, in_bytes = theirs ? sizeof in : 0;

    SP_TRY(sp_op_wait(c, sp_swap(c, on, peer, &out, out_bytes, &in, in_bytes)));
    on.use = SP_USE_PACKET;
    if (theirs) {
        theirs->size = (size_t)in;
        theirs->bytes = malloc(theirs->size + 1);
        if (!theirs->bytes)
            return sp_fail(SP_ENOMEM,
                           "exchange: there is no memory for %zu bytes of "
                           "packets from rank %d",
                           theirs->size, peer);
    }
    return sp_op_wait(c, sp_swap(c, on, peer, mine ? mine->bytes : NULL,
                                 mine ? mine->size : 0,
                                 theirs ? theirs->bytes : NULL,
                                 theirs ? theirs->size : 0));
}

/* Slot by slot. `at`: two tables of places, count + 1 each. */
static sp_err merge_slots(sp_packets *p, const sp_bucket *b, const sum *x,
                          const sum *y, size_t *at, sum *out)
{
    const size_t *ax = at, *ay = at + b->count + 1;

    out->size = SP_SIZE_BYTES * b->count;
    for (size_t k = 0; k < b->count; k++) {
        const sp_slot *s = &p->args.slots[p->order[b->first + k]];
        sp_packet q = { .bytes = out->bytes + out->size };

        SP_TRY(p->args.compressor->merge(s, x->bytes + ax[k], ax[k + 1] - ax[k],
                                         y->bytes + ay[k], ay[k + 1] - ay[k],
                                         &q));
        sp_size_write(out->bytes, k, sp_packet_size(&q));
        out->size += sp_packet_size(&q);
    }
    return SP_OK;
}

/* x becomes the sum of both; what both had is freed. */
static sp_err merge(sp_packets *p, const sp_bucket *b, int peer, sum *x, sum *y)
{
    size_t *at = malloc(2 * (b->count + 1) * sizeof *at);
    sum out = { .bytes = malloc(x->size + y->size + 1) };
    sp_err e =
        at && out.bytes ? SP_OK : sp_fail(SP_ENOMEM, "exchange: out of memory");

    if (e == SP_OK)
        e = sp_bucket_open(b, x->bytes, x->size, p->rank, at);
    if (e == SP_OK)
        e = sp_bucket_open(b, y->bytes, y->size, peer, at + b->count + 1);
    if (e == SP_OK)
        e = merge_slots(p, b, x, y, at, &out);
    free(at);
    free(y->bytes);
    y->bytes = NULL;
    if (e != SP_OK) {
        free(out.bytes);
        return sp_fail(e, "merging with rank %d: %s", peer, sp_last_error());
    }
    free(x->bytes);
    *x = out;
    return SP_OK;
}

static sp_err swap_and_merge(sp_packets *p, const sp_bucket *b, int peer,
                             bool send, sum *x)
{
    sum y = { 0 };
    sp_err e = swap(p, peer, send ? x : NULL, &y);

    if (e == SP_OK)
        return merge(p, b, peer, x, &y);
    free(y.bytes);
    return e;
}

static sp_err double_up(sp_packets *p, const sp_bucket *b, sum *x)
{
    int even = 1, rank = p->rank;

    while (2 * even <= p->ranks)
        even *= 2;
    if (rank >= even) {
        SP_TRY(swap(p, rank - even, x, NULL));
        free(x->bytes);
        x->bytes = NULL;
        return swap(p, rank - even, NULL, x);
    }
    if (rank + even < p->ranks)
        SP_TRY(swap_and_merge(p, b, rank + even, false, x));
    for (int bit = 1; bit < even; bit *= 2)
        SP_TRY(swap_and_merge(p, b, rank ^ bit, true, x));
    return rank + even < p->ranks ? swap(p, rank + even, x, NULL) : SP_OK;
}

sp_err sp_merge_end(sp_packets *p, sp_bucket *b)
{
    sum x = { .bytes = malloc(b->size + 1), .size = b->size };
    sp_err e = x.bytes ? SP_OK : sp_fail(SP_ENOMEM, "exchange: out of memory");

    if (e == SP_OK) {
        memcpy(x.bytes, b->bytes, b->size);
        e = double_up(p, b, &x);
    }
    if (e == SP_OK)
        e = sp_bucket_decode(p, b,
                             &(sp_arrived){ .fresh = true,
                                            .first = p->rank,
                                            .count = 1,
                                            .bytes = { x.bytes },
                                            .size = { x.size } });
    free(x.bytes);
    return e;
}
