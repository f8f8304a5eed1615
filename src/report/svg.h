/* Figures as SVG, within a page or as files. */
#ifndef SPRAT_REPORT_SVG_H
#define SPRAT_REPORT_SVG_H

#include "base/text.h"
#include "report/figure.h"

/* Append a text for HTML or XML: < > & " ' become entities, control characters
 * and malformed UTF-8 U+FFFD. */
void sp_escape(sp_text *out, const char *text);

/* Append the figure as an <svg> element for a page, whose style sheet must have
 * sp_palette_rules(). */
void sp_svg_put(sp_text *out, const sp_figure *f);

/* Append the same as a file of its own, with its colours in light and dark. */
void sp_svg_put_file(sp_text *out, const sp_figure *f);

/* Append the sign of a run for tables: its line and mark. */
void sp_svg_put_sign(sp_text *out, int run);

#endif
