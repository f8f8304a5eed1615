/* What the runs of a table come to. */
#ifndef SP_TABLE_SUMMARY_H
#define SP_TABLE_SUMMARY_H

#include "table/cell.h"
#include "table/statistics.h"

/* A row: means over its runs that are done. NAN: unknown. */
typedef struct sp_row_summary {
    const sp_table_row *row;
    int cells, done, failed;
    sp_estimate value;
    sp_estimate difference; /* to the baseline, over seeds that both have */
    sp_verdict verdict;
    double packet_bytes, params, seconds;
    double run_bytes, run_ratio; /* the same over whole runs */
    double ratio; /* of the baseline's bytes to its own; without a baseline, of
                     its own uncompressed ones */
} sp_row_summary;

/* All runs, those of a row together, in the order of its seeds. */
typedef struct sp_cells {
    sp_cell *cell;
    size_t count;
} sp_cells;

/* rows[i] is filled for the i-th row of the table. */
void sp_summarize(const sp_table *t, const sp_cells *cells,
                  sp_row_summary *rows);

#endif
