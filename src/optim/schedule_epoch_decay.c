/* The rate is multiplied by `factor` every epoch once `after` epochs are done.
 *
 *   factor^max(0, epoch + 1 - after)
 *
 * with epochs from 0: of after = 4, the fifth epoch is the first at a lower
 * rate.
 *
 * Source: Zaremba, Sutskever, Vinyals 2014, "Recurrent neural network
 *         regularization", section 4.1.
 */
#include <math.h>
#include <stddef.h>

#include "sprat/optim.h"

typedef struct decay_cfg {
    int after;
    double factor;
} decay_cfg;

#define AT(field) offsetof(decay_cfg, field)

static const sp_key keys[] = {
    { "after", SP_INT, AT(after), "1", 1, 1e9,
      "epochs at the full rate, before the first change", NULL },
    { "factor", SP_FLOAT, AT(factor), "0.5", 0, 1, "on the rate, every epoch",
      NULL },
};

static double last_epoch(const void *own)
{
    return ((const decay_cfg *)own)->after;
}

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    const decay_cfg *c = own;
    int epochs = at->epoch + 1 - c->after;

    (void)s;
    return epochs > 0 ? pow(c->factor, epochs) : 1;
}

const sp_schedule sp_schedule_epoch_decay = {
    .entry = { .name = "epoch_decay",
               .help = "the rate drops every epoch, after some at the full one",
               .cfg_size = sizeof(decay_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .last_epoch = last_epoch,
    .factor = factor,
};
