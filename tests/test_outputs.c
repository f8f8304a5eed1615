#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/outputs.h"

static char folder[64];

static void put(const char *path)
{
    ck_assert_int_eq(sp_file_write_synced(path, "x", 1), SP_OK);
}

/* A run, and a folder of settings that is none. */
static void setup(void)
{
    strcpy(folder, "/tmp/sprat-outputs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(sp_dir_make("runs/a/checkpoints/step-1"), SP_OK);
    put("runs/a/config.yaml");
    put("runs/a/metrics.jsonl");
    put("runs/a/checkpoints/step-1/model.safetensors");
    ck_assert_int_eq(sp_link_switch("runs/a/checkpoints/last", "step-1"),
                     SP_OK);
    put("config.yaml");
}

static void teardown(void) { ck_assert_int_eq(sp_dir_remove(folder), SP_OK); }

static const char *const of_the_run[] = {
    "runs/a/metrics.jsonl",
    "runs/a/config.yaml",
    "runs/a/result.json",
    "runs/a/checkpoints",
    "runs/a/checkpoints/last",
    "runs/a/checkpoints/mine.npz",
    "runs/a/checkpoints/last/model.safetensors",
    "runs/../runs/a//checkpoints/step-1/model.safetensors",
};

START_TEST(what_is_of_a_run_is_refused)
{
    ck_assert_int_eq(sp_output_check(of_the_run[_i], NULL, 0), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "/runs/a: give the output"));
}
END_TEST

START_TEST(in_the_run_by_its_name_alone)
{
    ck_assert_int_eq(chdir("runs/a"), 0);
    ck_assert_int_eq(sp_output_check("metrics.jsonl", NULL, 0), SP_EARG);
    ck_assert_int_eq(sp_output_check("report.html", NULL, 0), SP_OK);
    ck_assert_int_eq(chdir("checkpoints/last"), 0);
    ck_assert_int_eq(sp_output_check("w.npz", NULL, 0), SP_EARG);
    ck_assert_int_eq(chdir(folder), 0);
}
END_TEST

static const char *const others[] = {
    "runs/a/report.html",
    "runs/metrics.jsonl",
    "config.yaml",
    "trace.json",
    "new.npz",
    "nowhere/metrics.jsonl",
    "/metrics.html",
};

START_TEST(other_names_are_fine)
{
    ck_assert_int_eq(sp_output_check(others[_i], NULL, 0), SP_OK);
}
END_TEST

START_TEST(inputs_are_refused_by_any_name)
{
    const char *const inputs[] = { "nowhere", "in.npz" };

    put("in.npz");
    put("out.npz");
    ck_assert_int_eq(symlink("in.npz", "link"), 0);
    ck_assert_int_eq(sp_output_check("out.npz", inputs, 2), SP_OK);
    ck_assert_int_eq(sp_output_check("nowhere", inputs, 2), SP_OK);
    ck_assert_int_eq(sp_output_check("./in.npz", inputs, 2), SP_EARG);
    ck_assert_int_eq(sp_output_check("link", inputs, 2), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "what is read (in.npz)"));
}
END_TEST

/* A pipe would be waited for; a device be gone. */
START_TEST(what_is_no_file_is_not_replaced)
{
    struct stat s;

    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(mkfifo("b.tmp", 0600), 0);
    ck_assert_int_eq(sp_file_write_synced("pipe", "x", 1), SP_EIO);
    ck_assert_int_eq(sp_file_write_synced("b", "x", 1), SP_EIO);
    ck_assert_int_eq(sp_file_write_synced("runs", "x", 1), SP_EIO);
    ck_assert_int_eq(stat("pipe", &s), 0);
    ck_assert(S_ISFIFO(s.st_mode));
    ck_assert_int_eq(stat("b.tmp", &s), 0);
    ck_assert(S_ISFIFO(s.st_mode));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("outputs");
    TCase *tc = tcase_create("outputs");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, what_is_of_a_run_is_refused, 0,
                        sizeof of_the_run / sizeof *of_the_run);
    tcase_add_test(tc, in_the_run_by_its_name_alone);
    tcase_add_loop_test(tc, other_names_are_fine, 0,
                        sizeof others / sizeof *others);
    tcase_add_test(tc, inputs_are_refused_by_any_name);
    tcase_add_test(tc, what_is_no_file_is_not_replaced);
    suite_add_tcase(s, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
