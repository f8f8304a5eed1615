/* Pooling over arrays: images are cut among threads, so that overlapping
 * windows add up in one order. */
#ifndef SP_KERNELS_POOL_H
#define SP_KERNELS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/op.h"

/* The largest window: a pixel's place in it must fit a byte. */
enum { SP_POOL_MAX_KERNEL = 16 };

typedef struct sp_pool_shape {
    int h, w, c, oh, ow;
    int kernel, stride, pad;
} sp_pool_shape;

typedef struct sp_pool_how {
    const sp_kernels *kernels;
    int threads;
    int images;
    sp_pool_shape shape;
} sp_pool_how;

/* y = the largest of each window, the first of equal ones; `tap` (NULL: not
 * wanted) gets which one it was, a byte for each element of y. */
void sp_max_pool_forward(const sp_pool_how *how, const float *x, float *y,
                         uint8_t *tap);

/* y = the sum of each window / kernel^2. */
void sp_avg_pool_forward(const sp_pool_how *how, const float *x, float *y);

/* dx = beta * dx + what flows back; with beta 0, dx is not read. beta is 0 or
 * 1. */
void sp_max_pool_backward(const sp_pool_how *how, const float *dy,
                          const uint8_t *tap, float *dx, float beta);
void sp_avg_pool_backward(const sp_pool_how *how, const float *dy, float *dx,
                          float beta);

#endif
