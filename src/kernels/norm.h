/* Batch norm over arrays, in parts whose size depends on the shape alone:
 * sums are floats within a part and doubles, in the order of the parts, over
 * them. */
#ifndef SP_KERNELS_NORM_H
#define SP_KERNELS_NORM_H

#include <stdbool.h>
#include <stddef.h>

#include "sprat/op.h"

/* How a batch norm over `rows` rows of c channels runs. `scratch` holds
 * sp_norm_scratch() bytes, aligned to SP_ALIGN. */
typedef struct sp_norm_how {
    const sp_kernels *kernels;
    int threads;
    size_t rows;
    int c;
    void *scratch;
} sp_norm_how;

/* Work space for up to that many rows, in bytes. */
size_t sp_norm_scratch(size_t rows, int c);

/* Per channel: the mean, and the sum of squared distances from it (Chan,
 * Golub, LeVeque 1983: two sweeps over a part while it is in cache, then parts
 * combined). Zeros for no rows. */
void sp_norm_moments(const sp_norm_how *how, const float *x, double *mean,
                     double *squares);

/* y = relu?((x - mean) * scale + shift + add), with tables of c numbers. */
typedef struct sp_norm_forward {
    const float *x, *add; /* add: NULL for nothing */
    const float *mean, *scale, *shift;
    bool relu;
    float *y;
} sp_norm_forward;

void sp_norm_apply(const sp_norm_how *how, const sp_norm_forward *f);

/* Backward. dz = dy where the ReLU let its input through: where y > 0, or for
 * y NULL, where (x - mean) * scale + shift > 0. */
typedef struct sp_norm_backward {
    const float *x, *y, *dy;
    const float *mean, *scale, *shift;
    bool relu;
} sp_norm_backward;

/* Per channel: dz_sum = sum of dz, dot = sum of dz * (x - mean). */
void sp_norm_back_sums(const sp_norm_how *how, const sp_norm_backward *b,
                       double *dz_sum, double *dot);

/* What sp_norm_back_apply() writes; NULL: not wanted. Old contents are
 * multiplied by beta; with beta 0 they are not read. */
typedef struct sp_norm_grads {
    float *dx, *dadd;
    float dx_beta, dadd_beta;
} sp_norm_grads;

/* dadd = dz;  dx = scale * dz + slope * (x - mean) + offset. */
void sp_norm_back_apply(const sp_norm_how *how, const sp_norm_backward *b,
                        const float *slope, const float *offset,
                        const sp_norm_grads *g);

#endif
