/* Run folders: made, refused, replaced, locked; and what stands in them. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "runs.h"
#include "train/config_text.h"
#include "train/rundir.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static sp_err create(sp_rundir *d, const char *name, bool overwrite)
{
    sp_job job = { .run = sp_scratch_path(r.folder, name),
                   .overwrite = overwrite };

    return sp_rundir_create(d, &job);
}

START_TEST(an_existing_folder_is_refused)
{
    sp_rundir d;

    sp_scratch_write(r.folder, "there/x", "x", 1);
    sp_scratch_write(r.folder, "file", "x", 1);
    sp_scratch_write(r.folder, "run/config.yaml", "x", 1);
    ck_assert_int_eq(create(&d, "run", false), SP_EARG);
    ck_assert(runs_error("--overwrite"));
    ck_assert(runs_error("sprat resume"));
    ck_assert_int_eq(create(&d, "there", false), SP_EARG);
    ck_assert(runs_error("not the folder of a run"));
    ck_assert_int_eq(create(&d, "file", false), SP_EARG);
    ck_assert(runs_error("is a file"));
    /* What is no run is never removed. */
    ck_assert_int_eq(create(&d, "there", true), SP_EARG);
    ck_assert(runs_error("holds x"));
    ck_assert_int_eq(create(&d, "run", true), SP_EARG);
    ck_assert(runs_error(".lock"));
    ck_assert_int_eq(create(&d, "file", true), SP_EARG);
    ck_assert(runs_error("is a file"));
    ck_assert(sp_is_file(runs_path(&r, "there", "x")));
    ck_assert(sp_is_file(runs_path(&r, "run", "config.yaml")));
    ck_assert_int_eq(create(&d, "file/run", false), SP_EIO);
    ck_assert(runs_error("file"));
}
END_TEST

START_TEST(a_run_is_replaced_when_asked)
{
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_EARG);
    sp_scratch_write(r.folder, "a/result.json.tmp", "x", 1);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overwrite = true }), SP_OK);
    ck_assert(!sp_is_file(runs_path(&r, "a", "result.json.tmp")));
    ck_assert(sp_is_file(runs_path(&r, "a", "result.json")));
}
END_TEST

/* A project's folder with a config.yaml, or notes kept beside a run. */
START_TEST(nothing_of_others_is_lost)
{
    sp_rundir d;

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    sp_scratch_write(r.folder, "a/thesis.tex", "x", 1);
    ck_assert_int_eq(create(&d, "a", true), SP_EARG);
    ck_assert(runs_error("thesis.tex"));
    ck_assert(sp_is_file(runs_path(&r, "a", "thesis.tex")));
    ck_assert(sp_is_file(runs_path(&r, "a", "result.json")));
}
END_TEST

/* A run that was killed before it wrote its configuration. */
START_TEST(a_torn_start_is_replaced_when_asked)
{
    sp_rundir d;

    ck_assert_int_eq(create(&d, "empty", false), SP_OK);
    sp_rundir_close(&d);
    ck_assert_int_eq(create(&d, "empty", false), SP_EARG);
    ck_assert_int_eq(create(&d, "empty", true), SP_OK);
    sp_rundir_close(&d);
    ck_assert_int_eq(rmdir(runs_path(&r, "empty", "checkpoints")), 0);
    ck_assert_int_eq(unlink(runs_path(&r, "empty", ".lock")), 0);
    ck_assert_int_eq(create(&d, "empty", true), SP_OK);
    sp_rundir_close(&d);
}
END_TEST

START_TEST(one_process_at_a_time)
{
    sp_rundir first, second;

    ck_assert_int_eq(create(&first, "x/y/run", false), SP_OK);
    ck_assert(sp_is_dir(runs_path(&r, "x/y/run", "checkpoints")));
    sp_scratch_write(r.folder, "x/y/run/config.yaml", "", 0);
    ck_assert_int_eq(sp_rundir_open(&second, first.path, NULL), SP_EARG);
    ck_assert(runs_error("another process"));
    ck_assert_int_eq(create(&second, "x/y/run", true), SP_EARG);
    ck_assert(runs_error("another process"));
    sp_rundir_close(&first);
    ck_assert_int_eq(sp_rundir_open(&second, runs_path(&r, "x/y", "run"), NULL),
                     SP_OK);
    sp_rundir_close(&second);
}
END_TEST

START_TEST(a_new_name_is_found_each_time)
{
    sp_job job = { .name = "mine" };
    sp_rundir a, b;

    ck_assert_int_eq(chdir(r.folder), 0);
    ck_assert_int_eq(sp_rundir_create(&a, &job), SP_OK);
    ck_assert_int_eq(sp_rundir_create(&b, &job), SP_OK);
    ck_assert_int_eq(strncmp(a.path, "runs/mine-20", 12), 0);
    ck_assert_str_ne(a.path, b.path);
    sp_rundir_close(&a);
    sp_rundir_close(&b);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(what_is_no_run_is_said)
{
    sp_job job = { .run = sp_scratch_path(r.folder, "none") };
    sp_scores s;

    ck_assert_int_eq(sp_resume(r.registry, NULL, 0, &job), SP_EARG);
    ck_assert(runs_error("no such folder"));
    job.run = r.folder; /* has a config.yaml, and no checkpoints */
    ck_assert_int_ne(sp_resume(r.registry, NULL, 0, &job), SP_OK);
    ck_assert_int_eq(sp_eval(r.registry, r.folder, "last", SP_PART_TEST, &s),
                     SP_EARG);
    ck_assert(runs_error("no such checkpoint"));
    ck_assert(!job.started);
}
END_TEST

START_TEST(nothing_is_made_for_a_configuration_that_fails)
{
    const char *wrong[] = { "train.batch=1000", NULL };

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = wrong }),
        SP_ECONFIG);
    ck_assert(runs_error("train.batch"));
    ck_assert(!sp_is_dir(sp_scratch_path(r.folder, "a")));
}
END_TEST

START_TEST(config_and_log_stand_in_the_folder)
{
    const char *more[] = { "train.epochs=4", NULL };
    char *text;

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    text = runs_read(runs_path(&r, "a", "config.yaml"));
    ck_assert_ptr_nonnull(strstr(text, "epochs: 3"));
    ck_assert_ptr_nonnull(strstr(text, "# default"));
    free(text);
    text = runs_read(runs_path(&r, "a", "log.txt"));
    ck_assert_ptr_nonnull(strstr(text, "172 parameters"));
    ck_assert_ptr_nonnull(strstr(text, "epoch 3/3 done"));
    for (const char *c = text; *c; c++)
        ck_assert(*c == '\n' || (unsigned char)*c >= ' ');
    free(text);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = more }), SP_OK);
    text = runs_read(runs_path(&r, "a", "config.yaml"));
    ck_assert_ptr_nonnull(strstr(text, "epochs: 4"));
    free(text);
    text = runs_read(runs_path(&r, "a", "log.txt"));
    ck_assert_ptr_nonnull(strstr(text, "epoch 3/3 done"));
    ck_assert_ptr_nonnull(strstr(text, "epoch 4/4 done"));
    free(text);
}
END_TEST

START_TEST(a_launcher_with_ranks_is_refused)
{
    const struct {
        const char *name, *within;
    } launchers[] = { { "OMPI_COMM_WORLD_SIZE", NULL },
                      { "PMI_SIZE", NULL },
                      { "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID" } };

    setenv(launchers[_i].name, "4", 1);
    if (launchers[_i].within)
        setenv(launchers[_i].within, "0", 1);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_EARG);
    ck_assert(runs_error("4 ranks"));
    setenv(launchers[_i].name, "1", 1);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rundir");
    TCase *tc = tcase_create("rundir");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_existing_folder_is_refused);
    tcase_add_test(tc, a_run_is_replaced_when_asked);
    tcase_add_test(tc, nothing_of_others_is_lost);
    tcase_add_test(tc, a_torn_start_is_replaced_when_asked);
    tcase_add_test(tc, one_process_at_a_time);
    tcase_add_test(tc, a_new_name_is_found_each_time);
    tcase_add_test(tc, what_is_no_run_is_said);
    tcase_add_test(tc, nothing_is_made_for_a_configuration_that_fails);
    tcase_add_test(tc, config_and_log_stand_in_the_folder);
    tcase_add_loop_test(tc, a_launcher_with_ranks_is_refused, 0, 3);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
