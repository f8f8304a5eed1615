/* From packets that have arrived to gradients. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "train/packets_parts.h"
#include "train/report.h"

typedef struct job {
    sp_packets *p;
    const sp_bucket *b;
    const sp_arrived *a;
    const size_t *at; /* of each rank's packets, count + 1 each */
    sp_err *failed;   /* of each slot */
} job;

sp_err sp_bucket_open(const sp_bucket *b, const uint8_t *bytes, size_t size,
                      int rank, size_t *at)
{
    size_t table = SP_SIZE_BYTES * b->count;

    at[0] = table;
    for (size_t k = 0; size >= table && k < b->count; k++) {
        at[k + 1] = at[k] + sp_size_read(bytes, k);
        if (at[k + 1] > size)
            break;
        if (k + 1 == b->count && at[k + 1] == size)
            return SP_OK;
    }
    return sp_fail(SP_EFORMAT,
                   "the packets of rank %d: %zu bytes that are not those of "
                   "%zu parameters: other software, or damaged on the way",
                   rank, size, b->count);
}

static sp_err decode_slot(const job *j, size_t k)
{
    const sp_packets_args *args = &j->p->args;
    size_t i = j->p->order[j->b->first + k];
    const sp_slot *s = &args->slots[i];

    if (j->a->fresh)
        memset(args->grads[i], 0, s->n * sizeof(float));
    for (int r = 0; r < j->a->count; r++) {
        const size_t *at = j->at + (size_t)r * (j->b->count + 1);
        sp_err e =
            args->compressor->decode(s, j->p->round, j->a->bytes[r] + at[k],
                                     at[k + 1] - at[k], args->grads[i]);

        if (e != SP_OK)
            return sp_fail(e, "%s, from rank %d: %s", s->name, j->a->first + r,
                           sp_last_error());
    }
    return SP_OK;
}

static void decode_slots(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t k = begin; k < end; k++)
        j->failed[k] = decode_slot(j, k);
}

/* The text of an error stays with the thread that met it: meet it again. */
static sp_err first_failure(const job *j)
{
    for (size_t k = 0; k < j->b->count; k++)
        if (j->failed[k] != SP_OK)
            return decode_slot(j, k);
    return SP_OK;
}

sp_err sp_bucket_decode(sp_packets *p, const sp_bucket *b, const sp_arrived *a)
{
    size_t places = (size_t)a->count * (b->count + 1);
    size_t *at = malloc((places + 1) * sizeof *at);
    sp_err *failed = calloc(b->count + 1, sizeof *failed), e = SP_OK;
    job j = { .p = p, .b = b, .a = a, .at = at, .failed = failed };
    double start = sp_now();

    if (!at || !failed)
        e = sp_fail(SP_ENOMEM, "exchange: out of memory");
    for (int r = 0; e == SP_OK && r < a->count; r++)
        e = sp_bucket_open(b, a->bytes[r], a->size[r], a->first + r,
                           at + (size_t)r * (b->count + 1));
    if (e == SP_OK) {
        sp_parallel_for(p->args.threads, b->count, 1, decode_slots, &j);
        e = first_failure(&j);
    }
    free(at);
    free(failed);
    p->seconds += sp_now() - start;
    return e;
}
