/* Loops over plain arrays, element by element and by rows of logits. */
#ifndef SP_KERNELS_ELEMENTS_H
#define SP_KERNELS_ELEMENTS_H

#include <stddef.h>

#include "sprat/op.h"

/* y = max(x, 0); what is not a number stays so. y may be x. */
void sp_relu_forward(const sp_run *r, size_t n, const float *x, float *y);

/* dx = beta * dx + (y > 0 ? dy : 0); with beta 0, dx is not read and may be
 * dy. */
void sp_relu_backward(const sp_run *r, size_t n, const float *y,
                      const float *dy, float *dx, float beta);

/* y = a + b; y may be either. */
void sp_add_forward(const sp_run *r, size_t n, const float *a, const float *b,
                    float *y);

/* y = beta * y + x; with beta 0, y is not read and may be x. */
void sp_accumulate(const sp_run *r, size_t n, const float *x, float *y,
                   float beta);

/* The sum of squares of n numbers, by this thread alone, in lanes that do not
 * wait for each other: their order of adding is part of the result. In double
 * no square of a float overflows. */
double sp_sum_squares(const float *x, size_t n);

/* One row of n logits: its largest, the sum of e^(x - max), and (total not
 * NULL) the sum of x - max. */
void sp_softmax_sums(const sp_kernels *k, size_t n, const float *x, float *max,
                     double *sum, double *total);

/* dx = beta * dx + e^(x - max) * factor - target, over one row; with beta 0, dx
 * is not read and may be x. */
typedef struct sp_softmax {
    float max, factor, target, beta;
} sp_softmax;

void sp_softmax_grad(const sp_kernels *k, size_t n, const float *x, float *dx,
                     const sp_softmax *s);

#endif
