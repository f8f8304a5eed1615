/* Which curves a report has: a row of a table for each chart. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/gallery.h"

enum {
    STEPS_OF = 4, /* most runs whose single steps are drawn */
    ROWS = 12,    /* of a table of values */
    NOTE = 200
};

/* Where a curve's points come from. */
typedef enum source {
    FROM_EPOCHS,
    FROM_STEPS, /* if there are more of them */
} source;

/* A chart: of each run one bold curve, the first of `bold` that it has, and
 * behind it a thin one; of several seeds their mean and each of them. */
typedef struct plan {
    sp_part_of part;
    const char *id, *title, *note;
    sp_unit unit;
    bool zero;
    sp_run_metric bold[2], thin;
    source from; /* of the bold one */
} plan;

static const plan plans[] = {
    { SP_LEARNING,
      "loss",
      "Loss",
      "mean a sample or token",
      SP_PLAIN,
      false,
      { SP_VALID_LOSS, SP_TEST_LOSS },
      SP_TRAIN_LOSS,
      FROM_EPOCHS },
    { SP_LEARNING,
      "accuracy",
      "Accuracy",
      "top-1, percent",
      SP_PERCENT,
      false,
      { SP_VALID_TOP1, SP_TEST_TOP1 },
      SP_TRAIN_TOP1,
      FROM_EPOCHS },
    { SP_LEARNING,
      "perplexity",
      "Perplexity",
      "a token",
      SP_PLAIN,
      false,
      { SP_VALID_PPL, SP_TEST_PPL },
      SP_TRAIN_PPL,
      FROM_EPOCHS },
    { SP_LEARNING,
      "rate",
      "Learning rate",
      "as used in the step",
      SP_PLAIN,
      true,
      { SP_RATE, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_STEPS },
    { SP_LEARNING,
      "grad-norm",
      "Gradient norm",
      "L2 norm of all gradients, mean of the logged steps",
      SP_PLAIN,
      true,
      { SP_GRAD_NORM, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_STEPS },
    { SP_COMMUNICATION,
      "ratio",
      "Compression ratio",
      "bytes of dense gradients over bytes sent in packets",
      SP_TIMES_OF,
      true,
      { SP_COMPRESSION_RATIO, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_EPOCHS },
    { SP_COMMUNICATION,
      "packet-bytes",
      "Packets",
      "bytes a step of a rank's own gradients, encoded",
      SP_BYTES,
      true,
      { SP_PACKET_BYTES, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_STEPS },
    { SP_COMMUNICATION,
      "mpi-bytes",
      "Handed to MPI",
      "bytes a step of gradients in all buffers sent",
      SP_BYTES,
      true,
      { SP_MPI_BYTES, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_STEPS },
    { SP_COMMUNICATION,
      "net-bytes",
      "On the network",
      "bytes a step that went to other hosts",
      SP_BYTES,
      true,
      { SP_NET_BYTES, SP_NO_METRIC },
      SP_NO_METRIC,
      FROM_STEPS },
    { SP_SPEED,
      "items",
      "Throughput",
      "images or tokens a second, all ranks together",
      SP_PLAIN,
      true,
      { SP_ITEMS, SP_NO_METRIC },
      SP_ITEMS,
      FROM_EPOCHS },
};

static const char *part_of(sp_run_metric m)
{
    const char *key = sp_run_metric_key(m);

    return strncmp(key, "train_", 6) == 0   ? "training"
           : strncmp(key, "valid_", 6) == 0 ? "validation"
           : strncmp(key, "test_", 5) == 0  ? "test"
                                            : "";
}

/* A run's points of a metric with x as the chart counts it. */
static void take(const sp_runs *runs, const sp_run_record *r,
                 const sp_xy_list *from, sp_xy_list *to)
{
    const sp_xy *at = sp_xy_list_at(from);
    double unit = sp_x_unit(runs, r);

    for (size_t i = 0; i < sp_xy_list_count(from); i++)
        sp_xy_list_add(to, at[i].x / unit, at[i].y);
}

/* Where hardly any steps are logged, epochs tell more. */
static const sp_xy_list *points_of(const sp_run_record *r, sp_run_metric m,
                                   source from)
{
    size_t steps = sp_xy_list_count(&r->steps[m]);
    size_t epochs = sp_xy_list_count(&r->epochs[m]);

    return epochs == 0 || (from == FROM_STEPS && steps > epochs)
               ? &r->steps[m]
               : &r->epochs[m];
}

static void add_curve(sp_chart *c, const sp_runs *runs, size_t run,
                      sp_run_metric m, bool bold, source from)
{
    const sp_run_record *r = &runs->run[run];
    sp_xy_list points = { 0 };

    take(runs, r, points_of(r, m, from), &points);
    if (points.bytes.failed)
        c->lines.failed = true;
    if (sp_xy_list_count(&points) > 0)
        sp_chart_add(c, r->name, part_of(m), (int)r->look, bold, &points);
    sp_xy_list_free(&points);
}

static sp_run_metric bold_of(const plan *p, const sp_run_record *r)
{
    for (int k = 0; k < 2; k++)
        if (p->bold[k] != SP_NO_METRIC &&
            sp_xy_list_count(points_of(r, p->bold[k], p->from)) > 0)
            return p->bold[k];
    return SP_NO_METRIC;
}

/* The curves of one run. A curve that has no bold one, as before the first
 * evaluation, is bold itself. */
static void add_run(sp_chart *c, const plan *p, const sp_runs *runs, size_t i)
{
    source thin = runs->count <= STEPS_OF ? FROM_STEPS : FROM_EPOCHS;
    sp_run_metric bold = bold_of(p, &runs->run[i]);

    if (p->thin != SP_NO_METRIC && (p->thin != bold || thin == FROM_STEPS))
        add_curve(c, runs, i, p->thin, bold == SP_NO_METRIC, thin);
    if (bold != SP_NO_METRIC)
        add_curve(c, runs, i, bold, true, p->from);
}

/* ---- Rows of several seeds ------------------------------------------------
 */

/* The first point that is not before x: steps rise. */
static size_t first_from(const sp_xy_list *points, double x)
{
    size_t low = 0, high = sp_xy_list_count(points);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sp_xy_list_at(points)[middle].x < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The value at step x, if all seeds of the row that measure it at all have one
 * there; NAN: they have not. */
static double mean_at(const sp_runs *runs, const sp_run_record *row,
                      const plan *p, sp_run_metric m, double x)
{
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < runs->count; i++) {
        const sp_xy_list *points = points_of(&runs->run[i], m, p->from);
        size_t n = sp_xy_list_count(points), k;
        if (runs->run[i].look != row->look || n == 0)
            continue;
        k = first_from(points, x);
        if (k == n || sp_xy_list_at(points)[k].x > x)
            return NAN;
        sum += sp_xy_list_at(points)[k].y;
        count++;
    }
    return sum / (double)count;
}

/* Each seed is thin, and their mean bold. */
static void add_row(sp_chart *c, const plan *p, const sp_runs *runs,
                    size_t first)
{
    const sp_run_record *row = &runs->run[first];
    sp_run_metric m = SP_NO_METRIC;
    const sp_xy_list *longest = NULL;
    sp_xy_list mean = { 0 };

    for (size_t i = first; i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        if (r->look != row->look || bold_of(p, r) == SP_NO_METRIC)
            continue;
        m = bold_of(p, r);
        add_curve(c, runs, i, m, false, p->from);
        if (!longest || sp_xy_list_count(points_of(r, m, p->from)) >
                            sp_xy_list_count(longest))
            longest = points_of(r, m, p->from);
    }
    for (size_t k = 0; longest && k < sp_xy_list_count(longest); k++) {
        double x = sp_xy_list_at(longest)[k].x;
        sp_xy_list_add(&mean, x / sp_x_unit(runs, row),
                       mean_at(runs, row, p, m, x));
    }
    c->lines.failed |= mean.bytes.failed;
    if (sp_xy_list_count(&mean) > 0)
        sp_chart_add(c, row->row, part_of(m), (int)row->look, true, &mean);
    sp_xy_list_free(&mean);
}

/* The curves of a run, or of its row when it is the first of that. */
static void add_runs(sp_chart *c, const plan *p, const sp_runs *runs, size_t i)
{
    size_t first = 0;

    while (runs->run[first].look != runs->run[i].look)
        first++;
    if (runs->run[i].seeds < 2)
        add_run(c, p, runs, i);
    else if (first == i)
        add_row(c, p, runs, i);
}

/* Whether any curve has a value to draw, and, of what compression changes,
 * whether it changed anything. */
static bool is_worth(const plan *p, const sp_chart *c)
{
    double dull = p->bold[0] == SP_COMPRESSION_RATIO ? 1
                  : p->bold[0] == SP_MPI_BYTES || p->bold[0] == SP_NET_BYTES
                      ? 0
                      : NAN;

    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_xy_list *points = &sp_chart_line_at(c, i)->points;
        const sp_xy *at = sp_xy_list_at(points);
        for (size_t k = 0; k < sp_xy_list_count(points); k++)
            if (isfinite(at[k].y) && at[k].y != dull)
                return true;
    }
    return false;
}

/* "mean a sample; thin: training, bold: test". */
static void write_note(const plan *p, const sp_chart *c, bool seeds,
                       char note[NOTE])
{
    const char *bold[2] = { "", "" };
    bool thin = false;

    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_chart_line *l = sp_chart_line_at(c, i);
        thin |= !l->bold;
        if (l->bold && *l->part && strcmp(l->part, bold[0]) != 0)
            bold[*bold[0] ? 1 : 0] = l->part;
    }
    if (seeds)
        snprintf(note, NOTE, "%s; bold: mean over seeds%s%s%s, thin: each seed",
                 p->note, *bold[0] ? " (" : "", bold[0], *bold[0] ? ")" : "");
    else if (thin && *bold[0])
        snprintf(note, NOTE, "%s; bold: %s%s%s, thin: training", p->note,
                 bold[0], *bold[1] ? " or " : "", bold[1]);
    else if (thin)
        snprintf(note, NOTE, "%s; bold: of epochs, thin: of logged steps",
                 p->note);
    else if (*bold[0])
        snprintf(note, NOTE, "%s; %s%s%s", p->note, bold[0],
                 *bold[1] ? " or " : "", bold[1]);
    else
        snprintf(note, NOTE, "%s", p->note);
}

/* ---- Values as a table ----------------------------------------------------
 */

/* The value of the point nearest to x, NAN if there is none within `reach`. */
static double value_at(const sp_chart_line *l, double x, double reach)
{
    const sp_xy *at = sp_xy_list_at(&l->points);
    double found = NAN, distance = reach;

    for (size_t i = 0; i < sp_xy_list_count(&l->points); i++)
        if (fabs(at[i].x - x) <= distance) {
            distance = fabs(at[i].x - x);
            found = at[i].y;
        }
    return found;
}

static double longest(const sp_chart *c)
{
    double most = 0;

    for (size_t i = 0; i < sp_chart_count(c); i++) {
        const sp_xy_list *p = &sp_chart_line_at(c, i)->points;
        for (size_t k = 0; k < sp_xy_list_count(p); k++)
            most = fmax(most, sp_xy_list_at(p)[k].x);
    }
    return most;
}

static void write_table(const sp_chart *c, sp_text *out)
{
    double most = longest(c);
    int rows = most >= 1 && most < ROWS ? (int)ceil(most) : ROWS;
    char word[SP_WORD];

    sp_html_open(out, c->title);
    sp_html_head(out, c->x_name);
    for (size_t i = 0; i < sp_chart_count(c); i++)
        if (sp_chart_line_at(c, i)->bold)
            sp_html_head(out, sp_chart_line_at(c, i)->name);
    sp_html_body(out);
    for (int k = 1; k <= rows; k++) {
        double x = most >= ROWS ? round(most * k / rows) : most * k / rows;
        sp_html_row(out, sp_show(word, x, SP_PLAIN));
        for (size_t i = 0; i < sp_chart_count(c); i++)
            if (sp_chart_line_at(c, i)->bold)
                sp_html_cell(out, sp_show(word,
                                          value_at(sp_chart_line_at(c, i), x,
                                                   most / rows / 2),
                                          c->unit));
        sp_html_end_row(out);
    }
    sp_html_close(out);
}

/* ---- Charts ---------------------------------------------------------------
 */

static sp_err finish(sp_gallery *g, const sp_chart *c, sp_part_of part)
{
    sp_item item = { .part = part };
    sp_err e = sp_chart_draw(c, &item.figure);

    if (e != SP_OK) {
        sp_figure_free(&item.figure);
        return e;
    }
    write_table(c, &item.table);
    return sp_gallery_add(g, &item);
}

static sp_err add_chart(sp_gallery *g, const plan *p, const sp_runs *runs)
{
    bool seeds = false;
    char note[NOTE];
    sp_chart c = { .id = p->id,
                   .title = p->title,
                   .note = note,
                   .x_name = sp_x_name(runs),
                   .from_zero = true,
                   .unit = p->unit,
                   .zero = p->zero };
    sp_err e;

    for (size_t i = 0; i < runs->count; i++) {
        add_runs(&c, p, runs, i);
        seeds |= runs->run[i].seeds > 1;
    }
    e = sp_text_check(&c.lines);
    if (e == SP_OK && is_worth(p, &c)) {
        write_note(p, &c, seeds, note);
        e = finish(g, &c, p->part);
    }
    sp_chart_free(&c);
    return e;
}

/* The densities of a run as stairs; `low`: one of them is below 1. */
static void add_densities(sp_chart *c, const sp_runs *runs, size_t run,
                          bool *low)
{
    const sp_run_record *r = &runs->run[run];
    const sp_json_value *list =
        sp_json_find(sp_json_find(r->root, "bytes"), "densities");
    double unit = sp_x_unit(runs, r);
    double step = fmax(0, sp_run_number(r, "bytes", "from_step"));
    sp_xy_list stairs = { 0 };

    for (const sp_json_value *v = list ? list->first : NULL; v; v = v->next) {
        const sp_json_value *density = sp_json_find(v, "density");
        const sp_json_value *steps = sp_json_find(v, "steps");
        if (!density || density->kind != SP_JSON_NUMBER || !steps ||
            steps->kind != SP_JSON_NUMBER || !(density->number > 0))
            continue;
        *low |= density->number < 1;
        sp_xy_list_add(&stairs, step / unit, density->number);
        step += fmax(0, steps->number);
        sp_xy_list_add(&stairs, step / unit, density->number);
    }
    c->lines.failed |= stairs.bytes.failed;
    if (sp_xy_list_count(&stairs) > 0)
        sp_chart_add(c, r->name, "", (int)r->look, true, &stairs);
    sp_xy_list_free(&stairs);
}

static sp_err add_density_chart(sp_gallery *g, const sp_runs *runs)
{
    sp_chart c = { .id = "density",
                   .title = "Density",
                   .note = "share of gradient entries that are sent",
                   .x_name = sp_x_name(runs),
                   .from_zero = true,
                   .unit = SP_PLAIN };
    bool low = false;
    sp_err e;

    for (size_t i = 0; i < runs->count; i++)
        add_densities(&c, runs, i, &low);
    e = sp_text_check(&c.lines);
    if (e == SP_OK && low)
        e = finish(g, &c, SP_COMMUNICATION);
    sp_chart_free(&c);
    return e;
}

sp_err sp_gallery_curves(sp_gallery *g, const sp_runs *runs)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        if (plans[i].bold[0] == SP_COMPRESSION_RATIO)
            SP_TRY(add_density_chart(g, runs));
        SP_TRY(add_chart(g, &plans[i], runs));
    }
    return SP_OK;
}
