/* Scaling images of bytes. */
#ifndef SPRAT_DATA_RESIZE_H
#define SPRAT_DATA_RESIZE_H

#include <stdint.h>

typedef struct sp_image_size {
    int h, w, c;
} sp_image_size;

/* Scale an image; the channels of both sizes are the same. Along an axis that
 * shrinks, an output pixel is the mean over the part of the source it covers,
 * rounded to the nearest byte; along one that grows, the source pixel nearest
 * to its centre. Sides are at most 16384. */
void sp_image_resize(const uint8_t *from, sp_image_size source, uint8_t *to,
                     sp_image_size target);

#endif
