/* Loops over rows of channels and over plain arrays, compiled once per
 * instruction set.
 *
 * Batch norm's loops see the channels as repeating every `wide` floats, a
 * multiple of any vector, so that three channels run as fast as sixteen. They
 * take GROUP such rows at a time: tables and sums are then touched once per
 * GROUP vectors of data, and the loops run at the speed of memory.
 */
#include "kernels/rows.h"

#include <math.h>

#include "kernels/vec.h"

enum { GROUP = 4 };

/* One column of `rows` wide rows: m floats at channel `col` of each, the first
 * at `at`. */
typedef void (*column)(const sp_norm_part *a, float *sum, size_t at, size_t col,
                       int rows, int m);

/* Every column of the part, in groups of rows, then row by row, then what is
 * left of the last row. */
SP_INLINE void walk(const sp_norm_part *part, float *sum, column f)
{
    const sp_norm_part a = *part;
    size_t i = 0;

    for (; i + GROUP * a.wide <= a.count; i += GROUP * a.wide)
        for (size_t col = 0; col < a.wide; col += SP_VL)
            f(&a, sum, i + col, col, GROUP, SP_VL);
    for (; i + a.wide <= a.count; i += a.wide)
        for (size_t col = 0; col < a.wide; col += SP_VL)
            f(&a, sum, i + col, col, 1, SP_VL);
    for (size_t col = 0; i + col < a.count; col += SP_VL) {
        size_t rest = a.count - i - col;
        f(&a, sum, i + col, col, 1, rest < SP_VL ? (int)rest : SP_VL);
    }
}

SP_INLINE sp_vec full(const float *p, size_t col)
{
    return *(const sp_vec *)(p + col);
}

SP_INLINE void sum_column(const sp_norm_part *a, float *sum, size_t at,
                          size_t col, int rows, int m)
{
    sp_vec s = { 0 };

    for (int r = 0; r < rows; r++, at += a->wide)
        s += sp_load(a->x + at, m, (sp_vec){ 0 });
    *(sp_vec *)(sum + col) += s;
}

static void sum(const sp_norm_part *a, float *s) { walk(a, s, sum_column); }

SP_INLINE void squares_column(const sp_norm_part *a, float *sum, size_t at,
                              size_t col, int rows, int m)
{
    sp_vec mean = full(a->mean, col), s = { 0 };

    for (int r = 0; r < rows; r++, at += a->wide) {
        sp_vec d = sp_load(a->x + at, m, mean) - mean;
        s += d * d;
    }
    *(sp_vec *)(sum + col) += s;
}

static void squares(const sp_norm_part *a, float *s)
{
    walk(a, s, squares_column);
}

/* To y or a gradient. */
SP_INLINE void put(const sp_norm_part *a, float *p, sp_vec v, int m)
{
    if (a->stream && m == SP_VL)
        sp_stream(p, v);
    else
        sp_store(p, v, m);
}

SP_INLINE void apply_column(const sp_norm_part *a, float *sum, size_t at,
                            size_t col, int rows, int m)
{
    const sp_vec zero = { 0 };
    sp_vec mean = full(a->mean, col), scale = full(a->scale, col),
           shift = full(a->shift, col);

    (void)sum;
    for (int r = 0; r < rows; r++, at += a->wide) {
        sp_vec v = (sp_load(a->x + at, m, zero) - mean) * scale + shift;
        if (a->add)
            v += sp_load(a->add + at, m, zero);
        if (a->relu)
            v = sp_positive(v);
        put(a, a->y + at, v, m);
    }
}

static void apply(const sp_norm_part *a)
{
    walk(a, NULL, apply_column);
    if (a->stream)
        sp_stream_end();
}

/* dy where the ReLU, if any, let its input through; d = x - mean. */
SP_INLINE sp_vec gated(const sp_norm_part *a, sp_vec d, size_t at, size_t col,
                       int m)
{
    const sp_vec zero = { 0 };
    sp_vec dy = sp_load(a->dy + at, m, zero), y;

    if (!a->relu)
        return dy;
    if (a->y)
        y = sp_load(a->y + at, m, zero);
    else
        y = d * full(a->scale, col) + full(a->shift, col);
    return sp_where(y > 0.0f, dy);
}

SP_INLINE void back_sum_column(const sp_norm_part *a, float *sum, size_t at,
                               size_t col, int rows, int m)
{
    sp_vec mean = full(a->mean, col), s = { 0 }, t = { 0 };

    for (int r = 0; r < rows; r++, at += a->wide) {
        sp_vec d = sp_load(a->x + at, m, mean) - mean;
        sp_vec dz = gated(a, d, at, col, m);
        s += dz;
        t += dz * d;
    }
    *(sp_vec *)(sum + col) += s;
    *(sp_vec *)(sum + a->wide + col) += t;
}

static void back_sum(const sp_norm_part *a, float *s)
{
    walk(a, s, back_sum_column);
}

/* beta * p + v; with beta 0, p is not read. */
SP_INLINE sp_vec blended(const float *p, sp_vec v, float beta, int m)
{
    if (beta != 0.0f)
        v += beta * sp_load(p, m, (sp_vec){ 0 });
    return v;
}

/* p = beta * p + v; with beta 0, p is only written. */
SP_INLINE void blend(float *p, sp_vec v, float beta, int m)
{
    sp_store(p, blended(p, v, beta, m), m);
}

SP_INLINE void put_blended(const sp_norm_part *a, float *p, sp_vec v,
                           float beta, int m)
{
    put(a, p, blended(p, v, beta, m), m);
}

SP_INLINE void back_apply_column(const sp_norm_part *a, float *sum, size_t at,
                                 size_t col, int rows, int m)
{
    sp_vec mean = full(a->mean, col), scale = full(a->scale, col),
           slope = full(a->slope, col), offset = full(a->offset, col);

    (void)sum;
    for (int r = 0; r < rows; r++, at += a->wide) {
        sp_vec d = sp_load(a->x + at, m, mean) - mean;
        sp_vec dz = gated(a, d, at, col, m);
        if (a->dadd)
            put_blended(a, a->dadd + at, dz, a->dadd_beta, m);
        if (a->dx)
            put_blended(a, a->dx + at, dz * scale + (d * slope + offset),
                        a->dx_beta, m);
    }
}

static void back_apply(const sp_norm_part *a)
{
    walk(a, NULL, back_apply_column);
    if (a->stream)
        sp_stream_end();
}

/* Lanes that a step at i of n takes. */
SP_INLINE int lanes(size_t i, size_t n)
{
    return n - i < SP_VL ? (int)(n - i) : SP_VL;
}

static void relu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        sp_store(y + i, sp_positive(sp_load(x + i, m, (sp_vec){ 0 })), m);
    }
}

static void relu_back(size_t n, const float *y, const float *dy, float *dx,
                      float beta)
{
    const sp_vec zero = { 0 };

    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        sp_ivec on = sp_load(y + i, m, zero) > 0.0f;
        blend(dx + i, sp_where(on, sp_load(dy + i, m, zero)), beta, m);
    }
}

static void add(size_t n, const float *a, const float *b, float *y)
{
    const sp_vec zero = { 0 };

    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        sp_store(y + i, sp_load(a + i, m, zero) + sp_load(b + i, m, zero), m);
    }
}

static void triad(size_t n, const float *b, const float *c, float s, float *a)
{
    const sp_vec zero = { 0 };

    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        sp_store(a + i, sp_load(b + i, m, zero) + s * sp_load(c + i, m, zero),
                 m);
    }
}

static void accumulate(size_t n, const float *x, float *y, float beta)
{
    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        blend(y + i, sp_load(x + i, m, (sp_vec){ 0 }), beta, m);
    }
}

static double lane_sum(sp_vec v)
{
    double s = 0;

    for (int i = 0; i < SP_VL; i++)
        s += (double)v[i];
    return s;
}

static float max(size_t n, const float *x)
{
    sp_vec best = sp_splat(x[0]);
    float top;

    for (size_t i = 0; i < n; i += SP_VL) {
        sp_vec v = sp_load(x + i, lanes(i, n), best);
        best = sp_select(v > best, v, best);
    }
    top = best[0];
    for (int i = 1; i < SP_VL; i++)
        top = best[i] > top ? best[i] : top;
    return top;
}

/* Sums of floats are kept this short, then go on in double. */
enum { SHORT_SUM = 32 * SP_VL };

static double exp_sum(size_t n, const float *x, float top, double *total)
{
    double sum_e = 0, sum_d = 0;

    for (size_t i = 0; i < n; i += SHORT_SUM) {
        size_t end = n - i < SHORT_SUM ? n : i + SHORT_SUM;
        sp_vec e = { 0 }, d = { 0 };
        for (size_t j = i; j < end; j += SP_VL) {
            int m = lanes(j, end);
            sp_vec v = sp_load(x + j, m, sp_splat(-INFINITY)) - top;
            e += sp_exp(v);
            if (total)
                d += sp_load(x + j, m, sp_splat(top)) - top;
        }
        sum_e += lane_sum(e);
        sum_d += lane_sum(d);
    }
    if (total)
        *total = sum_d;
    return sum_e;
}

static void softmax_back(size_t n, const float *x, float *dx,
                         const sp_softmax *s)
{
    for (size_t i = 0; i < n; i += SP_VL) {
        int m = lanes(i, n);
        sp_vec v = sp_load(x + i, m, (sp_vec){ 0 }) - s->max;
        blend(dx + i, sp_exp(v) * s->factor - s->target, s->beta, m);
    }
}

extern const sp_row_loops SP_FOR_ISA(sp_row_loops);

const sp_row_loops SP_FOR_ISA(sp_row_loops) = {
    .sum = sum,
    .squares = squares,
    .apply = apply,
    .back_sum = back_sum,
    .back_apply = back_apply,
    .relu = relu,
    .relu_back = relu_back,
    .add = add,
    .triad = triad,
    .accumulate = accumulate,
    .exp_sum = exp_sum,
    .max = max,
    .softmax_back = softmax_back,
};
