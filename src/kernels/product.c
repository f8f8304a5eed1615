/* The inner loops of products with packed weights; compiled once for each
 * instruction set. As in tiles.c, a tile's sums stay in registers; but here
 * rows are what is scarce, so there is a tile for every number of them.
 */
#include "kernels/product.h"

#include "kernels/vec.h"

/* Two registers of sums a row, two of weights, and one or two of rows. */
enum { ROWS = SP_ROWS == 8 ? 12 : SP_ROWS, UNROLLED = 8 };

SP_INLINE void sum_step(const float *const *x, ptrdiff_t k, const sp_vec *w,
                        int rows, int vectors, sp_vec sum[ROWS][2])
{
#pragma GCC unroll 12
    for (int p = 0; p < rows; p++) {
        sp_vec v = sp_splat(x[p][k]);
        sum[p][0] += v * w[0];
        if (vectors == 2)
            sum[p][1] += v * w[1];
    }
}

/* Lanes of vector v that y holds. */
SP_INLINE int lanes(const sp_product *a, int v)
{
    int left = a->columns - v * SP_VL;

    return left < SP_VL ? left : SP_VL;
}

/* Both numbers are constants at every call. */
SP_INLINE void tile(const sp_product *a, int rows, int vectors)
{
    const sp_vec *w = (const sp_vec *)a->w;
    ptrdiff_t k = 0, depth = a->depth;
    const float *x[ROWS];
    sp_vec sum[ROWS][2];
    float beta = a->beta;

#pragma GCC unroll 12
    for (int p = 0; p < rows; p++) {
        x[p] = a->x + (size_t)p * a->x_step;
        sum[p][0] = sum[p][1] = (sp_vec){ 0 };
        __builtin_prefetch(a->y + (size_t)p * a->y_step, 1);
        if (vectors == 2)
            __builtin_prefetch(a->y + (size_t)p * a->y_step + SP_VL, 1);
    }
    for (; k + UNROLLED <= depth; k += UNROLLED, w += UNROLLED * vectors)
#pragma GCC unroll 8
        for (int u = 0; u < UNROLLED; u++) {
            /* One at a time: a burst would fill the buffers for misses. */
            __builtin_prefetch(a->ahead + (k + u) * SP_VL, 0, 2);
            sum_step(x, k + u, w + u * vectors, rows, vectors, sum);
        }
    for (; k < depth; k++, w += vectors)
        sum_step(x, k, w, rows, vectors, sum);
#pragma GCC unroll 12
    for (int p = 0; p < rows; p++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            float *y = a->y + (size_t)p * a->y_step + v * SP_VL;
            int m = lanes(a, v);
            if (beta != 0.0f)
                sum[p][v] += beta * sp_load(y, m, (sp_vec){ 0 });
            sp_store(y, sum[p][v], m);
        }
}

SP_INLINE void some_rows(const sp_product *a, int vectors)
{
    switch (a->rows) {
    case 1:
        tile(a, 1, vectors);
        break;
    case 2:
        tile(a, 2, vectors);
        break;
    case 3:
        tile(a, 3, vectors);
        break;
    case 4:
        tile(a, 4, vectors);
        break;
#if SP_ROWS > 4
    case 5:
        tile(a, 5, vectors);
        break;
    case 6:
        tile(a, 6, vectors);
        break;
#endif
#if SP_ROWS > 6
    case 7:
        tile(a, 7, vectors);
        break;
    case 8:
        tile(a, 8, vectors);
        break;
    case 9:
        tile(a, 9, vectors);
        break;
    case 10:
        tile(a, 10, vectors);
        break;
    case 11:
        tile(a, 11, vectors);
        break;
    case 12:
        tile(a, 12, vectors);
        break;
#endif
    }
}

static void run(const sp_product *a)
{
    if (a->vectors == 2)
        some_rows(a, 2);
    else
        some_rows(a, 1);
}

extern const sp_products SP_FOR_ISA(sp_products);

const sp_products SP_FOR_ISA(sp_products) = { .rows = ROWS, .run = run };
