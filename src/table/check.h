/* What can be found wrong with a table before its first run. */
#ifndef SP_TABLE_CHECK_H
#define SP_TABLE_CHECK_H

#include "table/queue.h"

/* Whether there are as many ranks as the table is made for. Errors: SP_EARG,
 * with the command that starts so many. */
SP_MUST sp_err sp_check_ranks(const sp_table *t, const sp_table_opt *o);

/* Load the settings of every row. All mistakes are found in one pass. Errors:
 * SP_ECONFIG, SP_EIO. */
SP_MUST sp_err sp_check_settings(const sp_queue *q, const sp_registry *r);

/* Look at the folders of all runs; of rank 0. Errors: as sp_cell_look(), all
 * in one pass. */
SP_MUST sp_err sp_check_cells(sp_queue *q, const sp_registry *r);

/* Check every row that still has runs to be trained as `sprat check` does,
 * data included. Collective. */
SP_MUST sp_err sp_check_data(const sp_queue *q, const sp_registry *r);

#endif
