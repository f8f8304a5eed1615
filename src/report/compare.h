/* Two runs or two checkpoints side by side.
 *
 *   compare.c          which of both it is; what is told
 *   compare_runs.c     two run folders -> sp_run_comparison
 *   compare_tell.c     that as text and as JSON
 *   compare_weights.c  two checkpoints, read and told
 */
#ifndef SPRAT_REPORT_COMPARE_H
#define SPRAT_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/run.h"
#include "sprat/report.h"

/* A score of both runs; NAN: a run does not have it. */
typedef struct sp_score_row {
    sp_run_metric metric;
    double final[2], best[2];
    double gap, gap_epoch; /* the largest difference after an epoch that both
                              ended; NAN: they ended none */
} sp_score_row;

/* A number of both runs; NAN: not told. */
typedef struct sp_number_row {
    const char *name;
    double value[2];
} sp_number_row;

/* A text of both runs; NULL: not told. */
typedef struct sp_text_row {
    const char *section, *key; /* section: "" if there is none */
    const char *value[2];
} sp_text_row;

enum { SP_BYTE_ROWS = 4, SP_SPEED_ROWS = 2, SP_MADE_ROWS = 7 };

typedef struct sp_run_comparison {
    sp_run_record run[2];
    sp_text settings; /* sp_text_row, those that differ */
    sp_text scores;   /* sp_score_row */
    sp_number_row steps, bytes[SP_BYTE_ROWS], speed[SP_SPEED_ROWS];
    sp_text_row made[SP_MADE_ROWS];  /* commit, versions, machine */
    char words[SP_MADE_ROWS][2][32]; /* of numbers among them */
    size_t hashes;                   /* compared */
    double same_through, differ_at;  /* steps; NAN: none */
    bool differ;
} sp_run_comparison;

/* On success or not, sp_run_comparison_free() frees it. */
SP_MUST sp_err sp_compare_runs(sp_run_comparison *c, const char *a,
                               const char *b);
void sp_run_comparison_free(sp_run_comparison *c);

void sp_tell_text(const sp_run_comparison *c, FILE *out);
SP_MUST sp_err sp_tell_json(const sp_run_comparison *c, FILE *out);

/* Compare two safetensors files and tell it. */
SP_MUST sp_err sp_compare_weights(const sp_compare_opt *o, const char *a,
                                  const char *b, bool *differ);

/* Print a finished JSON value and free it. */
SP_MUST sp_err sp_tell_finish(sp_json *j, FILE *out);

#endif
