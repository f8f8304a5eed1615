/* Times of training steps on made-up data. */
#include <stdlib.h>

#include "kernels/kernels.h"
#include "sprat/random.h"
#include "train/report.h"
#include "train/step.h"

enum { UNMEASURED = 2 };
static const double peak_seconds = 0.5;

/* The times of each step, column by column, for medians. */
typedef struct times {
    double *step, *forward, *backward, *optim;
} times;

/* Noise and labels by chance, once: their values do not change the time. */
static void fill(const sp_session *s)
{
    float *x = s->train.image->data;
    int *label = s->train.label->data;
    size_t n = sp_count(s->train.image->shape);

    for (size_t i = 0; i < n; i += 2) {
        uint32_t r[4];

        sp_random((uint64_t)s->set.train->seed, SP_FOR_DATA, 0, i, r);
        x[i] = sp_normal(r[0], r[1]);
        if (i + 1 < n)
            x[i + 1] = sp_normal(r[2], r[3]);
    }
    for (int i = 0; i < s->train.rows; i++)
        label[i] = i % s->classes;
}

static sp_err one(sp_session *s, times t, int i)
{
    sp_batch b = { .rows = (size_t)s->set.train->batch,
                   .n = s->set.train->batch };
    double start = sp_now();
    sp_step_result r;

    /* A rate this small keeps the weights finite whatever the settings. */
    SP_TRY(sp_train_step(s, &b, i, 1e-6, &r));
    if (i < UNMEASURED)
        return SP_OK;
    i -= UNMEASURED;
    t.step[i] = 1e3 * (sp_now() - start);
    t.forward[i] = 1e3 * r.forward_s;
    t.backward[i] = 1e3 * r.backward_s;
    t.optim[i] = 1e3 * r.optim_s;
    return SP_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts them. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void report(const sp_session *s, times t, int steps, sp_bench *out)
{
    double batch = s->set.train->batch, peak;

    *out = (sp_bench){
        .step_ms = median(t.step, steps),
        .step_ms_min = t.step[0],
        .step_ms_max = t.step[steps - 1],
        .forward_ms = median(t.forward, steps),
        .backward_ms = median(t.backward, steps),
        .optim_ms = median(t.optim, steps),
        .peak_rss_mib = sp_peak_rss(),
        .threads = s->threads,
        .ranks = 1,
    };
    /* Forward, and backward for inputs and for weights: three products; a
     * multiplication and an addition each. */
    out->gflops =
        2 * 3 * sp_graph_macs(s->train.graph) * batch / (1e6 * out->step_ms);
    out->items_per_s = batch / (1e-3 * out->step_ms);
    out->isa = sp_kernels_isa(sp_kernels_find(s->isa));
    peak = sp_kernels_peak(sp_kernels_find(s->isa), s->threads, peak_seconds);
    out->peak_gflops = peak;
    out->fraction_of_peak = peak > 0 ? out->gflops / peak : 0;
}

sp_err sp_bench_run(const sp_config *c, int steps, sp_bench *out)
{
    sp_session s;
    double *all;
    sp_err e;

    if (steps < 1)
        return sp_fail(SP_EARG, "bench: %d steps: at least 1 is needed", steps);
    SP_TRY(sp_session_open(&s, c,
                           (sp_session_opt){ .train = true, .no_init = true }));
    all = calloc((size_t)steps * 4, sizeof *all);
    e = all ? SP_OK : sp_fail(SP_ENOMEM, "bench: out of memory");
    if (e == SP_OK) {
        times t = { all, all + steps, all + 2 * steps, all + 3 * steps };

        fill(&s);
        for (int i = 0; e == SP_OK && i < steps + UNMEASURED; i++)
            e = one(&s, t, i);
        if (e == SP_OK)
            report(&s, t, steps, out);
    }
    free(all);
    sp_session_close(&s);
    return e;
}
