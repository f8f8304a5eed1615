/* The rate falls to zero as a power of what is left.
 *
 *   (1 - share)^power
 *
 * share = part of the epochs after the warm-up that is done, 0 to 1. Power 1
 * is a straight line. Moves at every step.
 */
#include <math.h>
#include <stddef.h>

#include "optim/schedule.h"

typedef struct poly_cfg {
    double power;
} poly_cfg;

static const sp_key keys[] = {
    { "power", SP_FLOAT, offsetof(poly_cfg, power), "1", 0, 100,
      "of the share of the run that is left; 1: straight line", NULL },
};

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    (void)s;
    return pow(1 - sp_schedule_share(at), ((const poly_cfg *)own)->power);
}

const sp_schedule sp_schedule_poly = {
    .entry = { .name = "poly",
               .help = "the rate falls to 0 as a power of what is left",
               .cfg_size = sizeof(poly_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .factor = factor,
};
