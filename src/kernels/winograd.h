/* The loops of Winograd's convolution, compiled once per instruction set
 * (winograd.c) and called by conv_winograd.c and conv_winograd_weight.c.
 *
 * F(m x m, 3 x 3) computes m x m outputs of a 3 x 3 convolution from (m+2) x
 * (m+2) inputs with (m+2)^2 multiplications a pair of channels instead of 9
 * m^2:
 *
 *   y  = A^T [ (G g G^T) . (B^T d B) ] A          summed over input channels
 *   dg = G^T [ (B^T d B) . (A dy A^T) ] G         summed over tiles
 *
 * where the dot goes point by point: for each of the (m+2)^2 points, the sums
 * over channels or tiles are a matrix product.
 *
 * Source: Lavin, Gray 2016, "Fast Algorithms for Convolutional Neural
 *         Networks"; the matrices by Toom and Cook's construction over the
 *         points 0, 1, -1 for m = 2 and 0, +-3/4, +-3/2 for m = 4, and infinity
 *         (the usual 0, +-1, +-2 have twice the rounding error).
 */
#ifndef SP_KERNELS_WINOGRAD_H
#define SP_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>

enum { SP_WINOGRAD_MOST = 36 }; /* points of F(4 x 4) */

/* Rows of a matrix product at one point: `a` is rows x depth, `b` depth x
 * columns of a block, adjacent; c = a b is rows x columns. Rows are a multiple
 * of sp_winograd_loops.rows. */
typedef struct sp_point_product {
    const float *a, *b;
    float *c;
    size_t lda, ldc;
    int rows, depth;
} sp_point_product;

/* The same with sums over rows: c (+)= a^T b, where a is rows x depth, b rows x
 * columns of a block, ldb apart, and c depth x columns, adjacent. */
typedef struct sp_point_sum {
    const float *a, *b;
    float *c;
    size_t lda, ldb;
    int rows, depth;
    bool add;
} sp_point_sum;

/* Where outputs go: y[i] = beta * y[i] + start + output i of the tile, row by
 * row. With beta 0, y is only written. */
typedef struct sp_winograd_output {
    float *const *y;    /* m * m pointers */
    const float *start; /* whole vectors */
    float beta;
} sp_winograd_output;

/* Transforms go over `channels` adjacent floats; the value of point i stands at
 * i * step, whole vectors of it, filled with zeros. */
typedef struct sp_winograd_loops {
    int vl, rows;

    /* By tile: F(2 x 2), F(4 x 4). */
    /* B^T d B, d through (m+2)^2 pointers. */
    void (*input[2])(const float *const *d, int channels, float *v,
                     size_t step);
    /* A dy A^T, dy through m^2 pointers. */
    void (*gradient[2])(const float *const *dy, int channels, float *v,
                        size_t step);
    /* A^T v A. */
    void (*output[2])(const float *v, size_t step, int channels,
                      const sp_winograd_output *o);
    /* G g G^T; tap i of g, of whole vectors, at i * g_step. */
    void (*filter[2])(const float *g, ptrdiff_t g_step, int channels, float *u,
                      size_t step);
    /* G^T du G, where du is the sum of `parts`, part_step apart. */
    void (*filter_gradient[2])(const float *du, size_t step, int parts,
                               size_t part_step, int channels, float *dg,
                               size_t dg_step);

    /* By vectors in a block of columns, less one. */
    void (*multiply[2])(const sp_point_product *p);
    void (*sum_rows[2])(const sp_point_sum *p);
} sp_winograd_loops;

#endif
