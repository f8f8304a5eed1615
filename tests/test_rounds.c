/* Runs through their rounds of pruning: stopped, killed, limited, verified. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "pruned.h"
#include "train/state.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static void check_same(const char *a, const char *b)
{
    ck_assert(runs_same(&r, a, b, "model.safetensors"));
    ck_assert(runs_same(&r, a, b, "optim.safetensors"));
    ck_assert(runs_same(&r, a, b, "rank-0000.safetensors"));
}

/* The times of day apart, both runs' epoch lines say the same. */
static void check_lines(const char *a, const char *b)
{
    static const char *const keys[] = { "\"epoch\":", "\"train_loss\":",
                                        "\"round\":", "\"remaining\":" };
    char *x = runs_read(runs_path(&r, a, "metrics.jsonl"));
    char *y = runs_read(runs_path(&r, b, "metrics.jsonl"));

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = x, *other = y;
        while ((at = strstr(at, keys[i]))) {
            other = strstr(other, keys[i]);
            ck_assert_ptr_nonnull(other);
            ck_assert_uint_eq(strcspn(at, ",}"), strcspn(other, ",}"));
            ck_assert_mem_eq(at, other, strcspn(at, ",}"));
            at++;
            other++;
        }
        ck_assert_ptr_null(strstr(other, keys[i]));
    }
    free(x);
    free(y);
}

/* A line is written each step and at the end of an epoch: around the ends of
 * the rounds, the first epoch's, and within. */
START_TEST(a_run_that_dies_in_any_round_goes_on_as_if_it_had_not)
{
    static const int lines[] = { 5, 7, 8, 9, 13, 14, 15, 16, 17, 20, 28, 29 };
    const char *const *with = pruned_networks[_i % PRUNED_NETWORKS];
    runs_job die = { .run = "b",
                     .overrides = with,
                     .end = RUNS_DIE,
                     .lines = lines[_i / PRUNED_NETWORKS] };

    pruned_train(&r, "a", with);
    if (!runs_train_killed(&r, die))
        return;
    pruned_resume(&r, "b", NULL);
    check_same("a", "b");
    check_lines("a", "b");
}
END_TEST

START_TEST(a_run_that_stops_between_rounds_goes_on_as_if_it_had_not)
{
    const char *const *with = pruned_networks[_i];

    pruned_train(&r, "a", with);
    for (int lines = 1; lines < 40; lines += 3) {
        runs_job stop = { .run = "b",
                          .overrides = with,
                          .end = RUNS_STOP,
                          .lines = lines,
                          .overwrite = true };
        sp_err e = runs_train(&r, stop);
        if (e == SP_OK)
            break;
        ck_assert_int_eq(e, SP_ESTOPPED);
        pruned_resume(&r, "b", NULL);
        check_same("a", "b");
        check_lines("a", "b");
    }
}
END_TEST

/* The numbers of the lines of one kind; keys that others have, too. */
static int read_lines(const char *run, const char *kind, sp_epoch_line *out)
{
    char *text = runs_read(runs_path(&r, run, "metrics.jsonl"));
    int count = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        sp_json_doc *doc = NULL;
        const char *said;

        ck_assert_int_eq(sp_json_parse(&doc, "line", (const uint8_t *)line,
                                       (size_t)(end - line)),
                         SP_OK);
        ck_assert_int_eq(sp_json_get_text(sp_json_root(doc), "kind", &said),
                         SP_OK);
        if (strcmp(said, kind) == 0)
            ck_assert_int_eq(
                sp_epoch_line_read(sp_json_root(doc), &out[count++]), SP_OK);
        sp_json_doc_free(doc);
    }
    free(text);
    return count;
}

/* 12 steps a round: 36 in all. */
START_TEST(steps_are_those_of_all_rounds)
{
    static const int limits[] = { 7, 12, 13, 24, 30, 36, 100 };
    char limit[32];
    const char *const extra[] = { limit, NULL };
    static const char *const more[] = { "train.max_steps=0", NULL };
    const char *with[RUNS_MOST];
    sp_epoch_line lines[64];
    int last = limits[_i] < 36 ? limits[_i] : 36;
    char *text;

    snprintf(limit, sizeof limit, "train.max_steps=%d", limits[_i]);
    runs_join(with, pruned_mlp, extra);
    pruned_train(&r, "a", pruned_mlp);
    pruned_train(&r, "b", with);
    ck_assert_int_eq(read_lines("b", "step", lines), last);
    text = runs_read(runs_path(&r, "b", "log.txt"));
    ck_assert((strstr(text, "(train.max_steps)") != NULL) == (limits[_i] < 36));
    free(text);
    pruned_resume(&r, "b", more);
    check_same("a", "b");
    pruned_resume(&r, "b", NULL);
    text = runs_read(runs_path(&r, "b", "log.txt"));
    ck_assert_ptr_nonnull(strstr(text, "a larger prune.rounds would"));
    ck_assert_ptr_nonnull(strstr(text, "round 2/2, 64."));
    free(text);
}
END_TEST

/* Epochs begin again in each round, of 16 x 16 + 12 x 16 + 4 x 12 = 496
 * weights, then 397, then 318. */
START_TEST(epoch_lines_say_round_and_what_is_left)
{
    static const double left[] = { 100, 100.0 * 397 / 496, 100.0 * 318 / 496 };
    sp_epoch_line lines[64];

    pruned_train(&r, "a", pruned_mlp);
    ck_assert_int_eq(read_lines("a", "step", lines), 36);
    for (int i = 0; i < 36; i++)
        ck_assert(isnan(lines[i].round) && isnan(lines[i].remaining));
    ck_assert_int_eq(read_lines("a", "epoch", lines), 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_double_eq(lines[i].round, i / 2);
        ck_assert_double_eq(lines[i].epoch, i % 2 + 1);
        ck_assert_double_eq(lines[i].step, 6 * (i + 1));
        ck_assert_double_eq_tol(lines[i].remaining, left[i / 2], 1e-9);
    }
}
END_TEST

START_TEST(without_pruning_nothing_is_said_of_it)
{
    char *text;

    pruned_train(&r, "a", NULL);
    text = runs_read(runs_path(&r, "a", "metrics.jsonl"));
    ck_assert_ptr_null(strstr(text, "\"round\""));
    ck_assert_ptr_null(strstr(text, "\"remaining\""));
    free(text);
    text = runs_read(runs_path(&r, "a", "checkpoints/last/manifest.json"));
    ck_assert_ptr_null(strstr(text, "\"round\""));
    ck_assert_ptr_null(strstr(text, "\"begun\""));
    free(text);
}
END_TEST

/* However few stay otherwise. */
START_TEST(what_rounds_go_back_to_is_not_rotated_away)
{
    static const char *const one[] = { "train.keep=0", NULL };
    const char *with[RUNS_MOST];

    runs_join(with, pruned_late, one);
    pruned_train(&r, "a", with);
    ck_assert(sp_is_dir(runs_path(&r, "a", "checkpoints/rewind")));
    ck_assert(sp_is_dir(runs_path(&r, "a", "checkpoints/step-00000005")));
    ck_assert(!sp_is_dir(runs_path(&r, "a", "checkpoints/step-00000010")));
}
END_TEST

/* 240 steps and more: the hashes of several rounds. */
START_TEST(a_run_is_verified_through_its_rounds)
{
    static const char *const longer[] = { "train.epochs=20", "log.every=1000",
                                          NULL };
    const char *with[RUNS_MOST];
    char *path;
    int compared = 0;

    runs_join(with, _i ? pruned_late : pruned_mlp, longer);
    pruned_train(&r, "a", with);
    path = strdup(runs_path(&r, "a", ""));
    if (sp_verify(r.registry, path, 1000, NULL, &compared) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_ge(compared, 2);
    free(path);
}
END_TEST

/* After 14 of 36 steps, in round 1. */
START_TEST(a_run_goes_on_with_the_pruning_that_it_began_with)
{
    static const struct {
        const char *override, *word;
    } cases[] = {
        { "prune.name=none", "prune.name: is none, but" },
        { "prune.rewind_epoch=1", "has no checkpoints/rewind" },
    };
    static const char *const part[] = { "train.max_steps=14", NULL };
    const char *change[] = { cases[_i].override, "train.max_steps=0", NULL };
    const char *with[RUNS_MOST];

    runs_join(with, pruned_mlp, part);
    pruned_train(&r, "a", with);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = change }),
        SP_ECONFIG);
    ck_assert_msg(runs_error(cases[_i].word), "%s", sp_last_error());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rounds");
    TCase *t = tcase_create("rounds");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t,
                        a_run_that_dies_in_any_round_goes_on_as_if_it_had_not,
                        0, 12 * PRUNED_NETWORKS);
    tcase_add_loop_test(
        t, a_run_that_stops_between_rounds_goes_on_as_if_it_had_not, 0,
        PRUNED_NETWORKS);
    tcase_add_loop_test(t, steps_are_those_of_all_rounds, 0, 7);
    tcase_add_test(t, epoch_lines_say_round_and_what_is_left);
    tcase_add_test(t, without_pruning_nothing_is_said_of_it);
    tcase_add_test(t, what_rounds_go_back_to_is_not_rotated_away);
    tcase_add_loop_test(t, a_run_is_verified_through_its_rounds, 0, 2);
    tcase_add_loop_test(t, a_run_goes_on_with_the_pruning_that_it_began_with, 0,
                        2);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
