/* One line of bench-kernels.
 *
 * The peak is measured in turn with the pass, since clocks change from second
 * to second; of both the best of many short rounds counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench_kernels.h"
#include "kernels/table.h"

enum { ROUNDS = 5 };

typedef struct arrays {
    float *x, *w, *y, *result;
    void *scratch;
    sp_packed packed; /* data NULL: not wanted */
} arrays;

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Floats in the arrays of an image, and of the weights. */
static size_t x_count(const sp_conv_shape *s)
{
    return (size_t)s->h * (size_t)s->w * (size_t)s->cin;
}

static size_t y_count(const sp_conv_shape *s)
{
    return (size_t)s->oh * (size_t)s->ow * (size_t)s->cout;
}

static size_t w_count(const sp_conv_shape *s)
{
    return (size_t)(s->cin / s->groups) * (size_t)s->cout * (size_t)s->kh *
           (size_t)s->kw;
}

static double operations(const sp_conv_shape *s, int n)
{
    return 2.0 * n * s->oh * s->ow * (double)w_count(s);
}

static float *random_floats(size_t count)
{
    float *p = sp_block_alloc(sizeof *p * count);
    uint32_t r = 1;

    for (size_t i = 0; p && i < count; i++) {
        r = r * 1664525u + 1013904223u;
        p[i] = (float)(r >> 8) * 0x1p-23f - 1.0f;
    }
    return p;
}

static bool arrays_open(arrays *a, const sp_trial *t)
{
    const sp_conv_shape *s = &t->s;
    size_t x = x_count(s) * (size_t)t->n, y = y_count(s) * (size_t)t->n;
    size_t bytes = sp_conv_scratch(&t->how, s, t->n, t->pass);
    bool back = t->pass == SP_BACKWARD_INPUT;
    sp_packed *p = &a->packed;

    a->x = random_floats(back ? 0 : x);
    a->y = random_floats(t->pass == SP_FORWARD ? 0 : y);
    a->w = random_floats(w_count(s));
    a->result = random_floats(t->pass == SP_FORWARD ? y
                              : back                ? x
                                                    : w_count(s));
    a->scratch = sp_block_alloc(bytes);
    *p = (sp_packed){ .in = back ? s->cout : s->cin,
                      .out = back ? s->cin : s->cout,
                      .transposed = back };
    if (t->packed)
        p->data = sp_block_alloc(sp_packed_size(&t->how, p->in, p->out));
    if (p->data && a->w)
        sp_pack(&t->how, p, a->w);
    return a->x && a->y && a->w && a->result && a->scratch &&
           (p->data || !t->packed);
}

static void arrays_close(arrays *a)
{
    free(a->x);
    free(a->y);
    free(a->w);
    free(a->result);
    free(a->scratch);
    free(a->packed.data);
}

static void run_pass(const arrays *a, const sp_trial *t)
{
    const sp_conv_how *how = &t->how;
    const sp_conv_shape *s = &t->s;
    int n = t->n;

    if (t->packed)
        sp_packed_product(how, &a->packed, n,
                          a->packed.transposed ? a->y : a->x, a->result, 0.0f);
    else if (t->pass == SP_FORWARD)
        sp_conv_forward(how, s, n, a->x, a->w, NULL, a->result, a->scratch);
    else if (t->pass == SP_BACKWARD_INPUT)
        sp_conv_backward_input(how, s, n, a->y, a->w, a->result, 0.0f,
                               a->scratch);
    else
        sp_conv_backward_weight(how, s, n, a->x, a->y, a->result, 0.0f,
                                a->scratch);
}

/* GFLOP/s of multiply-adds in one short round, by the same clock as a pass. */
static double peak_now(const sp_conv_how *how, clockid_t clock)
{
    enum { TURNS = 1000000 };
    const sp_tiles *t = how->kernels->tiles;
    volatile float keep; /* or the compiler drops the loop */
    double start;

    if (how->threads > 1)
        return sp_kernels_peak(how->kernels, how->threads, 0);
    start = now(clock);
    keep = t->peak(TURNS);
    (void)keep;
    return (double)TURNS * t->peak_flops / (now(clock) - start) * 1e-9;
}

bool sp_measure(const sp_trial *t, double seconds)
{
    arrays a = { 0 };
    /* One thread's own time leaves out that of others on its core. */
    clockid_t clock =
        t->how.threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double end, best = 1e30, peak = 0, flops = operations(&t->s, t->n);
    bool ok = arrays_open(&a, t);

    if (ok)
        run_pass(&a, t);
    end = now(CLOCK_MONOTONIC) + seconds;
    for (int i = 0; ok && (i < ROUNDS || now(CLOCK_MONOTONIC) < end); i++) {
        double p = peak_now(&t->how, clock);
        double start = now(clock), took;
        run_pass(&a, t);
        took = now(clock) - start;
        peak = p > peak ? p : peak;
        best = took < best ? took : best;
    }
    if (ok)
        printf("%9.3f %8.1f %7.1f %6.1f %%", best * 1e3, flops / best * 1e-9,
               peak, flops / best * 1e-9 / peak * 100);
    if (ok && t->packed) /* how fast the weights went by */
        printf(" %6.1f GB/s",
               (double)w_count(&t->s) * sizeof(float) / best * 1e-9);
    if (ok)
        printf("\n");
    fflush(stdout);
    arrays_close(&a);
    return ok;
}

bool sp_can_measure(const sp_trial *t)
{
    const sp_conv_shape *s = &t->s;

    if (t->packed)
        return s->h * s->w * s->kh * s->kw == 1 && s->oh * s->ow == 1 &&
               s->groups == 1 && t->pass != SP_BACKWARD_WEIGHT;
    return !t->how.tile || sp_conv_has_tiles(s);
}
