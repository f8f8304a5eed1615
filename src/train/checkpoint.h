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
    const sp_autorank *autorank; /* NULL: nothing was seen of ranks */
    const char *config;          /* the effective configuration */
    int64_t batches;             /* of an epoch */
    bool best;                   /* also let `best` point to it */
    bool rewind; /* also let `rewind`: what rounds of pruning go back to */
} sp_checkpoint_args;

/* Save a checkpoint and let `last` point to it, after `rewind`: a run that
 * stands behind it has both. That of step 0 is called
 * `start`. Collective: every rank writes its own file, rank 0 all else.
 * model.safetensors has the average of the ranks' running statistics, which
 * themselves stay as they are.
 * Errors: SP_EIO, SP_ENOMEM, on all ranks if on one; the older checkpoints
 * then stay. */
SP_MUST sp_err sp_checkpoint_save(const sp_checkpoint_args *a);

/* An open checkpoint. */
typedef struct sp_checkpoint {
    char *folder;
    sp_manifest manifest;
} sp_checkpoint;

/* Open the checkpoint `name` of a run to use its weights: "last", "best" or a
 * folder's name. The weights are checked by their checksum, other files by
 * their sizes. Errors: SP_EARG when there is none of that name; SP_EIO and
 * SP_EFORMAT when it is damaged, naming an older one to use. */
SP_MUST sp_err sp_checkpoint_open(sp_checkpoint *c, const char *run,
                                  const char *name);

/* Open it to go on from it: the checksums of all files are checked, which the
 * ranks share (NULL: this process alone). All open the folder that rank 0
 * finds. Collective. Errors: the same, on all ranks together. */
SP_MUST sp_err sp_checkpoint_open_whole(sp_checkpoint *c, const char *run,
                                        const char *name, sp_comm *comm);
void sp_checkpoint_close(sp_checkpoint *c);

/* Whether the data have the classes, or for text the vocabulary, that the
 * checkpoint was trained on, in the same order. Errors: SP_ECONFIG, naming the
 * first that differs. */
SP_MUST sp_err sp_checkpoint_fits(const sp_checkpoint *c,
                                  const sp_data_info *info);

/* Read its weights, for evaluation. Errors: SP_EFORMAT for another model. */
SP_MUST sp_err sp_checkpoint_load(const sp_checkpoint *c, sp_params *p);

/* Whether they could be read, from the file's header alone. Errors: the same.
 */
SP_MUST sp_err sp_checkpoint_compare(const sp_checkpoint *c,
                                     const sp_params *p);

/* Read all that training goes on from: weights, the optimizer's state and what
 * is this rank's own (reshard.h). What that means on other ranks than it was
 * saved by is appended to `told`, in lines for people. Collective. Errors:
 * SP_EFORMAT for another model or batch, SP_ECONFIG for another optimizer or
 * compressor; on all ranks together. */
SP_MUST sp_err sp_checkpoint_load_all(const sp_checkpoint *c, sp_session *s,
                                      sp_text *told);

/* Remove what writers that were killed left behind. Not collective: for the
 * rank that has locked the run. */
SP_MUST sp_err sp_checkpoint_clean(const char *run);

#endif
