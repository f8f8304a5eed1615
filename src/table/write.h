/* A table as text. */
#ifndef SP_TABLE_WRITE_H
#define SP_TABLE_WRITE_H

#include "table/summary.h"

/* What is known so far. */
typedef struct sp_findings {
    const sp_table *table;
    const sp_cells *cells;
    const sp_row_summary *rows; /* one for each row */
} sp_findings;

/* For people: rows, notes, and every run with a link to its folder. */
void sp_write_markdown(sp_text *out, const sp_findings *f);

/* A tabular for a paper, with booktabs' rules; runs stand in comments. */
void sp_write_latex(sp_text *out, const sp_findings *f);

/* For programs: a line for every row and every run; what depends on the
 * machine's speed is last. */
void sp_write_csv(sp_text *out, const sp_findings *f);

/* ---- What Markdown and LaTeX share (write_text.c) ------------------------ */

/* "12,345,678"; nothing for NAN. */
void sp_put_count(sp_text *out, double x);

/* A score with the digits that its kind has; nothing for NAN. */
void sp_put_score(sp_text *out, const sp_table *t, double x, bool sign);

/* "equal within 0.5", "worse (2 of 3 pairs)", "open (1 pair)". */
void sp_put_verdict(sp_text *out, const sp_table *t, const sp_row_summary *s);

/* What a form of table sets around numbers. */
typedef struct sp_marks {
    const char *between;      /* columns */
    const char *open, *close; /* an estimate */
    const char *plus_minus;
} sp_marks;

/* The columns behind a row's name and number of seeds, up to its parameters,
 * each with marks->between before it: the score, the paper's value, the
 * difference and the verdict where the table has them, bytes and ratios. */
void sp_put_columns(sp_text *out, const sp_table *t, const sp_row_summary *s,
                    const sp_marks *marks);

/* What the numbers are, in plain words and without line ends. */
void sp_put_legend(sp_text *out, const sp_table *t);

#endif
