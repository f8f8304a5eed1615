/* What the passes of Winograd's convolution share (conv_winograd.c,
 * conv_winograd_weight.c). */
#ifndef SP_KERNELS_CONV_WINOGRAD_H
#define SP_KERNELS_CONV_WINOGRAD_H

#include "kernels/conv.h"
#include "kernels/winograd.h"

/* An image and the square tiles that cover it; those at its borders hang
 * over. */
typedef struct sp_tiling {
    int h, w, c; /* of the image */
    int side;    /* pixels along a tile */
    int origin;  /* row and column at which the first tile begins */

    /* Where the rows and columns of tiles stand in the image, in floats, `side`
     * of a tile adjacent; negative: outside. */
    int *row, *col;
} sp_tiling;

/* The tiles of a block at all points: points x tiles x channels. What lies at
 * one point is a matrix. */
typedef struct sp_points {
    float *base;
    size_t ld, step; /* floats from tile to tile, from point to point */
} sp_points;

typedef struct sp_winograd_pass {
    sp_conv_how how;
    const sp_winograd_loops *loops;
    sp_conv_form f;
    int m, points;
    int index;           /* of m in the loops' tables */
    sp_tiling in, out;   /* tiles of m + 2 pixels; of m */
    int down, across;    /* tiles in an image */
    size_t image, tiles; /* tiles of an image, of all */
    sp_blocks blocks;    /* of output channels */
    size_t width;        /* of all blocks */
    size_t block_tiles;  /* that are transformed together */
    bool large;          /* weights at all points too many for small blocks */

    /* Whether all threads work on one block after the other: where blocks are
     * large, or fewer than threads. Else each thread has its own blocks.
     * Changes no bits. */
    bool together;
    int sets;           /* of points: one, or one a thread */
    sp_points from, to; /* of the first set: d and the products, or dy */
    size_t set_floats;
    float *zeros; /* what stands for pixels outside, and what sums begin with */
} sp_winograd_pass;

/* Set everything but memory. */
void sp_winograd_open(sp_winograd_pass *w, const sp_conv_call *call,
                      sp_pass pass);

/* Share the work, which comes in so many pieces, among the threads. */
void sp_winograd_share(sp_winograd_pass *w, size_t pieces);

/* Carve the sets of points, the zeros and the tables of the tilings. */
void sp_winograd_carve(sp_winograd_pass *w, sp_carver *c);

/* Fill the zeros and the tables. */
void sp_winograd_fill(const sp_winograd_pass *w);

/* The points of set i. */
static inline sp_points sp_winograd_set(const sp_winograd_pass *w,
                                        const sp_points *of, size_t i)
{
    return (sp_points){ of->base + i * w->set_floats, of->ld, of->step };
}

/* pixel[i] = where pixel i of a tile stands in the images from `base` on, or
 * `outside`. All pixels of tiles past the last are outside. */
void sp_winograd_locate(const sp_winograd_pass *w, const sp_tiling *t,
                        size_t tile, const float *base, const float *outside,
                        const float **pixel);

#endif
