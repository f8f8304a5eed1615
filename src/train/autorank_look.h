/* Looking at the stable ranks of a session's layers, for `lowrank.rank:
 * auto`. */
#ifndef SP_TRAIN_AUTORANK_LOOK_H
#define SP_TRAIN_AUTORANK_LOOK_H

#include "train/manifest.h"
#include "train/session.h"

/* List the layers that are factorized in the parameters of the program of low
 * rank, nothing known of them. On success sp_autorank_free() frees them.
 * Errors: SP_ENOMEM. */
SP_MUST sp_err sp_autorank_list(const sp_params *low, sp_autorank *out);

/* The stable rank of each layer's present weights, at out[0] to
 * out[a->count - 1]. Every rank computes a part of them, and all get the same
 * bits. The layers are those of a list that sp_switch_check() gave for the
 * session. Collective. Errors: SP_ENUMERIC for weights that are not finite,
 * SP_ENOMEM, SP_EPEER; on all ranks together. */
SP_MUST sp_err sp_autorank_look(const sp_session *s, const sp_autorank *a,
                                double *out);

/* What a run has seen of ranks that goes on from a checkpoint with the session;
 * nothing where nothing of it is needed. `layers` are those that it would look
 * at now. Collective. Errors: SP_ECONFIG when it is needed, but was not looked
 * at, or at other layers; SP_ENOMEM; on all ranks together. */
SP_MUST sp_err sp_autorank_resume(const sp_session *s, const sp_manifest *m,
                                  const sp_autorank *layers, sp_autorank *out);

#endif
