/* Rows from cells. */
#include "table/summary.h"

#include <math.h>

static double dense(const sp_cell *c) { return c->dense_bytes; }
static double packets(const sp_cell *c) { return c->packet_bytes; }
static double run_packets(const sp_cell *c) { return c->sent.packet; }
static double run_dense(const sp_cell *c) { return c->sent.dense; }
static double params(const sp_cell *c) { return c->params; }
static double seconds(const sp_cell *c) { return c->seconds; }

/* Over the row's runs that are done; NAN: none. */
static double mean(const sp_cells *cells, const sp_table_row *row,
                   double (*of)(const sp_cell *c))
{
    double sum = 0;
    int n = 0;

    for (size_t i = 0; i < cells->count; i++)
        if (cells->cell[i].row == row && cells->cell[i].state == SP_CELL_DONE) {
            sum += of(&cells->cell[i]);
            n++;
        }
    return n ? sum / n : NAN;
}

static const sp_cell *find_done(const sp_cells *cells, const sp_table_row *row,
                                int seed)
{
    for (size_t i = 0; i < cells->count; i++) {
        const sp_cell *c = &cells->cell[i];

        if (c->row == row && c->seed == seed && c->state == SP_CELL_DONE)
            return c;
    }
    return NULL;
}

static void count(const sp_cells *cells, sp_row_summary *s)
{
    for (size_t i = 0; i < cells->count; i++) {
        const sp_cell *c = &cells->cell[i];

        if (c->row != s->row)
            continue;
        s->cells++;
        s->done += c->state == SP_CELL_DONE;
        s->failed += c->state == SP_CELL_FAILED;
    }
}

/* Values, and differences to the baseline where it has the seed. */
static void estimate(const sp_table *t, const sp_cells *cells,
                     const sp_table_row *base, sp_row_summary *s)
{
    double values[SP_LIST_MAX], differences[SP_LIST_MAX];
    int n = 0, pairs = 0;

    for (size_t i = 0; i < cells->count; i++) {
        const sp_cell *c = &cells->cell[i], *other;

        if (c->row != s->row || c->state != SP_CELL_DONE)
            continue;
        values[n++] = c->value;
        other = base ? find_done(cells, base, c->seed) : NULL;
        if (other)
            differences[pairs++] = c->value - other->value;
    }
    s->value = sp_estimate_of(values, n, t->confidence);
    s->difference = sp_estimate_of(differences, pairs, t->confidence);
}

static const sp_table_row *baseline_of(const sp_table *t,
                                       const sp_table_row *row)
{
    return row->baseline < 0 ? NULL : &t->rows[row->baseline];
}

void sp_summarize(const sp_table *t, const sp_cells *cells,
                  sp_row_summary *rows)
{
    for (size_t i = 0; i < t->row_count; i++) {
        const sp_table_row *row = &t->rows[i], *base = baseline_of(t, row);
        sp_row_summary *s = &rows[i];

        *s = (sp_row_summary){ .row = row };
        count(cells, s);
        estimate(t, cells, base, s);
        s->packet_bytes = mean(cells, row, packets);
        s->params = mean(cells, row, params);
        s->seconds = mean(cells, row, seconds);
        s->run_bytes = mean(cells, row, run_packets);
        s->run_ratio = (base ? mean(cells, base, run_packets)
                             : mean(cells, row, run_dense)) /
                       s->run_bytes;
        s->ratio =
            (base ? mean(cells, base, packets) : mean(cells, row, dense)) /
            s->packet_bytes;
        if (base && t->margin > 0)
            s->verdict =
                sp_verdict_of(&s->difference, t->margin, t->metric->higher);
    }
}
