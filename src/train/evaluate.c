/* Evaluation: every sample once. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader.h"
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

static sp_err score_part(sp_session *s, sp_loader *l, sp_must_stop stop,
                         const void *arg, sums *sum)
{
    sp_batch b;

    for (;;) {
        if (stop && stop(arg))
            return sp_fail(SP_ESTOPPED, "stopped during evaluation");
        SP_TRY(sp_loader_next(l, &b));
        if (b.end)
            return SP_OK;
        score_batch(s, &b, sum);
    }
}

sp_err sp_evaluate(sp_session *s, sp_part part, sp_must_stop stop,
                   const void *arg, sp_scores *out)
{
    sp_loader *l = NULL;
    sums sum = { 0 };
    sp_err e;

    if (s->data->count[part] == 0)
        return sp_fail(
            SP_EARG, "the %s part of data set %s is empty%s",
            sp_part_name(part), s->set.set->entry.name,
            part == SP_PART_VALID && !s->info.text ? ": data.valid is 0" : "");
    e = sp_loader_new(&l, &(sp_loader_opt){
                              .data = s->data,
                              .part = part,
                              .batch = (size_t)s->eval.rows,
                              .steps = s->eval.steps,
                              .scoring = true,
                              .ranks = 1,
                          });
    if (e == SP_OK)
        e = score_part(s, l, stop, arg, &sum);
    sp_loader_free(l);
    if (e != SP_OK)
        return e;
    *out = (sp_scores){
        .count = sum.count,
        .loss = sum.loss / (double)sum.count,
        .top1 = NAN,
        .top5 = NAN,
        .ppl = NAN,
    };
    if (s->info.text)
        out->ppl = sp_perplexity(out->loss);
    else
        out->top1 = 100.0 * (double)sum.top1 / (double)sum.count;
    if (!s->info.text && s->classes > TOP)
        out->top5 = 100.0 * (double)sum.top5 / (double)sum.count;
    return SP_OK;
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
