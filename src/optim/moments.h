/* What Adam and AdamW share: two moments of the gradient. */
#ifndef SP_OPTIM_MOMENTS_H
#define SP_OPTIM_MOMENTS_H

#include "sprat/optim.h"

enum { SP_MOMENT_KEYS = 3 };

typedef struct sp_moments_cfg {
    double beta1, beta2, eps;
} sp_moments_cfg;

extern const sp_key sp_moment_keys[SP_MOMENT_KEYS];

/* One step along mean / (sqrt(mean square) + eps), both corrected for having
 * started at zero. `coupled` is the decay that is added to the gradient,
 * `shrink` the factor on the weight before the step; where decay pulls on
 * something else, what of it is not coupled is taken off, times the rate. */
void sp_moments_update(const sp_update *u, float coupled, float shrink);

#endif
