/* The configuration of a run, as text and back. */
#ifndef SP_TRAIN_CONFIG_TEXT_H
#define SP_TRAIN_CONFIG_TEXT_H

#include "sprat/config.h"

/* The effective configuration as YAML; *text is the caller's to free. Errors:
 * SP_ENOMEM. */
SP_MUST sp_err sp_config_text(const sp_config *c, char **text);

/* The same without what set each key. */
SP_MUST sp_err sp_config_values(const sp_config *c, char **text);

/* Load RUN/config.yaml with `overrides` laid over it. */
SP_MUST sp_err sp_config_of_run(sp_config **c, const sp_registry *r,
                                const char *run, const char *const *overrides,
                                size_t override_count);

/* Compute with the instruction set that the run began with, unless the
 * configuration names one: another one gives other bits. Errors: SP_EARG when
 * this CPU has it not. */
SP_MUST sp_err sp_config_keep_isa(sp_config *c, const char *isa);

#endif
