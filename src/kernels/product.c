/* The inner loops of products with packed weights; compiled once for each
 * instruction set. As in tiles.c, a tile's sums stay in registers; but here
 * rows are what is scarce, so there is a tile for every number of them.
 */
#include "kernels/product.h"

#include "kernels/vec.h"

/* Two registers of sums a row, two of weights, and one or two of rows. */
enum {
    ROWS = SP_ROWS == 8 ? 12 : SP_ROWS,
    MOST = ROWS > 8 ? ROWS : 8, /* of a tile of one register a row */
    UNROLLED = 2
};

SP_INLINE void sum_step(const float *const *x, ptrdiff_t k, const sp_vec *w,
                        int rows, int vectors, sp_vec sum[MOST][2])
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
    const float *x[MOST];
    sp_vec sum[MOST][2];
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
#pragma GCC unroll 2
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

static void two_vectors(const sp_product *a)
{
    switch (a->rows) {
    case 1:
        tile(a, 1, 2);
        break;
    case 2:
        tile(a, 2, 2);
        break;
    case 3:
        tile(a, 3, 2);
        break;
    case 4:
        tile(a, 4, 2);
        break;
#if SP_ROWS > 4
    case 5:
        tile(a, 5, 2);
        break;
    case 6:
        tile(a, 6, 2);
        break;
#endif
#if SP_ROWS > 6
    case 7:
        tile(a, 7, 2);
        break;
    case 8:
        tile(a, 8, 2);
        break;
    case 9:
        tile(a, 9, 2);
        break;
    case 10:
        tile(a, 10, 2);
        break;
    case 11:
        tile(a, 11, 2);
        break;
    case 12:
        tile(a, 12, 2);
        break;
#endif
    }
}

/* There is one such block at most. */
static void one_vector(const sp_product *a)
{
    sp_product t = *a;

    for (int left = a->rows; left > 0; left -= t.rows) {
        t.rows = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (t.rows == 8)
            tile(&t, 8, 1);
        else if (t.rows == 4)
            tile(&t, 4, 1);
        else if (t.rows == 2)
            tile(&t, 2, 1);
        else
            tile(&t, 1, 1);
        t.x += (size_t)t.rows * t.x_step;
        t.y += (size_t)t.rows * t.y_step;
    }
}

static void run(const sp_product *a)
{
    if (a->vectors == 2)
        two_vectors(a);
    else
        one_vector(a);
}

extern const sp_products SP_FOR_ISA(sp_products);

const sp_products
    SP_FOR_ISA(sp_products) = { .vl = SP_VL, .rows = ROWS, .run = run };
