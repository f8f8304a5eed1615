/* The loader of text: chunks are copied out of the stream when they are asked
 * for, which takes no time beside computing with them.
 *
 * Column c holds the tokens from start(c) on and has `length` targets, the
 * first `longer` columns one more:
 *
 *   training  start(c) = c * (length + 1), length = N / batch - 1, longer = 0
 *   scoring   start(c) = c * length + min(c, longer), where N - 1 targets are
 *             length to a column and `longer` left over
 */
#include "data/text_loader.h"

#include <stdlib.h>

struct sp_text_loader {
    const int32_t *stream;
    size_t columns, length, longer, stride; /* of the whole job */
    size_t first, n;                        /* this rank's columns */
    size_t steps, chunks, batches; /* chunks: that all columns take part in */
    int epoch;                     /* of the next batch */
    size_t index;                  /* batches: the end mark is due */
    int32_t *tokens;
    int *labels;
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static sp_err too_short(const sp_loader_opt *o, size_t tokens)
{
    size_t each = tokens / o->batch, need = (size_t)o->steps + 1;

    return sp_fail(SP_EDATA,
                   "train.bptt: %zu tokens in %zu columns are %zu each, %zu "
                   "targets; %d steps need at least %zu a column, %zu tokens: "
                   "make train.batch or train.bptt smaller",
                   tokens, o->batch, each, each > 0 ? each - 1 : 0, o->steps,
                   need, need * o->batch);
}

static sp_err cut_for_training(sp_text_loader *l, const sp_loader_opt *o,
                               size_t tokens)
{
    l->columns = o->batch;
    l->stride = tokens / o->batch;
    if (l->stride <= (size_t)o->steps)
        return too_short(o, tokens);
    l->length = l->stride - 1;
    return SP_OK;
}

static sp_err cut_for_scoring(sp_text_loader *l, const sp_loader_opt *o,
                              size_t tokens)
{
    if (tokens == 0)
        return SP_OK;
    if (tokens == 1)
        return sp_fail(SP_EDATA,
                       "data set %s: 1 token is nothing to predict; a part "
                       "needs at least 2",
                       o->data->set->entry.name);
    l->columns = smaller(o->batch, tokens - 1);
    l->length = l->stride = (tokens - 1) / l->columns;
    l->longer = (tokens - 1) % l->columns;
    return SP_OK;
}

static sp_err cut(sp_text_loader *l, const sp_loader_opt *o)
{
    size_t tokens = o->data->count[o->part];

    if (o->steps < 1)
        return sp_fail(SP_EARG, "batches: %d time steps: out of range",
                       o->steps);
    SP_TRY(o->scoring ? cut_for_scoring(l, o, tokens)
                      : cut_for_training(l, o, tokens));
    l->stream = sp_dataset_tokens(o->data, o->part);
    l->steps = (size_t)o->steps;
    l->chunks = l->length / l->steps + (l->length % l->steps > 0);
    l->batches = l->chunks + (l->longer > 0);
    sp_share(l->columns, o->rank, o->ranks, &l->first, &l->n);
    return SP_OK;
}

static sp_err allocate(sp_text_loader *l, const sp_loader_opt *opt)
{
    size_t most = l->n * smaller(l->steps, l->length);

    l->tokens = malloc((most > 0 ? most : 1) * sizeof *l->tokens);
    l->labels = malloc((most > 0 ? most : 1) * sizeof *l->labels);
    if (!l->tokens || !l->labels)
        return sp_fail(SP_ENOMEM,
                       "batches: no memory for %zu tokens; use a smaller "
                       "train.%s or train.bptt",
                       most, opt->scoring ? "eval_batch" : "batch");
    return SP_OK;
}

sp_err sp_text_loader_new(sp_text_loader **out, const sp_loader_opt *opt)
{
    sp_text_loader *l = calloc(1, sizeof *l);
    sp_err err;

    if (!l)
        return sp_fail(SP_ENOMEM, "batches: out of memory");
    err = cut(l, opt);
    if (err == SP_OK)
        err = allocate(l, opt);
    if (err) {
        sp_text_loader_free(l);
        return err;
    }
    *out = l;
    return SP_OK;
}

void sp_text_loader_free(sp_text_loader *l)
{
    if (!l)
        return;
    free(l->tokens);
    free(l->labels);
    free(l);
}

size_t sp_text_loader_batches(const sp_text_loader *l) { return l->batches; }

size_t sp_text_loader_capacity(const sp_text_loader *l) { return l->n; }

void sp_text_loader_seek(sp_text_loader *l, int epoch, size_t index)
{
    l->epoch = epoch;
    l->index = index;
}

/* Copy the batch's rows from target `at` of their columns on. */
static void fill(sp_text_loader *l, const sp_batch *b, size_t at)
{
    size_t n = (size_t)b->n;

    for (size_t i = 0; i < n; i++) {
        size_t column = l->first + i;
        const int32_t *from =
            l->stream + column * l->stride + smaller(column, l->longer) + at;

        for (size_t s = 0; s < (size_t)b->t; s++) {
            l->tokens[s * n + i] = from[s];
            l->labels[s * n + i] = from[s + 1];
        }
    }
}

void sp_text_loader_next(sp_text_loader *l, sp_batch *batch)
{
    sp_batch b = { .epoch = l->epoch };
    size_t at = l->index * l->steps;

    if (l->index == l->batches) {
        b.end = true;
        l->epoch++;
        l->index = 0;
        *batch = b;
        return;
    }
    b.rows = l->columns;
    b.t = (int)smaller(l->steps, l->length - smaller(at, l->length));
    if (l->index == l->chunks) {
        at = l->length;
        b.rows = l->longer;
        b.t = 1;
    }
    b.row = smaller(l->first, b.rows);
    b.n = (int)smaller(l->n, b.rows - b.row);
    b.targets = b.rows * (size_t)b.t;
    b.index = l->index++;
    b.last = l->index == l->batches;
    b.tokens = l->tokens;
    b.labels = l->labels;
    fill(l, &b, at);
    *batch = b;
}
