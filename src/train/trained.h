/* What `train` has left: a run's configuration and one of its checkpoints. */
#ifndef SP_TRAIN_TRAINED_H
#define SP_TRAIN_TRAINED_H

#include "train/checkpoint.h"

typedef struct sp_trained {
    sp_config *config;
    sp_checkpoint checkpoint;
} sp_trained;

/* Open the checkpoint of that name ("last", "best" or a folder's; NULL: the
 * best) of a run. Errors: those of sp_config_of_run() and
 * sp_checkpoint_open(); nothing is open then. */
SP_MUST sp_err sp_trained_open(sp_trained *t, const sp_registry *r,
                               const char *run, const char *checkpoint);
void sp_trained_close(sp_trained *t);

/* Open a session of its network with its weights, for evaluation: a program
 * for one image, or one token. The data are not opened: what they are, the
 * checkpoint tells. Names in s->info are the checkpoint's, which must outlive
 * the session. Errors: those of sp_session_open() and sp_checkpoint_load(). */
SP_MUST sp_err sp_trained_session(const sp_trained *t, sp_session *s);

#endif
