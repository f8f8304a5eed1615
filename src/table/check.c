/* Mistakes in a table's settings, and in what is in its folder. */
#include "table/check.h"

#include <string.h>

#include "dist/agree.h"
#include "sprat/model.h"
#include "sprat/train.h"
#include "train/session.h"
#include "train/shared.h"

sp_err sp_check_ranks(const sp_table *t, const sp_table_opt *o)
{
    int ranks = sp_comm_ranks(o->comm);
    char launcher[64] = "";

    if (t->ranks == 0 || t->ranks == ranks)
        return SP_OK;
    if (t->ranks > 1)
        snprintf(launcher, sizeof launcher, "mpirun -n %d ", t->ranks);
    return sp_fail(SP_EARG,
                   "%s: its runs are of %d rank%s, here there %s %d: start it "
                   "with `%ssprat table %s%s%s`",
                   o->file, t->ranks, t->ranks == 1 ? "" : "s",
                   ranks == 1 ? "is" : "are", ranks, launcher, o->file,
                   o->run ? " --run " : "", o->run ? o->run : "");
}

/* Collects errors, one behind the other. */
typedef struct mistakes {
    sp_text text;
    sp_err first;
} mistakes;

/* Each line of the last error, with the row that it is about. */
static void note(mistakes *m, const sp_table_row *row, sp_err e)
{
    if (e == SP_OK)
        return;
    m->first = m->first == SP_OK ? e : m->first;
    for (const char *line = sp_last_error(); *line;) {
        size_t n = strcspn(line, "\n");

        sp_text_add(&m->text, "%s%s: row ", m->text.size ? "\n" : "", row->at);
        sp_text_add(&m->text, "%s: %.*s", row->name, (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static sp_err conclude(mistakes *m)
{
    sp_err e = sp_text_check(&m->text);

    if (e == SP_OK && m->first != SP_OK)
        e = sp_fail(m->first, "%s", sp_text_string(&m->text));
    sp_text_free(&m->text);
    return e;
}

/* Scores of images or of text, and when they are taken. */
static sp_err check_metric(const sp_table *t, const sp_config *c)
{
    const sp_model *model = (const sp_model *)sp_config_entry(c, "model");
    bool test = strncmp(t->metric->name, "test", 4) == 0;

    if (model->text ? t->metric->images : t->metric->text)
        return sp_fail(SP_ECONFIG, "metric: a model of %s has no %s",
                       model->text ? "text" : "images", t->metric->name);
    if (model->text && test && !t->best)
        return sp_fail(SP_ECONFIG,
                       "metric: %s is taken once, with the weights of the best "
                       "epoch: at: best",
                       t->metric->name);
    return SP_OK;
}

static sp_err check_row(const sp_table *t, const sp_cell *first,
                        const sp_registry *r)
{
    sp_config *c = NULL;
    sp_settings set;
    sp_err e = sp_cell_config(first, r, &c);

    if (e == SP_OK)
        e = sp_settings_view(c, &set);
    if (e == SP_OK)
        e = check_metric(t, c);
    sp_config_free(c);
    return e;
}

sp_err sp_check_settings(const sp_queue *q, const sp_registry *r)
{
    mistakes m = { .first = SP_OK };

    for (size_t i = 0; i < q->cells.count; i++) {
        const sp_cell *c = &q->cells.cell[i];

        if (i == 0 || c->row != c[-1].row)
            note(&m, c->row, check_row(&q->table, c, r));
    }
    return conclude(&m);
}

/* Runs on other ranks are other runs. */
static sp_err check_own_ranks(const sp_queue *q, const sp_cell *c)
{
    int ranks = q->table.ranks;

    if (ranks == 0 && !q->opt->report)
        ranks = sp_comm_ranks(q->opt->comm);
    if (c->ranks == 0 || ranks == 0 || c->ranks == ranks)
        return SP_OK;
    return sp_fail(
        SP_EARG,
        "%s: is a run of %d rank%s, not of the %d asked for: move it "
        "away, or change `ranks`",
        c->run, c->ranks, c->ranks == 1 ? "" : "s", ranks);
}

sp_err sp_check_cells(sp_queue *q, const sp_registry *r)
{
    mistakes m = { .first = SP_OK };

    for (size_t i = 0; i < q->cells.count; i++) {
        sp_cell *c = &q->cells.cell[i];
        sp_err e = sp_cell_look(c, &q->table, r);

        if (e == SP_OK)
            e = check_own_ranks(q, c);
        note(&m, c->row, e);
    }
    return conclude(&m);
}

/* Whether rank 0 knows a run of the row that is not done. */
static bool is_left(const sp_queue *q, const sp_table_row *row)
{
    for (size_t i = 0; i < q->cells.count; i++)
        if (q->cells.cell[i].row == row &&
            q->cells.cell[i].state != SP_CELL_DONE)
            return true;
    return false;
}

/* Whether the data have what the metric is taken on. */
static sp_err check_part(const sp_table *t, const sp_config *c)
{
    const sp_metric *m = t->metric;
    sp_dataset *d = NULL;
    size_t count;
    int classes;

    SP_TRY(sp_dataset_open(&d, (const sp_data_set *)sp_config_entry(c, "data"),
                           sp_config_own(c, "data"),
                           sp_config_section(c, "data")));
    count = d->count[m->part];
    classes = d->info.classes;
    sp_dataset_close(d);
    if (count == 0)
        return sp_fail(SP_ECONFIG,
                       "metric: there is no %s, for the data have no such "
                       "part%s",
                       m->name,
                       m->part == SP_PART_VALID ? ": set data.valid" : "");
    if (strstr(m->name, "top5") && classes <= 5)
        return sp_fail(SP_ECONFIG, "metric: there is no %s of %d classes",
                       m->name, classes);
    return SP_OK;
}

static sp_err check_data(const sp_queue *q, const sp_cell *first,
                         const sp_registry *r)
{
    sp_comm *comm = q->opt->comm;
    sp_config *c = NULL;
    sp_err e = sp_agree(comm, sp_cell_config(first, r, &c));

    if (e == SP_OK)
        e = sp_check(c, comm, NULL);
    if (e == SP_OK)
        e = sp_agree(comm, sp_comm_rank(comm) == 0 ? check_part(&q->table, c)
                                                   : SP_OK);
    sp_config_free(c);
    return e;
}

/* It takes a while where networks are large. */
static void announce(const sp_queue *q, const sp_table_row *row)
{
    if (!q->opt->terminal || sp_comm_rank(q->opt->comm) != 0)
        return;
    fprintf(q->opt->terminal, "check    %s\n", row->name);
    fflush(q->opt->terminal);
}

/* Check a row that rank 0 knows to have runs left; mistakes that all ranks have
 * are noted. */
static sp_err check_left(const sp_queue *q, const sp_cell *first,
                         const sp_registry *r, mistakes *m)
{
    bool left = is_left(q, first->row);
    sp_err e;

    SP_TRY(sp_shared_bytes(q->opt->comm, SP_USE_CHECK, &left, sizeof left));
    if (!left)
        return SP_OK;
    announce(q, first->row);
    e = check_data(q, first, r);
    if (e != SP_OK && !sp_agreed(q->opt->comm))
        return e;
    note(m, first->row, e);
    return SP_OK;
}

sp_err sp_check_data(const sp_queue *q, const sp_registry *r)
{
    mistakes m = { .first = SP_OK };
    sp_err e = SP_OK;

    for (size_t i = 0; e == SP_OK && i < q->cells.count; i++) {
        const sp_cell *c = &q->cells.cell[i];

        if (i == 0 || c->row != c[-1].row)
            e = check_left(q, c, r, &m);
    }
    if (e == SP_OK)
        return sp_agree(q->opt->comm, conclude(&m));
    sp_text_free(&m.text);
    return e;
}
