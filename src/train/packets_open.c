/* Making packets' tables and rooms: what a step uses is there before it. */
#include <stdlib.h>

#include "sprat/op.h"
#include "train/dense.h"
#include "train/packets_parts.h"

static size_t round_up(size_t bytes) { return (bytes + 3) / 4 * 4; }

static sp_err no_memory(size_t bytes)
{
    return sp_fail(SP_ENOMEM,
                   "exchange: there is no memory for %zu bytes of packets",
                   bytes);
}

/* ---- Rooms --------------------------------------------------------------- */

static void give_back(sp_room *r)
{
    free(r->bytes);
    *r = (sp_room){ 0 };
}

/* Of just so many bytes, a multiple of SP_ALIGN. */
static sp_err set_room(sp_room *r, size_t size)
{
    if (size == r->size)
        return SP_OK;
    give_back(r);
    r->bytes = aligned_alloc(SP_ALIGN, size);
    if (!r->bytes)
        return no_memory(size);
    r->size = size;
    return SP_OK;
}

static size_t aligned(size_t bytes)
{
    return (bytes + SP_ALIGN) / SP_ALIGN * SP_ALIGN;
}

sp_err sp_room_grow(sp_room *r, size_t size)
{
    return size <= r->size ? SP_OK : set_room(r, aligned(size));
}

/* ---- The present ratio --------------------------------------------------- */

static size_t longest(const sp_packets *p, size_t i)
{
    const sp_compressor *c = p->args.compressor;
    size_t most = 0;

    for (int round = 0; round < c->rounds; round++) {
        size_t room = c->packet_room(&p->args.slots[i], round);
        most = room > most ? room : most;
    }
    return most;
}

double sp_packets_most(const sp_packets *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->args.count; i++)
        sum += (double)p->room[i] + SP_SIZE_BYTES;
    return sum;
}

/* A ring of R ranks sums n floats with 2 (R - 1) / R x 4 n bytes from each;
 * gathering takes R - 1 packets. */
static bool gathering_costs_more(const sp_packets *p)
{
    double floats = 0;

    if (p->ranks < 2 || p->args.compressor->combine[0] != SP_GATHER ||
        p->args.always_gather)
        return false;
    for (size_t i = 0; i < p->args.count; i++)
        floats += (double)p->args.slots[i].n;
    return sp_packets_most(p) > 2.0 / p->ranks * sizeof(float) * floats;
}

bool sp_packets_dense(const sp_packets *p) { return p->travels_dense; }

/* Sizes of packets, those that were merged too, are told in 32 bits. */
static sp_err check_room(const sp_packets *p, size_t i)
{
    bool sums = p->args.merge && !p->travels_dense;
    size_t most = p->room[i] * (sums ? (size_t)p->ranks : 1);

    if (most > UINT32_MAX)
        return sp_fail(SP_ECONFIG,
                       "compress.name: a packet of %s may have %zu bytes, "
                       "more than 4 GiB%s",
                       p->args.slots[i].name, most,
                       sums ? "; set dist.exchange=gather" : "");
    return SP_OK;
}

static sp_err resize_work(sp_packets *p, size_t i)
{
    const sp_compressor *c = p->args.compressor;
    sp_slot *s = &p->args.slots[i];

    SP_TRY(
        set_room(&p->work[i], aligned(c->work_bytes ? c->work_bytes(s) : 0)));
    s->work = p->work[i].bytes;
    return SP_OK;
}

sp_err sp_packets_resize(sp_packets *p)
{
    size_t size = 0;

    for (size_t i = 0; i < p->args.count; i++) {
        p->room[i] = round_up(longest(p, i));
        size += p->room[i] + SP_SIZE_BYTES;
    }
    p->travels_dense = gathering_costs_more(p);
    for (int i = 0; i < 2; i++)
        give_back(&p->in[i]);
    for (int i = 0; i < SP_MERGED; i++)
        give_back(&p->merged[i]);
    for (size_t i = 0; i < p->args.count; i++) {
        SP_TRY(check_room(p, i));
        SP_TRY(resize_work(p, i));
    }
    return set_room(&p->area, aligned(size));
}

/* ---- Making -------------------------------------------------------------- */

static sp_err make_dense(sp_packets *p)
{
    sp_dense_args a = { .comm = p->args.comm,
                        .on = { p->args.group, SP_CHANNEL_MAIN, SP_USE_DENSE },
                        .most = p->args.count };

    return sp_dense_new(&p->dense, &a);
}

static sp_err allocate(sp_packets *p)
{
    size_t n = p->args.count, ranks = (size_t)p->ranks;
    size_t tables = p->args.window > 2 ? (size_t)p->args.window : 2;

    p->order = calloc(n + 1, sizeof *p->order);
    p->buckets = calloc(n + 2, sizeof *p->buckets);
    p->sizes = calloc((n + 1) * ranks, sizeof *p->sizes);
    p->work = calloc(n + 1, sizeof *p->work);
    p->room = calloc(n + 1, sizeof *p->room);
    p->encoded = calloc(n + 1, sizeof *p->encoded);
    p->sums = calloc(n + 1, sizeof *p->sums);
    p->lists = calloc(4 * ranks, sizeof *p->lists);
    p->at = calloc((n + 1) * tables, sizeof *p->at);
    p->failed = calloc(n + 1, sizeof *p->failed);
    if (!p->order || !p->buckets || !p->sizes || !p->work || !p->room ||
        !p->encoded || !p->sums || !p->lists || !p->at || !p->failed)
        return no_memory((n + 1) * ranks * sizeof *p->sizes);
    return make_dense(p);
}

sp_err sp_packets_new(sp_packets **out, const sp_packets_args *args)
{
    sp_packets *p = calloc(1, sizeof *p);
    sp_err e;

    if (!p)
        return no_memory(sizeof *p);
    p->args = *args;
    p->rank = args->comm ? sp_group_rank(args->comm, args->group) : 0;
    p->ranks = args->comm ? sp_group_ranks(args->comm, args->group) : 1;
    if (args->window < 1 || args->window > SP_WINDOW)
        p->args.window = SP_WINDOW;
    for (size_t i = 0; i < args->count; i++)
        p->args.slots[i].threads =
            sp_large_slot(&args->slots[i]) ? args->threads : 1;
    e = allocate(p);
    if (e != SP_OK)
        sp_packets_free(p);
    else
        *out = p;
    return e;
}

void sp_packets_free(sp_packets *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->work && i < p->args.count; i++)
        give_back(&p->work[i]);
    for (int i = 0; i < 2; i++)
        give_back(&p->in[i]);
    for (int i = 0; i < SP_MERGED; i++)
        give_back(&p->merged[i]);
    give_back(&p->area);
    free(p->order);
    free(p->buckets);
    free(p->sizes);
    free(p->work);
    free(p->room);
    free(p->encoded);
    free(p->sums);
    free(p->lists);
    free(p->at);
    free(p->failed);
    sp_dense_free(p->dense);
    free(p);
}
