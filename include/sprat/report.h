/* What runs have left in their folders, told to people: a report of curves,
 * times and bytes as one page, and a comparison of two runs or checkpoints.
 * Knows no tensors and no trainer: it reads files.
 */
#ifndef SPRAT_REPORT_H
#define SPRAT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sprat/base.h"

enum { SP_REPORT_RUNS = 64 }; /* most runs of one report */

/* What to report, and where to. */
typedef struct sp_report_opt {
    const char *const *paths; /* run folders, or folders that hold such, up to
                                 three levels down */
    size_t path_count;
    const char *title; /* of the page; NULL: one made of the runs' names */
    const char *file;  /* the page, one HTML file; NULL: none */
    const char *svg;   /* folder, made if it is not there, for every chart as
                          NAME.svg; NULL: none */
    const char *png;   /* the same for NAME.png; may be the same folder */
    FILE *notes;       /* gets a line for each thing that is damaged or missing
                          in a run and was left out; NULL: none */
} sp_report_opt;

/* What was written. */
typedef struct sp_report_told {
    size_t runs, charts;
    size_t bytes; /* of the page */
} sp_report_told;

/* Read the runs and write what is asked for. Runs may be under way, have
 * failed, or be of earlier versions: what they lack is left out. The page needs
 * nothing from the network and no other file. The same runs give the same
 * bytes. `told` may be NULL.
 * Errors: SP_EARG for a path that holds no run, more than SP_REPORT_RUNS, or a
 * page in the place of what a run made;
 * SP_EFORMAT naming file and line for what is neither whole nor cut off at its
 * end; SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_report_write(const sp_report_opt *o, sp_report_told *told);

/* What to compare. */
typedef struct sp_compare_opt {
    const char *a, *b; /* two run folders; or two checkpoints, each the folder
                          or its model.safetensors */
    bool json;         /* one JSON object instead of a text */
    FILE *out;         /* not NULL */
} sp_compare_opt;

/* Compare two runs (settings, scores, the first step whose parameters differ,
 * bytes, speed, versions) or two checkpoints (each tensor's largest absolute
 * difference), and tell it to o->out. *differ: the results do, which are of
 * runs the hashes of parameters at the steps that both have, the steps reached,
 * the scores and the bytes; of checkpoints the tensors' names, shapes and
 * values. Settings, times and versions may differ without.
 * Errors: SP_EARG when a path is neither, or the two are not of one kind;
 * SP_EFORMAT naming file and line; SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_compare(const sp_compare_opt *o, bool *differ);

#endif
