/* The configuration sections that this folder owns. */
#ifndef SP_TRAIN_KEYS_H
#define SP_TRAIN_KEYS_H

#include "sprat/config.h"

extern const sp_section sp_model_section;    /* fills an sp_model_cfg */
extern const sp_section sp_train_section;    /* fills an sp_train_cfg */
extern const sp_section sp_compress_section; /* has no keys of its own */
extern const sp_section sp_lowrank_section;  /* lowrank.h */
extern const sp_section sp_prune_section;    /* prune.h */
extern const sp_section sp_dist_section;     /* fills an sp_dist_cfg */
extern const sp_section sp_log_section;      /* fills an sp_log_cfg */

/* What `lowrank.name` selects. */
extern const sp_entry sp_lowrank_none, sp_lowrank_pufferfish;

/* What `prune.name` selects. */
extern const sp_entry sp_prune_none, sp_prune_magnitude;

/* The words of `train.isa`, by its value. */
const char *sp_isa_choice(int value);

#endif
