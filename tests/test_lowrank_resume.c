/* Runs of low rank that go on with other settings, and new ones that start from
 * their weights; and replays of them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "sprat/model.h"
#include "sprat/nn.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static const char *const resnet[] = {
    "model.name=resnet",       "model.depth=8",      "model.shortcut=B",
    "data.shape=[8,8,3]",      "data.train=48",      "lowrank.name=pufferfish",
    "lowrank.warmup_epochs=1", "lowrank.full=conv1", NULL
};
enum { STEPS = 3 /* of an epoch */ };

/* Stop it a step behind the switch. */
static void stop_behind(const char *run)
{
    runs_job stop = {
        .run = run, .overrides = resnet, .end = RUNS_STOP, .lines = STEPS + 2
    };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
}

static sp_err resume(const char *run, const char *change)
{
    const char *with[] = { change, NULL };

    return runs_resume(&r, (runs_job){ .run = run, .overrides = with });
}

static bool logged(const char *run, const char *word)
{
    char *log = runs_read(runs_path(&r, run, "log.txt"));
    bool found = strstr(log, word) != NULL;

    free(log);
    return found;
}

/* ---- Going on ------------------------------------------------------------ */

START_TEST(another_network_is_refused_with_the_key_that_made_it)
{
    static const struct {
        const char *change, *word;
    } cases[] = {
        { "lowrank.full=conv1 layer1", "layer1.0.conv1.weight: missing" },
        { "lowrank.rank_ratio=0.5", "fc_u.weight: float of 1x64" },
        { "model.depth=14", "layer1.1.conv1_u.weight: missing" },
        { "model.width=2", "conv1.weight: float of 16x3x3x3" },
    };

    stop_behind("a");
    ck_assert_int_eq(resume("a", cases[_i].change), SP_EFORMAT);
    ck_assert_msg(runs_error(cases[_i].word), "%s", sp_last_error());
    ck_assert_msg(runs_error(cases[_i].change), "%s", sp_last_error());
    ck_assert(!runs_error("Winograd"));
    ck_assert_int_eq(resume("a", NULL), SP_OK);
}
END_TEST

START_TEST(what_comes_too_late_is_warned_of)
{
    static const char *const changes[] = { "lowrank.warmup_epochs=2",
                                           "lowrank.at_switch=project",
                                           "lowrank.residual=project",
                                           "lowrank.rank=auto" };

    stop_behind("a");
    ck_assert_int_eq(resume("a", changes[_i]), SP_OK);
    ck_assert(logged("a", changes[_i]));
    ck_assert(logged("a", "has no effect: the network is one of low rank"));
    ck_assert(!logged("a", "never becomes"));
}
END_TEST

START_TEST(weights_to_start_from_come_too_late)
{
    stop_behind("a");
    ck_assert_int_eq(resume("a", "model.init=x"), SP_OK);
    ck_assert(logged("a", "model.init=x has no effect: weights come from"));
}
END_TEST

START_TEST(what_does_not_come_too_late_is_not)
{
    stop_behind("a");
    ck_assert_int_eq(resume("a", "lowrank.lr_factor=0.5"), SP_OK);
    ck_assert(!logged("a", "has no effect"));
}
END_TEST

START_TEST(a_run_of_low_rank_is_not_told_that_it_never_becomes_so)
{
    static const char *const late[] = { "lowrank.warmup_epochs=3",
                                        "lowrank.rank=auto" };

    stop_behind("a");
    ck_assert_int_eq(resume("a", late[_i]), SP_OK);
    ck_assert(!logged("a", "never becomes"));
}
END_TEST

START_TEST(another_optimizer_is_told_how_to_start_from_the_weights)
{
    static const char *const advice = "give model.init=";
    const char *with[RUNS_MOST], *init[3] = { "lowrank.warmup_epochs=0" };
    char path[300];

    stop_behind("a");
    ck_assert_int_eq(resume("a", "optim.name=adam"), SP_ECONFIG);
    ck_assert(runs_error(advice));
    ck_assert(runs_error("and lowrank.warmup_epochs=0 to a new run"));
    snprintf(path, sizeof path, "model.init=%s",
             runs_path(&r, "a", "checkpoints/last/model.safetensors"));
    init[1] = path;
    runs_join(with, resnet, init);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = with }), SP_OK);
}
END_TEST

/* A rate that rises from a switch still to come would be negative. */
START_TEST(a_manifest_that_contradicts_itself_is_refused)
{
    static const struct {
        const char *from, *to, *word;
    } cases[] = {
        { "\"switched\": 1", "\"switched\": 9",
          "switched is 9, outside 0 to 1" },
        { "\"stage\": \"low rank\",", "\"stage\": \"full\",    ",
          "but it has been switched" },
        { "\"stage\": \"low rank\"", "\"stage\": \"low-rank\"",
          "stage is \"low-rank\"" },
    };

    stop_behind("a");
    runs_forge(&r, "a", "last", cases[_i].from, cases[_i].to);
    ck_assert_int_eq(resume("a", NULL), SP_EFORMAT);
    ck_assert_msg(runs_error(cases[_i].word), "%s", sp_last_error());
}
END_TEST

/* ---- Starting from weights ----------------------------------------------- */

static sp_err train_from(const char *run, const char *weights,
                         const char *change)
{
    const char *with[RUNS_MOST], *init[4] = { NULL };
    char path[300];

    snprintf(path, sizeof path, "model.init=%s", weights);
    init[0] = path;
    init[1] = change;
    init[2] = change ? "train.epochs=1" : NULL;
    runs_join(with, resnet, init);
    return runs_train(&r, (runs_job){ .run = run, .overrides = with });
}

START_TEST(factors_are_weights_to_start_from)
{
    char *model, *before, *start;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    model = strdup(runs_path(&r, "a", "checkpoints/last/model.safetensors"));
    ck_assert_int_eq(train_from("b", model, "lowrank.warmup_epochs=0"), SP_OK);
    ck_assert(logged("b", "resnet of low rank"));
    ck_assert(!logged("b", "factorized"));
    before = runs_read(model);
    start =
        runs_read(runs_path(&r, "b", "checkpoints/start/model.safetensors"));
    ck_assert_mem_eq(before, start, 4000);
    free(start);
    free(before);
    free(model);
}
END_TEST

START_TEST(weights_of_full_rank_are_factorized_first)
{
    char *model;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    model = strdup(runs_path(&r, "a", "checkpoints/start/model.safetensors"));
    ck_assert_int_eq(train_from("b", model, "lowrank.warmup_epochs=0"), SP_OK);
    ck_assert(logged("b", "9 layers factorized"));
    free(model);
}
END_TEST

START_TEST(factors_that_cannot_be_read_say_what_they_need)
{
    const char *with[RUNS_MOST];
    char *model, path[300];

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    model = strdup(runs_path(&r, "a", "checkpoints/last/model.safetensors"));
    runs_join(with, resnet, NULL);
    snprintf(path, sizeof path, "model.init=%s", model);
    with[_i ? 5 : 8] = path; /* never of low rank, or later */
    with[_i ? 6 : 9] = NULL;
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = with }),
        SP_EFORMAT);
    ck_assert_msg(runs_error("it holds factors of low rank"), "%s",
                  sp_last_error());
    ck_assert(runs_error("lowrank.warmup_epochs=0"));
    free(model);
}
END_TEST

/* ---- Replays ------------------------------------------------------------- */

static int recorded; /* programs of low rank */

static sp_tensor *counted(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    recorded += sp_graph_ranks(g).rank != NULL;
    return sp_linear(g, "fc", x, (sp_linear_opt){ .out = a->classes });
}

/* Epochs have 50 steps, hashes are of steps 100: the second epoch is the last,
 * or there is one more behind it. */
START_TEST(a_replay_switches_only_if_an_epoch_follows)
{
    sp_model mine = { .entry = { .name = "mine" }, .build = counted };
    const char *with[] = { "model.name=mine",
                           "data.train=800",
                           "lowrank.name=pufferfish",
                           "lowrank.warmup_epochs=2",
                           _i ? "train.epochs=3" : "train.epochs=2",
                           NULL };
    int compared = 0;
    char *path;

    ck_assert_int_eq(sp_registry_add(r.registry, "model", &mine.entry), SP_OK);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = with }), SP_OK);
    path = strdup(runs_path(&r, "a", ""));
    recorded = 0;
    if (sp_verify(r.registry, path, 149, NULL, &compared) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(compared, 1);
    /* Once to check, and twice at the switch, to train and to evaluate. */
    ck_assert_int_eq(recorded, _i ? 3 : 1);
    free(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lowrank_resume");
    TCase *t = tcase_create("lowrank_resume");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, another_network_is_refused_with_the_key_that_made_it,
                        0, 4);
    tcase_add_loop_test(t, what_comes_too_late_is_warned_of, 0, 4);
    tcase_add_test(t, weights_to_start_from_come_too_late);
    tcase_add_test(t, what_does_not_come_too_late_is_not);
    tcase_add_loop_test(
        t, a_run_of_low_rank_is_not_told_that_it_never_becomes_so, 0, 2);
    tcase_add_loop_test(t, a_manifest_that_contradicts_itself_is_refused, 0, 3);
    tcase_add_test(t, another_optimizer_is_told_how_to_start_from_the_weights);
    tcase_add_test(t, factors_are_weights_to_start_from);
    tcase_add_test(t, weights_of_full_rank_are_factorized_first);
    tcase_add_loop_test(t, factors_that_cannot_be_read_say_what_they_need, 0,
                        2);
    tcase_add_loop_test(t, a_replay_switches_only_if_an_epoch_follows, 0, 2);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
