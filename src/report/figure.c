#include "report/figure.h"

#include <stdio.h>
#include <string.h>

size_t sp_figure_count(const sp_figure *f)
{
    return f->shapes.size / sizeof(sp_drawn_shape);
}

const sp_drawn_shape *sp_figure_shape(const sp_figure *f, size_t i)
{
    return (const sp_drawn_shape *)(const void *)f->shapes.bytes + i;
}

const sp_xy *sp_figure_points(const sp_figure *f, const sp_drawn_shape *s)
{
    return (const sp_xy *)(const void *)f->points.bytes + s->first;
}

const char *sp_figure_text(const sp_figure *f, const sp_drawn_shape *s)
{
    return f->texts.bytes + s->text;
}

sp_err sp_figure_check(const sp_figure *f)
{
    SP_TRY(sp_text_check(&f->title));
    SP_TRY(sp_text_check(&f->about));
    SP_TRY(sp_text_check(&f->shapes));
    SP_TRY(sp_text_check(&f->points));
    return sp_text_check(&f->texts);
}

void sp_figure_free(sp_figure *f)
{
    sp_text_free(&f->title);
    sp_text_free(&f->about);
    sp_text_free(&f->shapes);
    sp_text_free(&f->points);
    sp_text_free(&f->texts);
    *f = (sp_figure){ 0 };
}

static void put(sp_figure *f, sp_drawn_shape s, sp_drawn_kind kind,
                const char *text)
{
    s.kind = kind;
    s.text = f->texts.size;
    sp_text_put(&f->texts, text, strlen(text) + 1);
    if (s.alpha == 0)
        s.alpha = 1;
    sp_text_put(&f->shapes, &s, sizeof s);
}

void sp_draw_line(sp_figure *f, sp_drawn_shape s, const sp_xy *points,
                  size_t count, const char *text)
{
    s.first = f->points.size / sizeof *points;
    s.count = count;
    sp_text_put(&f->points, points, count * sizeof *points);
    put(f, s, SP_LINE, text);
}

void sp_draw_straight(sp_figure *f, sp_drawn_shape s, sp_xy from, sp_xy to)
{
    sp_xy ends[2] = { from, to };

    sp_draw_line(f, s, ends, 2, "");
}

void sp_draw_box(sp_figure *f, sp_drawn_shape s) { put(f, s, SP_BOX, ""); }

void sp_draw_mark(sp_figure *f, sp_drawn_shape s) { put(f, s, SP_MARK, ""); }

void sp_draw_label(sp_figure *f, sp_drawn_shape s, const char *text)
{
    put(f, s, SP_LABEL, text);
}

/* ---- Text --------------------------------------------------------------- */

/* Of common sans-serif fonts, in ems: a little more than their average. */
static double letter_width(const char *c)
{
    if (strchr("iljtf.,:;|!'()[] I", *c))
        return 0.35;
    if (strchr("mwMW%@", *c))
        return 0.92;
    return (*c >= 'A' && *c <= 'Z') ? 0.7 : 0.6;
}

double sp_text_width(const char *text, double size)
{
    double width = 0;

    for (const char *c = text; *c; c++)
        if (((unsigned char)*c & 0xC0) != 0x80)
            width += letter_width(c);
    return width * size;
}

/* Bytes of the first n characters. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t bytes = 0;

    while (text[bytes] && n > 0) {
        bytes++;
        while (((unsigned char)text[bytes] & 0xC0) == 0x80)
            bytes++;
        n--;
    }
    return bytes;
}

static size_t letters(const char *text)
{
    size_t n = 0;

    for (const char *c = text; *c; c++)
        n += ((unsigned char)*c & 0xC0) != 0x80;
    return n;
}

const char *sp_text_fit(char *out, size_t room, const char *text, double size,
                        double width)
{
    size_t all = letters(text), keep = all;

    snprintf(out, room, "%s", text);
    while (keep > 2 &&
           (strlen(out) + 1 >= room || sp_text_width(out, size) > width)) {
        size_t head = keep / 2, tail = --keep - head;
        snprintf(out, room, "%.*s\xe2\x80\xa6%s", (int)bytes_of(text, head),
                 text, text + bytes_of(text, all - tail));
    }
    return out;
}

/* ---- Looks of runs ------------------------------------------------------- */

/* Where colours begin anew, dashes and symbols begin elsewhere. */
static int turned(int run, int by)
{
    return (run + run / SP_COLOURS * by) % SP_COLOURS;
}

const double *sp_dash(int dash)
{
    static const double dashes[SP_COLOURS + 1][SP_DASH + 1] = {
        { 0 },
        { 0 },
        { 7, 3 },
        { 2, 2.2 },
        { 9, 2.5, 2, 2.5 },
        { 13, 3 },
        { 9, 2.5, 2, 2.5, 2, 2.5 },
        { 4, 2 },
        { 1, 3.2 },
        { 14, 2.5, 5, 2.5 },
        { 5, 5 },
    };

    if (dash <= 0)
        return dashes[0];
    return dashes[turned(dash - 1, 3) + 1];
}

const sp_xy *sp_symbol(int number, size_t *count, bool *hollow)
{
    static const sp_xy shapes[][4] = {
        { { 0, 0 } },
        { { -0.85, -0.85 }, { 0.85, -0.85 }, { 0.85, 0.85 }, { -0.85, 0.85 } },
        { { 0, -1.15 }, { 1.05, 0.75 }, { -1.05, 0.75 } },
        { { 0, -1.2 }, { 1.2, 0 }, { 0, 1.2 }, { -1.2, 0 } },
        { { 0, 1.15 }, { -1.05, -0.75 }, { 1.05, -0.75 } },
    };
    static const size_t counts[] = { 0, 4, 3, 4, 3 };
    int kinds = (int)(sizeof counts / sizeof *counts);
    int turn = turned(number, 1), kind = turn % kinds;

    *hollow = turn / kinds == 1;
    *count = counts[kind];
    return shapes[kind];
}
