/* All-gather: every rank's packets reach all, a window of ranks at a time:
 * memory does not grow with the ranks, and while one window is decoded the next
 * one travels. They are decoded in the order of ranks, whenever they arrive, so
 * the sums have the same bits everywhere and every time. */
#include "train/packets_parts.h"

/* Packets of ranks [first, first + count) of a bucket, side by side. */
typedef struct window {
    int first, count;
    size_t *sizes, *offsets; /* of all ranks: 0 outside of the window */
    uint8_t *bytes;
    sp_pending *op;
} window;

void sp_gather_begin(sp_packets *p, sp_bucket *b)
{
    sp_on on = { p->args.group, SP_CHANNEL_MAIN, SP_USE_SIZES };

    b->sent = b->size;
    b->op = sp_gather_all(p->args.comm, on, &b->sent, sizeof b->sent, b->sizes);
}

/* All ranks have the same parameters: none can send more than there is room
 * for here. */
static sp_err check_sizes(const sp_packets *p, const sp_bucket *b)
{
    char name[SP_RANK_NAME];

    for (int r = 0; r < p->ranks; r++)
        if (b->sizes[r] > b->most)
            return sp_fail(SP_EFORMAT,
                           "%s announces packets of %llu bytes for %zu "
                           "parameters, which have %zu at the most",
                           sp_packets_rank(p, r, name),
                           (unsigned long long)b->sizes[r], b->count, b->most);
    return SP_OK;
}

static sp_err begin(sp_packets *p, const sp_bucket *b, window *w, int slot)
{
    sp_on on = { p->args.group, SP_CHANNEL_GATHER, SP_USE_PACKET };
    size_t total = 0;

    for (int r = 0; r < p->ranks; r++) {
        bool within = r >= w->first && r < w->first + w->count;

        w->offsets[r] = total;
        w->sizes[r] = within ? (size_t)b->sizes[r] : 0;
        total += w->sizes[r];
    }
    SP_TRY(sp_room_grow(&p->in[slot], total));
    w->bytes = p->in[slot].bytes;
    w->op = sp_gather_packets(p->args.comm, on, b->bytes, w->sizes, w->offsets,
                              w->bytes);
    return SP_OK;
}

static sp_err end(sp_packets *p, const sp_bucket *b, window *w)
{
    sp_arrived a = { .fresh = w->first == 0,
                     .first = w->first,
                     .count = w->count };

    SP_TRY(sp_op_wait(p->args.comm, w->op));
    for (int r = 0; r < w->count; r++) {
        a.bytes[r] = w->bytes + w->offsets[w->first + r];
        a.size[r] = w->sizes[w->first + r];
    }
    return sp_bucket_decode(p, b, &a);
}

static window window_at(const sp_packets *p, int first, int slot)
{
    int left = p->ranks - first, most = p->args.window;
    size_t *lists = p->lists + 2 * (size_t)(slot * p->ranks);

    return (window){ .first = first,
                     .count = left < most ? left : most,
                     .sizes = lists,
                     .offsets = lists + p->ranks };
}

/* An error of decoding is that of all ranks, but what was begun is waited
 * for: the others have begun it, too. */
static sp_err pass_windows(sp_packets *p, sp_bucket *b)
{
    window w[2] = { window_at(p, 0, 0) };
    sp_err e = SP_OK, failed = begin(p, b, &w[0], 0);

    for (int i = 0; failed == SP_OK && w[i].first < p->ranks; i = !i) {
        int next = w[i].first + p->args.window;
        sp_err decoded;

        w[!i] = window_at(p, next, !i);
        if (next < p->ranks)
            failed = begin(p, b, &w[!i], !i);
        decoded = end(p, b, &w[i]);
        e = e == SP_OK ? decoded : e;
        if (decoded == SP_EPEER)
            failed = decoded;
    }
    return failed == SP_OK ? e : failed;
}

sp_err sp_gather_end(sp_packets *p, sp_bucket *b)
{
    SP_TRY(sp_op_wait(p->args.comm, b->op));
    SP_TRY(check_sizes(p, b));
    return pass_windows(p, b);
}
