/* One training step. */
#include "train/step.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dist/agree.h"
#include "train/console.h"
#include "train/evaluate.h"

/* Rows [first, first + n) of a batch: one forward and backward pass. */
static sp_run part_run(const sp_session *s, const sp_batch *b, int64_t step,
                       int first)
{
    int n = b->n - first;

    return (sp_run){
        .n = n < s->train.rows ? n : s->train.rows,
        .t = b->t,
        .train = true,
        .add = first > 0,
        .weight = 1.0 / (double)b->targets,
        .seed = (uint64_t)s->set.train->seed,
        .step = step,
        .row = (int64_t)b->row + first,
        .watch = s->watch,
        .across = s->across.sum ? &s->across : NULL,
    };
}

/* Of every time step, columns [first, first + n). */
static void copy_columns(const sp_batch *b, const int *from, int first, int n,
                         void *to)
{
    for (int t = 0; t < b->t; t++)
        memcpy((int *)to + (size_t)t * (size_t)n,
               from + (size_t)t * (size_t)b->n + first,
               (size_t)n * sizeof(int));
}

static void fill(const sp_session *s, const sp_batch *b, int first, int n)
{
    size_t pixels = (size_t)s->info.h * (size_t)s->info.w * (size_t)s->info.c;

    if (b->tokens)
        copy_columns(b, b->tokens, first, n, s->train.input->data);
    else if (b->x)
        memcpy(s->train.input->data, b->x + (size_t)first * pixels,
               (size_t)n * pixels * sizeof(float));
    else
        return;
    copy_columns(b, b->labels, first, n, s->train.label->data);
}

static void forward(sp_session *s, const sp_batch *b, int first,
                    const sp_run *run)
{
    fill(s, b, first, run->n);
    sp_carry_forward(&s->train.carry, run, first);
}

static size_t count_correct(const sp_session *s, int rows)
{
    const int *labels = s->train.label->data;
    size_t correct = 0;
    const float *logits;

    if (!s->train.logits)
        return 0;
    logits = s->train.logits->data;
    for (int i = 0; i < rows; i++, logits += s->classes)
        correct += sp_rank_of(logits, s->classes, labels[i]) == 0;
    return correct;
}

/* The step is a pure function of batch and parameters: run it once more,
 * looking at every value. Several ranks fail together, with what one of those
 * has found whose own values are at fault. */
static sp_err not_finite(sp_session *s, const sp_batch *b, int64_t step,
                         const sp_step_result *r)
{
    const char *where = NULL;

    for (int first = 0; !where && first < b->n; first += s->train.rows) {
        sp_run run = part_run(s, b, step, first);

        run.across = NULL; /* ranks stop looking at different places */
        fill(s, b, first, run.n);
        sp_carry_put(&s->train.carry, first, run.n);
        sp_find_nonfinite(s->train.graph, &run, &where);
    }
    if (!where)
        SP_TRY(sp_agree(s->comm, SP_OK)); /* returns unless another has it */
    return sp_agree(
        s->comm,
        sp_fail(SP_ENUMERIC,
                "step %" PRId64 ": %s: not finite (loss %g, gradient norm "
                "%g); weights are as before the step: lower optim.lr, set "
                "optim.clip, or look at the data",
                step + 1, where ? where : "the sum of the gradients",
                fabs(r->loss), fabs(r->norm))); /* NaN has no sign */
}

static void trace(const sp_session *s, sp_span_kind kind, const char *name,
                  double begin, double end)
{
    sp_trace_span(s->trace,
                  &(sp_span_of){
                      .kind = kind, .name = name, .begin = begin, .end = end });
}

/* Forward and backward over this rank's rows, which may be none: its gradients
 * are 0 then. They leave in the last pass. */
static void passes(sp_session *s, const sp_batch *b, int64_t step,
                   sp_step_result *r)
{
    int first = 0;

    do {
        sp_run run = part_run(s, b, step, first);
        double start = sp_now(), middle;
        bool last = first + s->train.rows >= b->n;

        forward(s, b, first, &run);
        r->loss += sp_loss(s->train.graph, &run);
        r->correct += count_correct(s, run.n);
        middle = sp_now();
        trace(s, SP_SPAN_PASS, "forward", start, middle);
        sp_backward(s->train.graph, &run,
                    last && s->exchange ? sp_exchange_ready : NULL,
                    s->exchange);
        trace(s, SP_SPAN_PASS, "backward", middle, sp_now());
        r->forward_s += middle - start;
        r->backward_s += sp_now() - middle;
        first += s->train.rows;
    } while (first < b->n);
}

/* Put together what the ranks have; what fails, fails on all. */
static sp_err exchange(sp_session *s, const sp_step_at *at, sp_step_result *r)
{
    sp_status status = { .loss = r->loss,
                         .correct = (double)r->correct,
                         .failed = at->failed != SP_OK,
                         .stop = at->stop,
                         .save = at->save,
                         .not_finite = !isfinite(r->loss) };
    double start = sp_now();

    SP_TRY(sp_exchange_end(s->exchange, &status));
    trace(s, SP_SPAN_EXCHANGE, "exchange", start, sp_now());
    r->loss = status.loss;
    r->correct = (size_t)status.correct;
    r->stop = status.stop > 0;
    r->save = status.save > 0;
    if (status.failed > 0)
        return sp_agree(s->comm, at->failed);
    if (status.not_finite > 0)
        r->loss = NAN;
    return SP_OK;
}

/* The passes and the exchange, and how long each took. */
static sp_err gradients(sp_session *s, const sp_batch *b, const sp_step_at *at,
                        sp_step_result *r)
{
    double busy = 0, waited = 0, share = (double)b->n / (double)b->rows;
    double done = 0;
    sp_err e;

    if (!s->exchange) {
        passes(s, b, at->step, r);
        return at->failed;
    }
    sp_exchange_seconds(s->exchange, &busy, &waited);
    SP_TRY(sp_exchange_begin(s->exchange, at->step, at->progress, share));
    passes(s, b, at->step, r);
    SP_TRY(s->lost);
    sp_exchange_seconds(s->exchange, &done, &r->exchange_s);
    r->backward_s -= done - busy; /* packets that were encoded meanwhile */
    e = exchange(s, at, r);
    sp_exchange_seconds(s->exchange, &r->compress_s, &r->exchange_s);
    r->compress_s -= busy;
    r->exchange_s -= waited;
    return e;
}

sp_err sp_train_step(sp_session *s, const sp_batch *b, const sp_step_at *at,
                     sp_step_result *out)
{
    sp_step_result r = { .stop = at->stop, .save = at->save };
    bool clipped;
    double start;

    if (b->index == 0)
        sp_carry_reset(&s->train.carry);
    SP_TRY(gradients(s, b, at, &r));
    start = sp_now();
    if (at->pruned)
        sp_prune_hold(s->params, s->threads);
    r.norm = sp_optim_norm(s->optim);
    if (!isfinite(r.loss) || !isfinite(r.norm))
        return not_finite(s, b, at->step, &r);
    clipped = s->exchange && sp_exchange_clips(s->exchange);
    sp_frobenius_fill(s->frobenius);
    sp_optim_update(s->optim, at->lr, clipped ? 0 : r.norm,
                    at->step - at->begun);
    if (at->pruned)
        sp_prune_keep(s->params, s->threads);
    sp_carry_advance(&s->train.carry);
    r.optim_s = sp_now() - start;
    trace(s, SP_SPAN_OPTIM, "optimizer", start, sp_now());
    *out = r;
    return SP_OK;
}
