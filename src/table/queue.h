/* A table under work. */
#ifndef SP_TABLE_QUEUE_H
#define SP_TABLE_QUEUE_H

#include "sprat/table.h"
#include "table/summary.h"

typedef struct sp_queue {
    const sp_table_opt *opt;
    sp_table table;
    sp_cells cells;       /* all ranks know their names, rank 0 their states */
    sp_row_summary *rows; /* rank 0's */
    char *folder;
    int lock;    /* descriptor of FOLDER/.lock; -1: not held */
    bool writes; /* this process has the lock, and replaces the files */
} sp_queue;

/* Train what is not done. Collective. *started: some run has begun. Errors: as
 * sp_table_run(). */
SP_MUST sp_err sp_queue_work(sp_queue *q, const sp_registry *r, bool *started);

/* Sum up what is known, and replace the files. Of rank 0. */
SP_MUST sp_err sp_queue_write(sp_queue *q);

#endif
