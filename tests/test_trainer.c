/* Whole runs: what does not change them, how they stop, go on and fail. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "train/trainer.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* A network with batch norm, whose running statistics are state too, on
 * batches that do not divide the samples. */
static const char *const resnet[] = { "model.name=resnet",
                                      "model.depth=8",
                                      "data.shape=[8,8,3]",
                                      "train.epochs=2",
                                      "train.batch=16",
                                      "train.drop_last=false",
                                      "train.micro_batch=8",
                                      "data.train=60",
                                      "data.test=20",
                                      "schedule.name=cosine",
                                      NULL };

static void check_same(const char *a, const char *b)
{
    ck_assert(runs_same(&r, a, b, "model.safetensors"));
    ck_assert(runs_same(&r, a, b, "optim.safetensors"));
    ck_assert(runs_same(&r, a, b, "rank-0000.safetensors"));
}

/* The file's lines without what depends on time and memory. */
static void check_same_lines(const char *a, const char *b)
{
    static const char *const keys[] = { "\"train_loss\":", "\"train_top1\":",
                                        "\"test_loss\":",  "\"grad_norm\":",
                                        "\"lr\":",         "\"step\":" };
    char *x = runs_read(runs_path(&r, a, "metrics.jsonl"));
    char *y = runs_read(runs_path(&r, b, "metrics.jsonl"));

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *p = x, *q = y;
        int found = 0;
        for (;;) {
            p = strstr(p, keys[k]);
            q = strstr(q, keys[k]);
            ck_assert_int_eq(p == NULL, q == NULL);
            if (!p)
                break;
            ck_assert_int_eq(strcspn(p, ",}"), strcspn(q, ",}"));
            ck_assert_int_eq(strncmp(p, q, strcspn(p, ",}")), 0);
            found++;
            p++;
            q++;
        }
        ck_assert_int_gt(found, 0);
    }
    free(x);
    free(y);
}

START_TEST(stopped_and_resumed_is_never_stopped)
{
    static const int lines[] = { 0, 1, 4, 6, 7, 13, 17 };
    runs_job stop = { .run = "b", .end = RUNS_STOP, .lines = lines[_i] };

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert(runs_error("sprat resume"));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
    check_same_lines("a", "b");
}
END_TEST

START_TEST(killed_and_resumed_is_never_killed)
{
    /* The seventh line is that of the first epoch's end; at the eighth its
     * checkpoint is there. */
    static const int lines[] = { 1, 7, 8, 10, 20 };
    runs_job die = { .run = "b", .end = RUNS_DIE, .lines = lines[_i] };

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert(runs_train_killed(&r, die));
    char *status = runs_result(&r, "b", "status");
    ck_assert_str_eq(status, "running");
    free(status);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
    check_same_lines("a", "b");
}
END_TEST

START_TEST(resuming_batch_norm_within_an_epoch_keeps_the_bits)
{
    runs_job stop = {
        .run = "b", .overrides = resnet, .end = RUNS_STOP, .lines = 3
    };

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
}
END_TEST

/* The options that must not change a bit, each against one thread. */
static const char *const neutral[] = { "train.threads=2", "train.planner=off",
                                       "train.recompute=norm", "data.workers=3",
                                       "log.every=3" };

START_TEST(what_only_costs_does_not_change_the_bits)
{
    const char *with[16] = { NULL };
    size_t n = 0;

    for (; resnet[n]; n++)
        with[n] = resnet[n];
    with[n] = neutral[_i];
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = with }), SP_OK);
    check_same("a", "b");
}
END_TEST

START_TEST(another_seed_is_another_run)
{
    const char *seed[] = { "train.seed=2", NULL };

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = seed }), SP_OK);
    ck_assert(!runs_same(&r, "a", "b", "model.safetensors"));
}
END_TEST

START_TEST(training_learns)
{
    const char *more[] = { "train.epochs=20", "log.every=1000", NULL };
    sp_scores s;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = more }), SP_OK);
    ck_assert_int_eq(
        sp_eval(r.registry, runs_path(&r, "a", ""), "best", SP_PART_TEST, &s),
        SP_OK);
    ck_assert_uint_eq(s.count, 40);
    ck_assert_double_ge(s.top1, 80); /* by chance: 25 */
    ck_assert(isnan(s.top5));        /* four classes */
}
END_TEST

START_TEST(limited_steps_end_the_run_and_more_continue_it)
{
    const char *few[] = { "train.max_steps=8", NULL };
    const char *all[] = { "train.max_steps=0", NULL };
    char *status;

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "b", .overrides = few }),
                     SP_OK);
    status = runs_result(&r, "b", "status");
    ck_assert_str_eq(status, "done");
    free(status);
    char *log = runs_read(runs_path(&r, "b", "log.txt"));
    ck_assert_ptr_nonnull(strstr(log, " 8 in all (train.max_steps)"));
    free(log);
    char *before = runs_read(runs_path(&r, "b", "metrics.jsonl"));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    char *after = runs_read(runs_path(&r, "b", "metrics.jsonl"));
    ck_assert_str_eq(before, after); /* there was nothing to do */
    free(before);
    free(after);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "b", .overrides = all }), SP_OK);
    check_same("a", "b");
    check_same_lines("a", "b");
}
END_TEST

/* Stopped in the evaluation behind the last step: resuming makes up for it. */
START_TEST(the_last_evaluation_is_not_lost)
{
    static const char *const limits[] = { "train.max_steps=8",
                                          "train.max_steps=12",
                                          "train.max_steps=0" };
    static const int lines[] = { 9, 13, 20 }; /* of the last step */
    const char *limit[] = { limits[_i], NULL };
    runs_job whole = { .run = "a", .overrides = limit };
    runs_job stop = {
        .run = "b", .overrides = limit, .end = RUNS_STOP, .lines = lines[_i]
    };
    char *status;

    ck_assert_int_eq(runs_train(&r, whole), SP_OK);
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    status = runs_result(&r, "b", "status");
    ck_assert_str_eq(status, "done");
    free(status);
    check_same("a", "b");
    check_same_lines("a", "b");
}
END_TEST

START_TEST(minutes_end_with_a_checkpoint)
{
    const char *soon[] = { "train.max_minutes=1e-9", NULL };
    char *status;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = soon }),
        SP_ESTOPPED);
    status = runs_result(&r, "a", "status");
    ck_assert_str_eq(status, "stopped");
    free(status);
}
END_TEST

/* The time limit holds in the evaluation too, which may take long. */
START_TEST(an_evaluation_ends_with_the_minutes)
{
    const char *limit[] = { "train.max_minutes=1", NULL };
    sp_config *c = runs_config(&r, limit);
    sp_job job = { 0 };
    sp_trainer t = sp_trainer_start(&job);
    sp_epoch_line line;

    ck_assert_int_eq(
        sp_session_open(&t.session, c,
                        (sp_session_opt){ .eval = true, .data = true }),
        SP_OK);
    ck_assert_int_eq(sp_trainer_evaluate(&t, &line), SP_OK);
    ck_assert(line.test_loss > 0);
    t.opened -= 61;
    ck_assert_int_eq(sp_trainer_evaluate(&t, &line), SP_ESTOPPED);
    sp_trainer_close(&t);
    sp_config_free(c);
}
END_TEST

START_TEST(a_value_that_is_not_finite_stops_before_the_weights)
{
    const char *wild[] = { "optim.lr=1e6", "optim.weight_decay=1000",
                           "train.epochs=50", "log.every=1000", NULL };
    char *status;
    sp_scores s;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = wild }),
        SP_ENUMERIC);
    ck_assert(runs_error("step "));
    ck_assert(runs_error("fc")); /* the layer */
    ck_assert(runs_error("optim.lr"));
    status = runs_result(&r, "a", "status");
    ck_assert_str_eq(status, "not_finite");
    free(status);
    ck_assert_int_eq(
        sp_eval(r.registry, runs_path(&r, "a", ""), "last", SP_PART_TEST, &s),
        SP_OK);
}
END_TEST

/* An evaluation whose loss is no number is a bad one, not a missing one. */
START_TEST(a_schedule_is_told_of_every_evaluation)
{
    const char *with[] = { "schedule.name=plateau", "schedule.patience=0",
                           NULL };
    sp_config *c = runs_config(&r, with);
    sp_job job = { 0 };
    sp_trainer t = sp_trainer_start(&job);
    sp_epoch_line line = sp_epoch_line_none();

    ck_assert_int_eq(sp_settings_view(c, &t.session.set), SP_OK);
    sp_trainer_next_epoch(&t, &line); /* nothing was evaluated */
    ck_assert_double_eq(t.state.schedule.factor, 1);
    line.valid_top1 = 10;
    line.test_top1 = 10;
    line.test_loss = 2;
    sp_trainer_next_epoch(&t, &line);
    ck_assert_double_eq_tol(t.state.schedule.factor, 0.1, 1e-15);
    sp_trainer_close(&t);
    sp_config_free(c);
}
END_TEST

START_TEST(an_epoch_cannot_go_on_with_other_batches)
{
    runs_job stop = { .run = "a", .end = RUNS_STOP, .lines = 2 };
    const char *batch[] = { "train.batch=8", NULL };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = batch }),
        SP_ECONFIG);
    ck_assert(runs_error("train.batch"));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "a" }), SP_OK);
}
END_TEST

START_TEST(evaluation_does_not_depend_on_its_batch)
{
    static const char *const sizes[] = { "train.eval_batch=1",
                                         "train.eval_batch=7",
                                         "train.eval_batch=64" };
    sp_scores s[3];

    for (int i = 0; i < 3; i++) {
        const char *with[] = { sizes[i], NULL };
        ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a",
                                                    .overrides = with,
                                                    .overwrite = i > 0 }),
                         SP_OK);
        ck_assert_int_eq(sp_eval(r.registry, runs_path(&r, "a", ""), "last",
                                 SP_PART_TEST, &s[i]),
                         SP_OK);
        ck_assert_uint_eq(s[i].count, 40);
        ck_assert_double_eq_tol(s[i].loss, s[0].loss, 1e-5);
        ck_assert_double_eq_tol(s[i].top1, s[0].top1, 1e-9);
    }
}
END_TEST

START_TEST(the_best_epoch_is_by_validation_where_there_is_one)
{
    const char *valid[] = { "data.valid=16", NULL };
    char *by;
    sp_scores s;

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    by = runs_result(&r, "a", "best_by");
    ck_assert_str_eq(by, "test_top1");
    free(by);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = valid }), SP_OK);
    by = runs_result(&r, "b", "best_by");
    ck_assert_str_eq(by, "valid_top1");
    free(by);
    ck_assert_int_eq(
        sp_eval(r.registry, runs_path(&r, "b", ""), "best", SP_PART_VALID, &s),
        SP_OK);
    ck_assert_uint_eq(s.count, 16);
    ck_assert_int_eq(
        sp_eval(r.registry, runs_path(&r, "a", ""), "best", SP_PART_VALID, &s),
        SP_EARG);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trainer");
    TCase *tc = tcase_create("trainer");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, stopped_and_resumed_is_never_stopped, 0, 7);
    tcase_add_loop_test(tc, killed_and_resumed_is_never_killed, 0, 5);
    tcase_add_test(tc, resuming_batch_norm_within_an_epoch_keeps_the_bits);
    tcase_add_loop_test(tc, what_only_costs_does_not_change_the_bits, 0,
                        sizeof neutral / sizeof *neutral);
    tcase_add_test(tc, another_seed_is_another_run);
    tcase_add_test(tc, training_learns);
    tcase_add_test(tc, limited_steps_end_the_run_and_more_continue_it);
    tcase_add_loop_test(tc, the_last_evaluation_is_not_lost, 0, 3);
    tcase_add_test(tc, minutes_end_with_a_checkpoint);
    tcase_add_test(tc, an_evaluation_ends_with_the_minutes);
    tcase_add_test(tc, a_value_that_is_not_finite_stops_before_the_weights);
    tcase_add_test(tc, a_schedule_is_told_of_every_evaluation);
    tcase_add_test(tc, an_epoch_cannot_go_on_with_other_batches);
    tcase_add_test(tc, evaluation_does_not_depend_on_its_batch);
    tcase_add_test(tc, the_best_epoch_is_by_validation_where_there_is_one);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
