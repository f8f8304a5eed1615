/* The switch from full to low rank: a second program is recorded, and the
 * weights of its factors are those of the first one's layers, factorized.
 *
 * Source: Wang, Agarwal, Papailiopoulos 2021, "Pufferfish", algorithm 1.
 * Differs: on several ranks, where the published code factorizes everything on
 *          each, every rank takes a part of the layers; and what a compressor
 *          has not sent yet is not lost.
 */
#ifndef SP_TRAIN_SWITCH_H
#define SP_TRAIN_SWITCH_H

#include "train/session.h"

/* Whether a run that starts with this configuration has a program of low rank
 * before its first step: nothing is trained at full rank, and no weights are
 * given that could be factorized. */
bool sp_switch_from_start(const sp_config *c);

/* Check that the switch will be possible: that the program of low rank can be
 * recorded. Nothing where none is configured. Collective. Errors: SP_ECONFIG,
 * those of opening a session. */
SP_MUST sp_err sp_switch_check(const sp_config *c, sp_comm *comm);

/* Make the open session that of low rank, with the same data. `lr` is the rate
 * of the last step; `chosen` are ranks that training has chosen, or NULL. What
 * was done is told in `told`, in lines for people. Collective; all ranks get
 * the same bits, of the factorization whatever their number. On failure the
 * session can only be closed.
 * Errors: SP_ENUMERIC for weights that are not finite, those of opening a
 * session, SP_EPEER; on all ranks together. */
SP_MUST sp_err sp_switch(sp_session *s, double lr, const sp_autorank *chosen,
                         sp_text *told);

#endif
