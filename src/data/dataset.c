#include "data/dataset.h"

#include <stdlib.h>

#include "sprat/random.h"

static sp_err check_text(const sp_data_cfg *cfg)
{
    if (cfg->augment != SP_AUGMENT_NONE)
        return sp_fail(SP_EDATA, "data.augment: changes images, and this data "
                                 "set is text; set it to none");
    if (cfg->normalize != SP_NORMALIZE_NONE)
        return sp_fail(SP_EDATA, "data.normalize: is for images, and this "
                                 "data set is text; set it to none");
    if (cfg->valid > 0)
        return sp_fail(SP_EDATA,
                       "data.valid: %d: images are held out, not text, which "
                       "brings a validation file; set it to 0",
                       cfg->valid);
    return SP_OK;
}

sp_err sp_dataset_check(const sp_data_cfg *cfg, const sp_data_info *info)
{
    sp_augment a;

    if (cfg->valid > 0 && info->count[SP_VALID] > 0)
        return sp_fail(SP_EDATA,
                       "data.valid: the data set has a validation split of "
                       "its own, of %zu; set data.valid to 0",
                       info->count[SP_VALID]);
    return info->text ? check_text(cfg)
                      : sp_augment_init(&a, cfg, info->h, info->w, info->c);
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
    d->count[SP_PART_VALID] = valid + d->info.count[SP_VALID];
    d->count[SP_PART_TEST] = d->info.count[SP_TEST];
    if (valid == 0)
        return SP_OK;
    d->order = malloc(train * sizeof *d->order);
    if (!d->order)
        return sp_fail(SP_ENOMEM, "data.valid: out of memory");
    sp_permute(0, SP_FOR_SPLIT, 0, d->order, train);
    return SP_OK;
}

static const char *const split_names[SP_SPLITS] = { "train", "test", "valid" };

/* A program's own set may be anything, and nothing behind it looks again. */
static sp_err check_tokens(const sp_dataset *d)
{
    const char *name = d->set->entry.name;

    if (!d->set->tokens)
        return sp_fail(SP_EARG, "data set %s: is text but gives no tokens",
                       name);
    for (int s = 0; s < SP_SPLITS; s++) {
        const int32_t *token = d->set->tokens(d->state, (sp_split)s);

        if (!token && d->info.count[s] > 0)
            return sp_fail(SP_EARG,
                           "data set %s: gives no tokens for its %zu of %s",
                           name, d->info.count[s], split_names[s]);
        for (size_t i = 0; i < d->info.count[s]; i++)
            if (token[i] < 0 || token[i] >= d->info.classes)
                return sp_fail(SP_EDATA,
                               "data set %s: token %zu of %s is %d; tokens "
                               "are 0 to %d",
                               name, i, split_names[s], (int)token[i],
                               d->info.classes - 1);
    }
    return SP_OK;
}

static sp_err open_set(sp_dataset *d, const void *own, const sp_data_cfg *cfg)
{
    const sp_data_set *set = d->set;

    if (set->folder)
        SP_TRY(sp_data_find(*cfg->root ? cfg->root : set->folder, &d->root));
    SP_TRY(set->open(d->root, own, &d->info, &d->state));
    SP_TRY(sp_dataset_check(cfg, &d->info));
    if (d->info.text)
        SP_TRY(check_tokens(d));
    else
        SP_TRY(
            sp_augment_init(&d->augment, cfg, d->info.h, d->info.w, d->info.c));
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

/* The split that a part's samples are in. */
static sp_split split_of(const sp_dataset *d, sp_part part)
{
    if (part == SP_PART_TEST)
        return SP_TEST;
    return part == SP_PART_VALID && !d->order ? SP_VALID : SP_TRAIN;
}

const int32_t *sp_dataset_tokens(const sp_dataset *d, sp_part part)
{
    return d->set->tokens(d->state, split_of(d, part));
}

sp_err sp_dataset_read(const sp_dataset *d, sp_part part, size_t id,
                       uint8_t *image, int *label)
{
    return d->set->read(d->state, split_of(d, part), id, image, label);
}
