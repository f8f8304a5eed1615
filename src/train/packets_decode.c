/* From packets that have arrived to gradients. */
#include <string.h>

#include "compress/bytes.h"
#include "kernels/kernels.h"
#include "train/console.h"
#include "train/packets_parts.h"

typedef struct job {
    sp_packets *p;
    const sp_bucket *b;
    const sp_arrived *a;
} job;

sp_err sp_bucket_open(const sp_packets *p, const sp_bucket *b,
                      const uint8_t *bytes, size_t size, int rank, size_t *at)
{
    size_t table = SP_SIZE_BYTES * b->count;
    char name[SP_RANK_NAME];

    at[0] = table;
    for (size_t k = 0; size >= table && k < b->count; k++) {
        at[k + 1] = at[k] + sp_get32(bytes + SP_SIZE_BYTES * k);
        if (at[k + 1] > size)
            break;
        if (k + 1 == b->count && at[k + 1] == size)
            return SP_OK;
    }
    return sp_fail(SP_EFORMAT,
                   "the packets of %s: %zu bytes that are not those of "
                   "%zu parameters: other software, or damaged on the way",
                   sp_packets_rank(p, rank, name), size, b->count);
}

/* Where the packets of the r-th rank of a window begin. */
static size_t *places_of(const sp_packets *p, const sp_bucket *b, int r)
{
    return p->at + (size_t)r * (b->count + 1);
}

static void zero(void *arg, size_t begin, size_t end)
{
    memset((float *)arg + begin, 0, (end - begin) * sizeof(float));
}

static sp_err decode_slot(const job *j, size_t k)
{
    const sp_packets_args *args = &j->p->args;
    size_t i = j->p->order[j->b->first + k];
    const sp_slot *s = &args->slots[i];
    char name[SP_RANK_NAME];

    if (j->a->fresh && !sp_large_slot(s))
        zero(args->grads[i], 0, s->n);
    for (int r = 0; r < j->a->count; r++) {
        const size_t *at = places_of(j->p, j->b, r);
        sp_err e =
            args->compressor->decode(s, j->p->round, j->a->bytes[r] + at[k],
                                     at[k + 1] - at[k], args->grads[i]);

        if (e != SP_OK)
            return sp_fail(e, "%s, from %s: %s", s->name,
                           sp_packets_rank(j->p, j->a->first + r, name),
                           sp_last_error());
    }
    return SP_OK;
}

static void decode_slots(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t k = begin; k < end; k++)
        j->p->failed[k] = decode_slot(j, k);
}

/* All threads share this; packets are decoded by one thread a slot, since only
 * who reads a packet from its start knows where an entry stands. It is little:
 * of 37.7 million elements a thousandth takes 2.5 ms, where one thread encodes
 * it in 80. */
static void zero_large(const job *j)
{
    const sp_packets_args *args = &j->p->args;

    for (size_t k = 0; j->a->fresh && k < j->b->count; k++) {
        size_t i = j->p->order[j->b->first + k];
        if (sp_large_slot(&args->slots[i]))
            sp_parallel_for(args->threads, args->slots[i].n, SP_LARGE_SLOT / 4,
                            zero, args->grads[i]);
    }
}

/* The text of an error stays with the thread that met it: meet it again. */
static sp_err first_failure(const job *j)
{
    for (size_t k = 0; k < j->b->count; k++)
        if (j->p->failed[k] != SP_OK)
            return decode_slot(j, k);
    return SP_OK;
}

static sp_err decode(const job *j)
{
    const sp_arrived *a = j->a;

    for (int r = 0; r < a->count; r++)
        SP_TRY(sp_bucket_open(j->p, j->b, a->bytes[r], a->size[r], a->first + r,
                              places_of(j->p, j->b, r)));
    zero_large(j);
    sp_parallel_for(j->p->args.threads, j->b->count, 1, decode_slots,
                    (void *)j);
    return first_failure(j);
}

sp_err sp_bucket_decode(sp_packets *p, const sp_bucket *b, const sp_arrived *a)
{
    job j = { .p = p, .b = b, .a = a };
    double start = sp_now();
    sp_err e = decode(&j);

    sp_bucket_spent(p, b, "decode", start);
    return e;
}
