/* Encoding slots into buckets, and what comes back into gradients. */
#include <string.h>

#include "compress/bytes.h"
#include "kernels/kernels.h"
#include "train/console.h"
#include "train/dense.h"
#include "train/packets_parts.h"

/* Elements of a bucket: so many that its two messages cost little beside
 * encoding it. */
enum { BUCKET = 1 << 22 };

/* ---- Encoding ------------------------------------------------------------ */

typedef struct job {
    sp_packets *p;
    const sp_bucket *b;
} job;

void sp_packets_trace(sp_packets *p, sp_trace *trace) { p->trace = trace; }

void sp_bucket_spent(sp_packets *p, const sp_bucket *b, const char *what,
                     double begin)
{
    p->seconds += sp_now() - begin;
    sp_trace_span(p->trace,
                  &(sp_span_of){ .kind = SP_SPAN_COMPRESS,
                                 .name = what,
                                 .of = p->args.slots[p->order[b->first]].name,
                                 .begin = begin,
                                 .bytes = (double)b->size });
}

static bool gathers(const sp_packets *p)
{
    return p->args.compressor->combine[p->round] == SP_GATHER;
}

static bool merges(const sp_packets *p)
{
    return p->args.merge && p->ranks > 1;
}

static void encode_slot(sp_packets *p, size_t i)
{
    p->args.compressor->encode(&p->args.slots[i], p->round, p->args.grads[i],
                               &p->encoded[i]);
}

static void encode_slots(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t k = begin; k < end; k++) {
        size_t i = j->p->order[j->b->first + k];
        if (!sp_large_slot(&j->p->args.slots[i]))
            encode_slot(j->p, i);
    }
}

/* The large ones one after the other, each on all threads. */
static void encode_large(sp_packets *p, const sp_bucket *b)
{
    for (size_t k = 0; k < b->count; k++) {
        size_t i = p->order[b->first + k];
        if (sp_large_slot(&p->args.slots[i]))
            encode_slot(p, i);
    }
}

/* Count what is sent of slot i: the packet, or what it decodes to. */
static void count(sp_packets *p, size_t i, bool table)
{
    const sp_packet *q = &p->encoded[i];
    sp_packet_bytes *sum = &p->sums[i];

    if (p->travels_dense) {
        sum->dense += (double)(p->args.slots[i].n * sizeof(float));
        return;
    }
    sum->headers += (double)q->headers + (table ? SP_SIZE_BYTES : 0);
    sum->values += (double)q->values;
    sum->places += (double)q->places;
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
            sp_put32(b->bytes + SP_SIZE_BYTES * k, (uint32_t)size);
        } else { /* all ranks' have one length; what fills it is summed too */
            size_t whole = (size + 3) / 4 * 4;
            memset(b->bytes + at + size, 0, whole - size);
            size = whole;
        }
        q->bytes = b->bytes + at;
        count(p, i, table > 0);
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
    encode_large(p, b);
    pack(p, b, table);
    sp_bucket_spent(p, b, "encode", start);
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
    b->bytes = p->area.bytes + p->area_used;
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
 * step with each other, as those that merge do by telling each other of it; a
 * rank that is missing ends it, or one without memory for what it gathers. */
static sp_err all_rounds(sp_packets *p)
{
    int rounds = p->args.compressor->rounds;
    sp_err e = SP_OK, failed;

    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < p->bucket_count; i++) {
            p->round = round;
            failed = end_round(p, &p->buckets[i]);
            if (failed == SP_EPEER || (failed == SP_ENOMEM && !merges(p)))
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

sp_packet_bytes sp_packets_slot_sums(const sp_packets *p, size_t i)
{
    return p->sums[i];
}

sp_packet_bytes sp_packets_sums(const sp_packets *p)
{
    sp_packet_bytes sum = { 0 };

    for (size_t i = 0; i < p->args.count; i++) {
        sum.headers += p->sums[i].headers;
        sum.values += p->sums[i].values;
        sum.places += p->sums[i].places;
        sum.dense += p->sums[i].dense;
    }
    return sum;
}

double sp_packets_seconds(const sp_packets *p) { return p->seconds; }
