/* The inner loops of convolutions and matrix products, one table for each
 * instruction set. */
#ifndef SP_KERNELS_TILES_H
#define SP_KERNELS_TILES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sp_tiles {
    int vl; /* floats in a vector */

    /* Multiply-adds, `turns` times `peak_flops` operations. */
    float (*peak)(size_t turns);
    int peak_flops;
} sp_tiles;

#endif
