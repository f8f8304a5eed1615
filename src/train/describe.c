/* What a session consists of, for people. */
#include <stdio.h>

#include "train/session.h"

void sp_describe_model(const sp_session *s, char out[SP_DESCRIBE_ROOM])
{
    snprintf(out, SP_DESCRIBE_ROOM,
             "%s%s: %zu parameters, %.1f million MACs a %s",
             s->set.model->entry.name, s->low ? " of low rank" : "",
             sp_params_count(s->params), sp_graph_macs(s->train.graph) / 1e6,
             s->info.text ? "token" : "sample");
}

void sp_describe_data(const sp_session *s, char out[SP_DESCRIBE_ROOM])
{
    const sp_data_info *i = &s->info;
    const size_t *count = s->data->count;
    const size_t *unknown = i->unknown;
    char kind[128];

    if (i->text && unknown[SP_VALID] + unknown[SP_TEST] > 0)
        snprintf(kind, sizeof kind,
                 "tokens, a vocabulary of %d; %zu validation and %zu test "
                 "words became " SP_UNK,
                 i->classes, unknown[SP_VALID], unknown[SP_TEST]);
    else if (i->text)
        snprintf(kind, sizeof kind, "tokens, a vocabulary of %d", i->classes);
    else
        snprintf(kind, sizeof kind, "images of %dx%dx%d in %d classes", i->h,
                 i->w, i->c, i->classes);
    snprintf(out, SP_DESCRIBE_ROOM,
             "%s%s%s: %zu training, %zu validation, %zu test %s",
             s->set.set->entry.name, s->data->root ? " in " : "",
             s->data->root ? s->data->root : "", count[SP_PART_TRAIN],
             count[SP_PART_VALID], count[SP_PART_TEST], kind);
}

void sp_describe_batch(const sp_session *s, char out[SP_DESCRIBE_ROOM])
{
    const sp_train_cfg *cfg = s->set.train;

    if (s->info.text)
        snprintf(out, SP_DESCRIBE_ROOM, "%d columns of up to %d tokens",
                 cfg->batch, cfg->bptt);
    else
        snprintf(out, SP_DESCRIBE_ROOM, "%d", cfg->batch);
}
