/* Half a cosine wave from the full rate to its floor, over the epochs after
 * the warm-up.
 *
 *   floor + (1 - floor) * (1 + cos(pi * share)) / 2
 *
 * share = part of the epochs after the warm-up that is done, 0 to 1.
 * Source: Loshchilov, Hutter 2017, "SGDR", equation 5, without restarts.
 * Differs: moves at every step, where PyTorch's scheduler is usually called
 *          once an epoch.
 */
#include <math.h>
#include <stddef.h>

#include "optim/schedule.h"

typedef struct cosine_cfg {
    double floor;
} cosine_cfg;

static const sp_key keys[] = {
    { "floor", SP_FLOAT, offsetof(cosine_cfg, floor), "0", 0, 1,
      "factor on the rate at the end", NULL },
};

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    const double pi = 3.14159265358979323846;
    double floor = ((const cosine_cfg *)own)->floor;

    (void)s;
    return floor + (1 - floor) * (1 + cos(pi * sp_schedule_share(at))) / 2;
}

const sp_schedule sp_schedule_cosine = {
    .entry = { .name = "cosine",
               .help = "half a cosine wave down to `floor`",
               .cfg_size = sizeof(cosine_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .factor = factor,
};
