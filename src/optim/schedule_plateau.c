/* The rate drops when the validation loss has stopped falling.
 *
 * An epoch is good when loss < best * (1 - threshold). After more than
 * `patience` bad ones in a row the factor is multiplied by `factor`, down to
 * `floor`, and the count starts again. The rate changes between epochs.
 *
 * Source: PyTorch's ReduceLROnPlateau in its default mode (min, rel), without
 *         cool-down.
 */
#include <stddef.h>

#include "sprat/optim.h"

typedef struct plateau_cfg {
    double factor, threshold, floor;
    int patience;
} plateau_cfg;

#define AT(field) offsetof(plateau_cfg, field)

static const sp_key keys[] = {
    { "factor", SP_FLOAT, AT(factor), "0.1", 0, 1, "on the rate at each drop",
      NULL },
    { "patience", SP_INT, AT(patience), "10", 0, 1e9,
      "bad epochs in a row that do not yet lower the rate", NULL },
    { "threshold", SP_FLOAT, AT(threshold), "1e-4", 0, 1,
      "share by which the loss must fall to count", NULL },
    { "floor", SP_FLOAT, AT(floor), "0", 0, 1, "smallest factor on the rate",
      NULL },
};

static double factor(const void *own, const sp_schedule_at *at,
                     const sp_schedule_state *s)
{
    (void)own;
    (void)at;
    return s->factor;
}

static void observe(const void *own, double loss, sp_schedule_state *s)
{
    const plateau_cfg *c = own;

    if (loss < s->best * (1 - c->threshold)) {
        s->best = loss;
        s->bad = 0;
        return;
    }
    if (++s->bad <= c->patience)
        return;
    s->bad = 0;
    s->factor *= c->factor;
    if (s->factor < c->floor)
        s->factor = c->floor;
}

const sp_schedule sp_schedule_plateau = {
    .entry = { .name = "plateau",
               .help = "the rate drops when the validation loss stops falling",
               .cfg_size = sizeof(plateau_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .factor = factor,
    .observe = observe,
};
