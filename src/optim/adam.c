/* Adam: steps along the mean gradient over the root of its mean square.
 *
 *   g = scale * gradient + decay * w
 *   m = beta1 * m + (1 - beta1) * g
 *   v = beta2 * v + (1 - beta2) * g^2
 *   w -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps),  t from 1
 *
 * Source: Kingma, Ba 2015, "Adam: a method for stochastic optimization",
 *         Algorithm 1; decay as PyTorch adds it, part of the gradient. For
 *         decay that the moments do not rescale take adamw.
 */
#include "optim/moments.h"

static void update(const sp_update *u) { sp_moments_update(u, u->decay, 1.0f); }

const sp_optimizer sp_optimizer_adam = {
    .entry = { .name = "adam",
               .help = "Adam; weight decay is part of the gradient",
               .cfg_size = sizeof(sp_moments_cfg),
               .keys = sp_moment_keys,
               .key_count = SP_MOMENT_KEYS },
    .state_count = 2,
    .state_names = { "exp_avg", "exp_avg_sq" },
    .pulls = true,
    .update = update,
};
