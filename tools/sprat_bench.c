/* sprat bench. */
#include <stdio.h>

#include "sprat.h"
#include "sprat/train.h"

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
    sp_json_number(&j, "exchange_ms", b->exchange_ms);
    sp_json_number(&j, "peak_rss_mib", b->peak_rss_mib);
    sp_json_int(&j, "threads", b->threads);
    sp_json_int(&j, "ranks", b->ranks);
    sp_json_text(&j, "isa", b->isa);
    sp_json_close(&j);
    return sp_print_json(&j);
}

static void print_text(const sp_bench *b)
{
    printf("step      %.2f ms (%.2f to %.2f), %.0f items/s\n", b->step_ms,
           b->step_ms_min, b->step_ms_max, b->items_per_s);
    printf("forward   %.2f ms\nbackward  %.2f ms\noptimizer %.2f ms\n",
           b->forward_ms, b->backward_ms, b->optim_ms);
    if (b->ranks > 1)
        printf("exchange  %.2f ms\n", b->exchange_ms);
    printf("speed     %.1f GFLOP/s, %.0f %% of the %.1f measured here\n",
           b->gflops, 100 * b->fraction_of_peak, b->peak_gflops);
    printf("peak RSS  %.0f MiB\n", b->peak_rss_mib);
    printf("on        %d thread%s, %s\n", b->threads,
           b->threads == 1 ? "" : "s", b->isa);
}

static int bench(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_bench result;
    long steps;
    sp_err e;

    if (!sp_args_count(a, "steps", 10, &steps))
        return SP_EXIT_USAGE;
    e = sp_opened_config(&o, a);
    if (e == SP_OK)
        e = sp_bench_run(o.config, (int)steps, &result);
    sp_opened_free(&o);
    if (e != SP_OK)
        return sp_refuse(e);
    if (sp_args_flag(a, "json"))
        return print_object(&result);
    print_text(&result);
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_bench = {
    .name = "bench",
    .words = "CONFIG...",
    .least = 1,
    .most = -1,
    .overrides = true,
    .help = "time training steps on made-up data",
    .flags = {
        { "steps", "N", "measured steps (10), after 2 that are not" },
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "Opens no data. Times are medians over the steps. The object's keys: "
        "step_ms\nstep_ms_min step_ms_max items_per_s gflops peak_gflops "
        "fraction_of_peak\nforward_ms backward_ms optim_ms exchange_ms "
        "peak_rss_mib threads ranks isa.\n\n"
        "  sprat bench configs/cifar10/resnet18.yaml\n"
        "  sprat bench configs/cifar10/resnet20.yaml train.threads=1 --steps "
        "30 --json\n",
    .run = bench,
};
