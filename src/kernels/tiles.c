/* The inner loops of convolutions and matrix products; compiled once for each
 * instruction set: SP_VL floats fill a register, SP_ROWS rows of two registers
 * of sums leave room for the operands.
 *
 * Source: Dukhan 2019, "The Indirect Convolution Algorithm": a tile reads its
 *         input pixels through pointers, so no column buffer is made.
 */
#include "kernels/tiles.h"

#include "kernels/vec.h"

/* Lanes with even and with odd numbers of two registers. */
#if SP_VL == 4
#define EVEN_LANES 0, 2, 4, 6
#define ODD_LANES 1, 3, 5, 7
#elif SP_VL == 8
#define EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14
#define ODD_LANES 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_LANES 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#endif

/* Enough independent sums to hide the latency of a multiply-add. */
enum { ROWS = SP_ROWS, UNROLLED = 8, PEAK_SUMS = ROWS > 6 ? 2 * ROWS : 12 };

/* A register as pairs of floats, and the floats of half a register. */
typedef uint64_t pair_vec
    __attribute__((vector_size(SP_VL * 4), aligned(4), may_alias));
typedef uint32_t half_vec
    __attribute__((vector_size(SP_VL * 2), aligned(4), may_alias));

/* p[0] p[1] p[0] p[1] ... */
SP_INLINE sp_vec splat_pair(const float *p)
{
    uint64_t both;

    memcpy(&both, p, sizeof both);
    return (sp_vec)((pair_vec){ 0 } + both);
}

/* p[0] 0 p[1] 0 ... of half a register. */
SP_INLINE sp_vec spread(const float *p)
{
    return (sp_vec) __builtin_convertvector(*(const half_vec *)p, pair_vec);
}

/* v[0] + v[1], v[2] + v[3] ... over both registers. */
SP_INLINE sp_vec add_pairs(const sp_vec *v)
{
    return __builtin_shufflevector(v[0], v[1], EVEN_LANES) +
           __builtin_shufflevector(v[0], v[1], ODD_LANES);
}

/* Rows are unrolled by name: otherwise GCC 12 keeps their sums in memory before
 * and after the loop over the channels. */
SP_INLINE void sum_step(const float *const *x, ptrdiff_t k, const sp_vec *w,
                        int step, sp_vec sum[ROWS][2])
{
#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sp_vec v = step == 2 ? splat_pair(x[p] + k) : sp_splat(x[p][k]);
        sum[p][0] += v * w[0];
        sum[p][1] += v * w[1];
    }
}

/* A run whose taps hold whole blocks of `step` x UNROLLED channels: one loop
 * over all its blocks, since the end of a short loop costs as much as several
 * of its turns. */
SP_INLINE void sum_blocks(const sp_tile *a, const sp_tap_run *run,
                          const float *const *x, int step, sp_vec sum[ROWS][2])
{
    enum { BLOCK = 2 * UNROLLED };
    const sp_vec *w = (const sp_vec *)(a->w + (size_t)run->tap * a->w_step);
    ptrdiff_t blocks = a->depth / (step * UNROLLED), left = blocks, k = 0;
    ptrdiff_t w_tap = (ptrdiff_t)((size_t)a->tap_step * a->w_step / SP_VL);

    for (ptrdiff_t n = run->taps * blocks; n > 0; n--) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLLED; u++)
            sum_step(x, k + u * step, w + 2 * u, step, sum);
        k += step * UNROLLED;
        w += BLOCK;
        if (--left == 0) {
            left = blocks;
            k += a->shift - a->depth;
            w += w_tap - blocks * BLOCK;
        }
    }
}

/* A run of any depth. Taps that follow one another in x and in w are one. */
SP_INLINE void sum_run(const sp_tile *a, const sp_tap_run *run,
                       const float *const *x, int step, sp_vec sum[ROWS][2])
{
    const float *taps = a->w + (size_t)run->tap * a->w_step;
    size_t w_tap = (size_t)a->tap_step * a->w_step;
    bool one =
        a->shift == a->depth && w_tap == (size_t)(a->depth / step * 2 * SP_VL);
    ptrdiff_t count = one ? 1 : run->taps;
    ptrdiff_t depth = one ? run->taps * a->depth : a->depth;

    for (ptrdiff_t j = 0; j < count; j++, taps += w_tap) {
        const sp_vec *w = (const sp_vec *)taps;
        ptrdiff_t end = j * a->shift + depth;
        for (ptrdiff_t k = j * a->shift; k < end; k += step, w += 2)
            sum_step(x, k, w, step, sum);
    }
}

/* Two registers a row, `step` channels at once: one channel of two vectors of
 * columns, or a pair of one. */
SP_INLINE void sum_rows(const sp_tile *a, int step, sp_vec sum[ROWS][2])
{
    if (a->depth % (step * UNROLLED) == 0)
        for (int i = 0; i < a->runs; i++)
            sum_blocks(a, a->run + i, a->x + (size_t)i * ROWS, step, sum);
    else
        for (int i = 0; i < a->runs; i++)
            sum_run(a, a->run + i, a->x + (size_t)i * ROWS, step, sum);
}

static void tile_2(const sp_tile *a)
{
    const sp_vec *start = (const sp_vec *)a->start;
    float *const *to = a->y;
    float beta = a->beta;
    sp_vec sum[ROWS][2];

#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sum[p][0] = start[0];
        sum[p][1] = start[1];
    }
    sum_rows(a, 1, sum);
#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sp_vec *y = (sp_vec *)to[p];
        if (beta != 0.0f) {
            sum[p][0] += beta * y[0];
            sum[p][1] += beta * y[1];
        }
        y[0] = sum[p][0];
        y[1] = sum[p][1];
    }
}

static void tile_pairs(const sp_tile *a)
{
    const float *start = a->start;
    float *const *to = a->y;
    float beta = a->beta;
    sp_vec sum[ROWS][2];

#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sum[p][0] = spread(start);
        sum[p][1] = spread(start + SP_VL / 2);
    }
    sum_rows(a, 2, sum);
#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sp_vec *y = (sp_vec *)to[p];
        sum[p][0] = add_pairs(sum[p]);
        if (beta != 0.0f)
            sum[p][0] += beta * y[0];
        y[0] = sum[p][0];
    }
}

/* `depth` is a constant where it is small: what a loop over three channels does
 * beside their products takes longer than they do. */
SP_INLINE void sum_one(const sp_tile *a, ptrdiff_t depth, sp_vec sum[ROWS][2])
{
    for (int i = 0; i < a->runs; i++) {
        const float *const *x = a->x + (size_t)i * ROWS;
        const float *taps = a->w + (size_t)a->run[i].tap * a->w_step;
        for (ptrdiff_t j = 0; j < a->run[i].taps; j++) {
            const sp_vec *w = (const sp_vec *)taps;
            ptrdiff_t k = j * a->shift, end = k + depth;
            taps += (size_t)a->tap_step * a->w_step;
            for (; k + 1 < end; k += 2, w += 2)
#pragma GCC unroll 8
                for (int p = 0; p < ROWS; p++) {
                    sum[p][0] += x[p][k] * w[0];
                    sum[p][1] += x[p][k + 1] * w[1];
                }
            if (k < end)
#pragma GCC unroll 8
                for (int p = 0; p < ROWS; p++)
                    sum[p][0] += x[p][k] * w[0];
        }
    }
}

/* Even and odd channels are summed apart: a row of one register alone would
 * wait for its own last sum. */
static void tile_1(const sp_tile *a)
{
    const sp_vec *start = (const sp_vec *)a->start;
    float *const *to = a->y;
    float beta = a->beta;
    sp_vec sum[ROWS][2];

#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sum[p][0] = start[0];
        sum[p][1] = (sp_vec){ 0 };
    }
    if (a->depth == 3)
        sum_one(a, 3, sum);
    else
        sum_one(a, a->depth, sum);
#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sp_vec *y = (sp_vec *)to[p];
        sum[p][0] += sum[p][1];
        if (beta != 0.0f)
            sum[p][0] += beta * y[0];
        y[0] = sum[p][0];
    }
}

/* One pixel of x, at `x`, against one of dy. */
SP_INLINE void weight_pixel(const float *x, const float *dy, int rows,
                            sp_layout layout, sp_vec sum[ROWS][2])
{
    const sp_vec *y = (const sp_vec *)dy;

    for (int k = 0; k < rows; k++) {
        sp_vec v = layout == SP_PAIRS ? splat_pair(x + 2 * k) : sp_splat(x[k]);
        sum[k][0] += v * y[0];
        if (layout != SP_ONE_VECTOR)
            sum[k][1] += v * y[1];
    }
}

/* `rows` of a layout from row `first` on; both constants at every call. */
SP_INLINE void weight_rows(const sp_weight_tile *a, int first, int rows,
                           sp_layout layout)
{
    int vectors = layout == SP_ONE_VECTOR ? 1 : 2;
    int step = layout == SP_PAIRS ? 2 : 1;
    sp_vec *dw = (sp_vec *)a->dw + (size_t)first * (size_t)vectors;
    const float *x = a->x + first * step, *dy = a->dy;
    const int *x_at = a->x_at, *y_at = a->y_at, *end = x_at + a->count;
    sp_vec sum[ROWS][2];

    for (int k = 0; k < rows; k++)
        for (int v = 0; v < vectors; v++)
            sum[k][v] = (sp_vec){ 0 };
    for (; end - x_at >= 2; x_at += 2, y_at += 2) {
        __builtin_prefetch(x + x_at[SP_WEIGHT_AHEAD]);
        __builtin_prefetch(x + x_at[SP_WEIGHT_AHEAD + 1]);
        weight_pixel(x + x_at[0], dy + y_at[0], rows, layout, sum);
        weight_pixel(x + x_at[1], dy + y_at[1], rows, layout, sum);
    }
    if (end > x_at)
        weight_pixel(x + x_at[0], dy + y_at[0], rows, layout, sum);
    for (int k = 0; k < rows; k++)
        for (int v = 0; v < vectors; v++) {
            if (a->add)
                sum[k][v] += dw[k * vectors + v];
            dw[k * vectors + v] = sum[k][v];
        }
}

SP_INLINE void weight_some(const sp_weight_tile *a, int first, int rows,
                           sp_layout layout)
{
    switch (rows) {
    case 1:
        weight_rows(a, first, 1, layout);
        break;
    case 2:
        weight_rows(a, first, 2, layout);
        break;
    case 3:
        weight_rows(a, first, 3, layout);
        break;
    case 4:
        weight_rows(a, first, 4, layout);
        break;
#if SP_ROWS > 4
    case 5:
        weight_rows(a, first, 5, layout);
        break;
    case 6:
        weight_rows(a, first, 6, layout);
        break;
#endif
#if SP_ROWS > 6
    case 7:
        weight_rows(a, first, 7, layout);
        break;
    case 8:
        weight_rows(a, first, 8, layout);
        break;
#endif
    }
}

/* In tiles of about equal size: a small one would wait for its own sums. */
SP_INLINE void weight_tile(const sp_weight_tile *a, sp_layout layout)
{
    int rows = layout == SP_PAIRS ? a->channels / 2 : a->channels;
    int tiles = (rows + ROWS - 1) / ROWS;

    for (int i = 0; i < tiles; i++) {
        int first = rows * i / tiles;
        weight_some(a, first, rows * (i + 1) / tiles - first, layout);
    }
}

static void weight_tile_1(const sp_weight_tile *a)
{
    weight_tile(a, SP_ONE_VECTOR);
}

static void weight_tile_2(const sp_weight_tile *a)
{
    weight_tile(a, SP_TWO_VECTORS);
}

static void weight_tile_pairs(const sp_weight_tile *a)
{
    weight_tile(a, SP_PAIRS);
}

static void locate(const int *at, int count, const float *base,
                   const float *zeros, const float **x)
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)count * ROWS; i++)
        x[i] = at[i] < 0 ? zeros : base + at[i];
}

static void locate_across(const int *at, int count, const float *const *base,
                          const float **x)
{
    for (int i = 0; i < count; i++, x += ROWS)
        for (int p = 0; p < ROWS; p++)
            x[p] = base[p] + at[i];
}

static void copy_rows(const float *from, size_t ld, size_t count, int valid,
                      float *to)
{
    int second = valid > SP_VL ? valid - SP_VL : 0;

    for (; count > 0; count--, from += ld, to += 2 * SP_VL) {
        sp_vec *row = (sp_vec *)to;
        row[0] = sp_load(from, valid - second, (sp_vec){ 0 });
        row[1] = sp_load(from + valid - second, second, (sp_vec){ 0 });
    }
}

static void copy_pairs(const float *from, size_t ld, size_t count, int valid,
                       float *to)
{
    for (; count > 0; count--, from += ld, to += 2 * SP_VL) {
        sp_vec v = sp_load(from, valid, (sp_vec){ 0 });
        const float *half = (const float *)&v;
        for (int i = 0; i < 2; i++) {
            pair_vec pairs = (pair_vec)spread(half + i * (SP_VL / 2));
            *(pair_vec *)(to + i * SP_VL) = pairs | pairs << 32;
        }
    }
}

/* Every turn moves one bit of a float's place from its lane to the number of
 * its register, and one back. */
static void transpose(const sp_square *s)
{
    bool full = s->rows == SP_VL && (s->whole || s->columns == SP_VL);
    sp_vec v[SP_VL], next[SP_VL];

    for (int r = 0; r < SP_VL; r++)
        v[r] = full ? *(const sp_vec *)s->from[r]
               : r < s->rows
                   ? sp_load(s->from[r], s->whole ? SP_VL : s->columns,
                             (sp_vec){ 0 })
                   : (sp_vec){ 0 };
#pragma GCC unroll 4
    for (int n = SP_VL; n > 1; n /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < SP_VL / 2; i++) {
            next[i] =
                __builtin_shufflevector(v[2 * i], v[2 * i + 1], EVEN_LANES);
            next[i + SP_VL / 2] =
                __builtin_shufflevector(v[2 * i], v[2 * i + 1], ODD_LANES);
        }
#pragma GCC unroll 16
        for (int i = 0; i < SP_VL; i++)
            v[i] = next[i];
    }
    for (int c = 0; c < s->columns; c++)
        *(sp_vec *)s->to[c] = v[c];
}

static float peak(size_t turns)
{
    /* Too small to change a sum, which the compiler must not see. */
    sp_vec sum[PEAK_SUMS], a = sp_splat((float)turns * 0x1p-64f);
    float total = 0;

    /* All different, or the compiler sees that one sum will do. */
    for (int j = 0; j < PEAK_SUMS; j++)
        sum[j] = sp_splat((float)(j + 2));
    for (size_t i = 0; i < turns; i++)
        for (int j = 0; j < PEAK_SUMS; j++)
            sum[j] += sum[j] * a; /* on Arm, too, one instruction */
    for (int j = 0; j < PEAK_SUMS; j++)
        total += sum[j][0];
    return total;
}

extern const sp_tiles SP_FOR_ISA(sp_tiles);

const sp_tiles SP_FOR_ISA(sp_tiles) = {
    .vl = SP_VL,
    .rows = ROWS,
    .tile = { tile_1, tile_2, tile_pairs },
    .weight_tile = { weight_tile_1, weight_tile_2, weight_tile_pairs },
    .locate = locate,
    .locate_across = locate_across,
    .copy_rows = copy_rows,
    .copy_pairs = copy_pairs,
    .transpose = transpose,
    .peak = peak,
    .peak_flops = PEAK_SUMS * SP_VL * 2,
};
