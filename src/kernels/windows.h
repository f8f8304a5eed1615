/* The loops behind pooling, over the windows of one image; compiled once per
 * instruction set (windows.c) and called by the drivers in pool.c. */
#ifndef SP_KERNELS_WINDOWS_H
#define SP_KERNELS_WINDOWS_H

#include "kernels/pool.h"

/* The table of an instruction set. All arrays are those of one image; `tap`
 * holds, for each element of y, which pixel of its window (counted row by row)
 * was the largest. */
typedef struct sp_windows {
    /* tap: NULL when not wanted. */
    void (*max)(const sp_pool_shape *s, const float *x, float *y, uint8_t *tap);
    void (*average)(const sp_pool_shape *s, const float *x, float *y);

    /* Add to dx, or, with `store` (each pixel is in exactly one window), write
     * it. */
    void (*max_back)(const sp_pool_shape *s, const float *dy,
                     const uint8_t *tap, float *dx, bool store);
    void (*average_back)(const sp_pool_shape *s, const float *dy, float *dx,
                         bool store);
} sp_windows;

#endif
