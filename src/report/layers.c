/* Maps of what the tensors of a run were like, epoch by epoch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/gallery.h"

enum {
    ROWS = 28,    /* most tensors of a map: those with the most elements */
    COLUMNS = 48, /* and most columns: several epochs may share one */
    NAME = 160
};

typedef struct map {
    size_t tensor[ROWS]; /* which of the run's tensors a row is */
    const char *name[ROWS];
    double value[ROWS * COLUMNS], counted[ROWS * COLUMNS];
    size_t rows, columns;
    double least, most; /* epochs */
} map;

static const sp_run_tensor *tensor_at(const sp_run_record *r, size_t i)
{
    return (const sp_run_tensor *)(const void *)r->tensors.bytes + i;
}

static const sp_run_stat *stat_at(const sp_run_record *r, size_t i)
{
    return (const sp_run_stat *)(const void *)r->stats.bytes + i;
}

static size_t stat_count(const sp_run_record *r)
{
    return r->stats.size / sizeof(sp_run_stat);
}

/* How many tensors are larger than one; of equal ones the first. */
static size_t rank_of(const sp_run_record *r, size_t count, size_t i)
{
    size_t rank = 0;

    for (size_t k = 0; k < count; k++) {
        double mine = tensor_at(r, i)->elements;
        double other = tensor_at(r, k)->elements;
        rank += other > mine || (!(other < mine) && k < i);
    }
    return rank;
}

static void choose_rows(const sp_run_record *r, map *m)
{
    size_t count = r->tensors.size / sizeof(sp_run_tensor);

    m->rows = 0;
    for (size_t i = 0; i < count && m->rows < ROWS; i++)
        if (count <= ROWS || rank_of(r, count, i) < ROWS) {
            m->tensor[m->rows] = i;
            m->name[m->rows++] = tensor_at(r, i)->name;
        }
}

static void choose_columns(const sp_run_record *r, map *m)
{
    size_t epochs = 0;
    double last = -1;

    m->least = INFINITY;
    m->most = 0;
    for (size_t i = 0; i < stat_count(r); i++) {
        double epoch = stat_at(r, i)->epoch;
        epochs += epoch != last;
        last = epoch;
        m->least = fmin(m->least, epoch);
        m->most = fmax(m->most, epoch);
    }
    m->columns = epochs < COLUMNS ? epochs : COLUMNS;
}

static size_t column_of(const map *m, double epoch)
{
    double span = m->most - m->least;
    double share = span > 0 ? (epoch - m->least) / span : 0;
    size_t column = (size_t)(share * (double)(m->columns - 1) + 0.5);

    return column < m->columns ? column : m->columns - 1;
}

/* Means of what falls into one cell. */
static void fill(const sp_run_record *r, bool grads, map *m)
{
    size_t row_of = 0;

    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        m->value[i] = m->counted[i] = 0;
    for (size_t i = 0; i < stat_count(r); i++) {
        const sp_run_stat *s = stat_at(r, i);
        double v = grads ? s->grad_norm : s->weight_norm;
        for (row_of = 0; row_of < m->rows; row_of++)
            if (m->tensor[row_of] == s->tensor)
                break;
        if (row_of == m->rows || !isfinite(v))
            continue;
        row_of = row_of * m->columns + column_of(m, s->epoch);
        m->value[row_of] += v;
        m->counted[row_of]++;
    }
    for (size_t i = 0; i < m->rows * m->columns; i++)
        m->value[i] = m->counted[i] > 0 ? m->value[i] / m->counted[i] : NAN;
}

static bool has_values(const map *m)
{
    for (size_t i = 0; i < m->rows * m->columns; i++)
        if (m->value[i] > 0)
            return true;
    return false;
}

static void write_table(const map *m, const char *title, sp_text *out)
{
    char word[SP_WORD];

    sp_html_open(out, title);
    sp_html_head(out, "tensor");
    sp_html_head(out, "first epoch");
    sp_html_head(out, "last epoch");
    sp_html_body(out);
    for (size_t i = 0; i < m->rows; i++) {
        const double *row = m->value + i * m->columns;
        sp_html_row(out, m->name[i]);
        sp_html_cell(out, sp_show(word, row[0], SP_PLAIN));
        sp_html_cell(out, sp_show(word, row[m->columns - 1], SP_PLAIN));
        sp_html_end_row(out);
    }
    sp_html_close(out);
}

static sp_err add_map(sp_gallery *g, const sp_run_record *r, size_t number,
                      bool grads, map *m)
{
    char id[SP_WORD], title[NAME];
    sp_heat h = { .id = id,
                  .title = title,
                  .rows = m->name,
                  .row_count = m->rows,
                  .column_count = m->columns,
                  .value = m->value,
                  .x_least = m->least,
                  .x_most = m->most };
    sp_item item = { .part = SP_LAYERS };
    sp_err e;

    fill(r, grads, m);
    if (!has_values(m))
        return SP_OK;
    snprintf(id, sizeof id, "%s-%zu", grads ? "gradients" : "weights", number);
    snprintf(title, sizeof title, "%s: %.120s", grads ? "Gradients" : "Weights",
             r->name);
    h.note = grads ? "L2 norm of each tensor's gradient in an epoch's last step"
                   : "L2 norm of each tensor after each epoch";
    e = sp_heat_draw(&h, &item.figure);
    if (e != SP_OK) {
        sp_figure_free(&item.figure);
        return e;
    }
    write_table(m, title, &item.table);
    return sp_gallery_add(g, &item);
}

sp_err sp_gallery_layers(sp_gallery *g, const sp_runs *runs)
{
    map *m = malloc(sizeof *m);
    sp_err e = m ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    for (size_t i = 0; e == SP_OK && i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        if (stat_count(r) == 0)
            continue;
        choose_rows(r, m);
        choose_columns(r, m);
        e = add_map(g, r, i + 1, false, m);
        if (e == SP_OK)
            e = add_map(g, r, i + 1, true, m);
    }
    free(m);
    return e;
}
