/* Agreement: ranks that fail, fail together and with one message. (All-gathers
 * and broadcasts of what is compared; nothing to do with consensus among ranks
 * that may be lost: a lost rank ends the job.) */
#ifndef SP_DIST_AGREE_H
#define SP_DIST_AGREE_H

#include "dist/comm.h"

/* Every rank says how it fares; all get the same answer: SP_OK if all are, else
 * the error of the lowest rank that failed, with its text, and "rank 2 (host):
 * " before it on the others. Collective over all ranks. In a job of one: `e`.
 * Errors: SP_EPEER besides. */
SP_MUST sp_err sp_agree(sp_comm *c, sp_err e);

/* Whether the error that a caller has is that of all ranks: sp_agree() or
 * sp_agree_text() has returned one, and no operation has begun since. Then one
 * rank may tell it for all, and they part as ranks do that are done. Otherwise
 * the others may not know, and wait: tell it here, then sp_comm_abort(). True
 * in a job of one. */
bool sp_agreed(const sp_comm *c);

/* Whether a text, `what` by name, is the same on all ranks. If not, SP_EPEER
 * on all: which ranks differ from rank 0, and the first line in which the
 * lowest of them does, as both have it. Collective. */
SP_MUST sp_err sp_agree_text(sp_comm *c, const char *what, const char *text);

/* Threads for this rank: `wanted`, or, with 0, what its affinity mask allows;
 * a core that the masks of k ranks of the host allow counts 1/k. At least 1.
 * *oversubscribed: the threads of the host's ranks are more than the cores
 * that their masks allow. Collective. Errors: SP_EPEER, SP_ENOMEM. */
SP_MUST sp_err sp_agree_threads(sp_comm *c, int wanted, int *threads,
                                bool *oversubscribed);

#endif
