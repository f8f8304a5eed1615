/* Evaluation: every sample once. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader.h"
#include "train/shared.h"
#include "train/statistics.h"
#include "train/trained.h"

enum { TOP = 5 };

const char *sp_part_name(sp_part part)
{
    static const char *const names[] = {
        [SP_PART_TRAIN] = "training",
        [SP_PART_VALID] = "validation",
        [SP_PART_TEST] = "test",
    };

    return names[part];
}

int sp_rank_of(const float *logits, int classes, int label)
{
    float own = logits[label];
    int above = 0;

    for (int k = 0; k < classes; k++)
        if (k != label)
            above += k < label ? !(logits[k] < own) : !(logits[k] <= own);
    return above;
}

double sp_perplexity(double loss) { return isnan(loss) ? INFINITY : exp(loss); }

typedef struct sums {
    size_t count, top1, top5;
    double loss;
} sums;

static void rank_images(const sp_session *s, const sp_batch *b, sums *sum)
{
    const float *logits = s->eval.logits->data;

    for (int i = 0; i < b->n; i++, logits += s->classes) {
        int rank = sp_rank_of(logits, s->classes, b->labels[i]);
        sum->top1 += rank == 0;
        sum->top5 += rank < TOP;
    }
}

static void score_batch(sp_session *s, const sp_batch *b, sums *sum)
{
    size_t pixels = (size_t)s->info.h * (size_t)s->info.w * (size_t)s->info.c;
    size_t rows = (size_t)b->n * (size_t)b->t;
    sp_run run = { .n = b->n, .t = b->t, .weight = 1 };
    sp_carry *carry = &s->eval.carry;

    if (s->info.text)
        memcpy(s->eval.input->data, b->tokens, rows * sizeof(int));
    else
        memcpy(s->eval.input->data, b->x, rows * pixels * sizeof(float));
    memcpy(s->eval.label->data, b->labels, rows * sizeof(int));
    if (b->index == 0)
        sp_carry_reset(carry);
    sp_carry_forward(carry, &run, 0);
    sp_carry_advance(carry);
    sum->loss += sp_loss(s->eval.graph, &run);
    sum->count += rows;
    if (!s->info.text)
        rank_images(s, b, sum);
}

/* What the ranks tell each other at each batch, so that all leave together. */
typedef struct calls {
    double stop, failed;
} calls;

enum { CALLS = sizeof(calls) / sizeof(double) };

/* One batch; *end: it was none, for all ranks alike. The calls travel while it
 * is computed. */
static sp_err score_next(sp_session *s, sp_loader *l, bool stop, sums *sum,
                         bool *end)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_EVALUATE };
    bool alone = sp_comm_ranks(s->comm) == 1;
    sp_pending *pending = NULL;
    calls all = { .stop = stop };
    sp_batch b;
    sp_err e;

    if (alone && stop)
        return sp_fail(SP_ESTOPPED, "stopped during evaluation");
    e = sp_loader_next(l, &b);
    all.failed = e != SP_OK;
    *end = e == SP_OK && b.end;
    if (!alone)
        pending = sp_sum_doubles(s->comm, on, &all.stop, CALLS);
    if (e == SP_OK && !b.end)
        score_batch(s, &b, sum);
    if (alone)
        return e;
    SP_TRY(sp_op_wait(s->comm, pending));
    if (all.failed > 0)
        return sp_agree(s->comm, e);
    if (all.stop > 0)
        return sp_fail(SP_ESTOPPED, "stopped during evaluation");
    return SP_OK;
}

static sp_err score_part(sp_session *s, sp_part part, sp_must_stop stop,
                         const void *arg, sums *sum)
{
    sp_loader *l = NULL;
    bool end = false;
    sp_err e;

    e = sp_loader_new(&l, &(sp_loader_opt){
                              .data = s->data,
                              .part = part,
                              .batch = (size_t)s->set.train->eval_batch,
                              .steps = s->eval.steps,
                              .scoring = true,
                              .rank = sp_comm_rank(s->comm),
                              .ranks = sp_comm_ranks(s->comm),
                          });
    e = sp_agree(s->comm, e);
    while (e == SP_OK && !end)
        e = score_next(s, l, stop && stop(arg), sum, &end);
    sp_loader_free(l);
    return e;
}

/* Add up what the ranks have counted. */
static sp_err add_ranks(sp_comm *c, sums *sum)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_EVALUATE };
    double x[] = { sum->loss, (double)sum->count, (double)sum->top1,
                   (double)sum->top5 };

    if (sp_comm_ranks(c) == 1)
        return SP_OK;
    SP_TRY(sp_op_wait(c, sp_sum_doubles(c, on, x, sizeof x / sizeof *x)));
    *sum = (sums){ .loss = x[0],
                   .count = (size_t)x[1],
                   .top1 = (size_t)x[2],
                   .top5 = (size_t)x[3] };
    return SP_OK;
}

static sp_scores scores_of(const sp_session *s, const sums *sum)
{
    double count = (double)sum->count;
    sp_scores out = { .count = sum->count,
                      .loss = sum->loss / count,
                      .top1 = NAN,
                      .top5 = NAN,
                      .ppl = NAN };

    if (s->info.text)
        out.ppl = sp_perplexity(out.loss);
    else
        out.top1 = 100.0 * (double)sum->top1 / count;
    if (!s->info.text && s->classes > TOP)
        out.top5 = 100.0 * (double)sum->top5 / count;
    return out;
}

sp_err sp_evaluate(sp_session *s, sp_part part, sp_must_stop stop,
                   const void *arg, sp_scores *out)
{
    sp_statistics local;
    sums sum = { 0 };
    sp_err e;

    if (s->data->count[part] == 0)
        return sp_fail(
            SP_EARG, "the %s part of data set %s is empty%s",
            sp_part_name(part), s->set.set->entry.name,
            part == SP_PART_VALID && !s->info.text ? ": data.valid is 0" : "");
    SP_TRY(sp_statistics_average(&local, s, SP_USE_EVALUATE));
    e = score_part(s, part, stop, arg, &sum);
    sp_statistics_restore(&local);
    if (e == SP_OK)
        e = add_ranks(s->comm, &sum);
    if (e == SP_OK)
        *out = scores_of(s, &sum);
    return e;
}

sp_err sp_eval(const sp_registry *r, const char *run, const char *checkpoint,
               sp_part part, sp_scores *out)
{
    sp_session s = { 0 };
    sp_trained t;
    sp_err e;

    SP_TRY(sp_trained_open(&t, r, run, checkpoint));
    e = sp_session_open(
        &s, t.config,
        (sp_session_opt){ .eval = true,
                          .data = true,
                          .no_init = true,
                          .low = t.checkpoint.manifest.low,
                          .chosen = sp_manifest_ranks(&t.checkpoint.manifest),
                          .tiles = t.checkpoint.manifest.winograd });
    if (e == SP_OK)
        e = sp_checkpoint_fits(&t.checkpoint, &s.info);
    if (e == SP_OK)
        e = sp_checkpoint_load(&t.checkpoint, s.params);
    if (e == SP_OK)
        e = sp_evaluate(&s, part, NULL, NULL, out);
    sp_session_close(&s);
    sp_trained_close(&t);
    return e;
}
