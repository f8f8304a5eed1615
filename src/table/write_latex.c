/* A table in LaTeX. */
#include "table/quote.h"
#include "table/write.h"

static const sp_marks marks = {
    .between = " & ", .open = "$", .close = "$", .plus_minus = " \\pm "
};

static void put_head(sp_text *out, const sp_table *t)
{
    bool pairs = t->compared, verdicts = t->margin > 0, paper = t->published;

    sp_text_add(out, "\\begin{tabular}{lrr%s%s%srrrr}\n\\toprule\n",
                paper ? "r" : "", pairs ? "r" : "", verdicts ? "l" : "");
    sp_text_add(out, "setting & $n$ & ");
    sp_quote_latex(out, t->metric->name);
    sp_text_add(
        out, " &%s%s%s bytes a step & ratio & of the run & parameters \\\\\n",
        paper ? " paper &" : "", pairs ? " difference &" : "",
        verdicts ? " verdict &" : "");
    sp_text_add(out, "\\midrule\n");
}

static void put_row(sp_text *out, const sp_table *t, const sp_row_summary *s)
{
    sp_quote_latex(out, s->row->name);
    sp_text_add(out, " & %d", s->done);
    sp_put_columns(out, t, s, &marks);
    sp_text_add(out, " \\\\\n");
}

static void put_run(sp_text *out, const sp_cell *c)
{
    sp_text_add(out, "%%   %s%s%s\n", c->path, *c->hash ? " " : "", c->hash);
}

void sp_write_latex(sp_text *out, const sp_findings *f)
{
    const sp_table *t = f->table;
    sp_text legend = { 0 };

    sp_text_add(out, "%% Needs \\usepackage{booktabs}. The runs:\n");
    for (size_t i = 0; i < f->cells->count; i++)
        put_run(out, &f->cells->cell[i]);
    put_head(out, t);
    for (size_t i = 0; i < t->row_count; i++)
        put_row(out, t, &f->rows[i]);
    sp_text_add(out, "\\bottomrule\n\\end{tabular}\n%% ");
    sp_put_legend(&legend, t);
    sp_text_add(out, "%s\n", sp_text_string(&legend));
    out->failed = out->failed || legend.failed;
    sp_text_free(&legend);
}
