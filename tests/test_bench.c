/* Benchmarks: the time of every operator, and the work it is held against.
 *
 * The network is a ResNet-8 of 4, 8 and 16 channels on images of 4 x 4 pixels:
 * a convolution, and three blocks of two, each with a batch norm; two blocks
 * start with a stride of 2 and a subsampling shortcut. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "train/bench_ops.h"
#include "train/step.h"

enum { BATCH = 16, F = sizeof(float), MOST = 64 };

static runs r;
static const char *const net[] = { "model.name=resnet", "model.depth=8",
                                   "model.width=0.25", NULL, NULL };

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* The ResNet with one more override (may be NULL). */
static sp_config *config(const char *override)
{
    const char *all[5];

    memcpy(all, net, sizeof all);
    all[3] = override;
    return runs_config(&r, all);
}

/* Its lines, counted and timed in `steps` steps; without bounds. */
static int clocked(const char *override, int steps, sp_bench_op *ops)
{
    sp_config *c = config(override);
    sp_batch b = { .rows = BATCH, .targets = BATCH, .n = BATCH, .t = 1 };
    sp_op_clock clock;
    sp_step_result out;
    sp_session s;
    int count;

    ck_assert_int_eq(sp_session_open(&s, c, (sp_session_opt){ .train = true }),
                     SP_OK);
    memset(s.train.input->data, 0, sp_count(s.train.input->shape) * F);
    memset(s.train.label->data, 0, sp_count(s.train.label->shape) * F);
    sp_op_clock_open(&clock, steps);
    s.watch = &clock.watch;
    for (int i = -1; i < steps; i++) {
        sp_step_at at = { .step = i + 1, .lr = 1e-6 };

        clock.step = i;
        ck_assert_int_eq(sp_train_step(&s, &b, &at, &out), SP_OK);
    }
    count = clock.count;
    ck_assert_int_le(count, MOST);
    ck_assert_int_eq(sp_op_clock_read(&clock, steps - 1, ops), SP_OK);
    sp_op_clock_close(&clock);
    sp_session_close(&s);
    sp_config_free(c);
    return count;
}

static void free_names(sp_bench_op *ops, int count)
{
    for (int i = 0; i < count; i++)
        free(ops[i].name);
}

static const sp_bench_op *find(const sp_bench_op *ops, int count,
                               const char *name, const char *pass)
{
    const sp_bench_op *found = NULL;

    for (int i = 0; i < count; i++)
        if (!strcmp(ops[i].name, name) && !strcmp(ops[i].pass, pass)) {
            ck_assert_msg(!found, "%s, %s: twice", name, pass);
            found = &ops[i];
        }
    ck_assert_msg(found != NULL, "%s, %s: not there", name, pass);
    return found;
}

static int passes_of(const sp_bench_op *ops, int count, const char *op,
                     const char *pass)
{
    int n = 0;

    for (int i = 0; i < count; i++)
        n += !strcmp(ops[i].op, op) && !strcmp(ops[i].pass, pass);
    return n;
}

/* In the order in which they ran: forward, then back from the end. */
START_TEST(every_pass_has_one_line)
{
    static const struct {
        const char *op, *pass;
        int lines;
    } want[] = {
        { "convolve", "forward", 7 },
        { "convolve", "backward weights", 7 },
        { "convolve", "backward input", 6 }, /* images have no gradient */
        { "convolve", "backward bias", 0 },
        { "normalize", "forward", 7 },
        { "normalize", "backward", 7 },
        { "subsample", "forward", 2 },
        { "subsample", "backward", 2 },
        { "global_pool", "forward", 1 },
        { "global_pool", "backward", 1 },
        { "matmul", "forward", 1 },
        { "matmul", "backward weights", 1 },
        { "matmul", "backward bias", 1 },
        { "matmul", "backward input", 1 },
        { "cross_entropy", "forward", 1 },
        { "cross_entropy", "backward", 1 },
    };
    sp_bench_op ops[MOST];
    int count = clocked(NULL, 2, ops), sum = 0;

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ck_assert_int_eq(passes_of(ops, count, want[i].op, want[i].pass),
                         want[i].lines);
        sum += want[i].lines;
    }
    ck_assert_int_eq(count, sum);
    for (int i = 0; i < count; i++)
        find(ops, count, ops[i].name, ops[i].pass);
    ck_assert_str_eq(ops[0].name, "conv1");
    ck_assert_str_eq(ops[0].pass, "forward");
    ck_assert_str_eq(ops[1].name, "bn1");
    ck_assert_str_eq(ops[count - 2].name, "bn1");
    ck_assert_str_eq(ops[count - 1].name, "conv1");
    ck_assert_str_eq(ops[count - 1].pass, "backward weights");
    free_names(ops, count);
}
END_TEST

START_TEST(work_is_counted)
{
    /* Values of 4 x 4 pixels and 4 channels, of 2 x 2 and 8, as bytes. */
    const double wide = BATCH * 4 * 4 * 4 * F, half = BATCH * 2 * 2 * 8 * F;
    const double image = BATCH * 4 * 4 * 1 * F;
    const struct {
        const char *name, *pass;
        double flops, bytes;
    } want[] = {
        /* 3 x 3 from 1 to 4 channels, 16 pixels, 16 images. */
        { "conv1", "forward", 2 * 9 * 1 * 4 * 16 * BATCH,
          image + 9 * 4 * F + wide },
        { "conv1", "backward weights", 2 * 9 * 1 * 4 * 16 * BATCH,
          image + wide + 9 * 4 * F },
        /* From 4 to 8, stride 2: 4 pixels. The block's input has a gradient
         * from the shortcut when the convolution's is added to it. */
        { "layer2.0.conv1", "forward", 2 * 9 * 4 * 8 * 4 * BATCH,
          wide + 9 * 4 * 8 * F + half },
        { "layer2.0.conv1", "backward input", 2 * 9 * 4 * 8 * 4 * BATCH,
          half + 9 * 4 * 8 * F + 2 * wide },
        /* x twice, y, 4 parameters and 2 saved numbers a channel. */
        { "bn1", "forward", 0, 3 * wide + (4 + 2) * 4 * F },
        /* x and dy twice, dx; 2 gradients besides. */
        { "bn1", "backward", 0, 5 * wide + (4 + 2 + 2) * 4 * F },
        /* The same and the sum's other part, once. */
        { "layer1.0.bn2", "forward", 0, 4 * wide + (4 + 2) * 4 * F },
        /* x, dy and y twice, for the ReLU; dx and the other part's. */
        { "layer1.0.bn2", "backward", 0, 8 * wide + (4 + 2 + 2) * 4 * F },
        { "fc", "forward", 2 * 16 * 4 * BATCH,
          BATCH * 16 * F + (16 * 4 + 4) * F + BATCH * 4 * F },
        { "fc", "backward bias", 0, BATCH * 4 * F + 4 * F },
        { "fc", "backward input", 2 * 16 * 4 * BATCH,
          BATCH * 4 * F + 16 * 4 * F + BATCH * 16 * F },
    };
    sp_bench_op ops[MOST];
    int count = clocked(NULL, 1, ops);

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const sp_bench_op *o = find(ops, count, want[i].name, want[i].pass);
        ck_assert_msg(o->flops == want[i].flops && o->bytes == want[i].bytes,
                      "%s, %s: %g flops, %g bytes, want %g and %g", o->name,
                      o->pass, o->flops, o->bytes, want[i].flops,
                      want[i].bytes);
    }
    free_names(ops, count);
}
END_TEST

/* The same lines and flops; weights are read, and their gradients written, in
 * each part, and from the second on read as well. */
START_TEST(parts_of_a_batch_add_up)
{
    sp_bench_op whole[MOST], parts[MOST];
    int count = clocked(NULL, 1, whole);
    double w = 9 * 4 * F;

    ck_assert_int_eq(clocked("train.micro_batch=4", 1, parts), count);
    for (int i = 0; i < count; i++) {
        ck_assert_str_eq(whole[i].name, parts[i].name);
        ck_assert_str_eq(whole[i].pass, parts[i].pass);
        ck_assert(whole[i].flops == parts[i].flops);
    }
    ck_assert(parts[0].bytes == whole[0].bytes + 3 * w);
    ck_assert(parts[count - 1].bytes == whole[count - 1].bytes + 6 * w);
    free_names(whole, count);
    free_names(parts, count);
}
END_TEST

/* Without the statistics: one reading of x less than forward. */
START_TEST(what_is_computed_again_has_a_line)
{
    sp_bench_op ops[MOST];
    int count = clocked("train.recompute=norm", 1, ops);

    ck_assert_int_gt(passes_of(ops, count, "normalize", "recompute"), 0);
    for (int i = 0; i < count; i++)
        if (!strcmp(ops[i].pass, "recompute")) {
            const sp_bench_op *y = find(ops, count, ops[i].name, "forward");
            double x = BATCH * 4 * 4 * 4 * F;
            if (!strncmp(ops[i].name, "layer2", 6))
                x /= 2;
            else if (!strncmp(ops[i].name, "layer3", 6))
                x /= 4;
            ck_assert(ops[i].flops == 0 && ops[i].bytes == y->bytes - x);
        }
    free_names(ops, count);
}
END_TEST

START_TEST(shares_add_up)
{
    sp_config *c = config(NULL);
    double sum = 0, flops = 0;
    sp_bench b;

    ck_assert_int_eq(
        sp_bench_run(c, (sp_bench_opt){ .steps = 4, .ops = true }, &b), SP_OK);
    ck_assert(b.step_ms_min <= b.step_ms && b.step_ms <= b.step_ms_max);
    ck_assert(b.forward_ms + b.backward_ms + b.optim_ms <= b.step_ms);
    ck_assert_uint_eq(b.op_count, 46 + 2);
    ck_assert_str_eq(b.ops[46].name, "optimizer");
    ck_assert_str_eq(b.ops[46].op, "sgd");
    ck_assert_str_eq(b.ops[47].name, "outside");
    ck_assert(b.bandwidth_gbytes_per_s > 0 && b.peak_gflops > 0);
    for (size_t i = 0; i < b.op_count; i++) {
        const sp_bench_op *o = &b.ops[i];
        double peak = o->flops / (1e6 * b.peak_gflops);
        double memory = o->bytes / (1e6 * b.bandwidth_gbytes_per_s);
        sum += o->share;
        flops += o->flops;
        ck_assert(o->ms > 0);
        ck_assert_double_eq_tol(o->share, o->ms / b.step_ms, 1e-12);
        ck_assert_double_eq_tol(o->bound_ms, peak > memory ? peak : memory,
                                1e-12);
        ck_assert_str_eq(o->bound_by ? o->bound_by : "nothing",
                         i == 47         ? "nothing"
                         : peak > memory ? "flops"
                                         : "bytes");
    }
    ck_assert_double_eq_tol(sum, 1, 1e-9);
    /* The whole step's count has one product more: that of the images'
     * gradient. */
    ck_assert_double_eq_tol(flops + 2 * 9 * 1 * 4 * 16 * BATCH,
                            1e6 * b.gflops * b.step_ms, 1);
    sp_bench_free(&b);
    sp_config_free(c);
}
END_TEST

START_TEST(nobody_watches_unasked)
{
    sp_config *c = runs_config(&r, NULL);
    sp_bench b;

    ck_assert_int_eq(sp_bench_run(c, (sp_bench_opt){ .steps = 1 }, &b), SP_OK);
    ck_assert_ptr_null(b.ops);
    ck_assert_uint_eq(b.op_count, 0);
    sp_config_free(c);
}
END_TEST

START_TEST(median_is_in_the_middle)
{
    const double odd[] = { 5, 1, 3 }, even[] = { 8, 1, 4, 2 }, one[] = { 7 };
    double sorted[4];

    ck_assert_int_eq(sp_median_step(odd, sorted, 3), 2);
    ck_assert_int_eq(sp_median_step(one, sorted, 1), 0);
    ck_assert_int_eq(sp_median_step(even, sorted, 4), 3);
    ck_assert(sorted[0] == 1 && sorted[1] == 2 && sorted[2] == 4 &&
              sorted[3] == 8);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bench");
    TCase *tc = tcase_create("bench");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_pass_has_one_line);
    tcase_add_test(tc, work_is_counted);
    tcase_add_test(tc, parts_of_a_batch_add_up);
    tcase_add_test(tc, what_is_computed_again_has_a_line);
    tcase_add_test(tc, shares_add_up);
    tcase_add_test(tc, nobody_watches_unasked);
    tcase_add_test(tc, median_is_in_the_middle);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
