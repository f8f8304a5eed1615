#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/safetensors.h"
#include "runs.h"
#include "sprat/convert.h"

static runs r;

static void setup(void) { r = runs_new(); }

static void teardown(void) { runs_free(&r); }

static const char *path(const char *file)
{
    return sp_scratch_path(r.folder, file);
}

static sp_err import(const char *file, const char *const *overrides,
                     const char *except, sp_import_result *result)
{
    sp_config *c = runs_config(&r, overrides);
    sp_import_opt o = { .file = path(file),
                        .except = except,
                        .out = path("out.safetensors") };
    sp_err e = sp_import(c, &o, result);

    sp_config_free(c);
    return e;
}

/* ---- There and back ------------------------------------------------------ */

static const char *const norms[] = { "model.name=resnet", "model.depth=8",
                                     "model.width=0.25",  "data.shape=[8,8,3]",
                                     "data.augment=none", NULL };
static const char *const tied[] = { "model.name=lstm_lm", "model.hidden=6",
                                    "model.tied=true",    "model.biases=1",
                                    "data.vocab=20",      "data.train=400",
                                    "data.test=100",      "data.augment=none",
                                    "train.bptt=4",       NULL };

static const struct {
    const char *const *overrides;
    const char *file;
    int arrays, folded;
} trips[] = {
    { norms, "w.safetensors", 7 + 2 + 4 * 7, 0 },
    { norms, "w.npz", 7 + 2 + 4 * 7, 0 },
    { tied, "w.safetensors", 1 + 2 * 3 + 1, 2 },
};

/* What is exported is imported as the very file of the checkpoint. */
START_TEST(there_and_back_nothing_changes)
{
    static const char *const few[] = { "train.max_steps=2", NULL };
    const char *all[RUNS_MOST], *file = trips[_i].file;
    const char *ours = "checkpoints/last/model.safetensors";
    char hash[2][SP_HASH_HEX];
    sp_import_result result;
    uint64_t size;

    runs_join(all, few, trips[_i].overrides);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "run", .overrides = all }), SP_OK);
    ck_assert_int_eq(
        sp_export(r.registry, &(sp_export_opt){ .run = path("run"),
                                                .checkpoint = "last",
                                                .file = path(file) }),
        SP_OK);
    if (import(file, trips[_i].overrides, NULL, &result) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(result.imported, trips[_i].arrays);
    ck_assert_int_eq(result.anew, 0);
    ck_assert_int_eq(result.folded, trips[_i].folded);
    ck_assert_int_eq(sp_file_hash(path("out.safetensors"), hash[0], &size),
                     SP_OK);
    ck_assert_int_eq(sp_file_hash(runs_path(&r, "run", ours), hash[1], &size),
                     SP_OK);
    ck_assert_str_eq(hash[0], hash[1]);
}
END_TEST

/* ---- Files by hand ------------------------------------------------------- */

/* The perceptron's arrays: 16 inputs, 8 hidden, 4 outputs. */
enum { WEIGHT1, BIAS1, WEIGHT2, BIAS2, ARRAYS };

static float numbers[128];

static const sp_st_tensor perceptron[ARRAYS] = {
    { .name = "fc1.weight", .ndim = 2, .dims = { 8, 16 }, .data = numbers },
    { .name = "fc1.bias", .ndim = 1, .dims = { 8 }, .data = numbers },
    { .name = "fc2.weight", .ndim = 2, .dims = { 4, 8 }, .data = numbers },
    { .name = "fc2.bias", .ndim = 1, .dims = { 4 }, .data = numbers },
};

static void write_file(const sp_st_tensor *tensors, size_t count)
{
    const sp_st_content content = { tensors, count, NULL, 0 };

    for (int i = 0; i < 128; i++)
        numbers[i] = isnan(numbers[i]) ? numbers[i] : (float)i + 1;
    ck_assert_int_eq(sp_st_write(path("in"), &content, NULL), SP_OK);
}

static void read_out(const char *name, float *out)
{
    sp_st_file *f;

    ck_assert_int_eq(sp_st_open(&f, path("out.safetensors")), SP_OK);
    ck_assert_int_eq(sp_st_read(f, sp_st_find(f, name), out), SP_OK);
    sp_st_close(f);
}

/* As DataParallel and torch.compile leave them. */
START_TEST(what_stands_before_all_names_is_passed_over)
{
    static const char *const names[] = { "module._orig_mod.fc1.weight",
                                         "module._orig_mod.fc1.bias",
                                         "module._orig_mod.fc2.weight",
                                         "module._orig_mod.fc2.bias" };
    sp_st_tensor t[ARRAYS];
    sp_import_result result;
    float w[128];

    memcpy(t, perceptron, sizeof t);
    for (int i = 0; i < ARRAYS; i++)
        t[i].name = names[i];
    write_file(t, ARRAYS);
    ck_assert_int_eq(import("in", NULL, NULL, &result), SP_OK);
    ck_assert_int_eq(result.imported, ARRAYS);
    read_out("fc1.weight", w);
    ck_assert_double_eq((double)w[127], 128);
}
END_TEST

START_TEST(all_mistakes_are_told_together)
{
    sp_st_tensor t[ARRAYS];
    sp_import_result result;

    memcpy(t, perceptron, sizeof t);
    t[WEIGHT1].name = "fcl.weight";
    t[WEIGHT2].dims[0] = 10;
    write_file(t, ARRAYS - 1);
    ck_assert_int_eq(import("in", NULL, NULL, &result), SP_EFORMAT);
    ck_assert_msg(runs_error("in: this safetensors file does not fit") &&
                      runs_error("fc2.weight: 10x8, the network's is 4x8") &&
                      runs_error("fc2.bias: is not in the file") &&
                      runs_error("fc1.weight: is not in the file; the nearest "
                                 "is fcl.weight") &&
                      runs_error("fcl.weight: is not in the network; the "
                                 "nearest is fc1.weight") &&
                      runs_error("--except fc2"),
                  "%s", sp_last_error());
    ck_assert(!sp_is_file(path("out.safetensors")));
}
END_TEST

/* A thousand mistakes are not a thousand lines. */
START_TEST(many_mistakes_are_counted)
{
    static char names[1000][16];
    static sp_st_tensor t[1000];
    sp_import_result result;
    int lines = 0;

    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "layer%d", i);
        t[i] = (sp_st_tensor){ .name = names[i], .data = numbers };
    }
    write_file(t, 1000);
    ck_assert_int_eq(import("in", NULL, NULL, &result), SP_EFORMAT);
    for (const char *p = sp_last_error(); *p; p++)
        lines += *p == '\n';
    ck_assert_int_eq(lines, 21);
    ck_assert(runs_error("and 984 more"));
}
END_TEST

/* Another number of classes: the last layer starts as its seed says. */
START_TEST(excepted_layers_start_anew)
{
    static const char *const never[] = { "train.max_steps=1", NULL };
    sp_st_tensor t[ARRAYS];
    sp_import_result result;
    float w[32], start[32];
    sp_st_file *f;

    memcpy(t, perceptron, sizeof t);
    t[WEIGHT2].dims[0] = t[BIAS2].dims[0] = 10;
    write_file(t, ARRAYS);
    ck_assert_int_eq(import("in", NULL, "fc2", &result), SP_OK);
    ck_assert_int_eq(result.imported, 2);
    ck_assert_int_eq(result.anew, 2);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "run", .overrides = never }), SP_OK);
    ck_assert_int_eq(
        sp_st_open(&f,
                   runs_path(&r, "run", "checkpoints/start/model.safetensors")),
        SP_OK);
    ck_assert_int_eq(sp_st_read(f, sp_st_find(f, "fc2.weight"), start), SP_OK);
    sp_st_close(f);
    read_out("fc2.weight", w);
    ck_assert_mem_eq(w, start, sizeof w);
    ck_assert_int_eq(import("in", NULL, "fc2.weight,fc2.bias", &result), SP_OK);
    ck_assert_int_eq(import("in", NULL, "fc2, fc3", &result), SP_EARG);
    ck_assert(runs_error("fc3"));
}
END_TEST

START_TEST(weights_that_are_no_numbers_are_refused)
{
    sp_import_result result;

    numbers[5] = NAN;
    write_file(perceptron, ARRAYS);
    numbers[5] = 0;
    ck_assert_int_eq(import("in", NULL, NULL, &result), SP_ENUMERIC);
    ck_assert(runs_error("fc1.weight") && runs_error("number 5"));
}
END_TEST

/* ---- torchvision's VGG --------------------------------------------------- */

static const char *const vgg[] = { "model.name=vgg",    "model.depth=11",
                                   "model.width=0.02",  "data.shape=[32,32,3]",
                                   "data.augment=none", NULL };

/* Its convolutions have biases, which the means behind them take in; its linear
 * layers are 0, 3, 6. Made from ours by these two changes. */
START_TEST(vgg_of_torchvision_is_read)
{
    static const char *const few[] = { "train.max_steps=1", NULL };
    static sp_st_tensor t[64];
    static float values[64][4096];
    const sp_st_tensor *from;
    const char *all[RUNS_MOST];
    char names[64][48];
    sp_import_result result;
    sp_st_file *f;
    float mean[1], now[1];
    size_t n = 0;

    runs_join(all, few, vgg);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "run", .overrides = all }), SP_OK);
    ck_assert_int_eq(
        sp_st_open(&f,
                   runs_path(&r, "run", "checkpoints/last/model.safetensors")),
        SP_OK);
    for (; (from = sp_st_at(f, n)); n++) {
        t[n] = *from;
        ck_assert_uint_le(from->bytes, sizeof *values);
        ck_assert_int_eq(sp_st_read(f, from, values[n]), SP_OK);
        t[n].data = values[n];
        snprintf(names[n], sizeof names[n], "%s", from->name);
        if (strncmp(names[n], "classifier.", 11) == 0 && names[n][11] != '6')
            names[n][11]--;
        t[n].name = names[n];
    }
    ck_assert_int_eq(
        sp_st_read(f, sp_st_find(f, "features.1.running_mean"), mean), SP_OK);
    sp_st_close(f);
    t[n++] = (sp_st_tensor){
        .name = "features.0.bias", .ndim = 1, .dims = { 1 }, .data = numbers
    };
    write_file(t, n); /* the bias is 1 */
    if (import("in", vgg, NULL, &result) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(result.imported, (int)n - 1);
    ck_assert_int_eq(result.folded, 1);
    read_out("features.1.running_mean", now);
    ck_assert_float_eq_tol(now[0], mean[0] - 1.0f, 1e-6f);
}
END_TEST

/* Weights under both names of a tied layer must be the same. */
START_TEST(untied_weights_are_refused)
{
    static const char *const one[] = { "model.layers=1", "model.hidden=1",
                                       "data.vocab=3", NULL };
    static const float other[3] = { 1, 2, 4 };
    const char *all[RUNS_MOST];
    sp_import_result result;
    sp_st_tensor t[] = {
        { .name = "encoder.weight", .ndim = 2, .dims = { 3, 1 } },
        { .name = "rnn.weight_ih_l0", .ndim = 2, .dims = { 4, 1 } },
        { .name = "rnn.weight_hh_l0", .ndim = 2, .dims = { 4, 1 } },
        { .name = "rnn.bias_ih_l0", .ndim = 1, .dims = { 4 } },
        { .name = "decoder.bias", .ndim = 1, .dims = { 3 } },
        { .name = "decoder.weight", .ndim = 2, .dims = { 3, 1 } },
    };

    for (int i = 0; i < 6; i++)
        t[i].data = numbers;
    runs_join(all, tied, one);
    write_file(t, 6);
    if (import("in", all, NULL, &result) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    t[5].data = other;
    write_file(t, 6);
    ck_assert_int_eq(import("in", all, NULL, &result), SP_EFORMAT);
    ck_assert(runs_error("decoder.weight is not encoder.weight"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("import");
    TCase *tc = tcase_create("import");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, there_and_back_nothing_changes, 0,
                        (int)(sizeof trips / sizeof *trips));
    tcase_add_test(tc, what_stands_before_all_names_is_passed_over);
    tcase_add_test(tc, all_mistakes_are_told_together);
    tcase_add_test(tc, many_mistakes_are_counted);
    tcase_add_test(tc, excepted_layers_start_anew);
    tcase_add_test(tc, weights_that_are_no_numbers_are_refused);
    tcase_add_test(tc, vgg_of_torchvision_is_read);
    tcase_add_test(tc, untied_weights_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
