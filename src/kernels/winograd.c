/* The loops of Winograd's convolution; compiled once for each instruction set.
 *
 * A transform goes along the columns of a tile, then along its rows. Points of
 * opposite sign share their even and odd parts. */
#include "kernels/winograd.h"

#include "kernels/vec.h"

/* The rows of a product are unrolled, so that their sums stay in registers. */
enum { ROWS = SP_ROWS };

/* The points of F(4 x 4): 0, +-A, +-B and infinity. */
#define A 0.75f
#define B 1.5f

/* ---- Along one axis ------------------------------------------------------
 * `m` is constant at every call; `to` is written every `step` vectors. */

/* t = B^T d: m + 2 values to m + 2 points. */
SP_INLINE void input_axis(int m, const sp_vec *d, sp_vec *to, int step)
{
    if (m == 2) {
        to[0] = d[0] - d[2];
        to[step] = d[1] + d[2];
        to[2 * step] = d[2] - d[1];
        to[3 * step] = d[3] - d[1];
    } else {
        sp_vec even_a = d[4] - B * B * d[2], odd_a = d[3] - B * B * d[1];
        sp_vec even_b = d[4] - A * A * d[2], odd_b = d[3] - A * A * d[1];
        to[0] = A * A * B * B * d[0] + (d[4] - (A * A + B * B) * d[2]);
        to[step] = even_a + A * odd_a;
        to[2 * step] = even_a - A * odd_a;
        to[3 * step] = even_b + B * odd_b;
        to[4 * step] = even_b - B * odd_b;
        to[5 * step] = A * A * B * B * d[1] + (d[5] - (A * A + B * B) * d[3]);
    }
}

/* y = A^T v: m + 2 points to m outputs. */
SP_INLINE void output_axis(int m, const sp_vec *v, sp_vec *to, int step)
{
    if (m == 2) {
        to[0] = v[0] + v[1] + v[2];
        to[step] = v[1] - v[2] + v[3];
    } else {
        sp_vec even_a = v[1] + v[2], odd_a = v[1] - v[2];
        sp_vec even_b = v[3] + v[4], odd_b = v[3] - v[4];
        to[0] = v[0] + even_a + even_b;
        to[step] = A * odd_a + B * odd_b;
        to[2 * step] = A * A * even_a + B * B * even_b;
        to[3 * step] = v[5] + A * A * A * odd_a + B * B * B * odd_b;
    }
}

/* v = A dy: m gradients to m + 2 points. */
SP_INLINE void gradient_axis(int m, const sp_vec *dy, sp_vec *to, int step)
{
    to[0] = dy[0];
    to[(m + 1) * step] = dy[m - 1];
    if (m == 2) {
        to[step] = dy[0] + dy[1];
        to[2 * step] = dy[0] - dy[1];
    } else {
        sp_vec even_a = dy[0] + A * A * dy[2], odd_a = dy[1] + A * A * dy[3];
        sp_vec even_b = dy[0] + B * B * dy[2], odd_b = dy[1] + B * B * dy[3];
        to[step] = even_a + A * odd_a;
        to[2 * step] = even_a - A * odd_a;
        to[3 * step] = even_b + B * odd_b;
        to[4 * step] = even_b - B * odd_b;
    }
}

/* The rows of G: (1, p, p^2) times these, for the points 0, +-A, +-B. */
#define G_0 (1.0f / (A * A * B * B))
#define G_A (0.5f / (A * A * (A * A - B * B)))
#define G_B (0.5f / (B * B * (B * B - A * A)))

/* u = G g: 3 weights to m + 2 points. */
SP_INLINE void filter_axis(int m, const sp_vec *g, sp_vec *to, int step)
{
    to[(m + 1) * step] = g[2];
    if (m == 2) {
        sp_vec even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
        to[0] = g[0];
        to[step] = even + odd;
        to[2 * step] = even - odd;
    } else {
        sp_vec even_a = G_A * g[0] + G_A * A * A * g[2];
        sp_vec even_b = G_B * g[0] + G_B * B * B * g[2];
        to[0] = G_0 * g[0];
        to[step] = even_a + G_A * A * g[1];
        to[2 * step] = even_a - G_A * A * g[1];
        to[3 * step] = even_b + G_B * B * g[1];
        to[4 * step] = even_b - G_B * B * g[1];
    }
}

/* dg = G^T du: m + 2 points to 3 weights. */
SP_INLINE void filter_gradient_axis(int m, const sp_vec *du, sp_vec *to,
                                    int step)
{
    if (m == 2) {
        sp_vec even = 0.5f * (du[1] + du[2]);
        to[0] = du[0] + even;
        to[step] = 0.5f * (du[1] - du[2]);
        to[2 * step] = even + du[3];
    } else {
        sp_vec even_a = G_A * (du[1] + du[2]), odd_a = G_A * (du[1] - du[2]);
        sp_vec even_b = G_B * (du[3] + du[4]), odd_b = G_B * (du[3] - du[4]);
        to[0] = G_0 * du[0] + even_a + even_b;
        to[step] = A * odd_a + B * odd_b;
        to[2 * step] = A * A * even_a + (B * B * even_b + du[5]);
    }
}

typedef void (*axis)(int m, const sp_vec *from, sp_vec *to, int step);

/* ---- Transforms of tiles ------------------------------------------------ */

/* Where a transform finds the values of a tile. */
typedef struct tile {
    const float *const *d; /* through pointers, or */
    const float *v;        /* values that stand */
    ptrdiff_t step;        /* apart */
    int parts;             /* each a sum of so many, part_step apart */
    size_t part_step;
    int lanes; /* of a vector that are there */
} tile;

SP_INLINE sp_vec read_pointer(const tile *t, int i, size_t at)
{
    return sp_load(t->d[i] + at, t->lanes, (sp_vec){ 0 });
}

SP_INLINE sp_vec read_point(const tile *t, int i, size_t at)
{
    return *(const sp_vec *)(t->v + i * t->step + at);
}

SP_INLINE sp_vec read_parts(const tile *t, int i, size_t at)
{
    sp_vec sum = read_point(t, i, at);

    for (int p = 1; p < t->parts; p++)
        sum += read_point(t, i, at + (size_t)p * t->part_step);
    return sum;
}

typedef sp_vec (*reader)(const tile *t, int i, size_t at);

/* half[to][n]: the columns of a tile, transformed. */
SP_INLINE void columns(int m, int n, axis f, reader read, const tile *t,
                       size_t at, sp_vec *half)
{
#pragma GCC unroll 1
    for (int j = 0; j < n; j++) {
        sp_vec column[6];
#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
            column[i] = read(t, i * n + j, at);
        f(m, column, half + j, n);
    }
}

/* Along both axes: `n` x `n` values, found by `read`, to `to` x `to` that stand
 * `step` apart. All but the loops over columns and rows is unrolled. */
SP_INLINE void transform(int m, int n, int to, axis f, reader read, tile *t,
                         int channels, float *v, size_t step)
{
    for (int c = 0; c < channels; c += SP_VL) {
        sp_vec half[SP_WINOGRAD_MOST];
        t->lanes = channels - c < SP_VL ? channels - c : SP_VL;
        columns(m, n, f, read, t, (size_t)c, half);
#pragma GCC unroll 1
        for (int i = 0; i < to; i++) {
            sp_vec row[6];
            f(m, half + i * n, row, 1);
#pragma GCC unroll 6
            for (int j = 0; j < to; j++)
                *(sp_vec *)(v + (size_t)(i * to + j) * step + c) = row[j];
        }
    }
}

SP_INLINE void output(int m, tile *t, int channels, const sp_winograd_output *o)
{
    for (int c = 0; c < channels; c += SP_VL) {
        sp_vec half[SP_WINOGRAD_MOST], start = *(const sp_vec *)(o->start + c);
        int lanes = channels - c < SP_VL ? channels - c : SP_VL;
        columns(m, m + 2, output_axis, read_point, t, (size_t)c, half);
#pragma GCC unroll 1
        for (int i = 0; i < m; i++) {
            sp_vec row[4];
            output_axis(m, half + i * (m + 2), row, 1);
#pragma GCC unroll 4
            for (int j = 0; j < m; j++) {
                float *y = o->y[i * m + j] + c;
                row[j] += start;
                if (o->beta != 0.0f)
                    row[j] += o->beta * sp_load(y, lanes, start);
                sp_store(y, row[j], lanes);
            }
        }
    }
}

static void input_2(const float *const *d, int channels, float *v, size_t step)
{
    tile t = { .d = d };

    transform(2, 4, 4, input_axis, read_pointer, &t, channels, v, step);
}

static void input_4(const float *const *d, int channels, float *v, size_t step)
{
    tile t = { .d = d };

    transform(4, 6, 6, input_axis, read_pointer, &t, channels, v, step);
}

static void gradient_2(const float *const *dy, int channels, float *v,
                       size_t step)
{
    tile t = { .d = dy };

    transform(2, 2, 4, gradient_axis, read_pointer, &t, channels, v, step);
}

static void gradient_4(const float *const *dy, int channels, float *v,
                       size_t step)
{
    tile t = { .d = dy };

    transform(4, 4, 6, gradient_axis, read_pointer, &t, channels, v, step);
}

static void output_2(const float *v, size_t step, int channels,
                     const sp_winograd_output *o)
{
    tile t = { .v = v, .step = (ptrdiff_t)step };

    output(2, &t, channels, o);
}

static void output_4(const float *v, size_t step, int channels,
                     const sp_winograd_output *o)
{
    tile t = { .v = v, .step = (ptrdiff_t)step };

    output(4, &t, channels, o);
}

static void filter_2(const float *g, ptrdiff_t g_step, int channels, float *u,
                     size_t step)
{
    tile t = { .v = g, .step = g_step };

    transform(2, 3, 4, filter_axis, read_point, &t, channels, u, step);
}

static void filter_4(const float *g, ptrdiff_t g_step, int channels, float *u,
                     size_t step)
{
    tile t = { .v = g, .step = g_step };

    transform(4, 3, 6, filter_axis, read_point, &t, channels, u, step);
}

static void filter_gradient_2(const float *du, size_t step, int parts,
                              size_t part_step, int channels, float *dg,
                              size_t dg_step)
{
    tile t = {
        .v = du, .step = (ptrdiff_t)step, .parts = parts, .part_step = part_step
    };

    transform(2, 4, 3, filter_gradient_axis, read_parts, &t, channels, dg,
              dg_step);
}

static void filter_gradient_4(const float *du, size_t step, int parts,
                              size_t part_step, int channels, float *dg,
                              size_t dg_step)
{
    tile t = {
        .v = du, .step = (ptrdiff_t)step, .parts = parts, .part_step = part_step
    };

    transform(4, 6, 3, filter_gradient_axis, read_parts, &t, channels, dg,
              dg_step);
}

/* ---- Products at one point ---------------------------------------------- */

/* `rows` and `vectors` are constants at every call. */
SP_INLINE void multiply_rows(const sp_point_product *p, int first, int rows,
                             int vectors)
{
    /* Two bases and seven offsets reach sixteen rows: all in registers. */
    ptrdiff_t lda = (ptrdiff_t)p->lda;
    const float *low = p->a + first * lda;
    const float *high = rows > 8 ? low + 8 * lda : low;
    const sp_vec *b = (const sp_vec *)p->b;
    float *c = p->c + (size_t)first * p->ldc;
    size_t ldc = p->ldc;
    sp_vec sum[2 * ROWS][2];

#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (sp_vec){ 0 };
    for (int k = p->depth; k > 0; k--, b += vectors, low++, high++)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            float a = (r < 8 ? low : high)[r % 8 * lda];
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a * b[v];
        }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += ldc)
        for (int v = 0; v < vectors; v++)
            ((sp_vec *)c)[v] = sum[r][v];
}

static void multiply_1(const sp_point_product *p)
{
    for (int r = 0; r < p->rows; r += 2 * ROWS)
        multiply_rows(p, r, 2 * ROWS, 1);
}

static void multiply_2(const sp_point_product *p)
{
    for (int r = 0; r < p->rows; r += ROWS)
        multiply_rows(p, r, ROWS, 2);
}

SP_INLINE void sum_rows(const sp_point_sum *p, int first, int depth,
                        int vectors)
{
    sp_vec *c = (sp_vec *)p->c + (size_t)first * (size_t)vectors;
    const float *a = p->a + first, *b = p->b;
    sp_vec sum[2 * ROWS][2];

#pragma GCC unroll 16
    for (int k = 0; k < depth; k++)
        for (int v = 0; v < vectors; v++)
            sum[k][v] = p->add ? c[k * vectors + v] : (sp_vec){ 0 };
    for (int r = 0; r < p->rows; r++, a += p->lda, b += p->ldb)
#pragma GCC unroll 16
        for (int k = 0; k < depth; k++)
            for (int v = 0; v < vectors; v++)
                sum[k][v] += a[k] * ((const sp_vec *)b)[v];
#pragma GCC unroll 16
    for (int k = 0; k < depth; k++)
        for (int v = 0; v < vectors; v++)
            c[k * vectors + v] = sum[k][v];
}

static void sum_rows_1(const sp_point_sum *p)
{
    int k = 0;

    for (; p->depth - k >= 2 * ROWS; k += 2 * ROWS)
        sum_rows(p, k, 2 * ROWS, 1);
    for (; p->depth - k >= 3; k += 3)
        sum_rows(p, k, 3, 1);
    for (; p->depth > k; k++)
        sum_rows(p, k, 1, 1);
}

static void sum_rows_2(const sp_point_sum *p)
{
    int k = 0;

    for (; p->depth - k >= ROWS; k += ROWS)
        sum_rows(p, k, ROWS, 2);
    for (; p->depth > k; k++)
        sum_rows(p, k, 1, 2);
}

extern const sp_winograd_loops SP_FOR_ISA(sp_winograd_loops);

const sp_winograd_loops SP_FOR_ISA(sp_winograd_loops) = {
    .vl = SP_VL,
    .rows = 2 * ROWS,
    .input = { input_2, input_4 },
    .gradient = { gradient_2, gradient_4 },
    .output = { output_2, output_4 },
    .filter = { filter_2, filter_4 },
    .filter_gradient = { filter_gradient_2, filter_gradient_4 },
    .multiply = { multiply_1, multiply_2 },
    .sum_rows = { sum_rows_1, sum_rows_2 },
};
