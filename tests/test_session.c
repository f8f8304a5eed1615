/* What a configuration opens: programs, weights, reports, and what is refused
 * before anything runs. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "sprat/nn.h"
#include "train/evaluate.h"
#include "train/session.h"
#include "train/weights.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static sp_err check(const char *const *overrides)
{
    sp_config *c = runs_config(&r, overrides);
    sp_err e = sp_check(c, NULL, NULL);

    sp_config_free(c);
    return e;
}

START_TEST(mistakes_across_keys_are_told_together)
{
    const char *wrong[] = { "train.micro_batch=5",
                            "schedule.name=step",
                            "schedule.every=2",
                            "schedule.at=[1]",
                            "optim.nesterov=true",
                            "optim.momentum=0",
                            NULL };

    ck_assert_int_eq(check(NULL), SP_OK);
    ck_assert_int_eq(check(wrong), SP_ECONFIG);
    ck_assert(runs_error("argument: train.micro_batch: 5 does not divide"));
    ck_assert(runs_error("schedule.every"));
    ck_assert(runs_error("optim.nesterov"));
}
END_TEST

START_TEST(settings_must_fit_the_data)
{
    static const struct {
        const char *override, *word;
    } wrong[] = {
        { "train.batch=97", "96 training samples" },
        { "model.classes=3", "model.classes is 3" },
        { "data.valid=96", "data.valid" },
        { "model.init=nowhere.safetensors", "nowhere.safetensors" },
    };
    const char *overrides[] = { wrong[_i].override, NULL };

    ck_assert_int_ne(check(overrides), SP_OK);
    ck_assert_msg(runs_error(wrong[_i].word), "%s", sp_last_error());
}
END_TEST

static sp_tensor *nothing(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    (void)g, (void)x, (void)a;
    return NULL;
}

static sp_tensor *image(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    (void)g, (void)a;
    return x;
}

static sp_tensor *one_more(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    return sp_linear(g, "fc", x, (sp_linear_opt){ .out = a->classes + 1 });
}

/* A model of a program's own may give anything. */
START_TEST(a_model_must_give_logits)
{
    static const struct {
        sp_tensor *(*build)(sp_graph *, sp_tensor *, const sp_model_args *);
        const char *word;
    } wrong[] = {
        { NULL, "model mine: its builder gives no tensor" },
        { nothing, "model mine: its builder gives no tensor" },
        { image, "1 x 16 rows of 4 x 4 x 1 for 16 images" },
        { one_more, "rows of 1 x 1 x 5 for 16 images; must be a row of 1 x 1 "
                    "x 4" },
    };
    sp_model mine = { .entry = { .name = "mine" }, .build = wrong[_i].build };
    const char *overrides[] = { "model.name=mine", NULL };

    ck_assert_int_eq(sp_registry_add(r.registry, "model", &mine.entry), SP_OK);
    ck_assert_int_ne(check(overrides), SP_OK);
    ck_assert_msg(runs_error(wrong[_i].word), "%s", sp_last_error());
}
END_TEST

START_TEST(what_ends_too_late_is_warned_of)
{
    const char *late[] = { "schedule.name=step", "schedule.at=[1, 3]",
                           "schedule.warmup_epochs=4", NULL };
    const char *fine[] = { "schedule.name=step", "schedule.at=[1, 2]",
                           "schedule.warmup_epochs=1", NULL };
    const char *const *cases[] = { late, fine };

    for (int i = 0; i < 2; i++) {
        sp_config *c = runs_config(&r, cases[i]);
        sp_text text = { 0 };
        sp_session s = { 0 };

        ck_assert_int_eq(sp_settings_view(c, &s.set), SP_OK);
        sp_session_warn(&s, 10, &text);
        ck_assert_int_eq(
            strstr(sp_text_string(&text), "change after 3") != NULL, i == 0);
        ck_assert_int_eq(strstr(sp_text_string(&text), "warmup_epochs is 4") !=
                             NULL,
                         i == 0);
        sp_text_free(&text);
        sp_config_free(c);
    }
}
END_TEST

/* train.max_steps ends a run before its epochs do: 25 steps of 10 in an epoch
 * are two and a half. */
START_TEST(what_steps_end_too_early_is_warned_of)
{
    const struct {
        const char *steps, *what[3], *says;
    } cases[] = {
        { "train.max_steps=20",
          { "lowrank.name=pufferfish", "lowrank.warmup_epochs=2" },
          "run ends after 2 (train.max_steps): it never becomes" },
        { "train.max_steps=25",
          { "lowrank.name=pufferfish", "lowrank.warmup_epochs=2" },
          NULL },
        { "train.max_steps=25",
          { "compress.name=dgc", "compress.warmup_epochs=2.5" },
          "run ends after 2.5 (train.max_steps): it never reaches" },
        { "train.max_steps=1000",
          { "compress.name=dgc", "compress.warmup_epochs=2.5" },
          NULL },
        { "train.max_steps=25",
          { "prune.name=magnitude", "prune.share=0.2" },
          "run ends after 2.5 (train.max_steps): nothing is removed" },
        { "train.max_steps=31",
          { "prune.name=magnitude", "prune.share=0.2" },
          NULL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *set[] = { "train.epochs=3", cases[i].steps,
                              cases[i].what[0], cases[i].what[1], NULL };
        sp_config *c = runs_config(&r, set);
        sp_text text = { 0 };
        sp_session s;

        ck_assert_int_eq(
            sp_session_open(&s, c, (sp_session_opt){ .train = true }), SP_OK);
        sp_session_warn(&s, 10, &text);
        if (cases[i].says)
            ck_assert_msg(strstr(sp_text_string(&text), cases[i].says), "%s",
                          sp_text_string(&text));
        else
            ck_assert_str_eq(sp_text_string(&text), "");
        sp_text_free(&text);
        sp_session_close(&s);
        sp_config_free(c);
    }
}
END_TEST

START_TEST(info_counts_without_data_or_memory)
{
    sp_config *c = runs_config(&r, NULL);
    sp_info i;

    ck_assert_int_eq(sp_info_open(c, false, &i), SP_OK);
    ck_assert_uint_eq(i.params, 16 * 8 + 8 + 8 * 4 + 4);
    ck_assert_uint_eq(i.params_1d, 8 + 4);
    ck_assert_double_eq(i.macs, 16 * 8 + 8 * 4);
    ck_assert_double_eq(i.dense_bytes, 4 * 172);
    ck_assert_str_eq(sp_params_at(i.tensors, 0)->name, "fc1.weight");
    ck_assert_int_eq(sp_params_at(i.tensors, 0)->dims[0], 8);
    sp_info_close(&i);
    sp_config_free(c);
}
END_TEST

static sp_memory memory_of(const char *const *overrides)
{
    sp_config *c = runs_config(&r, overrides);
    sp_memory m;
    sp_info i;

    if (sp_info_open(c, false, &i) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    m = i.memory;
    sp_info_close(&i);
    sp_config_free(c);
    return m;
}

/* The plan takes hardly more than what lives at once, and a third less when
 * only convolutions' outputs and every second residual sum are kept. */
START_TEST(recomputing_norms_needs_less_memory)
{
    static const char *const networks[][2] = {
        { "model.name=resnet", "model.depth=18" },
        { "model.name=resnet", "model.depth=20" },
        { "model.name=resnet", "model.depth=110" },
        { "model.name=vgg", "model.depth=19" },
    };
    const char *with[] = { networks[_i][0],
                           networks[_i][1],
                           "data.shape=[32,32,3]",
                           "train.batch=128",
                           NULL,
                           NULL };
    sp_memory kept = memory_of(with), again;

    with[4] = "train.recompute=norm";
    again = memory_of(with);
    ck_assert_uint_le(again.planned * 3, kept.planned * 2 + (3 << 20));
    ck_assert_uint_le(kept.planned * 100, kept.lower_bound * 103);
    ck_assert_uint_le(again.planned * 100, again.lower_bound * 103);
}
END_TEST

static sp_session open_with(sp_config *c, sp_session_opt opt)
{
    sp_session s;

    if (sp_session_open(&s, c, opt) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return s;
}

START_TEST(weights_come_back_by_name)
{
    const char *path = sp_scratch_path(r.folder, "w.safetensors");
    char init[600];
    const char *with[] = { init, "train.seed=9", NULL };
    sp_config *c = runs_config(&r, NULL), *d;
    sp_session a = open_with(c, (sp_session_opt){ .train = true }), b;

    snprintf(init, sizeof init, "model.init=%s", path);
    d = runs_config(&r, with);
    ck_assert_int_eq(sp_weights_save(path, a.params, NULL), SP_OK);
    b = open_with(d, (sp_session_opt){ .train = true });
    ck_assert_mem_eq(sp_params_values(a.params), sp_params_values(b.params),
                     sp_params_count(a.params) * sizeof(float));
    sp_session_close(&b);
    b = open_with(d, (sp_session_opt){ .train = true, .no_init = true });
    ck_assert_mem_ne(sp_params_values(a.params), sp_params_values(b.params),
                     sp_params_count(a.params) * sizeof(float));
    sp_session_close(&b);
    sp_session_close(&a);
    sp_config_free(c);
    sp_config_free(d);
}
END_TEST

START_TEST(weights_must_be_the_models)
{
    static const float value[64];
    static const int64_t count[1];
    const char *path = sp_scratch_path(r.folder, "w.safetensors");
    sp_st_tensor t[] = {
        { .name = "fc1.weight", .ndim = 2, .dims = { 8, 8 }, .data = value },
        { .name = "fc1.bias", .ndim = 1, .dims = { 8 }, .data = value },
        { .name = "fc2.weight", .ndim = 2, .dims = { 4, 8 }, .data = value },
        { .name = "fc9.bias", .ndim = 1, .dims = { 4 }, .data = value },
        { .name = "bn1.num_batches_tracked", .type = SP_ST_I64, .data = count },
    };
    char init[600];
    const char *with[] = { init, NULL };

    snprintf(init, sizeof init, "model.init=%s", path);
    ck_assert_int_eq(
        sp_st_write(path, &(sp_st_content){ .tensors = t, .count = 5 }, NULL),
        SP_OK);
    ck_assert_int_eq(check(with), SP_EFORMAT);
    ck_assert(runs_error("fc1.weight: float of 8x8, the model's is 8x16"));
    ck_assert(runs_error("fc2.bias: missing"));
    ck_assert(runs_error("fc9.bias: not in the model"));
    ck_assert(!runs_error("num_batches_tracked"));
    ck_assert(!runs_error("fc1.bias"));
}
END_TEST

START_TEST(weights_to_start_from_are_finite)
{
    const char *path = sp_scratch_path(r.folder, "w.safetensors");
    char init[600];
    const char *with[] = { init, NULL };
    sp_config *c = runs_config(&r, NULL), *d;
    sp_session a = open_with(c, (sp_session_opt){ .train = true }), b;
    sp_text text = { 0 };

    snprintf(init, sizeof init, "model.init=%s", path);
    d = runs_config(&r, with);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sp_weights_save(path, a.params, NULL), SP_OK);
        b = open_with(d, (sp_session_opt){ .train = true });
        sp_session_warn(&b, 6, &text);
        ck_assert_int_eq(
            strstr(sp_text_string(&text), "value 3 of fc2.bias is nan") != NULL,
            i == 1);
        sp_session_close(&b);
        sp_params_values(a.params)[sp_params_count(a.params) - 1] = NAN;
    }
    sp_text_free(&text);
    sp_session_close(&a);
    sp_config_free(c);
    sp_config_free(d);
}
END_TEST

START_TEST(ranks_order_equal_and_broken_logits)
{
    float x[] = { 1, 3, 3, -INFINITY, 2 };
    float y[] = { 0, NAN, 5 };

    ck_assert_int_eq(sp_rank_of(x, 5, 1), 0);
    ck_assert_int_eq(sp_rank_of(x, 5, 2), 1);
    ck_assert_int_eq(sp_rank_of(x, 5, 4), 2);
    ck_assert_int_eq(sp_rank_of(x, 5, 0), 3);
    ck_assert_int_eq(sp_rank_of(x, 5, 3), 4);
    ck_assert_int_eq(sp_rank_of(y, 3, 2), 1); /* NAN is never right */
    ck_assert_int_gt(sp_rank_of(y, 3, 1), 0);
}
END_TEST

START_TEST(bench_measures)
{
    sp_config *c = runs_config(&r, NULL);
    sp_bench b;

    ck_assert_int_eq(sp_bench_run(c, (sp_bench_opt){ 0 }, &b), SP_EARG);
    ck_assert_int_eq(sp_bench_run(c, (sp_bench_opt){ .steps = 5 }, &b), SP_OK);
    ck_assert(b.step_ms_min > 0 && b.step_ms_min <= b.step_ms &&
              b.step_ms <= b.step_ms_max);
    ck_assert(b.forward_ms + b.backward_ms + b.optim_ms <= 2 * b.step_ms_max);
    /* Two flops, three products, 160 MACs, 16 samples. */
    ck_assert_double_eq_tol(b.gflops, 2 * 3 * 160 * 16 / (1e6 * b.step_ms),
                            1e-9);
    ck_assert_double_eq_tol(b.items_per_s, 16e3 / b.step_ms, 1e-6);
    ck_assert(b.peak_gflops > 0 && b.peak_rss_mib > 1);
    ck_assert_int_eq(b.threads, 1);
    sp_config_free(c);
}
END_TEST

typedef struct answers {
    int count, labelled, right;
    double confidence;
} answers;

static void take(void *arg, const sp_prediction *p, const char *const *names,
                 int classes)
{
    answers *a = arg;

    ck_assert_int_eq(classes, 3);
    ck_assert_str_eq(names[0], "dark");
    ck_assert_str_eq(names[2], "2");
    a->count++;
    a->labelled += p->label >= 0;
    a->right += p->label == p->best[0];
    ck_assert_double_eq_tol(
        p->confidence[0] + p->confidence[1] + p->confidence[2], 1, 1e-9);
    ck_assert_double_ge(p->confidence[0], p->confidence[1]);
}

/* Folders of dark and light images; the one without a class stands alone. */
static void write_images(void)
{
    static const char *const splits[] = { "train", "test" };

    for (int i = 0; i < 8; i++)
        for (int s = 0; s < 2; s++) {
            char name[64];
            snprintf(name, sizeof name, "set/%s/dark/%d.png", splits[s], i);
            sp_scratch_flat_png(r.folder, name, 4, 4, 1, (uint8_t)(4 * i));
            snprintf(name, sizeof name, "set/%s/light/%d.png", splits[s], i);
            sp_scratch_flat_png(r.folder, name, 4, 4, 1,
                                (uint8_t)(255 - 4 * i));
        }
    sp_scratch_flat_png(r.folder, "alone.png", 9, 7, 1, 250);
}

START_TEST(predictions_need_no_data_set)
{
    char root[600], folder[600], run[600], alone[600];
    const char *with[] = {
        "model.name=mlp",    "model.classes=3", /* one that has no name */
        "data.name=folder",  root,
        "data.channels=1",   "data.normalize=half",
        "data.augment=none", "train.epochs=30",
        "train.batch=4",     "train.threads=1",
        "log.every=1000",    NULL
    };
    const char *files[] = { folder, alone };
    answers a = { 0 };
    sp_predict_opt o = {
        .run = run, .files = files, .file_count = 2, .each = take, .arg = &a
    };

    write_images();
    snprintf(root, sizeof root, "data.root=%s/set", r.folder);
    snprintf(run, sizeof run, "%s/a", r.folder);
    snprintf(alone, sizeof alone, "%s/alone.png", r.folder);
    snprintf(folder, sizeof folder, "%s/moved/test", r.folder);
    sp_scratch_write(r.folder, "config.yaml", "model: {name: mlp}\n", 19);
    if (runs_train(&r, (runs_job){ .run = "a", .overrides = with }) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(rename(sp_scratch_path(r.folder, "set"),
                            sp_scratch_path(r.folder, "moved")),
                     0);
    if (sp_predict(r.registry, &o) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(a.count, 17);
    ck_assert_int_eq(a.labelled, 16);
    ck_assert_int_eq(a.right, 16);
    files[0] = sp_scratch_path(r.folder, "moved");
    ck_assert_int_eq(sp_predict(r.registry, &o), SP_EDATA);
    ck_assert(runs_error("this deep"));
    files[0] = folder;
    sp_scratch_write(r.folder, "alone.png", "no image", 8);
    ck_assert_int_eq(sp_predict(r.registry, &o), SP_EDATA);
    ck_assert(runs_error("alone.png"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("session");
    TCase *tc = tcase_create("session");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, mistakes_across_keys_are_told_together);
    tcase_add_loop_test(tc, settings_must_fit_the_data, 0, 4);
    tcase_add_loop_test(tc, a_model_must_give_logits, 0, 4);
    tcase_add_test(tc, what_ends_too_late_is_warned_of);
    tcase_add_test(tc, what_steps_end_too_early_is_warned_of);
    tcase_add_test(tc, info_counts_without_data_or_memory);
    tcase_add_loop_test(tc, recomputing_norms_needs_less_memory, 0, 4);
    tcase_add_test(tc, weights_come_back_by_name);
    tcase_add_test(tc, weights_must_be_the_models);
    tcase_add_test(tc, weights_to_start_from_are_finite);
    tcase_add_test(tc, ranks_order_equal_and_broken_logits);
    tcase_add_test(tc, bench_measures);
    tcase_add_test(tc, predictions_need_no_data_set);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
