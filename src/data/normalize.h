/* From a byte of an image to the number the network sees. */
#ifndef SPRAT_DATA_NORMALIZE_H
#define SPRAT_DATA_NORMALIZE_H

#include "sprat/data.h"

/* The values of `data.normalize`, in the order of normalize.c's table. */
#define SP_NORMALIZE_CHOICES \
    "none|half|fb|pufferfish|torchpack|imagenet|mnist|fashion"

enum { SP_NORMALIZE_NONE };

/* (byte - mean) / std for every byte, per channel. */
typedef struct sp_pixels {
    int step; /* rows from one channel to the next: 0 when all share one */
    float value[3][256];
} sp_pixels;

/* The name of a choice, or NULL past the last. */
const char *sp_normalize_name(int choice);

/* The table of a choice for images of c channels. Errors: SP_EDATA when the
 * choice's constants are for another number of channels. */
SP_MUST sp_err sp_normalize_table(int choice, int c, sp_pixels *out);

#endif
