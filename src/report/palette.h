/* Colours, by role; those of runs differ in lightness too, and are told apart
 * with any colour vision. */
#ifndef SPRAT_REPORT_PALETTE_H
#define SPRAT_REPORT_PALETTE_H

#include <stdint.h>

#include "base/text.h"
#include "report/figure.h"

typedef struct sp_palette {
    uint32_t ink, muted, grid, paper; /* 0xRRGGBB */
    uint32_t run[SP_COLOURS], share[SP_RUN_TIMES], heat[SP_HEATS];
} sp_palette;

extern const sp_palette sp_palette_light, sp_palette_dark;

uint32_t sp_palette_colour(const sp_palette *p, sp_paint paint, int number);

/* The palette as CSS custom properties, "--ink:#1b1e23;...". */
void sp_palette_css(sp_text *out, const sp_palette *p);

/* CSS rules for the classes that sp_svg_write() gives to shapes. */
void sp_palette_rules(sp_text *out);

#endif
