#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim/section.h"
#include "sprat/optim.h"

extern const sp_schedule sp_schedule_constant, sp_schedule_step,
    sp_schedule_cosine, sp_schedule_poly, sp_schedule_plateau,
    sp_schedule_epoch_decay;

/* Settings of a schedule, filled through its keys; the widest is `step`. */
typedef union settings {
    double align;
    char bytes[sizeof(sp_list) + 4 * sizeof(double)];
} settings;

static void put(const sp_schedule *s, settings *own, const char *key,
                const void *value, size_t size)
{
    ck_assert_uint_le(s->entry.cfg_size, sizeof *own);
    for (size_t i = 0; i < s->entry.key_count; i++)
        if (strcmp(s->entry.keys[i].name, key) == 0) {
            memcpy(own->bytes + s->entry.keys[i].offset, value, size);
            return;
        }
    ck_abort_msg("%s has no key %s", s->entry.name, key);
}

static void set(const sp_schedule *s, settings *own, const char *key, double x)
{
    put(s, own, key, &x, sizeof x);
}

static void set_int(const sp_schedule *s, settings *own, const char *key, int x)
{
    put(s, own, key, &x, sizeof x);
}

static void set_list(const sp_schedule *s, settings *own, const char *key,
                     sp_list list)
{
    put(s, own, key, &list, sizeof list);
}

/* The factor of epoch `progress` of 10. */
static double at(const sp_schedule *s, const settings *own, double warmup,
                 double progress)
{
    sp_schedule_cfg cfg = { .warmup_epochs = warmup, .warmup_from = 0.2 };
    sp_schedule_at where = { .epoch = (int)progress,
                             .epochs = 10,
                             .progress = progress };
    sp_schedule_state state = sp_schedule_start();

    return sp_schedule_factor(s, own, &cfg, &where, &state);
}

START_TEST(warmup_rises_linearly_to_the_schedule)
{
    const sp_schedule *s = &sp_schedule_constant;

    ck_assert_double_eq_tol(at(s, NULL, 4, 0), 0.2, 1e-15);
    ck_assert_double_eq_tol(at(s, NULL, 4, 1), 0.4, 1e-15);
    ck_assert_double_eq_tol(at(s, NULL, 4, 3.5), 0.9, 1e-15);
    ck_assert_double_eq(at(s, NULL, 4, 4), 1);
    ck_assert_double_eq(at(s, NULL, 0, 0), 1);
}
END_TEST

START_TEST(step_drops_at_milestones)
{
    const sp_schedule *s = &sp_schedule_step;
    settings own = { 0 };

    set_list(s, &own, "at", (sp_list){ .count = 2, .value = { 3, 7.5 } });
    set(s, &own, "factor", 0.1);
    ck_assert_double_eq(at(s, &own, 0, 0), 1);
    ck_assert_double_eq(at(s, &own, 0, 2.999), 1);
    ck_assert_double_eq_tol(at(s, &own, 0, 3), 0.1, 1e-15);
    /* Within an epoch the rate stays. */
    ck_assert_double_eq_tol(at(s, &own, 0, 7.9), 0.1, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 0, 8), 0.01, 1e-15);
    ck_assert_double_eq(s->last_epoch(&own), 7.5);
    ck_assert_int_eq(sp_schedule_check(s, &own), SP_OK);
}
END_TEST

START_TEST(step_drops_every_so_many_epochs)
{
    const sp_schedule *s = &sp_schedule_step;
    settings own = { 0 };

    set_int(s, &own, "every", 4);
    set(s, &own, "factor", 0.5);
    ck_assert_double_eq(at(s, &own, 0, 3.9), 1);
    ck_assert_double_eq(at(s, &own, 0, 4), 0.5);
    ck_assert_double_eq(at(s, &own, 0, 9.9), 0.25);
    /* Half of the warm-up on the way from 0.2 to 1, times one drop. */
    ck_assert_double_eq_tol(at(s, &own, 10, 5), 0.6 * 0.5, 1e-15);
}
END_TEST

START_TEST(step_refuses_contradictions)
{
    const sp_schedule *s = &sp_schedule_step;
    settings own = { 0 };

    set_list(s, &own, "at", (sp_list){ .count = 2, .value = { 7, 7 } });
    ck_assert_int_eq(sp_schedule_check(s, &own), SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "schedule.at"));
    set_list(s, &own, "at", (sp_list){ .count = 2, .value = { 7, 3 } });
    ck_assert_int_eq(sp_schedule_check(s, &own), SP_ECONFIG);
    set_list(s, &own, "at", (sp_list){ .count = 1, .value = { 7 } });
    ck_assert_int_eq(sp_schedule_check(s, &own), SP_OK);
    set_int(s, &own, "every", 4);
    ck_assert_int_eq(sp_schedule_check(s, &own), SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "schedule.every"));
}
END_TEST

START_TEST(cosine_runs_over_what_the_warmup_leaves)
{
    const sp_schedule *s = &sp_schedule_cosine;
    settings own = { 0 };

    ck_assert_double_eq(at(s, &own, 0, 0), 1);
    ck_assert_double_eq_tol(at(s, &own, 0, 5), 0.5, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 0, 2.5), 0.8535533905932737, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 0, 10), 0, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 2, 1), 0.6, 1e-15);
    ck_assert_double_eq(at(s, &own, 2, 2), 1);
    ck_assert_double_eq_tol(at(s, &own, 2, 6), 0.5, 1e-15);
    set(s, &own, "floor", 0.1);
    ck_assert_double_eq_tol(at(s, &own, 0, 5), 0.55, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 0, 12), 0.1, 1e-15);
}
END_TEST

START_TEST(a_warmup_beyond_the_end_stays_in_the_warmup)
{
    settings own = { 0 };

    ck_assert_double_eq_tol(at(&sp_schedule_cosine, &own, 20, 5), 0.4, 1e-15);
    ck_assert_double_eq_tol(at(&sp_schedule_cosine, &own, 20, 10), 0.6, 1e-15);
}
END_TEST

START_TEST(poly_is_a_power_of_what_is_left)
{
    const sp_schedule *s = &sp_schedule_poly;
    settings own = { 0 };

    set(s, &own, "power", 1);
    ck_assert_double_eq_tol(at(s, &own, 0, 2.5), 0.75, 1e-15);
    set(s, &own, "power", 2);
    ck_assert_double_eq_tol(at(s, &own, 0, 4), 0.36, 1e-15);
    ck_assert_double_eq_tol(at(s, &own, 5, 7.5), 0.25, 1e-15);
    ck_assert_double_eq(at(s, &own, 0, 10), 0);
}
END_TEST

/* The small model of Zaremba et al. 2014: 13 epochs, halved from the 5th on. */
START_TEST(epoch_decay_begins_behind_the_full_rate)
{
    const sp_schedule *s = &sp_schedule_epoch_decay;
    settings own = { 0 };

    set_int(s, &own, "after", 4);
    set(s, &own, "factor", 0.5);
    for (int epoch = 0; epoch < 4; epoch++)
        ck_assert_double_eq(at(s, &own, 0, epoch + 0.5), 1);
    ck_assert_double_eq(at(s, &own, 0, 4), 0.5);
    ck_assert_double_eq(at(s, &own, 0, 5.9), 0.25);
    ck_assert_double_eq(at(s, &own, 0, 12), 1.0 / 512);
    ck_assert_double_eq(s->last_epoch(&own), 4);
}
END_TEST

/* The factors are those of PyTorch 1.13's ReduceLROnPlateau(factor=0.5,
 * patience=1, threshold=0.1, min_lr=0.2) at rate 1. */
START_TEST(plateau_follows_pytorch)
{
    static const double loss[] = { 10, 9.5, 8.9, 8.9, 8.5, 8.1, 7,
                                   7,  7,   7,   7,   7,   7 };
    static const double want[] = { 1,   1,    1,    1,   0.5, 0.5, 0.5,
                                   0.5, 0.25, 0.25, 0.2, 0.2, 0.2 };
    const sp_schedule *s = &sp_schedule_plateau;
    sp_schedule_state state = sp_schedule_start();
    settings own = { 0 };

    set(s, &own, "factor", 0.5);
    set(s, &own, "threshold", 0.1);
    set(s, &own, "floor", 0.2);
    set_int(s, &own, "patience", 1);
    for (size_t i = 0; i < sizeof loss / sizeof *loss; i++) {
        sp_schedule_at where = { .epoch = (int)i + 1, .epochs = 20 };
        sp_schedule_cfg cfg = { 0 };
        s->observe(&own, loss[i], &state);
        ck_assert_double_eq_tol(
            sp_schedule_factor(s, &own, &cfg, &where, &state), want[i], 1e-15);
    }
}
END_TEST

START_TEST(plateau_counts_a_loss_that_is_not_a_number_as_bad)
{
    const sp_schedule *s = &sp_schedule_plateau;
    sp_schedule_state state = sp_schedule_start();
    settings own = { 0 };

    set(s, &own, "factor", 0.5);
    s->observe(&own, NAN, &state);
    ck_assert_double_eq(state.factor, 0.5);
}
END_TEST

/* The numbers among the keys, as they are when a file does not give them. */
static settings defaults(const sp_schedule *s)
{
    settings own = { 0 };

    for (size_t i = 0; i < s->entry.key_count; i++) {
        const sp_key *k = &s->entry.keys[i];
        if (k->kind == SP_INT)
            set_int(s, &own, k->name, atoi(k->fallback));
        if (k->kind == SP_FLOAT)
            set(s, &own, k->name, atof(k->fallback));
    }
    return own;
}

START_TEST(every_schedule_starts_at_one)
{
    static const sp_schedule *const all[] = {
        &sp_schedule_constant, &sp_schedule_step,    &sp_schedule_cosine,
        &sp_schedule_poly,     &sp_schedule_plateau, &sp_schedule_epoch_decay
    };
    settings own = defaults(all[_i]);

    ck_assert_double_eq(at(all[_i], &own, 0, 0), 1);
    ck_assert_double_eq_tol(at(all[_i], &own, 5, 0), 0.2, 1e-15);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, warmup_rises_linearly_to_the_schedule);
    tcase_add_test(tc, step_drops_at_milestones);
    tcase_add_test(tc, step_drops_every_so_many_epochs);
    tcase_add_test(tc, step_refuses_contradictions);
    tcase_add_test(tc, cosine_runs_over_what_the_warmup_leaves);
    tcase_add_test(tc, a_warmup_beyond_the_end_stays_in_the_warmup);
    tcase_add_test(tc, poly_is_a_power_of_what_is_left);
    tcase_add_test(tc, epoch_decay_begins_behind_the_full_rate);
    tcase_add_test(tc, plateau_follows_pytorch);
    tcase_add_test(tc, plateau_counts_a_loss_that_is_not_a_number_as_bad);
    tcase_add_loop_test(tc, every_schedule_starts_at_one, 0, 6);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
