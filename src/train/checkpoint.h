/* Checkpoints: folders in RUN/checkpoints that are whole or absent.
 *
 * A new one is written under a name that starts with a dot, synced, and
 * renamed; then the links `last` and `best` are switched. Nothing that is in
 * place is ever written to, so a crash or a full disk at any moment costs the
 * new checkpoint at most.
 */
#ifndef SP_TRAIN_CHECKPOINT_H
#define SP_TRAIN_CHECKPOINT_H

#include "train/manifest.h"
#include "train/session.h"

/* What to save. */
typedef struct sp_checkpoint_args {
    const char *run; /* its folder */
    const sp_session *session;
    const sp_train_state *state;
    const char *config; /* the effective configuration */
    int64_t batches;    /* of an epoch */
    bool best;          /* also let `best` point to it */
} sp_checkpoint_args;

/* Save a checkpoint and let `last` point to it. That of step 0 is called
 * `start`. Errors: SP_EIO, SP_ENOMEM; the older checkpoints then stay. */
SP_MUST sp_err sp_checkpoint_save(const sp_checkpoint_args *a);

/* A checkpoint whose checksums were verified. */
typedef struct sp_checkpoint {
    char *folder;
    sp_manifest manifest;
} sp_checkpoint;

/* Open the checkpoint `name` of a run: "last", "best" or a folder's name.
 * Errors: SP_EARG when there is none of that name; SP_EIO and SP_EFORMAT when
 * it is damaged, naming an older one to use. */
SP_MUST sp_err sp_checkpoint_open(sp_checkpoint *c, const char *run,
                                  const char *name);
void sp_checkpoint_close(sp_checkpoint *c);

/* Whether the data have the classes, or for text the vocabulary, that the
 * checkpoint was trained on, in the same order. Errors: SP_ECONFIG, naming the
 * first that differs. */
SP_MUST sp_err sp_checkpoint_fits(const sp_checkpoint *c,
                                  const sp_data_info *info);

/* Read its weights, for evaluation. Errors: SP_EFORMAT for another model. */
SP_MUST sp_err sp_checkpoint_load(const sp_checkpoint *c, sp_params *p);

/* Read all that training goes on from: weights, this rank's statistics, the
 * optimizer's state, and within an epoch the states that text has left. Errors:
 * SP_EFORMAT for another model or batch, SP_ECONFIG for another optimizer. */
SP_MUST sp_err sp_checkpoint_load_all(const sp_checkpoint *c, sp_session *s);

/* Remove what writers that were killed left behind. */
SP_MUST sp_err sp_checkpoint_clean(const char *run);

#endif
