/* One training step. */
#include "train/step.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/evaluate.h"
#include "train/report.h"

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
 * looking at every value. */
static sp_err not_finite(sp_session *s, const sp_batch *b, int64_t step,
                         const sp_step_result *r)
{
    const char *where = NULL;

    for (int first = 0; !where && first < b->n; first += s->train.rows) {
        sp_run run = part_run(s, b, step, first);
        fill(s, b, first, run.n);
        sp_carry_put(&s->train.carry, first, run.n);
        sp_find_nonfinite(s->train.graph, &run, &where);
    }
    return sp_fail(SP_ENUMERIC,
                   "step %" PRId64 ": %s: not finite (loss %g, gradient norm "
                   "%g); weights are as before the step: lower optim.lr, set "
                   "optim.clip, or look at the data",
                   step + 1, where ? where : "the sum of the gradients",
                   fabs(r->loss), fabs(r->norm)); /* NaN has no sign */
}

sp_err sp_train_step(sp_session *s, const sp_batch *b, int64_t step, double lr,
                     sp_step_result *out)
{
    sp_step_result r = { 0 };
    double start, now = sp_now();

    if (b->index == 0)
        sp_carry_reset(&s->train.carry);
    for (int first = 0; first < b->n; first += s->train.rows) {
        sp_run run = part_run(s, b, step, first);

        start = now;
        forward(s, b, first, &run);
        r.loss += sp_loss(s->train.graph, &run);
        r.correct += count_correct(s, run.n);
        now = sp_now();
        r.forward_s += now - start;
        start = now;
        sp_backward(s->train.graph, &run, NULL, NULL);
        now = sp_now();
        r.backward_s += now - start;
    }
    start = now;
    r.norm = sp_optim_norm(s->optim);
    if (!isfinite(r.loss) || !isfinite(r.norm))
        return not_finite(s, b, step, &r);
    sp_optim_update(s->optim, lr, r.norm, step);
    sp_carry_advance(&s->train.carry);
    r.optim_s = sp_now() - start;
    *out = r;
    return SP_OK;
}
