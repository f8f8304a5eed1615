/* Whether all ranks have what they must have alike: settings, build, data and
 * weights. Nothing is done in a job of one. All of it is collective, and fails
 * on all ranks together. */
#ifndef SP_TRAIN_ALIKE_H
#define SP_TRAIN_ALIKE_H

#include "train/session.h"

/* Compare the configuration with rank 0's, whatever files it comes from.
 * Errors: SP_EPEER naming the first key that differs, and where. */
SP_MUST sp_err sp_config_agree(const sp_config *c, sp_comm *comm);

/* Compare the build, the data and the parameters of an open session. Errors:
 * those of the two below. */
SP_MUST sp_err sp_session_agree(const sp_session *s);

/* Compare a fingerprint of every trained parameter with rank 0's. Buffers are
 * a rank's own. Errors: SP_EPEER naming the first parameter that differs, and
 * on which ranks and hosts; those of waiting. */
SP_MUST sp_err sp_params_agree(const sp_params *p, sp_comm *c);

/* The same for an open data set: sizes, names, every label or token, and
 * images (data/fingerprint.h). Errors: SP_EPEER naming what differs and where;
 * those of reading; SP_ENOMEM. */
SP_MUST sp_err sp_data_agree(const sp_dataset *d, sp_comm *c);

#endif
