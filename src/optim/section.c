/* The keys that all optimizers, and all schedules, share. */
#include "optim/section.h"

#include <stddef.h>

#include "sprat/optim.h"

#define OPTIM(field) offsetof(sp_optim_cfg, field)
#define SCHEDULE(field) offsetof(sp_schedule_cfg, field)

static const sp_key optim_keys[] = {
    { "lr", SP_FLOAT, OPTIM(lr), "0.1", 0, 1e6,
      "learning rate, before the schedule's factor; the default is for sgd, "
      "adam and adamw want about 0.001",
      NULL },
    { "weight_decay", SP_FLOAT, OPTIM(weight_decay), "0", 0, 1e3,
      "pull of the weights towards 0, per unit of rate and step", NULL },
    { "decay", SP_CHOICE, OPTIM(decay), "all", 0, 0,
      "what decays: everything, or parameters of more than one dimension",
      "all|matrices" },
    { "clip", SP_FLOAT, OPTIM(clip), "0", 0, 1e12,
      "largest norm of the whole gradient, which is scaled down to it; 0: "
      "none",
      NULL },
};

static const sp_key schedule_keys[] = {
    { "warmup_epochs", SP_FLOAT, SCHEDULE(warmup_epochs), "0", 0, 1e9,
      "epochs over which the rate rises linearly", NULL },
    { "warmup_from", SP_FLOAT, SCHEDULE(warmup_from), "0", 0, 1,
      "factor on the rate at the start of the warm-up", NULL },
};

const sp_section sp_optim_section = {
    .name = "optim",
    .fallback = "sgd",
    .plural = "optimizers",
    .size = sizeof(sp_optim_cfg),
    .keys = optim_keys,
    .key_count = sizeof optim_keys / sizeof *optim_keys,
};

const sp_section sp_schedule_section = {
    .name = "schedule",
    .fallback = "constant",
    .plural = "schedules",
    .size = sizeof(sp_schedule_cfg),
    .keys = schedule_keys,
    .key_count = sizeof schedule_keys / sizeof *schedule_keys,
};
