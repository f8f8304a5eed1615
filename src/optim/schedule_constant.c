/* The rate stays as it is. */
#include "sprat/optim.h"

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    (void)own;
    (void)at;
    (void)s;
    return 1;
}

const sp_schedule sp_schedule_constant = {
    .entry = { .name = "constant", .help = "the rate stays as it is" },
    .factor = factor,
};
