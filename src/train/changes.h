/* What is changed in a run that goes on: the overrides that it is resumed
 * with. */
#ifndef SP_TRAIN_CHANGES_H
#define SP_TRAIN_CHANGES_H

#include "base/text.h"
#include "train/manifest.h"

typedef struct sp_changes {
    const char *const *all; /* "section.key=value" */
    size_t count;
} sp_changes;

/* Warn of those that come too late, for weights come from the checkpoint, or
 * for a network that is of low rank already: a line each, appended to `out`. */
void sp_changes_warn(const sp_changes *c, const sp_manifest *m, sp_text *out);

/* The last error says that the network is not the checkpoint's: add which
 * changes may be why, if there are such. Returns `e`. */
sp_err sp_changes_blame(const sp_changes *c, sp_err e);

#endif
