/* A table in Markdown. */
#include <math.h>

#include "table/quote.h"
#include "table/write.h"
#include "train/console.h"

static const sp_marks marks = {
    .between = " | ", .open = "", .close = "", .plus_minus = " ± "
};

static void put_n(sp_text *out, const sp_row_summary *s)
{
    if (s->done == s->cells)
        sp_text_add(out, "%d", s->done);
    else
        sp_text_add(out, "%d of %d", s->done, s->cells);
}

static void put_head(sp_text *out, const sp_table *t)
{
    bool pairs = t->compared, verdicts = t->margin > 0, paper = t->published;

    sp_text_add(out, "| setting | n | %s |%s%s%s", t->metric->name,
                paper ? " paper |" : "", pairs ? " difference |" : "",
                verdicts ? " verdict |" : "");
    sp_text_add(out,
                " bytes a step | ratio | of the run | parameters | time |\n");
    sp_text_add(out, "| --- | --: | --: |%s%s%s", paper ? " --: |" : "",
                pairs ? " --: |" : "", verdicts ? " --- |" : "");
    sp_text_add(out, " --: | --: | --: | --: | --: |\n");
}

static void put_row(sp_text *out, const sp_table *t, const sp_row_summary *s)
{
    char span[SP_SPAN_ROOM];

    sp_text_add(out, "| ");
    sp_quote_markdown(out, s->row->name);
    sp_text_add(out, " | ");
    put_n(out, s);
    sp_put_columns(out, t, s, &marks);
    sp_text_add(out, " | %s |\n",
                isnan(s->seconds) ? "" : sp_span(span, s->seconds));
}

static void put_notes(sp_text *out, const sp_table *t)
{
    bool any = false;

    for (size_t i = 0; i < t->row_count; i++) {
        const sp_table_row *row = &t->rows[i];

        if (!*row->note && (row->judged || t->margin == 0))
            continue;
        sp_text_add(out, "%s- ", any ? "" : "\n");
        any = true;
        sp_quote_markdown(out, row->name);
        sp_text_add(out, ": ");
        sp_quote_markdown(out, row->note);
        if (!row->judged)
            sp_text_add(out, "%sits verdict does not count",
                        *row->note ? "; " : "");
        sp_text_add(out, "\n");
    }
}

static const char *state_of(const sp_cell *c)
{
    static const char *const states[] = {
        [SP_CELL_NEW] = "not begun",
        [SP_CELL_BEGUN] = "under way",
        [SP_CELL_DONE] = "done",
        [SP_CELL_FAILED] = "failed",
    };

    return states[c->state];
}

static void put_cell(sp_text *out, const sp_table *t, const sp_cell *c)
{
    sp_text_add(out, "| ");
    sp_quote_markdown(out, c->row->name);
    sp_text_add(out, " | %d | ", c->seed);
    sp_put_score(out, t, c->value, false);
    sp_text_add(out, " | %s", state_of(c));
    if (c->reason) {
        sp_text_add(out, ": ");
        sp_quote_markdown(out, c->reason);
    }
    sp_text_add(out, " | [");
    sp_quote_markdown(out, c->path);
    sp_text_add(out, "](");
    sp_quote_link(out, c->path);
    sp_text_add(out, ") | %.12s |\n", c->hash);
}

void sp_write_markdown(sp_text *out, const sp_findings *f)
{
    const sp_table *t = f->table;

    if (*t->title) {
        sp_text_add(out, "# ");
        sp_quote_markdown(out, t->title);
        sp_text_add(out, "\n\n");
    }
    put_head(out, t);
    for (size_t i = 0; i < t->row_count; i++)
        put_row(out, t, &f->rows[i]);
    sp_text_add(out, "\n");
    sp_put_legend(out, t);
    if (*t->source) {
        sp_text_add(out, " Paper: ");
        sp_quote_markdown(out, t->source);
        sp_text_add(out, ".");
    }
    sp_text_add(out, "\n");
    put_notes(out, t);
    sp_text_add(out,
                "\n| setting | seed | %s | state | run | hash |\n"
                "| --- | --: | --: | --- | --- | --- |\n",
                t->metric->name);
    for (size_t i = 0; i < f->cells->count; i++)
        put_cell(out, t, &f->cells->cell[i]);
}
