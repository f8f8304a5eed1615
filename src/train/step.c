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
        .t = 1,
        .train = true,
        .add = first > 0,
        .weight = 1.0 / (double)b->rows,
        .seed = (uint64_t)s->set.train->seed,
        .step = step,
        .row = (int64_t)b->row + first,
        .watch = s->watch,
    };
}

static void fill(const sp_session *s, const sp_batch *b, int first, int n)
{
    size_t pixels = (size_t)s->info.h * (size_t)s->info.w * (size_t)s->info.c;

    if (!b->x)
        return;
    memcpy(s->train.image->data, b->x + (size_t)first * pixels,
           (size_t)n * pixels * sizeof(float));
    memcpy(s->train.label->data, b->labels + first, (size_t)n * sizeof(int));
}

static size_t count_correct(const sp_session *s, int rows)
{
    const float *logits = s->train.logits->data;
    const int *labels = s->train.label->data;
    size_t correct = 0;

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

    for (int first = 0; first < b->n; first += s->train.rows) {
        sp_run run = part_run(s, b, step, first);

        fill(s, b, first, run.n);
        start = now;
        sp_forward(s->train.graph, &run);
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
    r.optim_s = sp_now() - start;
    *out = r;
    return SP_OK;
}
