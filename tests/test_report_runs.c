#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "report/run.h"

static char *folder;

static void setup(void) { folder = sp_scratch_new(); }
static void teardown(void) { sp_scratch_free(folder); }

static void put(const char *name, const char *text)
{
    sp_scratch_write(folder, name, text, strlen(text));
}

static const char epoch_lines[] =
    "{\"kind\":\"step\",\"epoch\":1,\"step\":5,\"lr\":0.1,\"train_loss\":2}\n"
    "{\"kind\":\"epoch\",\"epoch\":1,\"step\":10,\"train_loss\":1.5,"
    "\"test_top1\":50}\n"
    "{\"kind\":\"time\",\"epoch\":1,\"step\":10,\"data_s\":1,"
    "\"forward_s\":2.5,\"other_s\":0.25}\n"
    "{\"kind\":\"time\",\"epoch\":2,\"step\":20,\"data_s\":3}\n"
    "{\"kind\":\"later\",\"step\":\"of another version\"}\n"
    "{\"kind\":\"epoch\",\"epoch\":2,\"step\":20,\"train_loss\":null,"
    "\"test_top1\":60}\n";

static sp_err open_run(sp_run_record *r)
{
    return sp_run_open(r, sp_scratch_path(folder, "r"), "r");
}

START_TEST(lines_become_series)
{
    sp_run_record r;

    put("r/metrics.jsonl", epoch_lines);
    ck_assert_int_eq(open_run(&r), SP_OK);
    ck_assert_double_eq(r.batches, 10);
    ck_assert_double_eq(r.last_step, 20);
    ck_assert_uint_eq(r.epoch_count, 2);
    ck_assert_uint_eq(sp_xy_list_count(&r.epochs[SP_TEST_TOP1]), 2);
    ck_assert_double_eq(sp_xy_list_at(&r.epochs[SP_TEST_TOP1])[1].y, 60);
    ck_assert_double_eq(sp_xy_list_at(&r.steps[SP_RATE])[0].x, 5);
    /* What was not finite is a gap. */
    ck_assert_double_nan(sp_xy_list_at(&r.epochs[SP_TRAIN_LOSS])[1].y);
    /* What is never measured has no points. */
    ck_assert_uint_eq(sp_xy_list_count(&r.epochs[SP_VALID_PPL]), 0);
    ck_assert(r.timed);
    ck_assert_double_eq(r.times[0], 4);
    ck_assert_double_eq(r.times[1], 2.5);
    ck_assert_double_eq(r.times[SP_RUN_TIMES - 1], 0.25);
    ck_assert_int_eq(sp_run_score(&r), SP_TEST_TOP1);
    ck_assert_str_eq(sp_run_status(&r), "under way or killed");
    sp_run_free(&r);
}
END_TEST

START_TEST(a_line_that_is_cut_off_is_left_out_and_told)
{
    sp_run_record r;
    char text[2048];
    size_t whole = strlen(epoch_lines);
    const char *last = "{\"kind\":\"epoch\",\"epoch\":3,\"step\":30}";

    for (size_t n = 1; n < strlen(last); n++) {
        memcpy(text, epoch_lines, whole);
        memcpy(text + whole, last, n);
        sp_scratch_write(folder, "r/metrics.jsonl", text, whole + n);
        ck_assert_int_eq(open_run(&r), SP_OK);
        ck_assert_uint_eq(r.epoch_count, 2);
        ck_assert_ptr_nonnull(
            strstr(sp_text_string(&r.notes), "metrics.jsonl: the last line"));
        sp_run_free(&r);
    }
    /* Only its line end is missing. */
    snprintf(text, sizeof text, "%s%s", epoch_lines, last);
    put("r/metrics.jsonl", text);
    ck_assert_int_eq(open_run(&r), SP_OK);
    ck_assert_uint_eq(r.epoch_count, 3);
    ck_assert_ptr_null(strstr(sp_text_string(&r.notes), "metrics.jsonl"));
    sp_run_free(&r);
}
END_TEST

/* The file, what is in it, and what the message must tell. */
static const char *const garbage[][3] = {
    { "metrics.jsonl", "{\"kind\":\"step\",\"step\":1}\nrubbish\n",
      "metrics.jsonl:2:" },
    { "metrics.jsonl", "[1]\n", "metrics.jsonl:1:" },
    { "metrics.jsonl", "\n", "metrics.jsonl:1:" },
    { "metrics.jsonl", "{\"step\":1}\n", "metrics.jsonl:1: there is no kind" },
    { "metrics.jsonl", "{\"kind\":\"step\"}\n",
      "metrics.jsonl:1: there is no step" },
    { "metrics.jsonl", "{\"kind\":\"step\",\"step\":1,\"lr\":\"high\"}\n",
      "metrics.jsonl:1: lr is not a number" },
    { "metrics.jsonl", "{\"kind\":\"epoch\",\"epoch\":1,\"step\":-1}\n",
      "metrics.jsonl:1: there is no step" },
    { "tensors.jsonl", "{\"kind\":\"tensors\",\"epoch\":1}\n",
      "tensors.jsonl:1: stands before any names" },
    { "tensors.jsonl",
      "{\"kind\":\"names\",\"names\":[\"a\"],\"elements\":[1,2]}\n",
      "tensors.jsonl:1: names lists do not fit" },
    { "tensors.jsonl",
      "{\"kind\":\"names\",\"names\":[\"a\"],\"elements\":[1]}\n"
      "{\"kind\":\"tensors\",\"epoch\":1,\"weight_norm\":[1,2]}\n",
      "tensors.jsonl:2: weight_norm has not one value for each name" },
    { "config.yaml", "model:\n  name resnet\n", "config.yaml:2:" },
    { "config.yaml", "  name: resnet\n", "config.yaml:1:" },
    { "result.json", "{\"status\":", "result.json:1:" },
    { "result.json", "[]", "result.json:1: not a JSON object" },
};

START_TEST(garbage_is_refused_with_its_place)
{
    sp_run_record r;
    char name[64];
    const char *wanted[] = { garbage[_i][2], NULL };

    snprintf(name, sizeof name, "r/%s", garbage[_i][0]);
    put(name, garbage[_i][1]);
    ck_assert_int_eq(open_run(&r), SP_EFORMAT);
    ck_assert_msg(sp_error_has(wanted), "%s", sp_last_error());
    sp_run_free(&r);
}
END_TEST

START_TEST(settings_stand_as_they_are_written)
{
    static const char *const wanted[][3] = {
        { "model", "name", "resnet" },
        { "model", "init", "\"a # b: c\"" },
        { "schedule", "at", "[15, 22]" },
        { "data", "root", "'it''s # here'" },
    };
    sp_run_record r;

    put("r/config.yaml", "# a comment\nmodel:\n"
                         "  name: resnet   # base.yaml:4:3\n"
                         "  init: \"a # b: c\"  # default\n\n"
                         "schedule:\n  at: [15, 22]\n"
                         "data:\r\n  root: 'it''s # here'  # argument\r\n");
    ck_assert_int_eq(open_run(&r), SP_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_str_eq(sp_run_setting_of(&r, wanted[i][0], wanted[i][1]),
                         wanted[i][2]);
    ck_assert_str_eq(sp_run_setting_at(&r, 0)->source, "base.yaml:4:3");
    ck_assert_str_eq(sp_run_setting_at(&r, 2)->source, "");
    ck_assert_ptr_null(sp_run_setting_at(&r, 4));
    ck_assert_ptr_null(sp_run_setting_of(&r, "model", "depth"));
    sp_run_free(&r);
}
END_TEST

START_TEST(warnings_are_told_once)
{
    sp_run_record r;

    put("r/config.yaml", "");
    put("r/log.txt", "run  x\nwarning: one\nwarning: two\nwarning: one\n"
                     "no warning: three\nwarning: four");
    ck_assert_int_eq(open_run(&r), SP_OK);
    ck_assert_str_eq(sp_text_string(&r.warnings), "one\ntwo\nfour\n");
    sp_run_free(&r);
}
END_TEST

START_TEST(tensors_keep_their_places_over_a_switch)
{
    const sp_run_stat *s;
    const sp_run_tensor *t;
    sp_run_record r;

    put("r/metrics.jsonl", epoch_lines);
    put("r/tensors.jsonl",
        "{\"kind\":\"names\",\"names\":[\"a\",\"b\"],\"elements\":[6,7]}\n"
        "{\"kind\":\"tensors\",\"epoch\":1,\"step\":10,"
        "\"weight_norm\":[1,2],\"grad_norm\":[3,null]}\n"
        "{\"kind\":\"names\",\"names\":[\"c\",\"b\"],\"elements\":[8,7]}\n"
        "{\"kind\":\"tensors\",\"epoch\":2,\"step\":20,"
        "\"weight_norm\":[4,5]}\n");
    ck_assert_int_eq(open_run(&r), SP_OK);
    t = (const void *)r.tensors.bytes;
    s = (const void *)r.stats.bytes;
    ck_assert_uint_eq(r.tensors.size, 3 * sizeof *t);
    ck_assert_uint_eq(r.stats.size, 4 * sizeof *s);
    ck_assert_str_eq(t[2].name, "c");
    ck_assert_double_eq(t[2].elements, 8);
    ck_assert_uint_eq(s[2].tensor, 2); /* c */
    ck_assert_uint_eq(s[3].tensor, 1); /* b again */
    ck_assert_double_eq(s[3].weight_norm, 5);
    ck_assert_double_eq(s[3].epoch, 2);
    ck_assert_double_nan(s[1].grad_norm);
    ck_assert_double_nan(s[2].grad_norm);
    sp_run_free(&r);
}
END_TEST

START_TEST(runs_are_found_below_a_folder)
{
    static const char *const names[] = { "T/base/seed-1", "T/base/seed-2",
                                         "T/dgc/seed-1" };
    const char *paths[2];
    sp_runs runs;

    put("T/dgc/seed-1/config.yaml", "");
    put("T/base/seed-2/metrics.jsonl", "");
    put("T/base/seed-1/result.json", "{}");
    put("T/base/seed-1/checkpoints/x/config.yaml", "");
    put("T/other/table.md", "");
    paths[0] = folder;
    ck_assert_int_eq(sp_runs_open(&runs, paths, 1), SP_OK);
    ck_assert_uint_eq(runs.count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(runs.run[i].name, names[i]);
    sp_runs_free(&runs);
    /* Equal names are told apart by their paths. */
    paths[0] = sp_scratch_path(folder, "T/base/seed-1/");
    paths[1] = sp_scratch_path(folder, "T/dgc/seed-1");
    ck_assert_int_eq(sp_runs_open(&runs, paths, 2), SP_OK);
    ck_assert_str_eq(runs.run[1].name, paths[1]);
    ck_assert_str_ne(runs.run[0].name, runs.run[1].name);
    sp_runs_free(&runs);
    paths[0] = paths[1];
    ck_assert_int_eq(sp_runs_open(&runs, paths, 2), SP_EARG);
    paths[0] = sp_scratch_path(folder, "T/other");
    ck_assert_int_eq(sp_runs_open(&runs, paths, 1), SP_EARG);
    paths[0] = sp_scratch_path(folder, "none");
    ck_assert_int_eq(sp_runs_open(&runs, paths, 1), SP_EARG);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("report_runs");
    TCase *tc = tcase_create("report_runs");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, lines_become_series);
    tcase_add_test(tc, a_line_that_is_cut_off_is_left_out_and_told);
    tcase_add_loop_test(tc, garbage_is_refused_with_its_place, 0,
                        COUNT(garbage));
    tcase_add_test(tc, settings_stand_as_they_are_written);
    tcase_add_test(tc, warnings_are_told_once);
    tcase_add_test(tc, tensors_keep_their_places_over_a_switch);
    tcase_add_test(tc, runs_are_found_below_a_folder);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
