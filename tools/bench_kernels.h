/* What bench-kernels measures, and the line it prints of it. */
#ifndef SP_BENCH_KERNELS_H
#define SP_BENCH_KERNELS_H

#include "kernels/kernels.h"

/* A pass over n images. */
typedef struct sp_trial {
    sp_conv_how how;
    sp_conv_shape s;
    int n;
    sp_pass pass;
    bool packed; /* a product with weights that were packed before */
} sp_trial;

/* Whether there is such a way: tiles are for some convolutions, packed weights
 * for rows, forward and back. */
bool sp_can_measure(const sp_trial *t);

/* Measure for `seconds` and print the end of a line. False: out of memory. */
bool sp_measure(const sp_trial *t, double seconds);

#endif
