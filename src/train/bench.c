/* Times of training steps on made-up data. */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "dist/agree.h"
#include "kernels/kernels.h"
#include "sprat/random.h"
#include "train/bench_ops.h"
#include "train/console.h"
#include "train/step.h"

enum { UNMEASURED = 2 };
static const double peak_seconds = 0.5;

/* The times of each step in ms, column by column, and those of STEP sorted. */
enum { STEP, FORWARD, BACKWARD, OPTIM, COMPRESS, EXCHANGE, SORTED, COLUMNS };

typedef struct bench {
    sp_session s;
    sp_bench_opt opt;
    sp_op_clock clock; /* with opt.ops */
    double *times[COLUMNS];
    int middle;     /* the step that is reported */
    sp_sent before; /* the first step */
} bench;

static void fill_images(const sp_session *s)
{
    float *x = s->train.input->data;
    size_t n = sp_count(s->train.input->shape);

    for (size_t i = 0; i < n; i += 2) {
        uint32_t r[4];

        sp_random((uint64_t)s->set.train->seed, SP_FOR_DATA, 0, i, r);
        x[i] = sp_normal(r[0], r[1]);
        if (i + 1 < n)
            x[i + 1] = sp_normal(r[2], r[3]);
    }
}

/* Tokens by chance: they are spread over the vocabulary. */
static void fill_text(const sp_session *s)
{
    int *token = s->train.input->data;
    size_t n = sp_count(s->train.input->shape);

    for (size_t i = 0; i < n; i++) {
        uint32_t r[4];

        sp_random((uint64_t)s->set.train->seed, SP_FOR_DATA, 0, i, r);
        token[i] = (int)(r[0] % (uint32_t)s->classes);
    }
}

/* Noise and labels by chance, once: their values do not change the time. */
static void fill(const sp_session *s)
{
    int *label = s->train.label->data;
    size_t n = sp_count(s->train.label->shape);

    if (s->info.text)
        fill_text(s);
    else
        fill_images(s);
    for (size_t i = 0; i < n; i++)
        label[i] = (int)(i % (size_t)s->classes);
}

static sp_err one(bench *b, int i)
{
    sp_session *s = &b->s;
    size_t rows = (size_t)s->set.train->batch, n;
    sp_batch batch = { .targets = rows * (size_t)s->train.steps,
                       .rows = rows,
                       .t = s->train.steps };
    /* A rate this small keeps the weights finite whatever the settings. All
     * warm-ups are over. */
    sp_step_at at = { .step = i, .progress = INFINITY, .lr = 1e-6 };
    double start = sp_now();
    sp_step_result r;

    sp_share(rows, sp_comm_rank(s->comm), sp_comm_ranks(s->comm), &batch.row,
             &n);
    batch.n = (int)n;
    i -= UNMEASURED;
    b->clock.step = i;
    SP_TRY(sp_train_step(s, &batch, &at, &r));
    if (i < 0)
        return SP_OK;
    b->times[STEP][i] = 1e3 * (sp_now() - start);
    b->times[FORWARD][i] = 1e3 * r.forward_s;
    b->times[BACKWARD][i] = 1e3 * r.backward_s;
    b->times[OPTIM][i] = 1e3 * r.optim_s;
    b->times[COMPRESS][i] = 1e3 * r.compress_s;
    b->times[EXCHANGE][i] = 1e3 * r.exchange_s;
    return SP_OK;
}

/* Bytes of this rank, means over the steps. */
static void report_bytes(const bench *b, sp_bench *out)
{
    const sp_session *s = &b->s;
    double steps = b->opt.steps + UNMEASURED;
    sp_sent sent;

    out->dense_bytes = 4.0 * (double)sp_params_count(s->params);
    out->packet_bytes = out->dense_bytes;
    if (!s->exchange)
        return;
    sent = sp_exchange_sent(s->exchange);
    out->packet_bytes = sent.packet / steps;
    out->mpi_bytes = (sent.mpi - b->before.mpi) / steps;
    out->net_bytes = (sent.net - b->before.net) / steps;
}

/* All is of the step whose time is the median: medians of their own would not
 * add up to it. */
static void report(bench *b, sp_bench *out)
{
    const sp_session *s = &b->s;
    double items = (double)s->set.train->batch * s->train.steps;
    int steps = b->opt.steps;
    int i = sp_median_step(b->times[STEP], b->times[SORTED], steps);

    b->middle = i;
    *out = (sp_bench){
        .step_ms = b->times[STEP][i],
        .step_ms_min = b->times[SORTED][0],
        .step_ms_max = b->times[SORTED][steps - 1],
        .forward_ms = b->times[FORWARD][i],
        .backward_ms = b->times[BACKWARD][i],
        .optim_ms = b->times[OPTIM][i],
        .compress_ms = b->times[COMPRESS][i],
        .exchange_ms = b->times[EXCHANGE][i],
        .peak_rss_mib = sp_peak_rss(),
        .threads = s->threads,
        .ranks = sp_comm_ranks(s->comm),
        .isa = sp_kernels_isa(sp_kernels_find(s->isa)),
        .assumed = s->low && s->set.lowrank->rank == SP_RANK_AUTO,
    };
    /* Forward, and backward for inputs and for weights: three products; a
     * multiplication and an addition each. */
    out->gflops =
        2 * 3 * sp_graph_macs(s->train.graph) * items / (1e6 * out->step_ms);
    out->items_per_s = items / (1e-3 * out->step_ms);
    report_bytes(b, out);
}

/* The operators' lines, and one each for the update and for the rest. The
 * update reads the gradient twice, first for its norm, and reads and writes
 * weights and states. */
static sp_err report_ops(bench *b, sp_bench *out)
{
    const sp_optimizer *rule = sp_optim_rule(b->s.optim);
    double floats = (double)sp_params_count(b->s.params);
    size_t count = (size_t)b->clock.count;
    sp_bench_op *update, *rest;

    out->ops = calloc(count + 2, sizeof *out->ops);
    if (!out->ops)
        return sp_fail(SP_ENOMEM, "bench: out of memory");
    out->op_count = count + 2;
    update = &out->ops[count];
    rest = update + 1;
    *update = (sp_bench_op){ .name = sp_copy("optimizer", 9),
                             .op = rule->entry.name,
                             .pass = "update",
                             .ms = out->optim_ms,
                             .bytes = sizeof(float) * floats *
                                      (4 + 2 * rule->state_count) };
    *rest = (sp_bench_op){ .name = sp_copy("outside", 7),
                           .op = "outside",
                           .pass = "step",
                           .ms = out->step_ms - out->optim_ms -
                                 sp_op_clock_sum(&b->clock, b->middle) };
    SP_TRY(sp_op_clock_read(&b->clock, b->middle, out->ops));
    if (!update->name || !rest->name)
        return sp_fail(SP_ENOMEM, "bench: out of memory");
    for (size_t i = 0; i < out->op_count; i++)
        out->ops[i].share = out->ops[i].ms / out->step_ms;
    return SP_OK;
}

/* What the machine can do, once the program's memory is free again. */
static sp_err report_limits(sp_bench *b)
{
    const sp_kernels *k = sp_kernels_find(b->isa);

    b->peak_gflops = sp_kernels_peak(k, b->threads, peak_seconds);
    b->fraction_of_peak = b->peak_gflops > 0 ? b->gflops / b->peak_gflops : 0;
    if (!b->ops)
        return SP_OK;
    b->bandwidth_gbytes_per_s =
        sp_kernels_bandwidth(k, b->threads, peak_seconds);
    if (b->bandwidth_gbytes_per_s == 0)
        return sp_fail(SP_ENOMEM, "bench: there is no memory to measure its "
                                  "bandwidth: leave the operators out");
    for (size_t i = 0; i < b->op_count; i++) {
        sp_bench_op *o = &b->ops[i];
        double compute = o->flops / (1e6 * b->peak_gflops);
        double memory = o->bytes / (1e6 * b->bandwidth_gbytes_per_s);
        o->bound_ms = fmax(compute, memory);
        if (o->bound_ms > 0)
            o->bound_by = compute > memory ? "flops" : "bytes";
    }
    return SP_OK;
}

static sp_err measure(bench *b, sp_bench *out)
{
    size_t steps = (size_t)b->opt.steps;
    double *all = calloc(COLUMNS * steps, sizeof *all);
    sp_err e = sp_agree(
        b->s.comm, all ? SP_OK : sp_fail(SP_ENOMEM, "bench: out of memory"));

    if (e != SP_OK) {
        free(all);
        return e;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        b->times[i] = all + i * steps;
    sp_op_clock_open(&b->clock, b->opt.steps);
    b->s.watch = b->opt.ops ? &b->clock.watch : NULL;
    fill(&b->s);
    for (int i = 0; e == SP_OK && i < b->opt.steps + UNMEASURED; i++)
        e = one(b, i);
    if (e == SP_OK)
        report(b, out);
    if (e == SP_OK && b->opt.ops)
        e = report_ops(b, out);
    sp_op_clock_close(&b->clock);
    free(all);
    return e;
}

sp_err sp_bench_run(const sp_config *c, sp_bench_opt opt, sp_bench *out)
{
    bench b = { .opt = opt };
    sp_err e;

    *out = (sp_bench){ 0 };
    if (opt.steps < 1)
        return sp_fail(SP_EARG, "bench: %d steps: at least 1 is needed",
                       opt.steps);
    SP_TRY(sp_session_open(
        &b.s, c,
        (sp_session_opt){ .train = true,
                          .no_init = true,
                          .low = sp_config_own(c, "lowrank") != NULL,
                          .comm = opt.comm }));
    if (b.s.exchange)
        b.before = sp_exchange_sent(b.s.exchange);
    e = measure(&b, out);
    sp_session_close(&b.s);
    if (e == SP_OK)
        e = report_limits(out);
    if (e != SP_OK)
        sp_bench_free(out);
    return e;
}

void sp_bench_free(sp_bench *b)
{
    for (size_t i = 0; i < b->op_count; i++)
        free(b->ops[i].name);
    free(b->ops);
    *b = (sp_bench){ 0 };
}
