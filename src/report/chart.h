/* Kinds of charts, laid out into figures: curves over epochs, stacked bars,
 * maps of heat. */
#ifndef SPRAT_REPORT_CHART_H
#define SPRAT_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "report/figure.h"

/* ---- Curves (chart.c) ---------------------------------------------------- */

/* Start as {0} but for the first fields; texts must outlive it. */
typedef struct sp_chart {
    const char *id, *title, *note; /* note: below the title, the unit in it */
    const char *x_name;
    sp_unit unit, x_unit;
    bool from_zero; /* the x axis is linear and begins at 0: it is time */
    bool zero;      /* the axis begins at 0 where that is near */
    double span;    /* the least that it spans, so that what hardly differs
                       looks so */
    sp_text lines;  /* sp_chart_line */
} sp_chart;

typedef struct sp_chart_line {
    const char *name, *part; /* the run's name; what of it, "test" */
    int run;                 /* its number: colour, dash and mark */
    bool bold;               /* with marks, and its name at its end */
    sp_xy_list points;
} sp_chart_line;

/* Add a curve; takes the points over, also when memory runs out. */
void sp_chart_add(sp_chart *c, const char *name, const char *part, int run,
                  bool bold, sp_xy_list *points);
size_t sp_chart_count(const sp_chart *c);
const sp_chart_line *sp_chart_line_at(const sp_chart *c, size_t i);
void sp_chart_free(sp_chart *c);

/* Lay the chart out into the figure *f, which must be {0}. */
SP_MUST sp_err sp_chart_draw(const sp_chart *c, sp_figure *f);

/* ---- Stacked bars (bars.c) ----------------------------------------------- */

typedef struct sp_bar {
    const char *name;
    double part[SP_RUN_TIMES];
    size_t place; /* among those that it was taken from; not drawn */
} sp_bar;

typedef struct sp_bars {
    const char *id, *title, *note;
    double width;
    const char *const *parts; /* their names */
    int part_count;           /* at most SP_RUN_TIMES */
    sp_unit unit;
    const sp_bar *bar;
    size_t count;
} sp_bars;

SP_MUST sp_err sp_bars_draw(const sp_bars *b, sp_figure *f);

/* ---- Maps of heat (heat.c) ------------------------------------------------
 */

typedef struct sp_heat {
    const char *id, *title, *note;
    const char *const *rows; /* names */
    size_t row_count, column_count;
    const double *value;    /* rows x columns; NAN: not known */
    double x_least, x_most; /* what the columns span */
} sp_heat;

/* Colours are steps of the logarithm. */
SP_MUST sp_err sp_heat_draw(const sp_heat *h, sp_figure *f);

/* ---- What they share (chart.c) ---------------------------------------------
 */

/* The figure's frame: size, title and note at its head. */
void sp_chart_head(sp_figure *f, const char *id, const char *title,
                   const char *note);

#endif
