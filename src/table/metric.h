/* What runs are compared by: scores of an epoch line. */
#ifndef SP_TABLE_METRIC_H
#define SP_TABLE_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "sprat/data.h"
#include "train/state.h"

typedef struct sp_metric {
    const char *name; /* its key in an epoch line */
    size_t offset;    /* of its double in an sp_epoch_line */
    bool higher;      /* is better */
    bool text;        /* of text only, or ... */
    bool images;      /* ... of images only */
    bool percent;
    sp_part part; /* of the data */
} sp_metric;

/* The metric of that name, or NULL. */
const sp_metric *sp_metric_find(const char *name);

/* The i-th name, NULL past the last; for sp_nearest(). */
const char *sp_metric_name(const void *unused, size_t i);

/* Its value in an epoch line; NAN: it does not apply. */
double sp_metric_of(const sp_metric *m, const sp_epoch_line *line);

#endif
