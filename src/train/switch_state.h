/* What training has gathered over its steps, over the switch to low rank: the
 * optimizer's momentum, and what compressors keep. */
#ifndef SP_TRAIN_SWITCH_STATE_H
#define SP_TRAIN_SWITCH_STATE_H

#include "train/session.h"

/* The parameter of full rank that p, of the program of low rank, is a factor
 * of, stands for, or is; NULL: none. */
const sp_param *sp_switch_source(const sp_params *full, const sp_param *p);

/* Apply what compressors of a session of full rank have not sent yet, as one
 * step at the rate `lr` without momentum, by one dense exchange; nothing where
 * none keeps anything back, or it is to be projected. Collective. Errors:
 * SP_EPEER. */
SP_MUST sp_err sp_switch_flush(sp_session *full, double lr, sp_text *told);

/* Carry it on as `lowrank` says, once the values of `low` are set; what has no
 * place there is told. Collective. Errors: SP_ENUMERIC for what is not finite,
 * SP_ENOMEM, SP_EPEER; on all ranks together. */
SP_MUST sp_err sp_switch_carry(const sp_session *full, sp_session *low,
                               sp_text *told);

#endif
