/* What compression costs: the score of each run over the bytes it sent. */
#include <math.h>

#include "report/gallery.h"

/* The metric by which the first run that was evaluated is judged; SP_NO_METRIC:
 * none was. */
static sp_run_metric common_score(const sp_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (sp_run_score(&runs->run[i]) != SP_NO_METRIC)
            return sp_run_score(&runs->run[i]);
    return SP_NO_METRIC;
}

static double bytes_of(const sp_run_record *r)
{
    double bytes = sp_run_number(r, "packet_bytes", NULL);

    return isnan(bytes) || sp_run_is_ahead(r) ? sp_run_final(r, SP_PACKET_BYTES)
                                              : bytes;
}

/* One point for each run. Gives how far apart the bytes are, as a factor. */
static double add_points(sp_chart *c, const sp_runs *runs, sp_run_metric score)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        double bytes = bytes_of(r), value = sp_run_final(r, score);
        sp_xy_list p = { 0 };
        if (!(bytes > 0) || !isfinite(value))
            continue;
        least = fmin(least, bytes);
        most = fmax(most, bytes);
        sp_xy_list_add(&p, bytes, value);
        c->lines.failed |= p.bytes.failed;
        sp_chart_add(c, r->name, "", (int)r->look, true, &p);
        sp_xy_list_free(&p);
    }
    return most / least;
}

static void write_table(const sp_chart *c, sp_text *out)
{
    char word[SP_WORD];

    sp_html_open(out, c->title);
    sp_html_head(out, "run");
    sp_html_head(out, "bytes a step");
    sp_html_head(out, "score");
    sp_html_body(out);
    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_chart_line *l = sp_chart_line_at(c, i);
        sp_html_row(out, l->name);
        sp_html_cell(out,
                     sp_show(word, sp_xy_list_at(&l->points)->x, c->x_unit));
        sp_html_cell(out, sp_show(word, sp_xy_list_at(&l->points)->y, c->unit));
        sp_html_end_row(out);
    }
    sp_html_close(out);
}

sp_err sp_gallery_tradeoff(sp_gallery *g, const sp_runs *runs)
{
    sp_run_metric score = common_score(runs);
    sp_chart c = { .id = "tradeoff",
                   .title = "Score over bytes",
                   .x_name = "bytes a step in packets, logarithmic",
                   .x_unit = SP_BYTES };
    sp_item item = { .part = SP_COMMUNICATION };
    sp_err e = SP_OK;

    if (score == SP_NO_METRIC)
        return SP_OK;
    c.unit = sp_run_metric_percent(score) ? SP_PERCENT : SP_PLAIN;
    c.note = sp_run_metric_percent(score) ? "top-1 at the end, percent"
             : score == SP_VALID_PPL || score == SP_TEST_PPL
                 ? "perplexity at the end"
                 : "loss at the end";
    c.span = sp_run_metric_percent(score)
                 ? 2
                 : 0.1 * fabs(sp_run_final(&runs->run[0], score));
    /* Of runs that send as much there is nothing to weigh. */
    if (add_points(&c, runs, score) > 1.05 && sp_chart_count(&c) > 1)
        e = sp_chart_draw(&c, &item.figure);
    if (e == SP_OK && item.figure.w > 0) {
        write_table(&c, &item.table);
        e = sp_gallery_add(g, &item);
    }
    sp_figure_free(&item.figure);
    sp_chart_free(&c);
    return e;
}
