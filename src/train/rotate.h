/* Which checkpoints of a run are there, and which may go. */
#ifndef SP_TRAIN_ROTATE_H
#define SP_TRAIN_ROTATE_H

#include "sprat/base.h"

/* Remove the oldest checkpoints of a run until `keep` stay beside `start` and
 * those that `last`, `best` and `rewind` point to. Errors: SP_EIO, SP_ENOMEM;
 * what could not be removed is no checkpoint any more, or still a whole one. */
SP_MUST sp_err sp_rotate(const char *run, int keep);

/* The name of the newest checkpoint of a run that is complete and not the one
 * in `folder`, nor where that points to; the caller's to free. NULL: none. */
char *sp_rotate_other(const char *run, const char *folder);

#endif
