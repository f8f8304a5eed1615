/* One run of a table: a row with a seed, and its folder. */
#ifndef SP_TABLE_CELL_H
#define SP_TABLE_CELL_H

#include "base/hash.h"
#include "table/definition.h"
#include "table/same.h"
#include "table/sent.h"
#include "train/state.h"

typedef enum sp_cell_state {
    SP_CELL_NEW,   /* nothing is there that could be gone on with */
    SP_CELL_BEGUN, /* has a checkpoint, and has not ended */
    SP_CELL_DONE,
    SP_CELL_FAILED, /* has ended otherwise; result.json says how */
} sp_cell_state;

typedef struct sp_cell {
    const sp_table_row *row;
    int seed;
    char *path; /* its folder, within that of the table: "dgc/seed-1" */
    char *run;  /* the same with the table's folder before it */
    sp_cell_state state;
    bool saved;   /* there is a checkpoint to go on from */
    bool tried;   /* this process has trained it */
    char *reason; /* of a failure; or NULL */
    int ranks;    /* it was trained on; 0: not yet */
    double value; /* of the metric; all of them NAN unless it is done */
    double packet_bytes, dense_bytes; /* a step, in the last epoch */
    sp_run_sent sent;                 /* the same over the whole run */
    double params, seconds;
    char hash[SP_HASH_HEX]; /* the last of its parameters that it has written
                               down; "": none, a run of few steps */
} sp_cell;

/* Name a cell in the table's folder. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_cell_name(sp_cell *c, const char *folder,
                            const sp_table_row *row, int seed);
void sp_cell_free(sp_cell *c);

/* The configuration that the cell is to be trained with. */
SP_MUST sp_err sp_cell_config(const sp_cell *c, const sp_registry *r,
                              sp_config **out);

/* Settings with which the run that is there goes on: those of the table that
 * may change on the way. Freed as sp_config_change() says. */
SP_MUST sp_err sp_cell_change(const sp_cell *c, const sp_registry *r,
                              sp_overrides *out);

/* Look what is in its folder. Errors: SP_ECONFIG when it is a run of another
 * configuration, naming the key; SP_EARG when a run that is done lacks the
 * metric, or one that is not has checkpoints that it cannot go on from;
 * SP_EFORMAT, SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_cell_look(sp_cell *c, const sp_table *t,
                            const sp_registry *r);

#endif
