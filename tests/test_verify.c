/* verify: the same build replays a run, and anything else is noticed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "runs.h"

/* 240 steps: hashes at 100 and 200. */
static const char *const longer[] = { "train.epochs=40",
                                      "schedule.name=plateau", "data.valid=16",
                                      "log.every=1000", NULL };

static runs r;

static void set_up(void)
{
    r = runs_new();
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = longer }), SP_OK);
}

static void tear_down(void) { runs_free(&r); }

static sp_err verify(int64_t steps, int *compared)
{
    return sp_verify(r.registry, runs_path(&r, "a", ""), steps, NULL, compared);
}

START_TEST(a_sound_run_replays)
{
    int compared = 0;

    ck_assert_int_eq(verify(150, &compared), SP_OK);
    ck_assert_int_eq(compared, 1);
    ck_assert_int_eq(verify(1000, &compared), SP_OK);
    ck_assert_int_eq(compared, 2);
}
END_TEST

START_TEST(without_a_hash_nothing_is_claimed)
{
    int compared = -1;

    ck_assert_int_eq(verify(99, &compared), SP_EARG);
    ck_assert(runs_error("every 100 steps"));
    ck_assert_int_eq(compared, -1);
}
END_TEST

START_TEST(a_difference_is_named_by_its_step)
{
    const char *path = runs_path(&r, "a", "hashes.jsonl");
    char *text = runs_read(path);
    char *line = strstr(text, "{\"step\":200");
    char *digit = strstr(line, "\"hash\":\"") + 8;
    int compared = 0;

    *digit = *digit == '0' ? '1' : '0';
    ck_assert_int_eq(sp_file_write_synced(path, text, strlen(text)), SP_OK);
    ck_assert_int_eq(verify(200, &compared), SP_ENUMERIC);
    ck_assert(runs_error("step 200"));
    ck_assert(runs_error("up to step 100"));
    ck_assert_int_eq(verify(100, &compared), SP_OK);
    free(text);
}
END_TEST

START_TEST(what_the_run_began_with_is_replayed)
{
    const char *rate[] = { "train.epochs=50", "optim.lr=0.001", NULL };
    int compared = 0;

    /* config.yaml has another rate now, but the first 200 steps had not. */
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = rate }), SP_OK);
    ck_assert_int_eq(verify(200, &compared), SP_OK);
    ck_assert_int_eq(compared, 2);
}
END_TEST

static void forge(const char *checkpoint, const char *from, const char *to)
{
    runs_forge(&r, "b", checkpoint, from, to);
}

/* A run "b" of a network with convolutions. */
static void train_convolutions(const char *winograd)
{
    const char *const overrides[] = { "model.name=resnet",
                                      "model.depth=8",
                                      "data.shape=[8,8,3]",
                                      "train.batch=2",
                                      "train.max_steps=100",
                                      winograd,
                                      NULL };

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = overrides }),
        SP_OK);
}

static sp_err verify_b(void)
{
    int compared = 0;

    return sp_verify(r.registry, runs_path(&r, "b", ""), 100, NULL, &compared);
}

static const char *const chosen = "layer1.0.conv1=444",
                         *const other = "layer1.0.conv1=440";

/* The tiles that a run used are read back, whatever the rule says: with the
 * record, the same bits; with another, others. */
START_TEST(the_tiles_of_a_run_are_replayed)
{
    train_convolutions("train.winograd=auto");
    ck_assert_int_eq(verify_b(), SP_OK);
    forge("start", chosen, other);
    ck_assert_int_eq(verify_b(), SP_ENUMERIC);
}
END_TEST

START_TEST(the_tiles_of_a_run_are_kept_in_resume_and_eval)
{
    const char *longer_by_one[] = { "train.max_steps=101", NULL };
    sp_scores before, after;
    char *manifest;

    train_convolutions("train.winograd=auto");
    ck_assert_int_eq(sp_eval(r.registry, runs_path(&r, "b", ""), "last",
                             SP_PART_TEST, &before),
                     SP_OK);
    forge("last", chosen, "layer1.0.conv1=040");
    ck_assert_int_eq(sp_eval(r.registry, runs_path(&r, "b", ""), "last",
                             SP_PART_TEST, &after),
                     SP_OK);
    ck_assert_double_ne(before.loss, after.loss);
    ck_assert_double_eq_tol(before.loss, after.loss, 1e-4);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "b", .overrides = longer_by_one }),
        SP_OK);
    manifest = runs_read(runs_path(&r, "b", "checkpoints/last/manifest.json"));
    ck_assert_ptr_nonnull(strstr(manifest, "\"step\": 101"));
    ck_assert_ptr_nonnull(strstr(manifest, "layer1.0.conv1=040"));
    free(manifest);
}
END_TEST

/* Runs from before there were tiles used none: nothing of them is in their
 * manifest or their configuration, for which the default is auto. */
START_TEST(a_run_from_before_tiles_is_direct)
{
    train_convolutions("train.winograd=off");
    forge("start", "winograd: off ", "winograd: auto");
    ck_assert_int_eq(verify_b(), SP_ENUMERIC); /* null: the rule chooses */
    forge("start", "\"winograd\": null", "\"later_to\": null");
    ck_assert_int_eq(verify_b(), SP_OK);
}
END_TEST

START_TEST(tiles_of_another_network_are_refused)
{
    train_convolutions("train.winograd=auto");
    forge("start", chosen, "layer1.9.conv1=444");
    ck_assert_int_eq(verify_b(), SP_EARG);
    ck_assert(
        runs_error("layer1.0.conv1: the checkpoint's record of Winograd"));
    ck_assert(runs_error("layer1.9.conv1=444"));
    ck_assert(runs_error("train.winograd: off"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("verify");
    TCase *tc = tcase_create("verify");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_sound_run_replays);
    tcase_add_test(tc, without_a_hash_nothing_is_claimed);
    tcase_add_test(tc, a_difference_is_named_by_its_step);
    tcase_add_test(tc, what_the_run_began_with_is_replayed);
    tcase_add_test(tc, the_tiles_of_a_run_are_replayed);
    tcase_add_test(tc, the_tiles_of_a_run_are_kept_in_resume_and_eval);
    tcase_add_test(tc, tiles_of_another_network_are_refused);
    tcase_add_test(tc, a_run_from_before_tiles_is_direct);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
