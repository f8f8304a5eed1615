/* Stacked bars with their legend. */
#include <math.h>
#include <stdio.h>

#include "report/chart.h"

enum {
    TOP = 52,
    NAMES = 172, /* room for the names at the left */
    TOTALS = 84, /* and for the sums at the right */
    BAR = 20,
    GAP = 8,
    LEGEND_LINE = 20
};

static const double small = 11, normal = 12;

static double total(const sp_bars *b, size_t i)
{
    double sum = 0;

    for (int p = 0; p < b->part_count; p++)
        sum += b->bar[i].part[p];
    return sum;
}

static bool is_used(const sp_bars *b, int part)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->bar[i].part[part] > 0)
            return true;
    return false;
}

/* A box for each part that occurs, its number in it as in the bars. Gives the
 * y below. */
static double draw_legend(const sp_bars *b, sp_figure *f)
{
    double x = NAMES, y = TOP;

    for (int p = 0; p < b->part_count; p++) {
        double width = 26 + sp_text_width(b->parts[p], normal);
        char number[SP_WORD];
        if (!is_used(b, p))
            continue;
        if (x + width > b->width) {
            x = NAMES;
            y += LEGEND_LINE;
        }
        snprintf(number, sizeof number, "%d", p + 1);
        sp_draw_box(f, (sp_drawn_shape){ .paint = SP_SHARE,
                                         .number = p,
                                         .x = x,
                                         .y = y,
                                         .w = 14,
                                         .h = 14 });
        sp_draw_label(f,
                      (sp_drawn_shape){ .paint = SP_INK,
                                        .x = x + 7,
                                        .y = y + 11,
                                        .width = 10,
                                        .anchor = SP_MIDDLE },
                      number);
        sp_draw_label(
            f,
            (sp_drawn_shape){
                .paint = SP_INK, .x = x + 19, .y = y + 11.5, .width = normal },
            b->parts[p]);
        x += width + 12;
    }
    return y + LEGEND_LINE + 8;
}

/* What stands in a part: its share if there is room, else its number. */
static void label_part(const sp_bars *b, size_t i, int part, sp_figure *f,
                       sp_drawn_shape box)
{
    char word[SP_WORD + 16], number[SP_WORD];
    double share = 100 * b->bar[i].part[part] / total(b, i);

    snprintf(number, sizeof number, "%d", part + 1);
    snprintf(word, sizeof word, "%s %.0f\xc2\xa0%%", b->parts[part], share);
    if (sp_text_width(word, small) + 8 > box.w)
        snprintf(word, sizeof word, "%s", number);
    if (sp_text_width(word, small) + 3 > box.w)
        return;
    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_INK,
                                    .x = box.x + box.w / 2,
                                    .y = box.y + BAR * 0.7,
                                    .width = small,
                                    .anchor = SP_MIDDLE },
                  word);
}

static void draw_bar(const sp_bars *b, size_t i, double scale, double y,
                     sp_figure *f)
{
    char name[96], sum[SP_WORD];
    double x = NAMES;

    sp_text_fit(name, sizeof name, b->bar[i].name, normal, NAMES - 14);
    sp_draw_label(f,
                  (sp_drawn_shape){ .paint = SP_INK,
                                    .x = NAMES - 10,
                                    .y = y + BAR * 0.7,
                                    .width = normal,
                                    .anchor = SP_END },
                  name);
    for (int p = 0; p < b->part_count; p++) {
        double w = b->bar[i].part[p] * scale;
        sp_drawn_shape box = { .paint = SP_SHARE,
                               .number = p,
                               .x = x,
                               .y = y,
                               .w = w > 1.6 ? w - 0.8 : w,
                               .h = BAR };
        if (!(w > 0))
            continue;
        sp_draw_box(f, box);
        label_part(b, i, p, f, box);
        x += w;
    }
    sp_draw_label(
        f,
        (sp_drawn_shape){
            .paint = SP_MUTED, .x = x + 7, .y = y + BAR * 0.7, .width = small },
        sp_show(sum, total(b, i), b->unit));
}

sp_err sp_bars_draw(const sp_bars *b, sp_figure *f)
{
    double most = 0, y;
    char word[SP_WORD];

    for (size_t i = 0; i < b->count; i++)
        most = fmax(most, total(b, i));
    f->w = b->width;
    sp_chart_head(f, b->id, b->title, b->note);
    sp_text_add(&f->about, "%s.", b->note);
    y = draw_legend(b, f);
    for (size_t i = 0; i < b->count; i++, y += BAR + GAP) {
        draw_bar(b, i, most > 0 ? (b->width - NAMES - TOTALS) / most : 0, y, f);
        if (i < 10)
            sp_text_add(&f->about, " %s: %s.", b->bar[i].name,
                        sp_show(word, total(b, i), b->unit));
    }
    f->h = y + 2;
    return sp_figure_check(f);
}
