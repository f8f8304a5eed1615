/* The loops behind batch norm and the operators that go element by element,
 * compiled once per instruction set (rows.c) and called by the drivers in
 * norm.c and elements.c. */
#ifndef SP_KERNELS_ROWS_H
#define SP_KERNELS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/elements.h"

/* A part of a batch norm: `count` adjacent floats of x, y, add and their
 * gradients. Channels repeat every `wide` floats, a multiple of 16; all tables
 * below are `wide` long. Gradients are multiplied by their beta first; where
 * that is 0 they are only written. With `stream` what is written goes past the
 * caches, to arrays that are aligned to SP_ALIGN. */
typedef struct sp_norm_part {
    size_t count;
    size_t wide;
    bool relu, stream;
    const float *x, *add; /* add: NULL for nothing */
    float *y;
    const float *mean, *scale, *shift; /* y = (x - mean) * scale + shift */

    /* Backward only: dz is dy where y > 0 (with relu), found from `y` or, where
     * that is NULL, from x. */
    const float *dy;
    const float *slope, *offset; /* dx = dz*scale + (x-mean)*slope + offset */
    float *dx, *dadd;            /* NULL: not wanted */
    float dx_beta, dadd_beta;
} sp_norm_part;

/* The table of an instruction set. */
typedef struct sp_row_loops {
    /* sum[i] += x over the part; sum is `wide` long. */
    void (*sum)(const sp_norm_part *a, float *sum);
    /* sum[i] += (x - mean)^2. */
    void (*squares)(const sp_norm_part *a, float *sum);
    /* y. */
    void (*apply)(const sp_norm_part *a);
    /* sum[i] += dz, sum[wide + i] += dz * (x - mean). */
    void (*back_sum)(const sp_norm_part *a, float *sum);
    /* dx and dadd. */
    void (*back_apply)(const sp_norm_part *a);

    void (*relu)(size_t n, const float *x, float *y);
    void (*relu_back)(size_t n, const float *y, const float *dy, float *dx,
                      float beta);
    void (*add)(size_t n, const float *a, const float *b, float *y);
    /* a = b + s * c: the loop that bandwidth is measured with. */
    void (*triad)(size_t n, const float *b, const float *c, float s, float *a);
    /* y = beta * y + x; with beta 0, y is only written. */
    void (*accumulate)(size_t n, const float *x, float *y, float beta);

    /* sum of e^(x - max), and with `total` also the sum of x - max. */
    double (*exp_sum)(size_t n, const float *x, float max, double *total);
    float (*max)(size_t n, const float *x);
    /* dx = beta * dx + e^(x - max) * factor - target. */
    void (*softmax_back)(size_t n, const float *x, float *dx,
                         const sp_softmax *s);
} sp_row_loops;

#endif
