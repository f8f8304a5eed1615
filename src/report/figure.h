/* A drawing as a list of shapes, which svg.c and raster.c can both draw: charts
 * look the same in either. Places are in points from the upper left corner. */
#ifndef SPRAT_REPORT_FIGURE_H
#define SPRAT_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "report/run.h"
#include "report/scale.h"
#include "sprat/base.h"

enum {
    SP_COLOURS = 10, /* of runs; each comes with a dash and a mark */
    SP_HEATS = 9,    /* steps of a scale of heat, the last the darkest */
    SP_DASH = 6      /* most lengths of a dash, on and off in turn */
};

/* What a shape is painted with: a role, and for some a number. */
typedef enum sp_paint {
    SP_INK,   /* text */
    SP_MUTED, /* text of second rank, axes */
    SP_GRID,
    SP_PAPER, /* the background */
    SP_RUN,   /* 0 to SP_COLOURS - 1 */
    SP_SHARE, /* parts of a bar, 0 to SP_RUN_TIMES - 1 */
    SP_HEAT   /* 0 to SP_HEATS - 1 */
} sp_paint;

typedef enum sp_drawn_kind {
    SP_LINE, /* through points */
    SP_BOX,
    SP_MARK, /* a symbol around a place; its number selects it */
    SP_LABEL
} sp_drawn_kind;

typedef enum sp_anchor { SP_START, SP_MIDDLE, SP_END } sp_anchor;

typedef struct sp_drawn_shape {
    sp_drawn_kind kind;
    sp_paint paint;
    int number;
    double x, y;  /* of a box, mark or label (its baseline) */
    double w, h;  /* of a box */
    double width; /* of a line; radius of a mark; size of a label's text */
    double alpha; /* 0 to 1 */
    int dash;     /* of a line: 0 solid, else SP_RUN's number + 1 */
    bool bold;
    sp_anchor anchor;
    size_t first, count; /* of a line, in figure->points */
    size_t text;         /* of a label or line: place in figure->texts; what
                            it is of a line is told when it is pointed at */
} sp_drawn_shape;

/* Start as {0} but for the first line's fields. Running out of memory sticks:
 * sp_figure_check() tells. */
typedef struct sp_figure {
    double w, h;
    char id[SP_WORD];     /* the file's name without its ending */
    sp_text title, about; /* about: one sentence for those who cannot see it */
    sp_text shapes;       /* sp_drawn_shape */
    sp_text points;       /* sp_xy */
    sp_text texts;        /* strings with their 0 bytes */
    bool axes;            /* x and y tell values of places */
    const char *x_name;   /* then: "epoch"; a constant */
    sp_scale x, y;
    sp_unit x_unit, y_unit;
} sp_figure;

size_t sp_figure_count(const sp_figure *f);
const sp_drawn_shape *sp_figure_shape(const sp_figure *f, size_t i);
const sp_xy *sp_figure_points(const sp_figure *f, const sp_drawn_shape *s);
const char *sp_figure_text(const sp_figure *f, const sp_drawn_shape *s);
SP_MUST sp_err sp_figure_check(const sp_figure *f);
void sp_figure_free(sp_figure *f);

/* Add shapes. A line's points and a text are copied. */
void sp_draw_line(sp_figure *f, sp_drawn_shape s, const sp_xy *points,
                  size_t count, const char *text);
void sp_draw_straight(sp_figure *f, sp_drawn_shape s, sp_xy from, sp_xy to);
void sp_draw_box(sp_figure *f, sp_drawn_shape s);
void sp_draw_mark(sp_figure *f, sp_drawn_shape s);
void sp_draw_label(sp_figure *f, sp_drawn_shape s, const char *text);

/* About how wide a text is. */
double sp_text_width(const char *text, double size);

/* A text cut to a width, with an ellipsis if anything is missing; its middle is
 * left out, as names of runs differ at their ends. */
const char *sp_text_fit(char *out, size_t room, const char *text, double size,
                        double width);

/* Lengths on and off of dash 1 and so on, 0 behind the last; all 0 of a solid
 * line. */
const double *sp_dash(int dash);

/* Corners of the symbol `number` around (0,0) with radius 1; *count 0: it is a
 * circle. *hollow: it is drawn with the paper's colour inside. */
const sp_xy *sp_symbol(int number, size_t *count, bool *hollow);

#endif
