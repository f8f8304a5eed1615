/* What the ranks of a job share: what rank 0 knows, and a file system. All of
 * it is collective, and does nothing in a job of one. */
#ifndef SP_TRAIN_SHARED_H
#define SP_TRAIN_SHARED_H

#include "dist/agree.h"
#include "dist/comm.h"

/* Every rank's `bytes` at `x` become rank 0's. Errors: those of waiting. */
SP_MUST sp_err sp_shared_bytes(sp_comm *c, sp_use use, void *x, size_t bytes);

/* *text of all ranks but 0 becomes a copy of rank 0's, theirs to free.
 * Errors: SP_ENOMEM, those of waiting. */
SP_MUST sp_err sp_shared_text(sp_comm *c, sp_use use, char **text);

/* Wait until this host sees the file or folder that rank 0 has made, with this
 * text in it (NULL: with any), for a few seconds: network file systems take
 * their time. Not collective. Errors: SP_EIO, saying what to do. */
SP_MUST sp_err sp_shared_wait(const char *path, const char *text);

#endif
