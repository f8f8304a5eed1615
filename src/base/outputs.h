/* Files that a user names for output, held against what they would destroy. */
#ifndef SPRAT_BASE_OUTPUTS_H
#define SPRAT_BASE_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "sprat/base.h"

/* Whether a run makes something of that name in its folder, or leaves it when
 * killed while it writes. */
bool sp_run_makes(const char *name);

/* Refuse to write `path` where that would replace one of the `count` inputs, or
 * what a run made or may make: by its name in the run's folder, and anything
 * in its checkpoints. Errors: SP_EARG; SP_ENOMEM. */
SP_MUST sp_err sp_output_check(const char *path, const char *const *inputs,
                               size_t count);

#endif
