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
 * before its first step: nothing is trained at full rank, and no weights of
 * full rank are given that could be factorized. Collective. Errors: those of
 * opening a session, and of reading `model.init`. */
SP_MUST sp_err sp_switch_from_start(const sp_config *c, sp_comm *comm,
                                    bool *low);

/* Check that a session that is open for training can be switched: the program
 * of low rank can be recorded, everything in it has its source in that of full
 * rank and the other way round, and its compressor takes some of it. Where
 * ranks are chosen while training (rank: auto), the last can only be seen at
 * the switch. Nothing where none is configured, or it is of low rank already.
 *
 * *layers, unless that is NULL, becomes the list of the layers that ranks are
 * chosen for, of which nothing is known yet; empty where none are. What is
 * allowed but hardly meant is appended to `warnings`, in lines; NULL: to none.
 * Collective.
 * Errors: SP_ECONFIG; SP_EARG and SP_ESHAPE for a model whose programs do not
 * go together; those of opening a session. */
SP_MUST sp_err sp_switch_check(const sp_session *s, sp_autorank *layers,
                               sp_text *warnings);

/* Whether the parameters of both programs go together, as above. Errors:
 * SP_EARG, SP_ESHAPE. */
SP_MUST sp_err sp_switch_fits(const sp_params *full, const sp_params *low);

/* Make the open session that of low rank, with the same data. `lr` is the rate
 * of the last step; `chosen` are ranks that training has chosen, or NULL. What
 * was done is told in `told`, in lines for people. Collective; all ranks get
 * the same bits. Those of a factorization do not depend on their number; those
 * of what was not sent yet do, as every sum over ranks. On failure the session
 * can only be closed.
 * Errors: SP_ENUMERIC for weights that are not finite, those of opening a
 * session, SP_EPEER; on all ranks together. */
SP_MUST sp_err sp_switch(sp_session *s, double lr, const sp_autorank *chosen,
                         sp_text *told);

#endif
