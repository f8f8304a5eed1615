#include "data/dataset.h"

#include <stdlib.h>

#include "sprat/random.h"

sp_err sp_dataset_check(const sp_data_cfg *cfg, const sp_data_info *info)
{
    sp_augment a;

    return sp_augment_init(&a, cfg, info->h, info->w, info->c);
}

/* Hold `valid` training samples out. */
static sp_err divide(sp_dataset *d, size_t valid)
{
    size_t train = d->info.count[SP_TRAIN];

    if (valid > 0 && valid >= train)
        return sp_fail(SP_EDATA,
                       "data.valid: %zu images cannot be held out of %zu "
                       "training images; at most %zu",
                       valid, train, train > 0 ? train - 1 : 0);
    d->count[SP_PART_TRAIN] = train - valid;
    d->count[SP_PART_VALID] = valid;
    d->count[SP_PART_TEST] = d->info.count[SP_TEST];
    if (valid == 0)
        return SP_OK;
    d->order = malloc(train * sizeof *d->order);
    if (!d->order)
        return sp_fail(SP_ENOMEM, "data.valid: out of memory");
    sp_permute(0, SP_FOR_SPLIT, 0, d->order, train);
    return SP_OK;
}

static sp_err open_set(sp_dataset *d, const void *own, const sp_data_cfg *cfg)
{
    const sp_data_set *set = d->set;

    if (set->folder)
        SP_TRY(sp_data_find(*cfg->root ? cfg->root : set->folder, &d->root));
    SP_TRY(set->open(d->root, own, &d->info, &d->state));
    SP_TRY(sp_augment_init(&d->augment, cfg, d->info.h, d->info.w, d->info.c));
    d->workers = cfg->workers;
    return divide(d, (size_t)cfg->valid);
}

sp_err sp_dataset_open(sp_dataset **out, const sp_data_set *set,
                       const void *own, const sp_data_cfg *cfg)
{
    sp_dataset *d = calloc(1, sizeof *d);
    sp_err err;

    if (!d)
        return sp_fail(SP_ENOMEM, "%s: out of memory", set->entry.name);
    d->set = set;
    err = open_set(d, own, cfg);
    if (err) {
        sp_dataset_close(d);
        return err;
    }
    *out = d;
    return SP_OK;
}

void sp_dataset_close(sp_dataset *d)
{
    if (!d)
        return;
    if (d->state)
        d->set->close(d->state);
    free(d->root);
    free(d->order);
    free(d);
}

size_t sp_dataset_id(const sp_dataset *d, sp_part part, size_t i)
{
    if (!d->order || part == SP_PART_TEST)
        return i;
    return d->order[part == SP_PART_VALID ? i : d->count[SP_PART_VALID] + i];
}

sp_err sp_dataset_read(const sp_dataset *d, sp_part part, size_t id,
                       uint8_t *image, int *label)
{
    sp_split split = part == SP_PART_TEST ? SP_TEST : SP_TRAIN;

    return d->set->read(d->state, split, id, image, label);
}
