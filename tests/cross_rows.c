/* Batch norm, the operators that go element by element, pooling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cross_kernels.h"
#include "kernels/elements.h"
#include "kernels/norm.h"
#include "kernels/pool.h"

typedef struct norm {
    sp_norm_how how;
    size_t count;
    float *x, *add, *dy, *y;
    float *mean, *scale, *shift, *slope, *offset; /* by channel */
    bool relu, added;
} norm;

static norm norm_open(const trial *t, size_t rows, int c)
{
    norm a = { .how = { .kernels = t->kernels,
                        .threads = THREADS,
                        .rows = rows,
                        .c = c,
                        .scratch = allocate(sp_norm_scratch(rows, c)) } };

    a.count = rows * (size_t)c;
    a.x = numbers(a.count, 1, FEW);
    a.add = numbers(a.count, 2, FEW);
    a.dy = numbers(a.count, 3, FEW);
    a.y = floats(a.count);
    a.mean = numbers((size_t)c, 4, FEW);
    a.scale = numbers((size_t)c, 5, FEW);
    a.shift = numbers((size_t)c, 6, FEW);
    a.slope = numbers((size_t)c, 7, FEW);
    a.offset = numbers((size_t)c, 8, FEW);
    return a;
}

static void norm_close(norm *a)
{
    float *const all[] = { a->x,     a->add,   a->dy,    a->y,     a->mean,
                           a->scale, a->shift, a->slope, a->offset };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(a->how.scratch);
}

static double from_mean(const norm *a, size_t i)
{
    return (double)a->x[i] - (double)a->mean[i % (size_t)a->how.c];
}

static double norm_y(const norm *a, size_t i)
{
    size_t j = i % (size_t)a->how.c;
    double z = from_mean(a, i) * (double)a->scale[j] + (double)a->shift[j];

    if (a->added)
        z += (double)a->add[i];
    return a->relu && z <= 0 ? 0 : z;
}

static double norm_dz(const norm *a, size_t i)
{
    return a->relu && norm_y(a, i) <= 0 ? 0 : (double)a->dy[i];
}

static void try_moments(trial *t, const norm *a)
{
    size_t c = (size_t)a->how.c;
    double *mean = doubles(c), *squares = doubles(c);

    sp_norm_moments(&a->how, a->x, mean, squares);
    for (size_t j = 0; j < c; j++) {
        double sum = 0, sum2 = 0;
        for (size_t i = j; i < a->count; i += c)
            sum += (double)a->x[i] / (double)a->how.rows;
        compare(t, "mean", j, mean[j], sum, 0);
        for (size_t i = j; i < a->count; i += c)
            sum2 += ((double)a->x[i] - sum) * ((double)a->x[i] - sum);
        compare(t, "squares", j, squares[j], sum2, sum2);
    }
    free(mean);
    free(squares);
}

static void try_apply(trial *t, const norm *a)
{
    sp_norm_forward f = { .x = a->x,
                          .add = a->added ? a->add : NULL,
                          .mean = a->mean,
                          .scale = a->scale,
                          .shift = a->shift,
                          .relu = a->relu,
                          .y = a->y };

    sp_norm_apply(&a->how, &f);
    for (size_t i = 0; i < a->count; i++)
        compare(t, "norm forward", i, (double)a->y[i], norm_y(a, i), 0);
}

static void try_back_sums(trial *t, const norm *a, const sp_norm_backward *b)
{
    size_t c = (size_t)a->how.c;
    double *sum = doubles(c), *dot = doubles(c);

    sp_norm_back_sums(&a->how, b, sum, dot);
    for (size_t j = 0; j < c; j++) {
        double dz = 0, dzx = 0, size = 0;
        for (size_t i = j; i < a->count; i += c) {
            dz += norm_dz(a, i);
            dzx += norm_dz(a, i) * from_mean(a, i);
            size += fabs(norm_dz(a, i)) * 2; /* |x - mean| < 2 */
        }
        compare(t, "norm sum of dz", j, sum[j], dz, size);
        compare(t, "norm sum of dz x", j, dot[j], dzx, size);
    }
    free(sum);
    free(dot);
}

static void try_back_apply(trial *t, const norm *a, const sp_norm_backward *b,
                           float beta)
{
    float *before = numbers(a->count, 9, FEW);
    float *dx = beta == 0.0f ? floats(a->count) : copy_of(before, a->count);
    float *dadd = copy_of(dx, a->count);
    sp_norm_grads g = {
        .dx = dx, .dadd = dadd, .dx_beta = beta, .dadd_beta = beta
    };

    sp_norm_back_apply(&a->how, b, a->slope, a->offset, &g);
    for (size_t i = 0; i < a->count; i++) {
        size_t j = i % (size_t)a->how.c;
        double dz = norm_dz(a, i), more = rest(beta, before[i]);
        compare(t, "norm dadd", i, (double)dadd[i], dz + more, 0);
        dz = dz * (double)a->scale[j] + from_mean(a, i) * (double)a->slope[j] +
             (double)a->offset[j];
        compare(t, "norm dx", i, (double)dx[i], dz + more, 0);
    }
    free(before);
    free(dx);
    free(dadd);
}

static void try_backward(trial *t, const norm *a, const float *y)
{
    sp_norm_backward b = { .x = a->x,
                           .y = y,
                           .dy = a->dy,
                           .mean = a->mean,
                           .scale = a->scale,
                           .shift = a->shift,
                           .relu = a->relu };

    try_back_sums(t, a, &b);
    for (int i = 0; i < BETAS; i++)
        try_back_apply(t, a, &b, betas[i]);
}

void try_norm(trial *t)
{
    static const struct {
        size_t rows;
        int c;
    } shapes[] = { { 1, 1 },    { 5, 3 },   { 37, 7 }, { 130, 16 },
                   { 900, 10 }, { 61, 33 }, { 9, 100 } };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        norm a = norm_open(t, shapes[i].rows, shapes[i].c);
        try_moments(t, &a);
        for (int flags = 0; flags < 4; flags++) {
            a.relu = flags & 1;
            a.added = flags & 2;
            try_apply(t, &a);
            try_backward(t, &a, a.y);
            if (!a.added)
                try_backward(t, &a, NULL);
        }
        norm_close(&a);
    }
}

static void try_relu(trial *t, const sp_run *r, size_t n, const float *x)
{
    float *y = copy_of(x, n), *dy = numbers(n, 2, FEW);

    y[n / 2] = NAN;
    sp_relu_forward(r, n, y, y);
    if (!isnan(y[n / 2]))
        compare(t, "relu of NaN", n / 2, (double)y[n / 2], HUGE_VAL, 0);
    sp_relu_forward(r, n, x, y);
    for (size_t i = 0; i < n; i++)
        compare(t, "relu", i, (double)y[i], fmax((double)x[i], 0), 0);
    for (int b = 0; b < BETAS; b++) {
        float *dx = b == 0 ? floats(n) : copy_of(x, n);
        sp_relu_backward(r, n, y, dy, dx, betas[b]);
        for (size_t i = 0; i < n; i++)
            compare(t, "relu backward", i, (double)dx[i],
                    (x[i] > 0 ? (double)dy[i] : 0) + rest(betas[b], x[i]), 0);
        free(dx);
    }
    free(y);
    free(dy);
}

static void try_sums(trial *t, const sp_run *r, size_t n, const float *x)
{
    float *y = numbers(n, 2, FEW), *sum = floats(n);

    sp_add_forward(r, n, x, y, sum);
    for (size_t i = 0; i < n; i++)
        compare(t, "add", i, (double)sum[i], (double)x[i] + (double)y[i], 0);
    for (int b = 0; b < BETAS; b++) {
        float *to = b == 0 ? floats(n) : copy_of(y, n);
        sp_accumulate(r, n, x, to, betas[b]);
        for (size_t i = 0; i < n; i++)
            compare(t, "accumulate", i, (double)to[i],
                    (double)x[i] + rest(betas[b], y[i]), 0);
        free(to);
    }
    free(y);
    free(sum);
}

void try_elements(trial *t)
{
    static const size_t sizes[] = { 1, 3, 4, 7, 16, 31, 100, 33003 };
    sp_run r = { .threads = THREADS, .kernels = t->kernels };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *x = numbers(sizes[i], 1, FEW);
        try_relu(t, &r, sizes[i], x);
        try_sums(t, &r, sizes[i], x);
        free(x);
    }
}

static void try_softmax_row(trial *t, size_t n, const float *x)
{
    sp_softmax s = { .factor = 0.75f, .target = 0.25f };
    double sum, total, want = 0, want_total = 0;
    float max, *dx;

    sp_softmax_sums(t->kernels, n, x, &max, &sum, &total);
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)max;
        if (d > 0)
            compare(t, "largest logit", i, (double)max, (double)x[i], 0);
        want += exp(d);
        want_total += d;
    }
    compare(t, "softmax sum", 0, sum, want, want);
    compare(t, "softmax total", 0, total, want_total, -want_total);
    s.max = max;
    for (int b = 0; b < BETAS; b++) {
        s.beta = betas[b];
        dx = b == 0 ? floats(n) : copy_of(x, n);
        sp_softmax_grad(t->kernels, n, x, dx, &s);
        for (size_t i = 0; i < n; i++) {
            double more = rest(betas[b], x[i]);
            compare(t, "softmax backward", i, (double)dx[i],
                    exp((double)x[i] - (double)max) * 0.75 - 0.25 + more,
                    fabs(more));
        }
        free(dx);
    }
}

/* Logits that differ by up to 120: e^-120 is below what a float can hold. */
void try_softmax(trial *t)
{
    static const size_t sizes[] = { 1, 2, 10, 33, 1000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *x = numbers(sizes[i], 1, MANY);
        for (size_t k = 0; k < sizes[i]; k++)
            x[k] *= k % 3 ? 4.0f : 60.0f;
        try_softmax_row(t, sizes[i], x);
        free(x);
    }
}

/* Both kinds of pooling, by the definition. */
typedef struct pool {
    sp_pool_how how;
    size_t in, out;
    float *x, *dy;
    double *largest, *average;       /* [out] */
    double *max_back, *average_back; /* [in] */
} pool;

/* Window (oy, ox) of channel c of image m. */
static void pool_window(pool *p, int m, int oy, int ox, int c)
{
    const sp_pool_shape *s = &p->how.shape;
    size_t y = (size_t)(((m * s->oh + oy) * s->ow + ox) * s->c + c), best = 0;
    double share = 1.0 / (s->kernel * s->kernel);

    p->largest[y] = -HUGE_VAL;
    for (int t = 0; t < s->kernel * s->kernel; t++) {
        int h = oy * s->stride + t / s->kernel - s->pad;
        int w = ox * s->stride + t % s->kernel - s->pad;
        size_t x = (size_t)(((m * s->h + h) * s->w + w) * s->c + c);
        if (h < 0 || h >= s->h || w < 0 || w >= s->w)
            continue;
        p->average[y] += (double)p->x[x] * share;
        p->average_back[x] += (double)p->dy[y] * share;
        if ((double)p->x[x] > p->largest[y]) {
            p->largest[y] = (double)p->x[x];
            best = x;
        }
    }
    p->max_back[best] += (double)p->dy[y];
}

static double *zeros(size_t count)
{
    return memset(doubles(count), 0, count * sizeof(double));
}

static pool pool_open(const trial *t, sp_pool_shape s)
{
    pool p = { .how = { .kernels = t->kernels, .threads = THREADS } };

    s.oh = (s.h + 2 * s.pad - s.kernel) / s.stride + 1;
    s.ow = (s.w + 2 * s.pad - s.kernel) / s.stride + 1;
    p.how.shape = s;
    p.how.images = 2;
    p.in = (size_t)(2 * s.h * s.w * s.c);
    p.out = (size_t)(2 * s.oh * s.ow * s.c);
    p.x = numbers(p.in, 1, FEW);
    p.dy = numbers(p.out, 2, FEW);
    p.largest = zeros(p.out);
    p.average = zeros(p.out);
    p.max_back = zeros(p.in);
    p.average_back = zeros(p.in);
    for (int q = 0; q < 2 * s.oh * s.ow; q++)
        for (int c = 0; c < s.c; c++)
            pool_window(&p, q / (s.oh * s.ow), q / s.ow % s.oh, q % s.ow, c);
    return p;
}

static void pool_close(pool *p)
{
    free(p->x);
    free(p->dy);
    free(p->largest);
    free(p->average);
    free(p->max_back);
    free(p->average_back);
}

static void try_pool_forward(trial *t, const pool *p, uint8_t *tap)
{
    float *max = floats(p->out), *plain = floats(p->out);
    float *average = floats(p->out);

    sp_max_pool_forward(&p->how, p->x, max, tap);
    sp_max_pool_forward(&p->how, p->x, plain, NULL);
    sp_avg_pool_forward(&p->how, p->x, average);
    for (size_t i = 0; i < p->out; i++) {
        compare(t, "max pool", i, (double)max[i], p->largest[i], 0);
        compare(t, "max pool", i, (double)plain[i], p->largest[i], 0);
        compare(t, "average pool", i, (double)average[i], p->average[i], 0);
    }
    free(max);
    free(plain);
    free(average);
}

static void try_pool_backward(trial *t, const pool *p, const uint8_t *tap,
                              float beta)
{
    float *before = numbers(p->in, 3, FEW);
    float *max = beta == 0.0f ? floats(p->in) : copy_of(before, p->in);
    float *average = copy_of(max, p->in);

    sp_max_pool_backward(&p->how, p->dy, tap, max, beta);
    sp_avg_pool_backward(&p->how, p->dy, average, beta);
    for (size_t i = 0; i < p->in; i++) {
        double more = rest(beta, before[i]);
        compare(t, "max pool backward", i, (double)max[i],
                p->max_back[i] + more, 0);
        compare(t, "average pool backward", i, (double)average[i],
                p->average_back[i] + more, 0);
    }
    free(before);
    free(max);
    free(average);
}

void try_pool(trial *t)
{
    /* { h, w, c, -, -, kernel, stride, pad } */
    static const sp_pool_shape shapes[] = {
        { 4, 4, 3, 0, 0, 2, 2, 0 },  { 7, 5, 5, 0, 0, 3, 2, 1 },
        { 8, 8, 16, 0, 0, 2, 2, 0 }, { 9, 8, 37, 0, 0, 3, 1, 1 },
        { 6, 6, 1, 0, 0, 6, 6, 0 },  { 7, 7, 8, 0, 0, 2, 3, 0 },
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        pool p = pool_open(t, shapes[i]);
        uint8_t *tap = allocate(p.out);
        try_pool_forward(t, &p, tap);
        for (int b = 0; b < 2; b++) /* 0 or 1, says pool.h */
            try_pool_backward(t, &p, tap, betas[b]);
        free(tap);
        pool_close(&p);
    }
}
