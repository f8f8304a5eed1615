/* The machine that a session computes on, and the ranks it shares it with. */
#ifndef SP_TRAIN_MACHINE_H
#define SP_TRAIN_MACHINE_H

#include "train/session.h"

/* Set the session's threads and instruction set, as configured: of several
 * ranks, the threads that are left to this one, and the least of all ranks'
 * instruction sets, so that they compute the same. Collective.
 * Errors: SP_EPEER; SP_ECONFIG for an instruction set that this CPU lacks. */
SP_MUST sp_err sp_machine_open(sp_session *s);

#endif
