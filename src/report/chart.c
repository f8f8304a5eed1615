#include "report/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 620,
    HEIGHT = 340,
    LEFT = 58,
    TOP = 62,
    BOTTOM = 44,
    LABEL_ROOM = 168, /* most of the names at the right */
    LABEL_GAP = 13,   /* from one to the next */
    MOST_LABELS = 17,
    MARKS = 6 /* on a curve, beside the one at its end */
};

static const double small = 11, normal = 12.5;

void sp_chart_add(sp_chart *c, const char *name, const char *part, int run,
                  bool bold, sp_xy_list *points)
{
    sp_chart_line line = { name, part, run, bold, *points };

    *points = (sp_xy_list){ 0 };
    sp_text_put(&c->lines, &line, sizeof line);
    if (c->lines.failed)
        sp_xy_list_free(&line.points);
}

size_t sp_chart_count(const sp_chart *c)
{
    return c->lines.size / sizeof(sp_chart_line);
}

const sp_chart_line *sp_chart_line_at(const sp_chart *c, size_t i)
{
    return (const sp_chart_line *)(const void *)c->lines.bytes + i;
}

void sp_chart_free(sp_chart *c)
{
    sp_chart_line *lines = (sp_chart_line *)(void *)c->lines.bytes;

    for (size_t i = 0; i < sp_chart_count(c); i++)
        sp_xy_list_free(&lines[i].points);
    sp_text_free(&c->lines);
}

void sp_chart_head(sp_figure *f, const char *id, const char *title,
                   const char *note)
{
    snprintf(f->id, sizeof f->id, "%s", id);
    sp_text_add(&f->title, "%s", title);
    sp_draw_label(
        f,
        (sp_drawn_shape){
            .paint = SP_INK, .x = 4, .y = 19, .width = 15, .bold = true },
        title);
    sp_draw_label(
        f,
        (sp_drawn_shape){ .paint = SP_MUTED, .x = 4, .y = 37, .width = normal },
        note);
}

/* ---- Extent ---------------------------------------------------------------
 */

/* What all curves span; `missing` values are not finite. */
typedef struct extent {
    double x_least, x_most, least, most;
    size_t missing;
    bool any;
} extent;

static void stretch(extent *e, const sp_xy_list *p)
{
    const sp_xy *at = sp_xy_list_at(p);

    for (size_t i = 0; i < sp_xy_list_count(p); i++) {
        if (!isfinite(at[i].y) || !isfinite(at[i].x)) {
            e->missing++;
            continue;
        }
        e->least = e->any ? fmin(e->least, at[i].y) : at[i].y;
        e->most = e->any ? fmax(e->most, at[i].y) : at[i].y;
        e->x_least = e->any ? fmin(e->x_least, at[i].x) : at[i].x;
        e->x_most = e->any ? fmax(e->x_most, at[i].x) : at[i].x;
        e->any = true;
    }
}

/* ---- One curve ------------------------------------------------------------
 */

static const sp_xy *last_point(const sp_chart_line *l)
{
    const sp_xy *at = sp_xy_list_at(&l->points);

    for (size_t i = sp_xy_list_count(&l->points); i-- > 0;)
        if (isfinite(at[i].y))
            return &at[i];
    return NULL;
}

static sp_xy place(const sp_figure *f, sp_xy value)
{
    return (sp_xy){ sp_scale_place(&f->x, value.x),
                    sp_scale_place(&f->y, value.y) };
}

/* Runs of finite points, each one line; a single point gets a dot. */
static void draw_pieces(const sp_chart_line *l, const sp_xy_list *thin,
                        sp_figure *f)
{
    const sp_xy *at = sp_xy_list_at(thin);
    size_t count = sp_xy_list_count(thin);
    sp_drawn_shape look = { .paint = SP_RUN,
                            .number = l->run,
                            .width = l->bold ? 2.2 : 1,
                            .alpha = l->bold ? 1 : 0.6,
                            .dash = l->run + 1 };
    sp_xy_list piece = { 0 };
    char what[160];

    snprintf(what, sizeof what, "%.100s%s%.40s", l->name, *l->part ? " " : "",
             l->part);
    for (size_t i = 0; i <= count; i++) {
        if (i < count && isfinite(at[i].y)) {
            sp_xy p = place(f, at[i]);
            sp_xy_list_add(&piece, p.x, p.y);
        } else if (sp_xy_list_count(&piece) > 0) {
            sp_draw_line(f, look, sp_xy_list_at(&piece),
                         sp_xy_list_count(&piece), what);
            f->points.failed |= piece.bytes.failed;
            sp_xy_list_free(&piece);
        }
    }
    f->points.failed |= piece.bytes.failed;
    sp_xy_list_free(&piece);
}

static void draw_mark(const sp_chart_line *l, sp_xy value, sp_figure *f)
{
    sp_xy p = place(f, value);

    sp_draw_mark(f, (sp_drawn_shape){ .paint = SP_RUN,
                                      .number = l->run,
                                      .x = p.x,
                                      .y = p.y,
                                      .width = 3.7 });
}

/* A few marks, each curve's at places of its own, and one at the end. */
static void draw_marks(const sp_chart_line *l, sp_figure *f)
{
    const sp_xy *at = sp_xy_list_at(&l->points), *last = last_point(l);
    size_t count = sp_xy_list_count(&l->points), next = 0;
    double span = f->x.max - f->x.min;

    for (size_t i = 0; i < count && next < MARKS; i++) {
        double shift = 0.3 + l->run * 7 % 10 * 0.07;
        double due = f->x.min + span * ((double)next + shift) / MARKS;
        if (at[i].x < due || !isfinite(at[i].y))
            continue;
        if (last->x - at[i].x > span / MARKS / 4)
            draw_mark(l, at[i], f);
        while (next < MARKS &&
               f->x.min + span * ((double)next + shift) / MARKS <= at[i].x)
            next++;
    }
    draw_mark(l, *last, f);
}

static sp_err draw_curve(const sp_chart_line *l, sp_figure *f)
{
    double column = (f->x.max - f->x.min) / (f->x.to - f->x.from) * 1.5;
    sp_xy_list thin = { 0 };
    sp_err e;

    sp_thin(&l->points, column, &thin);
    e = sp_text_check(&thin.bytes);
    if (e == SP_OK)
        draw_pieces(l, &thin, f);
    if (e == SP_OK && l->bold && last_point(l))
        draw_marks(l, f);
    sp_xy_list_free(&thin);
    return e;
}

/* ---- Names at the ends ----------------------------------------------------
 */

typedef struct end_label {
    const sp_chart_line *line;
    sp_xy end; /* place of the curve's end */
    double y;  /* where its name stands */
    char text[64 + 2 + SP_WORD];
} end_label;

static int by_height(const void *a, const void *b)
{
    const end_label *x = a, *y = b;

    return x->end.y != y->end.y ? (x->end.y > y->end.y) - (x->end.y < y->end.y)
                                : (x->line > y->line) - (x->line < y->line);
}

/* Bold curves that have an end; none when there are more than can be told
 * apart. */
static size_t collect(const sp_chart *c, end_label *labels)
{
    size_t count = 0;

    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_chart_line *l = sp_chart_line_at(c, i);
        const sp_xy *last = last_point(l);
        char value[SP_WORD], name[64];
        if (!l->bold || !last)
            continue;
        if (count == MOST_LABELS)
            return 0;
        sp_show(value, last->y, c->unit);
        sp_text_fit(name, sizeof name, l->name, small,
                    LABEL_ROOM - 22 - sp_text_width(value, small));
        snprintf(labels[count].text, sizeof labels[count].text, "%s  %s", name,
                 value);
        labels[count++].line = l;
    }
    return count;
}

/* Push names apart, downwards first, then back into the chart. */
static void spread(end_label *labels, size_t count, double top, double bottom)
{
    qsort(labels, count, sizeof *labels, by_height);
    for (size_t i = 0; i < count; i++) {
        labels[i].y = fmax(labels[i].end.y, top);
        if (i > 0)
            labels[i].y = fmax(labels[i].y, labels[i - 1].y + LABEL_GAP);
    }
    for (size_t i = count; i-- > 0;) {
        double most = i + 1 == count ? bottom : labels[i + 1].y - LABEL_GAP;
        labels[i].y = fmin(labels[i].y, most);
    }
}

/* From a curve's end to its name: level through the chart, so that it cannot be
 * taken for a curve. */
static void draw_leader(const end_label *l, sp_figure *f)
{
    sp_drawn_shape look = { .paint = SP_MUTED, .width = 0.8, .alpha = 0.8 };
    sp_xy edge = { f->x.to + 2, l->end.y };

    if (f->x.to - l->end.x > 8)
        sp_draw_straight(f, look, (sp_xy){ l->end.x + 6, l->end.y }, edge);
    if (f->x.to - l->end.x > 8 || fabs(l->y - l->end.y) > 2) {
        edge.x = fmax(edge.x, l->end.x + 5);
        sp_draw_straight(f, look, edge, (sp_xy){ f->x.to + 10, l->y });
    }
}

/* Single points are found by their marks. */
static void draw_labels(end_label *labels, size_t count, bool curves,
                        sp_figure *f)
{
    for (size_t i = 0; i < count; i++)
        labels[i].end = place(f, *last_point(labels[i].line));
    spread(labels, count, f->y.to, f->y.from);
    for (size_t i = 0; i < count; i++) {
        const end_label *l = &labels[i];
        sp_drawn_shape look = { .paint = SP_RUN, .number = l->line->run };
        if (curves)
            draw_leader(l, f);
        look.x = f->x.to + 16;
        look.y = l->y;
        look.width = 3.2;
        sp_draw_mark(f, look);
        look.x += 8;
        look.y += 3.8;
        look.width = small;
        sp_draw_label(f, look, l->text);
    }
}

/* ---- The chart ------------------------------------------------------------
 */

static void draw_y_axis(sp_figure *f, sp_unit unit)
{
    char word[SP_WORD];

    for (int i = 0; i < f->y.ticks; i++) {
        double y = sp_scale_place(&f->y, f->y.tick[i]);
        sp_draw_straight(f, (sp_drawn_shape){ .paint = SP_GRID, .width = 1 },
                         (sp_xy){ f->x.from, y }, (sp_xy){ f->x.to, y });
        sp_draw_label(f,
                      (sp_drawn_shape){ .paint = SP_MUTED,
                                        .x = f->x.from - 8,
                                        .y = y + 4,
                                        .width = small,
                                        .anchor = SP_END },
                      sp_show_tick(word, &f->y, i, unit));
    }
}

static void draw_x_axis(sp_figure *f, const sp_chart *c)
{
    double y = f->y.from;
    char word[SP_WORD];

    sp_draw_straight(f, (sp_drawn_shape){ .paint = SP_MUTED, .width = 1 },
                     (sp_xy){ f->x.from, y }, (sp_xy){ f->x.to, y });
    for (int i = 0; i < f->x.ticks; i++) {
        double x = sp_scale_place(&f->x, f->x.tick[i]);
        sp_draw_straight(f, (sp_drawn_shape){ .paint = SP_MUTED, .width = 1 },
                         (sp_xy){ x, y }, (sp_xy){ x, y + 4 });
        sp_draw_label(f,
                      (sp_drawn_shape){ .paint = SP_MUTED,
                                        .x = x,
                                        .y = y + 17,
                                        .width = small,
                                        .anchor = SP_MIDDLE },
                      sp_show_tick(word, &f->x, i, c->x_unit));
    }
    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_MUTED,
                                    .x = (f->x.from + f->x.to) / 2,
                                    .y = y + 34,
                                    .width = small,
                                    .anchor = SP_MIDDLE },
                  c->x_name);
}

static void set_scales(sp_figure *f, const sp_chart *c, const extent *e,
                       double room)
{
    double lack = fmax(0, c->span - (e->most - e->least));

    f->axes = true;
    f->x_name = c->x_name;
    f->x_unit = c->x_unit;
    f->y_unit = c->unit;
    sp_scale_set(&f->y, e->least - lack / 2, e->most + lack / 2, 5, c->zero);
    if (c->from_zero)
        sp_scale_set_exact(&f->x, 0, e->x_most > 0 ? e->x_most : 1, 7);
    else
        sp_scale_set(&f->x, e->x_least, e->x_most, 7, false);
    f->x.from = LEFT;
    f->x.to = WIDTH - room;
    f->y.from = HEIGHT - BOTTOM;
    f->y.to = TOP;
}

static void describe(sp_figure *f, const sp_chart *c, const extent *e)
{
    char word[SP_WORD];
    bool first = true;

    sp_text_add(&f->about, "%s, over %s.", c->note, c->x_name);
    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_chart_line *l = sp_chart_line_at(c, i);
        const sp_xy *last = last_point(l);
        if (!l->bold || !last)
            continue;
        sp_text_add(&f->about, "%s %s %s", first ? " At the end:" : ",",
                    l->name, sp_show(word, last->y, c->unit));
        first = false;
    }
    if (!first)
        sp_text_add(&f->about, ".");
    if (e->missing > 0)
        sp_draw_label(
            f,
            (sp_drawn_shape){
                .paint = SP_MUTED, .x = LEFT, .y = TOP - 8, .width = small },
            "values that are not finite are left out");
}

static double label_room(const end_label *labels, size_t count)
{
    double room = 84; /* so that charts beside each other look alike */

    for (size_t i = 0; i < count; i++)
        room = fmax(room, sp_text_width(labels[i].text, small));
    return fmin(room, LABEL_ROOM) + 29;
}

sp_err sp_chart_draw(const sp_chart *c, sp_figure *f)
{
    end_label labels[MOST_LABELS];
    extent e = { 0 };
    size_t count;

    SP_TRY(sp_text_check(&c->lines));
    f->w = WIDTH;
    f->h = HEIGHT;
    sp_chart_head(f, c->id, c->title, c->note);
    for (size_t i = 0; i < sp_chart_count(c); i++)
        stretch(&e, &sp_chart_line_at(c, i)->points);
    count = collect(c, labels);
    set_scales(f, c, &e, label_room(labels, count));
    describe(f, c, &e);
    draw_y_axis(f, c->unit);
    draw_x_axis(f, c);
    /* Bold curves on top of the thin ones. */
    for (int bold = 0; bold < 2; bold++)
        for (size_t i = 0; i < sp_chart_count(c); i++)
            if (sp_chart_line_at(c, i)->bold == (bold == 1))
                SP_TRY(draw_curve(sp_chart_line_at(c, i), f));
    draw_labels(labels, count, c->from_zero, f);
    return sp_figure_check(f);
}
