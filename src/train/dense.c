/* Fusing of arrays that are summed over ranks.
 *
 * A bucket is what was added since the one before, some MiB: large enough that
 * the cost of a call drowns, small enough that the first ones are under way
 * while backward goes on. Neighbours in memory, as gradients of one store are,
 * leave in one piece without being moved; the rest is copied together.
 */
#include "train/dense.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKET = 1 << 20, /* floats: 4 MiB */
    SMALL = 16384     /* arrays of fewer floats are fused */
};

typedef struct piece {
    float *x;
    size_t n;
    float *staged; /* where it travels; NULL: where it stands */
} piece;

struct sp_dense {
    sp_dense_args args;
    piece *pieces; /* of this step; those from `begun` on wait to leave */
    size_t count, begun, floats;
    sp_pending **ops;
    size_t op_count;
    float *staging;
    size_t staged;
};

sp_err sp_dense_new(sp_dense **out, const sp_dense_args *args)
{
    /* Of memory that nothing is copied to the system gives none. */
    size_t room = args->most * SMALL;
    sp_dense *d = calloc(1, sizeof *d);

    if (!d)
        return sp_fail(SP_ENOMEM, "exchange: out of memory");
    d->args = *args;
    d->pieces = malloc((args->most + 1) * sizeof *d->pieces);
    /* Each piece may leave alone, and each bucket has one of small ones. */
    d->ops = malloc((2 * args->most + 1) * sizeof *d->ops);
    d->staging = malloc((room + 1) * sizeof *d->staging);
    if (!d->pieces || !d->ops || !d->staging) {
        sp_dense_free(d);
        return sp_fail(SP_ENOMEM,
                       "exchange: there is no memory for %zu numbers that "
                       "travel together",
                       room);
    }
    *out = d;
    return SP_OK;
}

void sp_dense_free(sp_dense *d)
{
    if (!d)
        return;
    free(d->pieces);
    free(d->ops);
    free(d->staging);
    free(d);
}

static void begin(sp_dense *d, float *x, size_t n)
{
    const sp_dense_args *a = &d->args;

    d->ops[d->op_count++] = a->reduce ? sp_reduce_floats(a->comm, a->on, x, n)
                                      : sp_sum_floats(a->comm, a->on, x, n);
}

/* By where they stand; backward gives the last ones first. */
static void sort(piece *p, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        piece first = p[i];

        p[i] = p[count - 1 - i];
        p[count - 1 - i] = first;
    }
    for (size_t i = 1; i < count; i++) {
        piece one = p[i];
        size_t to = i;

        for (; to > 0 && p[to - 1].x > one.x; to--)
            p[to] = p[to - 1];
        p[to] = one;
    }
}

/* How many pieces from `p` on follow each other in memory; *n: their floats. */
static size_t neighbours(const piece *p, const piece *end, size_t *n)
{
    size_t count = 1;

    *n = p->n;
    while (p + count < end && p[count].x == p->x + *n)
        *n += p[count++].n;
    return count;
}

static void stage(sp_dense *d, piece *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        p[i].staged = d->staging + d->staged;
        memcpy(p[i].staged, p[i].x, p[i].n * sizeof *p[i].x);
        d->staged += p[i].n;
    }
}

void sp_dense_flush(sp_dense *d)
{
    piece *p = d->pieces + d->begun, *end = d->pieces + d->count;
    size_t first = d->staged, n;

    sort(p, (size_t)(end - p));
    for (size_t count; p < end; p += count) {
        count = neighbours(p, end, &n);
        if (n < SMALL)
            stage(d, p, count);
        else
            begin(d, p->x, n);
    }
    if (d->staged > first)
        begin(d, d->staging + first, d->staged - first);
    d->begun = d->count;
    d->floats = 0;
}

void sp_dense_add(sp_dense *d, float *x, size_t n)
{
    d->pieces[d->count++] = (piece){ .x = x, .n = n };
    d->floats += n;
    if (d->floats >= BUCKET)
        sp_dense_flush(d);
}

sp_err sp_dense_wait(sp_dense *d)
{
    sp_err e = SP_OK, failed;

    sp_dense_flush(d);
    for (size_t i = 0; i < d->op_count; i++) {
        failed = sp_op_wait(d->args.comm, d->ops[i]);
        if (e == SP_OK)
            e = failed;
    }
    for (size_t i = 0; i < d->count; i++)
        if (d->pieces[i].staged)
            memcpy(d->pieces[i].x, d->pieces[i].staged,
                   d->pieces[i].n * sizeof(float));
    d->count = d->begun = d->op_count = d->staged = 0;
    return e;
}
