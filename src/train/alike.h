/* Whether all ranks have what they must have alike: the same weights, and the
 * same data. Nothing is done in a job of one. */
#ifndef SP_TRAIN_ALIKE_H
#define SP_TRAIN_ALIKE_H

#include "data/dataset.h"
#include "dist/comm.h"
#include "sprat/graph.h"

/* Compare a fingerprint of every trained parameter with rank 0's. Buffers are
 * a rank's own. Collective. Errors: SP_EPEER on all ranks, naming the first
 * parameter that differs, and on which ranks and hosts; those of waiting. */
SP_MUST sp_err sp_params_agree(const sp_params *p, sp_comm *c);

/* The same for an open data set: sizes, names, every label or token, and
 * images (data/fingerprint.h). Errors: SP_EPEER on all ranks, naming what
 * differs and where; those of reading; SP_ENOMEM. */
SP_MUST sp_err sp_data_agree(const sp_dataset *d, sp_comm *c);

#endif
