/* Tables of runs: settings by seeds, trained one after the other by a queue
 * that survives kills, and what they come to. What `sprat table` calls.
 */
#ifndef SPRAT_TABLE_H
#define SPRAT_TABLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "sprat/config.h"
#include "sprat/dist.h"

typedef struct sp_table_opt {
    const char *file; /* the table, YAML */
    const char *run;  /* the table's folder; NULL: runs/tables/NAME, after the
                         file */
    bool report;      /* train nothing: only tell what is there */
    bool retry;       /* go on with runs that have failed, too */
    FILE *terminal;   /* progress, and the table at the end; NULL: none */
    const volatile sig_atomic_t *stop; /* not 0: save and stop; NULL: never */
    sp_comm *comm; /* the ranks that train together, on each of which the same
                      call is made; NULL: this process alone */
} sp_table_opt;

/* How a table stands. */
typedef struct sp_table_state {
    int runs, done, failed; /* the others are missing */
    int rows;
    int equal, worse, open; /* verdicts that count; equal: or better */
    /* Step 0 of a run was reached, so that an error is that run's and not one
     * of settings or data. */
    bool started;
} sp_table_state;

/* Read the table, check all its settings and the data, and train every run that
 * is not done: from its last checkpoint where it has one. A run in the folder
 * that was made elsewhere is taken for the table's if all its keys that have a
 * bearing on the result are the same. One that ends with values that are not
 * finite, or otherwise fails on all ranks together, is told as failed, and the
 * next one begins. After each, table.md, table.tex and table.csv in the folder
 * are replaced. Collective.
 *
 * *state is set as soon as the folder was looked at.
 * Errors: SP_ECONFIG, SP_EDATA, SP_EIO, SP_EARG before the first run, with all
 * mistakes of the table, or of its settings, in one text: also for a run in
 * the folder with other settings, naming the key, for another number of ranks
 * than the table is made for, and when another process is at work in the
 * folder. SP_ESTOPPED when a run was stopped, after it was saved. SP_EPEER and
 * others when ranks part. */
SP_MUST sp_err sp_table_run(const sp_registry *r, const sp_table_opt *o,
                            sp_table_state *state);

#endif
