/* The section `lowrank`: the rate behind the switch, and what is refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "train/session.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static const char *const mlp[] = { "model.hidden=[16,12]",
                                   "lowrank.name=pufferfish",
                                   "lowrank.warmup_epochs=1",
                                   "lowrank.full=", NULL };

START_TEST(the_rate_changes_with_the_switch_and_rises_again)
{
    sp_lowrank_cfg c = { .lr_factor = 0.5 };

    ck_assert_double_eq(sp_lowrank_rate(&c, 0), 0.5);
    ck_assert_double_eq(sp_lowrank_rate(&c, 10), 0.5);
    c.rewarm_epochs = 5;
    ck_assert_double_eq(sp_lowrank_rate(&c, 0), 0);
    ck_assert_double_eq(sp_lowrank_rate(&c, 2), 0.2);
    ck_assert_double_eq(sp_lowrank_rate(&c, 5), 0.5);
    ck_assert_double_eq(sp_lowrank_rate(&c, 50), 0.5);
}
END_TEST

START_TEST(what_could_not_become_of_low_rank_is_refused_before_step_0)
{
    static const struct {
        const char *override, *word;
    } cases[] = {
        { "lowrank.full=layer9", "lowrank.full: layer9 is no layer" },
        { "lowrank.full=fc1 nothing", "nothing is no layer" },
        { "lowrank.full=fc1 fc2 fc3", "would factorize no layer" },
        { "lowrank.rank_ratio=1.5", "rank_ratio" },
        { "lowrank.warmup_epochs=-1", "warmup_epochs" },
        { "lowrank.at_switch=keep", "restart" },
    };
    const char *extra[] = { cases[_i].override, NULL };
    const char *with[RUNS_MOST];

    runs_join(with, mlp, extra);
    runs_refused(&r, with, cases[_i].word);
}
END_TEST

START_TEST(a_projection_needs_momentum_that_is_linear)
{
    static const char *const adam[] = { "optim.name=adam", "optim.lr=0.001",
                                        "lowrank.at_switch=project", NULL };
    const char *with[RUNS_MOST];
    sp_config *c;
    sp_settings s;

    runs_join(with, mlp, adam);
    c = runs_config(&r, with);
    ck_assert_int_eq(sp_settings_view(c, &s), SP_ECONFIG);
    ck_assert(runs_error("use restart"));
    sp_config_free(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lowrank_settings");
    TCase *t = tcase_create("lowrank_settings");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, the_rate_changes_with_the_switch_and_rises_again);
    tcase_add_loop_test(
        t, what_could_not_become_of_low_rank_is_refused_before_step_0, 0, 6);
    tcase_add_test(t, a_projection_needs_momentum_that_is_linear);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
