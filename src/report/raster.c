/* Each shape is drawn as how much of every pixel it covers, and then blended
 * once: where parts of a line overlap, it is no darker. */
#include "report/raster.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/font.h"
#include "report/palette.h"

/* A drawing under way; places are in pixels. */
typedef struct canvas {
    sp_raster *to;
    float *cover;       /* of the present shape, 0 to 1 */
    int x0, y0, x1, y1; /* what of `cover` is not 0; empty: x1 <= x0 */
} canvas;

/* Note that a shape touches a rectangle; gives it cut to the picture. */
static void touch(canvas *c, double x0, double y0, double x1, double y1,
                  int box[4])
{
    box[0] = (int)fmax(0, floor(fmin(x0, c->to->w)));
    box[1] = (int)fmax(0, floor(fmin(y0, c->to->h)));
    box[2] = (int)fmin(c->to->w, ceil(fmax(x1, 0)));
    box[3] = (int)fmin(c->to->h, ceil(fmax(y1, 0)));
    if (box[2] <= box[0] || box[3] <= box[1])
        return;
    c->x0 = c->x1 > c->x0 && c->x0 < box[0] ? c->x0 : box[0];
    c->y0 = c->y1 > c->y0 && c->y0 < box[1] ? c->y0 : box[1];
    c->x1 = c->x1 > box[2] ? c->x1 : box[2];
    c->y1 = c->y1 > box[3] ? c->y1 : box[3];
}

static void cover(canvas *c, int x, int y, double share)
{
    float *at = &c->cover[(size_t)y * (size_t)c->to->w + (size_t)x];

    if (share > *at)
        *at = (float)fmin(share, 1);
}

/* Put the shape's colour where it covers, and forget it. */
static void blend(canvas *c, const sp_palette *p, sp_paint paint, int number,
                  double alpha)
{
    uint32_t colour = sp_palette_colour(p, paint, number);

    for (int y = c->y0; y < c->y1; y++)
        for (int x = c->x0; x < c->x1; x++) {
            size_t at = (size_t)y * (size_t)c->to->w + (size_t)x;
            double share = c->cover[at] * alpha;
            for (int k = 0; k < 3 && share > 0; k++) {
                uint8_t *byte = &c->to->rgb[3 * at + (size_t)k];
                double into = colour >> (16 - 8 * k) & 0xff;
                *byte = (uint8_t)lround(*byte + (into - *byte) * share);
            }
            c->cover[at] = 0;
        }
    c->x0 = c->y0 = c->x1 = c->y1 = 0;
}

/* ---- Shapes ------------------------------------------------------------- */

/* All within `radius` of the straight line from a to b. */
static void cover_segment(canvas *c, sp_xy a, sp_xy b, double radius)
{
    double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    double room = radius + 1;
    int box[4];

    touch(c, fmin(a.x, b.x) - room, fmin(a.y, b.y) - room,
          fmax(a.x, b.x) + room, fmax(a.y, b.y) + room, box);
    for (int y = box[1]; y < box[3]; y++)
        for (int x = box[0]; x < box[2]; x++) {
            double px = x + 0.5 - a.x, py = y + 0.5 - a.y, t = 0;
            if (length2 > 0)
                t = fmin(1, fmax(0, (px * dx + py * dy) / length2));
            cover(c, x, y,
                  fmin(1, radius + 0.5 - hypot(px - t * dx, py - t * dy)));
        }
}

/* A convex outline, its corners clockwise. */
static void cover_outline(canvas *c, const sp_xy *corner, size_t count)
{
    double x0 = corner[0].x, x1 = x0, y0 = corner[0].y, y1 = y0;
    int box[4];

    for (size_t i = 1; i < count; i++) {
        x0 = fmin(x0, corner[i].x);
        x1 = fmax(x1, corner[i].x);
        y0 = fmin(y0, corner[i].y);
        y1 = fmax(y1, corner[i].y);
    }
    touch(c, x0 - 1, y0 - 1, x1 + 1, y1 + 1, box);
    for (int y = box[1]; y < box[3]; y++)
        for (int x = box[0]; x < box[2]; x++) {
            double inside = 1;
            for (size_t i = 0; i < count; i++) {
                sp_xy a = corner[i], b = corner[(i + 1) % count];
                double dx = b.x - a.x, dy = b.y - a.y;
                double depth = (dx * (y + 0.5 - a.y) - dy * (x + 0.5 - a.x)) /
                               fmax(hypot(dx, dy), 1e-9);
                inside = fmin(inside, depth + 0.5);
            }
            cover(c, x, y, inside);
        }
}

static void cover_box(canvas *c, double x, double y, double w, double h)
{
    int box[4];

    touch(c, x, y, x + w, y + h, box);
    for (int py = box[1]; py < box[3]; py++)
        for (int px = box[0]; px < box[2]; px++)
            cover(c, px, py,
                  fmax(0, fmin(px + 1, x + w) - fmax(px, x)) *
                      fmax(0, fmin(py + 1, y + h) - fmax(py, y)));
}

/* Where in its dashes a line is. */
typedef struct dasher {
    const double *dash; /* in points */
    int at;             /* the present length, even: drawn */
    double left;        /* of it, in pixels */
} dasher;

static void cover_dashed(canvas *c, dasher *d, sp_xy a, sp_xy b, double radius)
{
    double length = hypot(b.x - a.x, b.y - a.y), done = 0;

    if (d->dash[0] == 0 || length == 0) {
        cover_segment(c, a, b, radius);
        return;
    }
    while (done < length) {
        double step = fmin(d->left, length - done);
        double from = done / length, to = (done + step) / length;
        if (d->at % 2 == 0)
            cover_segment(
                c,
                (sp_xy){ a.x + from * (b.x - a.x), a.y + from * (b.y - a.y) },
                (sp_xy){ a.x + to * (b.x - a.x), a.y + to * (b.y - a.y) },
                radius);
        done += step;
        d->left -= step;
        if (d->left <= 1e-9) {
            d->at = d->dash[d->at + 1] > 0 ? d->at + 1 : 0;
            d->left = d->dash[d->at] * SP_RASTER_SCALE;
        }
    }
}

static sp_xy scaled(sp_xy p)
{
    return (sp_xy){ p.x * SP_RASTER_SCALE, p.y * SP_RASTER_SCALE };
}

static void draw_line(canvas *c, const sp_figure *f, const sp_drawn_shape *s)
{
    const sp_xy *at = sp_figure_points(f, s);
    dasher d = { .dash = sp_dash(s->dash) };
    double radius = s->width * SP_RASTER_SCALE / 2;

    d.left = d.dash[0] * SP_RASTER_SCALE;
    for (size_t i = 0; i + 1 < s->count; i++)
        cover_dashed(c, &d, scaled(at[i]), scaled(at[i + 1]), radius);
    if (s->count == 1)
        cover_segment(c, scaled(at[0]), scaled(at[0]), radius);
}

static void cover_symbol(canvas *c, const sp_drawn_shape *s, double radius)
{
    sp_xy corners[8], centre = scaled((sp_xy){ s->x, s->y });
    size_t count;
    bool hollow;
    const sp_xy *corner = sp_symbol(s->number, &count, &hollow);

    radius *= SP_RASTER_SCALE;
    if (count == 0) {
        cover_segment(c, centre, centre, radius);
        return;
    }
    for (size_t i = 0; i < count; i++)
        corners[i] = (sp_xy){ centre.x + corner[i].x * radius,
                              centre.y + corner[i].y * radius };
    /* Clockwise, as the outline wants them. */
    if ((corners[1].x - corners[0].x) * (corners[2].y - corners[1].y) -
            (corners[1].y - corners[0].y) * (corners[2].x - corners[1].x) <
        0)
        for (size_t i = 0; i < count / 2; i++) {
            sp_xy keep = corners[i];
            corners[i] = corners[count - 1 - i];
            corners[count - 1 - i] = keep;
        }
    cover_outline(c, corners, count);
}

/* A rim in the paper's colour, the symbol, and a hole in some. */
static void draw_mark(canvas *c, const sp_palette *p, const sp_drawn_shape *s)
{
    size_t count;
    bool hollow;

    sp_symbol(s->number, &count, &hollow);
    cover_symbol(c, s, s->width + 0.6);
    blend(c, p, SP_PAPER, 0, 1);
    cover_symbol(c, s, s->width);
    blend(c, p, s->paint, s->number, s->alpha);
    if (hollow) {
        cover_symbol(c, s, s->width - 1.3);
        blend(c, p, SP_PAPER, 0, 1);
    }
}

/* ---- Text --------------------------------------------------------------- */

static sp_xy pen(const char *pair, double x, double y, double unit)
{
    return (sp_xy){ x + (pair[0] - '0') * unit, y + (pair[1] - '6') * unit };
}

static void cover_glyph(canvas *c, const sp_glyph *g, double x, double y,
                        double unit, double radius)
{
    const char *at = g->strokes;

    x -= g->left * unit;
    while (*at) {
        sp_xy from = pen(at, x, y, unit);
        cover_segment(c, from, from, radius);
        for (at += 2; *at && *at != ','; at += 2) {
            sp_xy to = pen(at, x, y, unit);
            cover_segment(c, from, to, radius);
            from = to;
        }
        at += *at == ',';
    }
}

static void draw_label(canvas *c, const sp_figure *f, const sp_drawn_shape *s)
{
    const char *text = sp_figure_text(f, s);
    double unit = s->width * SP_RASTER_SCALE * SP_FONT_UNIT;
    double radius = unit * (s->bold ? 0.62 : 0.42);
    double x = s->x * SP_RASTER_SCALE, y = s->y * SP_RASTER_SCALE;
    size_t bytes;

    x -= sp_font_width(text) * unit *
         (s->anchor == SP_END      ? 1
          : s->anchor == SP_MIDDLE ? 0.5
                                   : 0);
    for (; *text; text += bytes) {
        sp_glyph g = sp_font_glyph(text, &bytes);
        cover_glyph(c, &g, x, y, unit, radius);
        x += sp_font_advance(&g) * unit;
    }
}

/* ---- Pictures ------------------------------------------------------------ */

static void draw_shape(canvas *c, const sp_palette *p, const sp_figure *f,
                       const sp_drawn_shape *s)
{
    switch (s->kind) {
    case SP_LINE:
        draw_line(c, f, s);
        break;
    case SP_BOX:
        cover_box(c, s->x * SP_RASTER_SCALE, s->y * SP_RASTER_SCALE,
                  s->w * SP_RASTER_SCALE, s->h * SP_RASTER_SCALE);
        break;
    case SP_MARK:
        draw_mark(c, p, s);
        return;
    case SP_LABEL:
        draw_label(c, f, s);
        break;
    }
    blend(c, p, s->paint, s->number, s->alpha);
}

sp_err sp_raster_draw(sp_raster *r, const sp_figure *f)
{
    const sp_palette *p = &sp_palette_light;
    canvas c = { .to = r };
    size_t pixels;

    SP_TRY(sp_figure_check(f));
    r->w = (int)ceil(f->w * SP_RASTER_SCALE);
    r->h = (int)ceil(f->h * SP_RASTER_SCALE);
    pixels = (size_t)r->w * (size_t)r->h;
    r->rgb = malloc(3 * pixels);
    c.cover = calloc(pixels, sizeof *c.cover);
    if (!r->rgb || !c.cover) {
        free(r->rgb);
        r->rgb = NULL;
        free(c.cover);
        return sp_fail(SP_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < pixels; i++)
        for (int k = 0; k < 3; k++)
            r->rgb[3 * i + (size_t)k] = (uint8_t)(p->paper >> (16 - 8 * k));
    for (size_t i = 0; i < sp_figure_count(f); i++)
        draw_shape(&c, p, f, sp_figure_shape(f, i));
    free(c.cover);
    return SP_OK;
}

sp_err sp_raster_write(const sp_raster *r, const char *path)
{
    png_image image = { .version = PNG_IMAGE_VERSION,
                        .width = (png_uint_32)r->w,
                        .height = (png_uint_32)r->h,
                        .format = PNG_FORMAT_RGB };
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *bytes = malloc(size);
    sp_err e;

    if (!bytes)
        return sp_fail(SP_ENOMEM, "out of memory");
    if (png_image_write_to_memory(&image, bytes, &size, 0, r->rgb, 0, NULL))
        e = sp_file_write_synced(path, bytes, size);
    else
        e = sp_fail(SP_EIO, "cannot write %s: %s", path, image.message);
    png_image_free(&image);
    free(bytes);
    return e;
}
