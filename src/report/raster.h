/* Figures as pixels and PNG files. */
#ifndef SPRAT_REPORT_RASTER_H
#define SPRAT_REPORT_RASTER_H

#include <stdint.h>

#include "report/figure.h"

enum { SP_RASTER_SCALE = 2 }; /* pixels of one point */

/* A picture, rows from the top, 3 bytes a pixel: red, green, blue. */
typedef struct sp_raster {
    int w, h;
    uint8_t *rgb; /* the caller's to free */
} sp_raster;

/* Draw a figure in its light colours, with smooth edges. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_raster_draw(sp_raster *r, const sp_figure *f);

/* Write a picture as PNG, whole or not at all. The same pixels give the same
 * bytes. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_raster_write(const sp_raster *r, const char *path);

#endif
