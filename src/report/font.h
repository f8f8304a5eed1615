/* A font of strokes, for text in pictures of pixels. */
#ifndef SPRAT_REPORT_FONT_H
#define SPRAT_REPORT_FONT_H

#include <stddef.h>

/* Letters stand on a grid whose unit is SP_FONT_UNIT of the text's size: x goes
 * to the right from 0, y downwards from -6, the height of capitals, to 0, the
 * baseline, and 2. Strokes are pairs of digits "xy", y counted from the height
 * of capitals; a comma lifts the pen; a stroke of one pair is a dot. */
typedef struct sp_glyph {
    const char *strokes;
    int left, right; /* the least and greatest x */
} sp_glyph;

#define SP_FONT_UNIT 0.118

/* The letter that a UTF-8 text begins with, and its bytes; of what the font
 * does not have, a box. */
sp_glyph sp_font_glyph(const char *text, size_t *bytes);

/* How far the next letter is, in units of the grid. */
double sp_font_advance(const sp_glyph *g);

/* The width of a text in units of the grid. */
double sp_font_width(const char *text);

#endif
