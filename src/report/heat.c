/* Maps of heat with their legend. */
#include <math.h>
#include <stdio.h>

#include "report/chart.h"

enum { WIDTH = 620, TOP = 78, NAMES = 168, RIGHT = 8, ROW = 13, BOTTOM = 36 };

static const double small = 10.5;

/* The least and greatest value above 0. */
static void find_range(const sp_heat *h, double *least, double *most)
{
    *least = INFINITY;
    *most = 0;
    for (size_t i = 0; i < h->row_count * h->column_count; i++) {
        double v = h->value[i];
        if (!(v > 0) || !isfinite(v))
            continue;
        *least = fmin(*least, v);
        *most = fmax(*most, v);
    }
}

/* The step of a value, -1 for one that is not known. */
static int level_of(double v, double least, double most)
{
    int level;

    if (isnan(v))
        return -1;
    if (!(v > least))
        return 0;
    if (v >= most)
        return SP_HEATS - 1;
    level = (int)(log(v / least) / log(most / least) * SP_HEATS);
    return level < SP_HEATS ? level : SP_HEATS - 1;
}

/* All cells of one step, equal neighbours in a row as one box. */
static void draw_level(const sp_heat *h, int level, double least, double most,
                       sp_figure *f)
{
    double w = (double)(WIDTH - NAMES - RIGHT) / (double)h->column_count;

    for (size_t r = 0; r < h->row_count; r++) {
        const double *row = h->value + r * h->column_count;
        for (size_t c = 0, to; c < h->column_count; c = to) {
            to = c + 1;
            if (level_of(row[c], least, most) != level)
                continue;
            while (to < h->column_count &&
                   level_of(row[to], least, most) == level)
                to++;
            sp_draw_box(f, (sp_drawn_shape){ .paint = SP_HEAT,
                                             .number = level,
                                             .x = NAMES + w * (double)c,
                                             .y = TOP + ROW * (double)r,
                                             .w = w * (double)(to - c),
                                             .h = ROW - 1 });
        }
    }
}

static void draw_legend(double least, double most, sp_figure *f)
{
    char word[SP_WORD];

    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_MUTED,
                                    .x = NAMES - 6,
                                    .y = 61,
                                    .width = small,
                                    .anchor = SP_END },
                  sp_show(word, least, SP_PLAIN));
    for (int i = 0; i < SP_HEATS; i++)
        sp_draw_box(f, (sp_drawn_shape){ .paint = SP_HEAT,
                                         .number = i,
                                         .x = NAMES + 18.0 * i,
                                         .y = 51,
                                         .w = 18,
                                         .h = 12 });
    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_MUTED,
                                    .x = NAMES + 18.0 * SP_HEATS + 6,
                                    .y = 61,
                                    .width = small },
                  sp_show(word, most, SP_PLAIN));
}

static void draw_names(const sp_heat *h, sp_figure *f)
{
    char name[96];

    for (size_t r = 0; r < h->row_count; r++) {
        sp_text_fit(name, sizeof name, h->rows[r], small, NAMES - 12);
        sp_draw_label(f,
                      (sp_drawn_shape){ .paint = SP_INK,
                                        .x = NAMES - 6,
                                        .y = TOP + ROW * (double)r + 9.5,
                                        .width = small,
                                        .anchor = SP_END },
                      name);
    }
}

static void draw_axis(const sp_heat *h, sp_figure *f)
{
    sp_scale x = { 0 };
    double y = TOP + ROW * (double)h->row_count;
    double half = (WIDTH - NAMES - RIGHT) / 2.0 / (double)h->column_count;
    char word[SP_WORD];

    sp_scale_set_exact(&x, h->x_least, h->x_most, 7);
    x.from = NAMES + half; /* a column stands for what is in its middle */
    x.to = WIDTH - RIGHT - half;
    for (int i = 0; i < x.ticks; i++)
        sp_draw_label(f,
                      (sp_drawn_shape){ .paint = SP_MUTED,
                                        .x = sp_scale_place(&x, x.tick[i]),
                                        .y = y + 13,
                                        .width = small,
                                        .anchor = SP_MIDDLE },
                      sp_show_tick(word, &x, i, SP_PLAIN));
    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_MUTED,
                                    .x = (x.from + x.to) / 2,
                                    .y = y + 28,
                                    .width = small,
                                    .anchor = SP_MIDDLE },
                  "epoch");
}

sp_err sp_heat_draw(const sp_heat *h, sp_figure *f)
{
    double least, most;
    char low[SP_WORD], high[SP_WORD];

    find_range(h, &least, &most);
    if (most == 0)
        least = 0;
    f->w = WIDTH;
    f->h = TOP + ROW * (double)h->row_count + BOTTOM;
    sp_chart_head(f, h->id, h->title, h->note);
    sp_text_add(&f->about, "%s, from %s to %s, for %zu tensors over epochs.",
                h->note, sp_show(low, least, SP_PLAIN),
                sp_show(high, most, SP_PLAIN), h->row_count);
    draw_legend(least, most, f);
    for (int level = 0; level < SP_HEATS; level++)
        draw_level(h, level, least, most, f);
    draw_names(h, f);
    draw_axis(h, f);
    return sp_figure_check(f);
}
