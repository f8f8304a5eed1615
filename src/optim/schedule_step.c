/* The rate is multiplied by `factor` every so many epochs, or at milestones.
 *
 *   factor^floor(epoch / every)
 *   factor^(number of milestones <= epoch)
 *
 * Epochs count from 0 and from the start of the run, warm-up included: a
 * milestone of 15 means that 15 epochs run before the change. A milestone
 * inside an epoch acts from the next one on.
 */
#include <math.h>
#include <stddef.h>

#include "sprat/optim.h"

typedef struct step_cfg {
    int every;
    sp_list at;
    double factor;
} step_cfg;

#define AT(field) offsetof(step_cfg, field)

static const sp_key keys[] = {
    { "every", SP_INT, AT(every), "0", 0, 1e9,
      "epochs from one change to the next; 0: use `at`", NULL },
    { "at", SP_LIST, AT(at), "[]", 0, 1e9,
      "milestones: epochs after which the rate changes", NULL },
    { "factor", SP_FLOAT, AT(factor), "0.1", 0, 1e3,
      "on the rate at each change", NULL },
};

static sp_err check(const void *own)
{
    const step_cfg *c = own;

    if (c->every > 0 && c->at.count > 0)
        return sp_fail(SP_ECONFIG,
                       "schedule.every and schedule.at are both given: leave "
                       "one out");
    for (int i = 1; i < c->at.count; i++)
        if (c->at.value[i] <= c->at.value[i - 1])
            return sp_fail(SP_ECONFIG,
                           "schedule.at: %g stands behind %g; give each "
                           "milestone once, in rising order",
                           c->at.value[i], c->at.value[i - 1]);
    return SP_OK;
}

static double last_epoch(const void *own)
{
    const step_cfg *c = own;

    return c->at.count > 0 ? c->at.value[c->at.count - 1] : c->every;
}

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    const step_cfg *c = own;
    int changes = c->every > 0 ? at->epoch / c->every : 0;

    (void)s;
    for (int i = 0; i < c->at.count; i++)
        changes += c->at.value[i] <= at->epoch;
    return pow(c->factor, changes);
}

const sp_schedule sp_schedule_step = {
    .entry = { .name = "step",
               .help = "the rate drops every so many epochs or at milestones",
               .cfg_size = sizeof(step_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .check = check,
    .last_epoch = last_epoch,
    .factor = factor,
};
