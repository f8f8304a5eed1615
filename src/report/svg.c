#include "report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/palette.h"

void sp_escape(sp_text *out, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t n = sp_utf8(text, left);
        unsigned char c = (unsigned char)*text;
        if (n == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            sp_text_put(out, "\xef\xbf\xbd", 3);
        else if (c == '<')
            sp_text_put(out, "&lt;", 4);
        else if (c == '>')
            sp_text_put(out, "&gt;", 4);
        else if (c == '&')
            sp_text_put(out, "&amp;", 5);
        else if (c == '"')
            sp_text_put(out, "&quot;", 6);
        else if (c == '\'')
            sp_text_put(out, "&#39;", 5);
        else
            sp_text_put(out, text, n);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

/* A place with one digit behind the point, and no more than needed. */
static void put_place(sp_text *out, double x)
{
    long tenths = lround(fmax(-1e6, fmin(1e6, x)) * 10);

    if (tenths % 10 == 0)
        sp_text_add(out, "%ld", tenths / 10);
    else
        sp_text_add(out, "%s%ld.%ld", tenths < 0 ? "-" : "", labs(tenths) / 10,
                    labs(tenths) % 10);
}

static void put_attribute(sp_text *out, const char *name, double x)
{
    sp_text_add(out, " %s=\"", name);
    put_place(out, x);
    sp_text_put(out, "\"", 1);
}

/* The class of a paint as filling ('f') or stroke ('s'). */
static void put_paint(sp_text *out, char use, sp_paint paint, int number)
{
    static const char letters[] = { 'i', 'm', 'g', 'b', 'r', 'p', 'h' };
    static const int counts[] = {
        0, 0, 0, 0, SP_COLOURS, SP_RUN_TIMES, SP_HEATS
    };

    sp_text_add(out, "%c%c", use, letters[paint]);
    if (counts[paint] > 0)
        sp_text_add(out, "%d", number % counts[paint]);
}

static void put_alpha(sp_text *out, const sp_drawn_shape *s)
{
    if (s->alpha < 1)
        sp_text_add(out, " opacity=\"%.2g\"", s->alpha);
}

static void put_line(sp_text *out, const sp_figure *f, const sp_drawn_shape *s)
{
    const sp_xy *at = sp_figure_points(f, s);
    const double *dash = sp_dash(s->dash);
    const char *text = sp_figure_text(f, s);

    sp_text_add(out, "<polyline class=\"l ");
    put_paint(out, 's', s->paint, s->number);
    sp_text_put(out, "\"", 1);
    put_attribute(out, "stroke-width", s->width);
    put_alpha(out, s);
    for (int i = 0; dash[i] > 0; i++)
        sp_text_add(out, "%s%g", i ? " " : " stroke-dasharray=\"", dash[i]);
    if (dash[0] > 0)
        sp_text_put(out, "\"", 1);
    if (s->count == 1)
        sp_text_add(out, " stroke-linecap=\"round\"");
    if (*text) {
        sp_text_add(out, " data-n=\"");
        sp_escape(out, text);
        sp_text_put(out, "\"", 1);
    }
    sp_text_add(out, " points=\"");
    for (size_t i = 0; i < s->count; i++) {
        if (i > 0)
            sp_text_put(out, " ", 1);
        put_place(out, at[i].x);
        sp_text_put(out, ",", 1);
        put_place(out, at[i].y);
    }
    /* A line of one point is a dot. */
    if (s->count == 1) {
        sp_text_put(out, " ", 1);
        put_place(out, at[0].x + 0.1);
        sp_text_put(out, ",", 1);
        put_place(out, at[0].y);
    }
    sp_text_add(out, "\"/>\n");
}

static void put_mark(sp_text *out, const sp_drawn_shape *s)
{
    size_t count;
    bool hollow;
    const sp_xy *corner = sp_symbol(s->number, &count, &hollow);

    sp_text_add(out, count ? "<polygon class=\"" : "<circle class=\"");
    if (hollow)
        put_paint(out, 'f', SP_PAPER, 0);
    else
        put_paint(out, 'f', s->paint, s->number);
    sp_text_put(out, " ", 1);
    put_paint(out, 's', hollow ? s->paint : SP_PAPER, s->number);
    sp_text_add(out, "\"");
    put_attribute(out, "stroke-width", hollow ? 1.5 : 0.8);
    if (count == 0) {
        put_attribute(out, "cx", s->x);
        put_attribute(out, "cy", s->y);
        put_attribute(out, "r", s->width);
    } else {
        sp_text_add(out, " points=\"");
        for (size_t i = 0; i < count; i++) {
            put_place(out, s->x + corner[i].x * s->width);
            sp_text_put(out, ",", 1);
            put_place(out, s->y + corner[i].y * s->width);
            sp_text_put(out, i + 1 < count ? " " : "\"", 1);
        }
    }
    sp_text_add(out, "/>\n");
}

static void put_label(sp_text *out, const sp_figure *f, const sp_drawn_shape *s)
{
    static const char *const anchors[] = { "", " tm", " te" };

    sp_text_add(out, "<text class=\"");
    put_paint(out, 'f', s->paint, s->number);
    sp_text_add(out, "%s%s\"", s->bold ? " tb" : "", anchors[s->anchor]);
    put_attribute(out, "x", s->x);
    put_attribute(out, "y", s->y);
    put_attribute(out, "font-size", s->width);
    put_alpha(out, s);
    sp_text_put(out, ">", 1);
    sp_escape(out, sp_figure_text(f, s));
    sp_text_add(out, "</text>\n");
}

/* Boxes of one paint that follow each other are one path. */
static size_t put_boxes(sp_text *out, const sp_figure *f, size_t first)
{
    const sp_drawn_shape *s = sp_figure_shape(f, first);
    size_t i = first;

    sp_text_add(out, "<path class=\"");
    put_paint(out, 'f', s->paint, s->number);
    sp_text_add(out, "\" d=\"");
    for (; i < sp_figure_count(f); i++) {
        const sp_drawn_shape *t = sp_figure_shape(f, i);
        if (t->kind != SP_BOX || t->paint != s->paint || t->number != s->number)
            break;
        sp_text_put(out, "M", 1);
        put_place(out, t->x);
        sp_text_put(out, " ", 1);
        put_place(out, t->y);
        sp_text_put(out, "h", 1);
        put_place(out, t->w);
        sp_text_put(out, "v", 1);
        put_place(out, t->h);
        sp_text_put(out, "h", 1);
        put_place(out, -t->w);
        sp_text_put(out, "z", 1);
    }
    sp_text_add(out, "\"/>\n");
    return i;
}

/* What a script needs to tell values from places. */
static void put_axes(sp_text *out, const sp_figure *f)
{
    const sp_scale *x = &f->x, *y = &f->y;

    if (!f->axes)
        return;
    sp_text_add(out, " data-name=\"%s\"", f->x_name);
    sp_text_add(
        out,
        " data-x=\"%g %g %.9g %.9g %d %d\" data-y=\"%g %g %.9g %.9g %d %d\"",
        x->from, x->to, x->min, x->max, x->log ? 1 : 0, (int)f->x_unit, y->from,
        y->to, y->min, y->max, y->log ? 1 : 0, (int)f->y_unit);
}

static void put_shapes(sp_text *out, const sp_figure *f)
{
    for (size_t i = 0; i < sp_figure_count(f);) {
        const sp_drawn_shape *s = sp_figure_shape(f, i);
        if (s->kind == SP_BOX) {
            i = put_boxes(out, f, i);
            continue;
        }
        if (s->kind == SP_LINE)
            put_line(out, f, s);
        else if (s->kind == SP_MARK)
            put_mark(out, s);
        else
            put_label(out, f, s);
        i++;
    }
}

static void put_svg(sp_text *out, const sp_figure *f, const char *attributes)
{
    sp_text_add(out, "<svg%s viewBox=\"0 0 ", attributes);
    put_place(out, f->w);
    sp_text_put(out, " ", 1);
    put_place(out, f->h);
    sp_text_add(out, "\" role=\"img\" aria-labelledby=\"%s-t %s-d\"", f->id,
                f->id);
    put_axes(out, f);
    sp_text_add(out, ">\n<title id=\"%s-t\">", f->id);
    sp_escape(out, sp_text_string(&f->title));
    sp_text_add(out, "</title><desc id=\"%s-d\">", f->id);
    sp_escape(out, sp_text_string(&f->about));
    sp_text_add(out, "</desc>\n");
}

void sp_svg_put(sp_text *out, const sp_figure *f)
{
    put_svg(out, f, " class=\"chart\"");
    put_shapes(out, f);
    sp_text_add(out, "</svg>\n");
}

void sp_svg_put_file(sp_text *out, const sp_figure *f)
{
    sp_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    put_svg(out, f, " xmlns=\"http://www.w3.org/2000/svg\"");
    sp_text_add(out, "<style>svg{");
    sp_palette_css(out, &sp_palette_light);
    sp_text_add(out, "}@media (prefers-color-scheme:dark){svg{");
    sp_palette_css(out, &sp_palette_dark);
    sp_text_add(out, "}}");
    sp_palette_rules(out);
    sp_text_add(out, "</style>\n<rect class=\"fb\" width=\"100%%\" "
                     "height=\"100%%\"/>\n");
    put_shapes(out, f);
    sp_text_add(out, "</svg>\n");
}

void sp_svg_put_sign(sp_text *out, int run)
{
    sp_figure f = { 0 };
    sp_drawn_shape s = {
        .paint = SP_RUN, .number = run, .width = 2.2, .dash = run + 1
    };

    sp_draw_straight(&f, s, (sp_xy){ 1, 6 }, (sp_xy){ 35, 6 });
    s.x = 18;
    s.y = 6;
    s.width = 3.7;
    sp_draw_mark(&f, s);
    sp_text_add(out, "<svg class=\"sign\" viewBox=\"0 0 36 12\" "
                     "aria-hidden=\"true\">");
    out->failed |= sp_figure_check(&f) != SP_OK;
    if (!out->failed)
        put_shapes(out, &f);
    sp_text_add(out, "</svg>");
    sp_figure_free(&f);
}
