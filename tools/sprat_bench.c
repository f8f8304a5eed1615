/* sprat bench. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/train.h"

/* Each takes memory for its times, those of every operator with --ops. */
enum { MOST_STEPS = 1000000 };

/* Work in a time, in thousands of millions a second. */
static double rate(double work, double ms)
{
    return work > 0 ? work / (1e6 * ms) : NAN;
}

/* What does not apply is null. */
static void add_op(sp_json *j, const sp_bench_op *o)
{
    sp_json_open(j, NULL);
    sp_json_text(j, "name", o->name);
    sp_json_text(j, "op", o->op);
    sp_json_text(j, "pass", o->pass);
    sp_json_text(j, "algorithm", o->algorithm);
    sp_json_number(j, "ms", o->ms);
    sp_json_number(j, "gflops", rate(o->flops, o->ms));
    sp_json_number(j, "gbytes_per_s", rate(o->bytes, o->ms));
    sp_json_number(j, "share", o->share);
    sp_json_number(j, "bound", o->bound_by ? o->bound_ms / o->ms : NAN);
    sp_json_text(j, "bound_by", o->bound_by);
    sp_json_close(j);
}

static int print_object(const sp_bench *b)
{
    sp_json j = { 0 };

    sp_json_open(&j, NULL);
    sp_json_number(&j, "step_ms", b->step_ms);
    sp_json_number(&j, "step_ms_min", b->step_ms_min);
    sp_json_number(&j, "step_ms_max", b->step_ms_max);
    sp_json_number(&j, "items_per_s", b->items_per_s);
    sp_json_number(&j, "gflops", b->gflops);
    sp_json_number(&j, "peak_gflops", b->peak_gflops);
    sp_json_number(&j, "fraction_of_peak", b->fraction_of_peak);
    sp_json_number(&j, "forward_ms", b->forward_ms);
    sp_json_number(&j, "backward_ms", b->backward_ms);
    sp_json_number(&j, "optim_ms", b->optim_ms);
    sp_json_number(&j, "compress_ms", b->compress_ms);
    sp_json_number(&j, "exchange_ms", b->exchange_ms);
    sp_json_number(&j, "dense_bytes", b->dense_bytes);
    sp_json_number(&j, "packet_bytes", b->packet_bytes);
    sp_json_number(&j, "mpi_bytes", b->mpi_bytes);
    sp_json_number(&j, "net_bytes", b->net_bytes);
    sp_json_number(&j, "peak_rss_mib", b->peak_rss_mib);
    sp_json_int(&j, "threads", b->threads);
    sp_json_int(&j, "ranks", b->ranks);
    sp_json_text(&j, "isa", b->isa);
    if (b->assumed)
        sp_json_bool(&j, "ranks_assumed", true);
    if (b->ops) {
        sp_json_number(&j, "bandwidth_gbytes_per_s", b->bandwidth_gbytes_per_s);
        sp_json_list(&j, "ops");
        for (size_t i = 0; i < b->op_count; i++)
            add_op(&j, &b->ops[i]);
        sp_json_close(&j);
    }
    sp_json_close(&j);
    return sp_print_json(&j);
}

static void print_summary(const sp_bench *b)
{
    printf("step      %.2f ms (%.2f to %.2f), %.0f items/s\n", b->step_ms,
           b->step_ms_min, b->step_ms_max, b->items_per_s);
    printf("forward   %.2f ms\nbackward  %.2f ms\noptimizer %.2f ms\n",
           b->forward_ms, b->backward_ms, b->optim_ms);
    if (b->ranks > 1 || b->compress_ms > 0)
        printf("compress  %.2f ms\nexchange  %.2f ms\n"
               "bytes     %.0f sent as packets of %.0f dense (%.1fx), %.0f "
               "handed to MPI\n",
               b->compress_ms, b->exchange_ms, b->packet_bytes, b->dense_bytes,
               b->dense_bytes / b->packet_bytes, b->mpi_bytes);
    printf("speed     %.1f GFLOP/s, %.0f %% of the %.1f measured here\n",
           b->gflops, 100 * b->fraction_of_peak, b->peak_gflops);
    if (b->ops)
        printf("memory    %.1f GB/s measured here\n",
               b->bandwidth_gbytes_per_s);
    printf("peak RSS  %.0f MiB\n", b->peak_rss_mib);
    printf("on        %d thread%s, %s", b->threads, b->threads == 1 ? "" : "s",
           b->isa);
    printf(b->ranks > 1 ? ", on each of %d ranks\n" : "\n", b->ranks);
    if (b->assumed)
        printf("note      layers have ranks by lowrank.rank_ratio here: "
               "training would choose them (lowrank.rank: auto)\n");
}

/* ---- Operators ----------------------------------------------------------- */

static void print_head(const char *first, int wide)
{
    printf("\n%-*s %-13s %-16s %-9s %9s %8s %7s %7s %6s\n", wide, first,
           "operator", "pass", "algorithm", "ms", "GFLOP/s", "GB/s", "share",
           "bound");
}

static const char *algorithm(const sp_bench_op *o)
{
    return o->algorithm ? o->algorithm : "";
}

/* Products are told by what they compute, the others by what they move. */
static void print_op(const char *first, int wide, const sp_bench_op *o)
{
    char flops[24] = "", bytes[24] = "", bound[32] = "";

    if (o->flops > 0)
        snprintf(flops, sizeof flops, "%.1f", rate(o->flops, o->ms));
    else if (o->bytes > 0)
        snprintf(bytes, sizeof bytes, "%.1f", rate(o->bytes, o->ms));
    if (o->bound_ms > 0)
        snprintf(bound, sizeof bound, " %4.0f %%%s%s",
                 100 * o->bound_ms / o->ms, o->bound_by ? " " : "",
                 o->bound_by ? o->bound_by : "");
    printf("%-*s %-13s %-16s %-9s %9.3f %8s %7s %5.1f %%%s\n", wide, first,
           o->op, o->pass, algorithm(o), o->ms, flops, bytes, 100 * o->share,
           bound);
}

static bool same_kind(const sp_bench_op *a, const sp_bench_op *b)
{
    return strcmp(a->op, b->op) == 0 && strcmp(a->pass, b->pass) == 0 &&
           strcmp(algorithm(a), algorithm(b)) == 0;
}

/* One line for each kind of operator, pass and algorithm, in the order of their
 * first: sums over all of it. */
static void print_kinds(const sp_bench *b)
{
    for (size_t i = 0; i < b->op_count; i++) {
        sp_bench_op sum = { .op = b->ops[i].op,
                            .pass = b->ops[i].pass,
                            .algorithm = b->ops[i].algorithm };
        size_t first = 0;
        int count = 0;
        char calls[16];

        while (!same_kind(&b->ops[first], &sum))
            first++;
        if (first < i)
            continue;
        for (size_t k = i; k < b->op_count; k++) {
            const sp_bench_op *o = &b->ops[k];
            if (!same_kind(o, &sum))
                continue;
            count++;
            sum.ms += o->ms;
            sum.share += o->share;
            sum.flops += o->flops;
            sum.bytes += o->bytes;
            sum.bound_ms += o->bound_ms;
        }
        snprintf(calls, sizeof calls, "%d", count);
        print_op(calls, 5, &sum);
    }
}

static void print_ops(const sp_bench *b)
{
    sp_bench_op all = { .op = "", .pass = "" };
    int wide = 9;

    for (size_t i = 0; i < b->op_count; i++) {
        int size = (int)strlen(b->ops[i].name);
        wide = size > wide ? size : wide;
        all.ms += b->ops[i].ms;
        all.share += b->ops[i].share;
        all.flops += b->ops[i].flops;
        all.bound_ms += b->ops[i].bound_ms;
    }
    print_head("name", wide);
    for (size_t i = 0; i < b->op_count; i++)
        print_op(b->ops[i].name, wide, &b->ops[i]);
    print_head("lines", 5);
    print_kinds(b);
    print_op("all", 5, &all);
}

/* Fractions above 1 make one doubt the numbers. */
static void print_note(const sp_bench *b)
{
    double bound = 0;

    for (size_t i = 0; i < b->op_count; i++)
        bound += b->ops[i].bound_ms;
    if (b->fraction_of_peak > 1 || bound > b->step_ms)
        printf("note      above 100 %%: an algorithm saves multiplications, "
               "arrays were in the\n          cache, or the machine was busier "
               "while its limits were measured\n");
}

static void print_text(const sp_bench *b)
{
    print_summary(b);
    if (b->ops)
        print_ops(b);
    print_note(b);
}

static int bench(const sp_args *a)
{
    bool ops = sp_args_flag(a, "ops") != NULL;
    sp_opened o = { 0 };
    sp_bench result;
    long steps;
    sp_err e;
    int status = SP_EXIT_DONE;

    if (!sp_args_count(a, "steps", 10, MOST_STEPS, &steps))
        return SP_EXIT_USAGE;
    e = sp_agree(a->comm, sp_opened_config(&o, a));
    if (e == SP_OK)
        e = sp_bench_run(
            o.config,
            (sp_bench_opt){ .steps = (int)steps, .ops = ops, .comm = a->comm },
            &result);
    sp_opened_free(&o);
    if (e != SP_OK)
        return sp_refuse_all(a, e);
    if (sp_comm_rank(a->comm) != 0)
        status = SP_EXIT_DONE;
    else if (sp_args_flag(a, "json"))
        status = print_object(&result);
    else
        print_text(&result);
    sp_bench_free(&result);
    return status;
}

const sp_verb sp_verb_bench = {
    .name = "bench",
    .words = "CONFIG...",
    .least = 1,
    .most = -1,
    .overrides = true,
    .ranks = true,
    .help = "time training steps on made-up data",
    .flags = {
        { "steps", "N", "measured steps (10), after 2 that are not" },
        { "ops", NULL, "also every operator and pass, beside its bound" },
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "Opens no data. Times are in ms and of one step, that with the median "
        "time;\nstep_ms_min and step_ms_max are of all. The object's keys: "
        "step_ms\nstep_ms_min step_ms_max items_per_s gflops peak_gflops "
        "fraction_of_peak\nforward_ms backward_ms optim_ms compress_ms "
        "exchange_ms peak_rss_mib\nthreads ranks isa dense_bytes packet_bytes "
        "mpi_bytes net_bytes; ranks_assumed is true where training would "
        "choose\nranks, and lowrank.rank_ratio gives them here.\n\n"
        "With --ops a line for each operator and pass: its time; GFLOP/s of a "
        "product,\ncounted as direct multiplications, or GB/s, counted as the "
        "least that must be\nmoved (a batch norm in training reads its input "
        "twice); its share of the step;\nand how near it is to its bound, the "
        "longer of flops at the peak and bytes at\nthe bandwidth, both "
        "measured in the same run. Above 100 % is where arrays were\nstill in "
        "the cache or are written past it, where an algorithm saves\n"
        "multiplications, and where the machine was busier while peak and "
        "bandwidth were\nmeasured. The object gets bandwidth_gbytes_per_s and "
        "ops, a list of objects with\nthe keys name op pass algorithm ms "
        "gflops gbytes_per_s share bound bound_by;\nshare and bound are "
        "fractions, and what does not apply is null:\n\n"
        "  pass       forward, backward (or backward input, backward weights, "
        "backward\n             bias), recompute; update: the optimizer; step: "
        "what the step\n             takes beside all others\n"
        "  algorithm  of products: direct, F(2x2), F(4x4) (Winograd's tiles), "
        "im2col\n"
        "  bound_by   flops, bytes\n\n"
        "  sprat bench configs/cifar10/resnet18.yaml\n"
        "  sprat bench configs/cifar10/resnet20.yaml train.threads=1 --steps "
        "30 --json\n"
        "  sprat bench configs/cifar10/resnet20.yaml --ops\n",
    .run = bench,
};
