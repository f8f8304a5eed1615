/* The inner loops of convolutions and matrix products; compiled once for each
 * instruction set: SP_VL floats fill a register, SP_ROWS rows of two registers
 * of sums leave room for the operands.
 *
 * Source: Dukhan 2019, "The Indirect Convolution Algorithm": a tile reads its
 *         input pixels through pointers, so no column buffer is made.
 */
#include "kernels/tiles.h"

#include "kernels/vec.h"

/* The rows of a tile are unrolled by name: otherwise GCC 12 keeps their sums in
 * memory before and after the loop over the channels. */

/* Enough independent sums to hide the latency of a multiply-add. */
enum { ROWS = SP_ROWS, PEAK_SUMS = ROWS > 6 ? 2 * ROWS : 12 };

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
    for (int i = 0; i < a->taps; i++) {
        const float *const *x = a->x + (size_t)i * ROWS;
        const sp_vec *w =
            (const sp_vec *)(a->w + (size_t)a->tap[i] * a->w_step);
        for (ptrdiff_t k = 0; k < a->depth; k++, w += 2)
#pragma GCC unroll 8
            for (int p = 0; p < ROWS; p++) {
                sum[p][0] += x[p][k] * w[0];
                sum[p][1] += x[p][k] * w[1];
            }
    }
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
    for (int i = 0; i < a->taps; i++) {
        const float *const *x = a->x + (size_t)i * ROWS;
        const sp_vec *w =
            (const sp_vec *)(a->w + (size_t)a->tap[i] * a->w_step);
        ptrdiff_t k = 0;
        for (; k + 1 < a->depth; k += 2, w += 2)
#pragma GCC unroll 8
            for (int p = 0; p < ROWS; p++) {
                sum[p][0] += x[p][k] * w[0];
                sum[p][1] += x[p][k + 1] * w[1];
            }
        if (k < a->depth)
#pragma GCC unroll 8
            for (int p = 0; p < ROWS; p++)
                sum[p][0] += x[p][k] * w[0];
    }
#pragma GCC unroll 8
    for (int p = 0; p < ROWS; p++) {
        sp_vec *y = (sp_vec *)to[p];
        sum[p][0] += sum[p][1];
        if (beta != 0.0f)
            sum[p][0] += beta * y[0];
        y[0] = sum[p][0];
    }
}

/* `rows` and `vectors` are constants at every call. */
SP_INLINE void weight_rows(const sp_weight_tile *a, int first, int rows,
                           int vectors)
{
    sp_vec *dw = (sp_vec *)a->dw + (size_t)first * (size_t)vectors;
    const float *x = a->x + first, *dy = a->dy;
    sp_vec sum[2 * ROWS][2];

    for (int k = 0; k < rows; k++)
        for (int v = 0; v < vectors; v++)
            sum[k][v] = (sp_vec){ 0 };
    for (size_t m = 0; m < a->images; m++, x += a->x_step, dy += a->y_step)
        for (ptrdiff_t i = 0; i < a->count; i++) {
            const float *xp = x + a->x_at[i];
            const sp_vec *yp =
                (const sp_vec *)(dy + (size_t)a->y_at[i] * a->ldy);
            for (int k = 0; k < rows; k++)
                for (int v = 0; v < vectors; v++)
                    sum[k][v] += xp[k] * yp[v];
        }
    for (int k = 0; k < rows; k++)
        for (int v = 0; v < vectors; v++) {
            if (a->add)
                sum[k][v] += dw[k * vectors + v];
            dw[k * vectors + v] = sum[k][v];
        }
}

SP_INLINE void weight_tile(const sp_weight_tile *a, int vectors)
{
    int k = 0;

    if (vectors == 1)
        for (; a->channels - k >= 2 * ROWS; k += 2 * ROWS)
            weight_rows(a, k, 2 * ROWS, vectors);
    for (; a->channels - k >= ROWS; k += ROWS)
        weight_rows(a, k, ROWS, vectors);
    for (; a->channels - k >= 3; k += 3)
        weight_rows(a, k, 3, vectors);
    for (; a->channels - k >= 1; k++)
        weight_rows(a, k, 1, vectors);
}

static void weight_tile_1(const sp_weight_tile *a) { weight_tile(a, 1); }

static void weight_tile_2(const sp_weight_tile *a) { weight_tile(a, 2); }

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
    for (; count > 0; count--, from += ld)
        for (int j = 0; j < valid; j += SP_VL, to += SP_VL) {
            int m = valid - j < SP_VL ? valid - j : SP_VL;
            *(sp_vec *)to = sp_load(from + j, m, (sp_vec){ 0 });
        }
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
    .tile = { tile_1, tile_2 },
    .weight_tile = { weight_tile_1, weight_tile_2 },
    .locate = locate,
    .locate_across = locate_across,
    .copy_rows = copy_rows,
    .peak = peak,
    .peak_flops = PEAK_SUMS * SP_VL * 2,
};
