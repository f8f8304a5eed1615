/* The scores that runs are compared by. */
#include "table/metric.h"

#include <string.h>

#define AT(field) offsetof(sp_epoch_line, field)

static const sp_metric metrics[] = {
    { "train_loss", AT(train_loss), false, false, false, false, SP_PART_TRAIN },
    { "train_top1", AT(train_top1), true, false, true, true, SP_PART_TRAIN },
    { "train_ppl", AT(train_ppl), false, true, false, false, SP_PART_TRAIN },
    { "valid_loss", AT(valid_loss), false, false, false, false, SP_PART_VALID },
    { "valid_top1", AT(valid_top1), true, false, true, true, SP_PART_VALID },
    { "valid_top5", AT(valid_top5), true, false, true, true, SP_PART_VALID },
    { "valid_ppl", AT(valid_ppl), false, true, false, false, SP_PART_VALID },
    { "test_loss", AT(test_loss), false, false, false, false, SP_PART_TEST },
    { "test_top1", AT(test_top1), true, false, true, true, SP_PART_TEST },
    { "test_top5", AT(test_top5), true, false, true, true, SP_PART_TEST },
    { "test_ppl", AT(test_ppl), false, true, false, false, SP_PART_TEST },
};

enum { METRICS = sizeof metrics / sizeof *metrics };

const sp_metric *sp_metric_find(const char *name)
{
    for (size_t i = 0; i < METRICS; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

const char *sp_metric_name(const void *unused, size_t i)
{
    (void)unused;
    return i < METRICS ? metrics[i].name : NULL;
}

double sp_metric_of(const sp_metric *m, const sp_epoch_line *line)
{
    return *(const double *)((const char *)line + m->offset);
}
