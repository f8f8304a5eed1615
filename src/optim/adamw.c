/* AdamW: Adam whose weight decay stays out of the moments.
 *
 *   w -= lr * decay * w      (or what decay pulls on, for w)
 *   then as adam with decay 0
 *
 * Source: Loshchilov, Hutter 2019, "Decoupled weight decay regularization",
 *         Algorithm 2; the decay is multiplied by the rate, as in PyTorch.
 */
#include "optim/moments.h"

static void update(const sp_update *u)
{
    sp_moments_update(u, 0.0f, 1.0f - u->lr * u->decay);
}

const sp_optimizer sp_optimizer_adamw = {
    .entry = { .name = "adamw",
               .help = "Adam with decoupled weight decay",
               .cfg_size = sizeof(sp_moments_cfg),
               .keys = sp_moment_keys,
               .key_count = SP_MOMENT_KEYS },
    .state_count = 2,
    .state_names = { "exp_avg", "exp_avg_sq" },
    .pulls = true,
    .update = update,
};
