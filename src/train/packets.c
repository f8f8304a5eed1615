/* Encoding slots into buckets, and what comes back into gradients. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "sprat/op.h"
#include "train/dense.h"
#include "train/packets_parts.h"
#include "train/report.h"

/* Elements of a bucket: so many that its two messages cost little beside
 * encoding it. */
enum { BUCKET = 1 << 22 };

static size_t round_up(size_t bytes) { return (bytes + 3) / 4 * 4; }

static sp_err no_memory(size_t bytes)
{
    return sp_fail(SP_ENOMEM,
                   "exchange: there is no memory for %zu bytes of packets",
                   bytes);
}

sp_err sp_packets_grow(uint8_t **bytes, size_t *room, size_t size)
{
    if (size <= *room)
        return SP_OK;
    free(*bytes);
    *room = 0;
    *bytes = malloc(size);
    if (!*bytes)
        return no_memory(size);
    *room = size;
    return SP_OK;
}

/* ---- Making -------------------------------------------------------------- */

static size_t slot_work(const sp_packets *p, size_t i)
{
    const sp_compressor *c = p->args.compressor;
    size_t bytes = c->work_bytes ? c->work_bytes(&p->args.slots[i]) : 0;

    return (bytes + SP_ALIGN) / SP_ALIGN * SP_ALIGN;
}

static sp_err allocate(sp_packets *p)
{
    size_t n = p->args.count;
    size_t sizes = (n + 1) * (size_t)p->ranks;

    p->order = calloc(n + 1, sizeof *p->order);
    p->buckets = calloc(n + 2, sizeof *p->buckets);
    p->sizes = calloc(sizes, sizeof *p->sizes);
    p->work = calloc(n + 1, sizeof *p->work);
    p->room = calloc(n + 1, sizeof *p->room);
    p->encoded = calloc(n + 1, sizeof *p->encoded);
    p->sums = calloc(n + 1, sizeof *p->sums);
    if (!p->order || !p->buckets || !p->sizes || !p->work || !p->room ||
        !p->encoded || !p->sums)
        return no_memory(sizes * sizeof *p->sizes);
    for (size_t i = 0; i < n; i++) {
        p->work[i] = aligned_alloc(SP_ALIGN, slot_work(p, i));
        if (!p->work[i])
            return no_memory(slot_work(p, i));
        p->args.slots[i].work = p->work[i];
    }
    return sp_dense_new(
        &p->dense, &(sp_dense_args){
                       .comm = p->args.comm,
                       .on = { p->args.group, SP_CHANNEL_MAIN, SP_USE_DENSE },
                       .most = n,
                       .room = n * SP_DENSE_SMALL,
                   });
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
    e = allocate(p);
    if (e == SP_OK)
        e = sp_packets_resize(p);
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
        free(p->work[i]);
    free(p->order);
    free(p->buckets);
    free(p->sizes);
    free(p->work);
    free(p->room);
    free(p->encoded);
    free(p->sums);
    free(p->area);
    free(p->in[0]);
    free(p->in[1]);
    sp_dense_free(p->dense);
    free(p);
}

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

    if (p->ranks < 2 || p->args.compressor->combine[0] != SP_GATHER)
        return false;
    for (size_t i = 0; i < p->args.count; i++)
        floats += (double)p->args.slots[i].n;
    return sp_packets_most(p) > 2.0 / p->ranks * sizeof(float) * floats;
}

bool sp_packets_dense(const sp_packets *p) { return p->travels_dense; }

sp_err sp_packets_resize(sp_packets *p)
{
    size_t size = 0;

    for (size_t i = 0; i < p->args.count; i++) {
        p->room[i] = round_up(longest(p, i));
        if (p->room[i] > UINT32_MAX)
            return sp_fail(SP_ECONFIG,
                           "compress.name: a packet of %s may have %zu bytes, "
                           "more than 4 GiB",
                           p->args.slots[i].name, p->room[i]);
        size += p->room[i] + SP_SIZE_BYTES;
    }
    p->travels_dense = gathering_costs_more(p);
    return sp_packets_grow(&p->area, &p->area_size, size + 1);
}

/* ---- Encoding ------------------------------------------------------------ */

void sp_size_write(uint8_t *table, size_t i, size_t size)
{
    for (int k = 0; k < SP_SIZE_BYTES; k++)
        table[SP_SIZE_BYTES * i + (size_t)k] = (uint8_t)(size >> 8 * k);
}

size_t sp_size_read(const uint8_t *table, size_t i)
{
    size_t size = 0;

    for (int k = 0; k < SP_SIZE_BYTES; k++)
        size |= (size_t)table[SP_SIZE_BYTES * i + (size_t)k] << 8 * k;
    return size;
}

typedef struct job {
    sp_packets *p;
    const sp_bucket *b;
} job;

static bool gathers(const sp_packets *p)
{
    return p->args.compressor->combine[p->round] == SP_GATHER;
}

static bool merges(const sp_packets *p)
{
    return p->args.merge && p->ranks > 1;
}

static void encode_slots(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    sp_packets *p = j->p;

    for (size_t k = begin; k < end; k++) {
        size_t i = p->order[j->b->first + k];
        p->args.compressor->encode(&p->args.slots[i], p->round,
                                   p->args.grads[i], &p->encoded[i]);
    }
}

/* Close the gaps between the packets. */
static void pack(sp_packets *p, sp_bucket *b, size_t table)
{
    size_t at = table;

    for (size_t k = 0; k < b->count; k++) {
        size_t i = p->order[b->first + k];
        sp_packet *q = &p->encoded[i];
        size_t size = sp_packet_size(q);

        memmove(b->bytes + at, q->bytes, size);
        if (table) {
            sp_size_write(b->bytes, k, size);
            p->sums[i].headers += SP_SIZE_BYTES;
        } else { /* all ranks' have one length; what fills it is summed too */
            memset(b->bytes + at + size, 0, round_up(size) - size);
            size = round_up(size);
        }
        q->bytes = b->bytes + at;
        p->sums[i].headers += (double)q->headers;
        p->sums[i].values += (double)q->values;
        p->sums[i].places += (double)q->places;
        at += size;
    }
    b->size = at;
}

static void encode(sp_packets *p, sp_bucket *b)
{
    size_t table = gathers(p) ? SP_SIZE_BYTES * b->count : 0, at = table;
    double start = sp_now();

    for (size_t k = 0; k < b->count; k++) {
        size_t i = p->order[b->first + k];
        p->encoded[i] = (sp_packet){ .bytes = b->bytes + at };
        at += p->room[i];
    }
    b->most = at;
    sp_parallel_for(p->args.threads, b->count, 1, encode_slots,
                    &(job){ .p = p, .b = b });
    pack(p, b, table);
    p->seconds += sp_now() - start;
}

/* ---- Rounds -------------------------------------------------------------- */

/* Own packets are decoded where they were encoded, and the gradients are
 * summed. */
static sp_err begin_dense(sp_packets *p, sp_bucket *b)
{
    sp_arrived own = { .fresh = true,
                       .first = p->rank,
                       .count = 1,
                       .bytes = { b->bytes },
                       .size = { b->size } };

    SP_TRY(sp_bucket_decode(p, b, &own));
    for (size_t k = 0; k < b->count; k++) {
        size_t i = p->order[b->first + k];
        sp_dense_add(p->dense, p->args.grads[i], p->args.slots[i].n);
    }
    return SP_OK;
}

static void begin_round(sp_packets *p, sp_bucket *b)
{
    const sp_packets_args *a = &p->args;
    sp_on on = { a->group, SP_CHANNEL_MAIN, SP_USE_PACKET };

    encode(p, b);
    if (gathers(p) && p->travels_dense) {
        sp_err e = begin_dense(p, b);
        p->begun = p->begun == SP_OK ? e : p->begun;
    } else if (gathers(p) && !merges(p)) {
        sp_gather_begin(p, b);
    } else if (a->compressor->combine[p->round] == SP_SUM) {
        b->op = sp_sum_floats(a->comm, on, (float *)(void *)b->bytes,
                              b->size / sizeof(float));
    } else if (!gathers(p)) {
        b->op = sp_sum_halfs(a->comm, on, (uint16_t *)(void *)b->bytes,
                             b->size / sizeof(uint16_t));
    }
}

static sp_err end_sum(sp_packets *p, sp_bucket *b)
{
    const sp_packets_args *a = &p->args;

    SP_TRY(sp_op_wait(a->comm, b->op));
    for (size_t k = 0; k < b->count; k++) {
        size_t i = p->order[b->first + k];
        const sp_packet *q = &p->encoded[i];

        SP_TRY(a->compressor->decode(&a->slots[i], p->round, q->bytes,
                                     sp_packet_size(q), a->grads[i]));
    }
    return SP_OK;
}

static sp_err end_round(sp_packets *p, sp_bucket *b)
{
    if (!gathers(p))
        return end_sum(p, b);
    if (p->travels_dense)
        return SP_OK;
    return merges(p) ? sp_merge_end(p, b) : sp_gather_end(p, b);
}

static void close_bucket(sp_packets *p)
{
    sp_bucket *b = &p->buckets[p->bucket_count];

    if (b->count == 0)
        return;
    b->bytes = p->area + p->area_used;
    b->sizes = p->sizes + p->bucket_count * (size_t)p->ranks;
    begin_round(p, b);
    p->area_used += b->most;
    p->bucket_count++;
    p->buckets[p->bucket_count] = (sp_bucket){ .first = p->added };
}

void sp_packets_add(sp_packets *p, size_t i)
{
    sp_bucket *b = &p->buckets[p->bucket_count];

    p->order[p->added++] = i;
    b->count++;
    b->elements += p->args.slots[i].n;
    if (b->elements >= BUCKET)
        close_bucket(p);
}

static void finish_slots(void *arg, size_t begin, size_t end)
{
    const sp_packets *p = ((const job *)arg)->p;

    for (size_t k = begin; k < end; k++) {
        size_t i = p->order[k];
        p->args.compressor->finish(&p->args.slots[i], p->args.grads[i]);
    }
}

/* What cannot be decoded is so on all ranks, which go on to the end of the
 * step with each other; a rank that is missing ends it. */
static sp_err all_rounds(sp_packets *p)
{
    int rounds = p->args.compressor->rounds;
    sp_err e = SP_OK, failed;

    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < p->bucket_count; i++) {
            p->round = round;
            failed = end_round(p, &p->buckets[i]);
            if (failed == SP_EPEER)
                return failed;
            e = e == SP_OK ? failed : e;
            if (round + 1 == rounds)
                continue;
            p->round = round + 1;
            begin_round(p, &p->buckets[i]);
        }
    failed = sp_dense_wait(p->dense);
    e = e == SP_OK ? failed : e;
    return e == SP_OK ? p->begun : e;
}

sp_err sp_packets_wait(sp_packets *p)
{
    sp_err e;

    close_bucket(p);
    e = all_rounds(p);
    if (e == SP_OK && p->args.compressor->finish)
        sp_parallel_for(p->args.threads, p->added, 1, finish_slots,
                        &(job){ .p = p });
    p->added = p->bucket_count = p->area_used = 0;
    p->round = 0;
    p->begun = SP_OK;
    p->buckets[0] = (sp_bucket){ 0 };
    return e;
}

sp_packet_sums sp_packets_slot_sums(const sp_packets *p, size_t i)
{
    return p->sums[i];
}

sp_packet_sums sp_packets_sums(const sp_packets *p)
{
    sp_packet_sums sum = { 0 };

    for (size_t i = 0; i < p->args.count; i++) {
        sum.headers += p->sums[i].headers;
        sum.values += p->sums[i].values;
        sum.places += p->sums[i].places;
    }
    return sum;
}

double sp_packets_seconds(const sp_packets *p) { return p->seconds; }
