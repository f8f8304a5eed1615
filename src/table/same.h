/* Whether two configurations train the same. */
#ifndef SP_TABLE_SAME_H
#define SP_TABLE_SAME_H

#include <stdbool.h>

#include "sprat/config.h"

enum { SP_DIFFERENCE_ROOM = 256 };

/* Compare all keys that can change the bits of what is trained, or its scores;
 * paths are equal that lead to one place. *same tells; if not, `first` is the
 * first key that differs: "optim.lr is 0.1, not 0.05", with b's value first.
 * Errors: SP_ENOMEM. */
SP_MUST sp_err sp_config_same(const sp_config *a, const sp_config *b,
                              bool *same, char first[SP_DIFFERENCE_ROOM]);

/* What lets a run of configuration `have` go on with the keys of `want` that do
 * not count above: settings "section.key=value" for sp_resume(). */
typedef struct sp_overrides {
    char **setting;
    size_t count;
} sp_overrides;

/* Of two configurations that are the same. On success
 * sp_overrides_free() frees what is in *out. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_config_change(const sp_config *want, const sp_config *have,
                                sp_overrides *out);
void sp_overrides_free(sp_overrides *l);

#endif
