/* Ranks that training chooses: what is looked at, and runs that go over the
 * switch by it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "train/autorank_look.h"
#include "train/switch.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* ---- Looking ------------------------------------------------------------- */

/* A wide first layer, 8 x 192, and 14 epochs of 8 steps; those of the first
 * bend its singular values, then nothing changes. */
static const char *const wide[] = {
    "model.hidden=[8]",     "data.shape=[8,8,3]",
    "data.train=128",       "train.epochs=14",
    "optim.lr=0.3",         "optim.weight_decay=0.05",
    "schedule.name=step",   "schedule.at=[1]",
    "schedule.factor=1e-6", "lowrank.name=pufferfish",
    "lowrank.rank=auto",    "lowrank.warmup_epochs=1",
    "lowrank.full=",        NULL
};
enum { STEPS = 8, SWITCH = 12 * (STEPS + 1) /* lines before it */ };

/* Weights with the singular values 1, 1/2, 1/4, ... on the diagonal: of n, the
 * stable rank is the sum of 1/4^k. */
START_TEST(stable_ranks_are_those_of_the_weights)
{
    sp_config *c = runs_config(&r, wide);
    double ranks[8];
    sp_autorank a;
    sp_session s;

    ck_assert_int_eq(sp_session_open(&s, c, (sp_session_opt){ .train = true }),
                     SP_OK);
    ck_assert_int_eq(sp_switch_check(&s, &a, NULL), SP_OK);
    ck_assert_int_eq(a.count, 2);
    ck_assert_str_eq(a.layers[0].whole, "fc1.weight");
    ck_assert_int_eq(a.layers[0].rows, 8);
    ck_assert_int_eq(a.layers[0].columns, 192);
    ck_assert_str_eq(a.layers[1].whole, "fc2.weight");
    for (int i = 0; i < a.count; i++) {
        sp_param *p = sp_params_find(s.params, a.layers[i].whole);
        memset(p->value, 0, p->count * sizeof *p->value);
        for (int k = 0; k < p->dims[0]; k++)
            p->value[k * p->dims[1] + k] = ldexpf(3, -k);
    }
    ck_assert_int_eq(sp_autorank_look(&s, &a, ranks), SP_OK);
    ck_assert_double_eq_tol(ranks[0], (1 - pow(0.25, 8)) / 0.75, 1e-12);
    ck_assert_double_eq_tol(ranks[1], (1 - pow(0.25, 4)) / 0.75, 1e-12);
    sp_params_find(s.params, "fc2.weight")->value[1] = NAN;
    ck_assert_int_eq(sp_autorank_look(&s, &a, ranks), SP_ENUMERIC);
    ck_assert(runs_error("fc2.weight"));
    sp_session_close(&s);
    sp_autorank_free(&a);
    sp_config_free(c);
}
END_TEST

/* ---- Runs ---------------------------------------------------------------- */

static void train(const char *run, const char *const *with)
{
    if (runs_train(&r, (runs_job){ .run = run, .overrides = with }) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

static bool logged(const char *run, const char *word)
{
    char *log = runs_read(runs_path(&r, run, "log.txt"));
    bool found = strstr(log, word) != NULL;

    free(log);
    return found;
}

static void check_same(const char *a, const char *b)
{
    ck_assert(runs_same(&r, a, b, "model.safetensors"));
    ck_assert(runs_same(&r, a, b, "optim.safetensors"));
    ck_assert(runs_same(&r, a, b, "rank-0000.safetensors"));
}

START_TEST(a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not)
{
    static const int lines[] = { 1,          STEPS,  STEPS + 1,  STEPS + 2,
                                 SWITCH - 1, SWITCH, SWITCH + 1, SWITCH + 9 };
    static const char *const often[] = { "train.checkpoint_steps=1",
                                         "train.keep=1", NULL };
    const char *with[RUNS_MOST];
    runs_job die = {
        .run = "b", .overrides = with, .end = RUNS_DIE, .lines = lines[_i]
    };

    runs_join(with, wide, _i % 2 ? often : NULL);
    train("a", with);
    ck_assert(logged("a", "1 layer factorized"));
    ck_assert(logged("a", "1 of 2 layers are stable"));
    ck_assert(runs_train_killed(&r, die));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
}
END_TEST

START_TEST(threads_do_not_change_the_bits)
{
    static const char *const more[] = { "train.threads=3", NULL };
    const char *with[RUNS_MOST];

    runs_join(with, wide, more);
    train("a", wide);
    train("b", with);
    ck_assert(runs_same(&r, "a", "b", "model.safetensors"));
}
END_TEST

START_TEST(its_checkpoints_are_read_and_its_steps_verified)
{
    const char *path;
    sp_scores first, last;
    int compared = 0;

    train("a", wide);
    path = strdup(runs_path(&r, "a", ""));
    ck_assert_int_eq(sp_eval(r.registry, path, "start", SP_PART_TEST, &first),
                     SP_OK);
    ck_assert_int_eq(sp_eval(r.registry, path, "last", SP_PART_TEST, &last),
                     SP_OK);
    if (sp_verify(r.registry, path, 200, NULL, &compared) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(compared, 1); /* of step 100, behind the switch */
    free((char *)path);
}
END_TEST

/* What a checkpoint says of its program counts, not the settings. */
START_TEST(a_run_of_low_rank_stays_what_it_is)
{
    static const char *const ratio[] = { "lowrank.rank=ratio",
                                         "lowrank.rank_ratio=0.5", NULL };
    static const char *const automatic[] = { "lowrank.rank=auto", NULL };
    runs_job die = {
        .run = "b", .overrides = wide, .end = RUNS_STOP, .lines = SWITCH + 3
    };

    train("a", wide);
    ck_assert_int_eq(runs_train(&r, die), SP_ESTOPPED);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "b", .overrides = ratio }), SP_OK);
    ck_assert(runs_same(&r, "a", "b", "model.safetensors"));

    die.run = "c";
    die.lines = 30; /* the switch by ratio is after one epoch */
    const char *with[RUNS_MOST];
    runs_join(with, wide, ratio);
    train("d", with);
    die.overrides = with;
    ck_assert_int_eq(runs_train(&r, die), SP_ESTOPPED);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "c", .overrides = automatic }),
        SP_OK);
    ck_assert(runs_same(&r, "c", "d", "model.safetensors"));
}
END_TEST

START_TEST(epochs_that_were_not_looked_at_cannot_be_made_up_for)
{
    static const char *const later[] = { "lowrank.rank=ratio",
                                         "lowrank.warmup_epochs=5", NULL };
    static const char *const automatic[] = { "lowrank.rank=auto", NULL };
    static const char *const other[] = { "lowrank.full=fc2", NULL };
    const char *with[RUNS_MOST];
    runs_job stop = {
        .run = "a", .overrides = with, .end = RUNS_STOP, .lines = 20
    };

    runs_join(with, wide, later);
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = automatic }),
        SP_ECONFIG);
    ck_assert(runs_error("lowrank.rank: auto has to look"));
    stop.run = "b";
    stop.overrides = wide;
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "b", .overrides = other }),
        SP_ECONFIG);
    ck_assert(runs_error("other layers"));
}
END_TEST

START_TEST(a_run_may_end_at_full_rank_and_says_so)
{
    static const char *const few[] = { "train.epochs=5", NULL };
    static const char *const still[] = { "optim.lr=1e-7", NULL };
    const char *with[RUNS_MOST];

    runs_join(with, wide, few);
    train("a", with);
    ck_assert(logged("a", "those of 2 of 2 layers have not become stable"));
    ck_assert(logged("a", "needs 11 epochs"));
    runs_join(with, wide, still);
    train("b", with);
    ck_assert(logged("b", "no layer would have become smaller"));
    ck_assert(!logged("b", "factorized"));
}
END_TEST

START_TEST(frobenius_decay_goes_over_the_switch_and_not_with_everything)
{
    static const char *const on[] = { "lowrank.frobenius_decay=true", NULL };
    static const char *const both[] = { "lowrank.frobenius_decay=true",
                                        "lowrank.extra_norm=true", NULL };
    const char *with[RUNS_MOST];
    runs_job die = {
        .run = "b", .overrides = with, .end = RUNS_DIE, .lines = SWITCH + 4
    };
    sp_settings s;
    sp_config *c;

    runs_join(with, wide, both);
    c = runs_config(&r, with);
    ck_assert_int_eq(sp_settings_view(c, &s), SP_ECONFIG);
    ck_assert(runs_error("lowrank.extra_norm"));
    sp_config_free(c);
    runs_join(with, wide, on);
    train("a", with);
    ck_assert(runs_train_killed(&r, die));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("autorank_runs");
    TCase *t = tcase_create("runs");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, stable_ranks_are_those_of_the_weights);
    tcase_add_loop_test(
        t, a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not, 0, 8);
    tcase_add_test(t, threads_do_not_change_the_bits);
    tcase_add_test(t, its_checkpoints_are_read_and_its_steps_verified);
    tcase_add_test(t, a_run_of_low_rank_stays_what_it_is);
    tcase_add_test(t, epochs_that_were_not_looked_at_cannot_be_made_up_for);
    tcase_add_test(t, a_run_may_end_at_full_rank_and_says_so);
    tcase_add_test(
        t, frobenius_decay_goes_over_the_switch_and_not_with_everything);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
