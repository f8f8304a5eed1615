/* An opened data set: its settings, its parts, its samples or tokens. The
 * validation part is the set's own split, or held out of the training split. */
#ifndef SPRAT_DATA_DATASET_H
#define SPRAT_DATA_DATASET_H

#include "data/augment.h"

typedef struct sp_dataset {
    const sp_data_set *set;
    sp_data_info info;
    sp_augment augment;     /* what training images go through */
    int workers;            /* data.workers */
    size_t count[SP_PARTS]; /* images, or tokens */
    char *root; /* the folder that was found; NULL: opens no files */

    /* Private. */
    void *state;
    size_t *order; /* of the training split: the held-out samples first;
                      NULL when there are none */
} sp_dataset;

/* Whether the settings fit images, or text, as `info` says; opens nothing.
 * Settings that would have no effect on text are refused, and so is holding
 * out samples where the set has a validation split of its own. Errors:
 * SP_EDATA. */
SP_MUST sp_err sp_dataset_check(const sp_data_cfg *cfg,
                                const sp_data_info *info);

/* Open a data set. `own` is the struct of its keys; set and own must outlive
 * *out. Errors: SP_EDATA, SP_EIO, naming file and remedy. */
SP_MUST sp_err sp_dataset_open(sp_dataset **out, const sp_data_set *set,
                               const void *own, const sp_data_cfg *cfg);
void sp_dataset_close(sp_dataset *d);

/* The number in its split of sample i of a part; a sample keeps it whatever
 * `valid` is. The held-out samples are a function of `valid` alone: the first
 * ones of a fixed permutation, so that a smaller choice is a part of a larger.
 */
size_t sp_dataset_id(const sp_dataset *d, sp_part part, size_t i);

/* The tokens of a part of a text, d->count[part] of them in [0, classes). */
const int32_t *sp_dataset_tokens(const sp_dataset *d, sp_part part);

/* The image and label of sample `id` of a part's split. For several threads
 * at once. */
SP_MUST sp_err sp_dataset_read(const sp_dataset *d, sp_part part, size_t id,
                               uint8_t *image, int *label);

#endif
