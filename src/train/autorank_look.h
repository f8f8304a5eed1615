/* Looking at the stable ranks of a session's layers, for `lowrank.rank:
 * auto`. */
#ifndef SP_TRAIN_AUTORANK_LOOK_H
#define SP_TRAIN_AUTORANK_LOOK_H

#include "train/manifest.h"
#include "train/session.h"

/* List the layers that the program of low rank would factorize, nothing known
 * of them. On success sp_autorank_free() frees them. Collective. Errors: those
 * of opening a session. */
SP_MUST sp_err sp_autorank_list(const sp_config *c, sp_comm *comm,
                                sp_autorank *out);

/* The stable rank of each layer's present weights, at out[0] to
 * out[a->count - 1]. Every rank computes a part of them, and all get the same
 * bits. Collective. Errors: SP_ENUMERIC for weights that are not finite,
 * SP_ENOMEM, SP_EPEER; on all ranks together. */
SP_MUST sp_err sp_autorank_look(const sp_session *s, const sp_autorank *a,
                                double *out);

/* What a run has seen of ranks that goes on from a checkpoint with this
 * configuration; nothing where nothing of it is needed. Collective. Errors:
 * SP_ECONFIG when it is needed, but was not looked at, or at other layers;
 * those of sp_autorank_list(). */
SP_MUST sp_err sp_autorank_resume(const sp_config *c, sp_comm *comm,
                                  const sp_manifest *m, sp_autorank *out);

#endif
