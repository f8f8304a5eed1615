/* Everything that the library brings, by section and name. The lists are made
 * by Meson from the lists of sources. */
#include "base/registry.h"

#include <stdlib.h>

#include "compressor_list.h"
#include "data/section.h"
#include "data_list.h"
#include "model_list.h"
#include "op_list.h"
#include "optim/section.h"
#include "optimizer_list.h"
#include "sprat/compress.h"
#include "sprat/data.h"
#include "sprat/model.h"
#include "sprat/op.h"
#include "sprat/optim.h"
#include "sprat/train.h"
#include "train/keys.h"

#define X(name) extern const sp_model sp_model_##name;
SP_MODEL_LIST
#undef X
#define X(name) extern const sp_data_set sp_data_set_##name;
SP_DATA_SET_LIST
#undef X
#define X(name) extern const sp_optimizer sp_optimizer_##name;
SP_OPTIMIZER_LIST
#undef X
#define X(name) extern const sp_schedule sp_schedule_##name;
SP_SCHEDULE_LIST
#undef X
#define X(name) extern const sp_compressor sp_compressor_##name;
SP_COMPRESSOR_LIST
#undef X
#define X(name) extern const sp_op sp_op_##name;
SP_OP_LIST
#undef X

/* In the order of the configuration's description. */
static const sp_section *const sections[] = {
    &sp_model_section,   &sp_data_section,     &sp_train_section,
    &sp_optim_section,   &sp_schedule_section, &sp_compress_section,
    &sp_lowrank_section, &sp_prune_section,    &sp_dist_section,
    &sp_log_section,
};

static const sp_entry *const models[] = {
#define X(name) &sp_model_##name.entry,
    SP_MODEL_LIST
#undef X
        NULL
};

static const sp_entry *const data_sets[] = {
#define X(name) &sp_data_set_##name.entry,
    SP_DATA_SET_LIST
#undef X
        NULL
};

static const sp_entry *const optimizers[] = {
#define X(name) &sp_optimizer_##name.entry,
    SP_OPTIMIZER_LIST
#undef X
        NULL
};

static const sp_entry *const schedules[] = {
#define X(name) &sp_schedule_##name.entry,
    SP_SCHEDULE_LIST
#undef X
        NULL
};

static const sp_entry *const compressors[] = {
#define X(name) &sp_compressor_##name.entry,
    SP_COMPRESSOR_LIST
#undef X
        NULL
};

static const sp_entry *const lowrank_methods[] = { &sp_lowrank_none,
                                                   &sp_lowrank_pufferfish,
                                                   NULL };

static const sp_entry *const prune_methods[] = { &sp_prune_none,
                                                 &sp_prune_magnitude, NULL };

static const struct {
    const char *section;
    const sp_entry *const *entries;
} things[] = {
    { "model", models },         { "data", data_sets },
    { "optim", optimizers },     { "schedule", schedules },
    { "compress", compressors }, { "lowrank", lowrank_methods },
    { "prune", prune_methods },
};

sp_registry *sp_registry_new(void)
{
    sp_registry *r =
        sp_registry_create(sections, sizeof sections / sizeof *sections);

    for (size_t i = 0; r && i < sizeof things / sizeof *things; i++)
        for (size_t k = 0; r && things[i].entries[k]; k++)
            if (sp_registry_add(r, things[i].section, things[i].entries[k])) {
                sp_registry_free(r);
                r = NULL;
            }
    return r;
}

const sp_op *sp_op_at(int i)
{
    static const sp_op *const ops[] = {
#define X(name) &sp_op_##name,
        SP_OP_LIST
#undef X
            NULL
    };

    return i >= 0 && (size_t)i < sizeof ops / sizeof *ops ? ops[i] : NULL;
}
