/* The switch to low rank: what it keeps, how runs go over it, and what is
 * refused before step 0. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/factorize.h"
#include "runs.h"
#include "train/evaluate.h"
#include "train/step.h"
#include "train/switch.h"
#include "train/trainer.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* Networks with convolutions and running statistics, of linear layers, and of
 * recurrent ones. */
static const char *const resnet[] = {
    "model.name=resnet",       "model.depth=8",      "model.shortcut=B",
    "data.shape=[8,8,3]",      "data.train=48",      "lowrank.name=pufferfish",
    "lowrank.warmup_epochs=1", "lowrank.full=conv1", NULL
};
static const char *const mlp[] = { "model.hidden=[16,12]",
                                   "lowrank.name=pufferfish",
                                   "lowrank.warmup_epochs=1",
                                   "lowrank.full=", NULL };
static const char *const lstm[] = { "model.name=lstm_lm",
                                    "model.hidden=8",
                                    "model.dropout=0.25",
                                    "data.vocab=11",
                                    "data.augment=none",
                                    "data.train=180",
                                    "data.test=41",
                                    "train.batch=4",
                                    "train.bptt=8",
                                    "lowrank.name=pufferfish",
                                    "lowrank.warmup_epochs=1",
                                    NULL };

static const char *const *const networks[] = { resnet, mlp, lstm };
enum { NETWORKS = sizeof networks / sizeof *networks };

static void check_same(const char *a, const char *b)
{
    ck_assert(runs_same(&r, a, b, "model.safetensors"));
    ck_assert(runs_same(&r, a, b, "optim.safetensors"));
    ck_assert(runs_same(&r, a, b, "rank-0000.safetensors"));
}

/* An epoch has 6 steps, of resnet's 3; a line is written each step and at the
 * end of an epoch. Before, at and behind the switch. */
START_TEST(a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not)
{
    static const int lines[] = { 2, 3, 4, 5, 6, 7, 8, 9, 11 };
    const char *const *with = networks[_i % NETWORKS];
    runs_job die = { .run = "b",
                     .overrides = with,
                     .end = RUNS_DIE,
                     .lines = lines[_i / NETWORKS] };

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = with }), SP_OK);
    ck_assert(runs_train_killed(&r, die));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    check_same("a", "b");
}
END_TEST

static sp_session open_session(const char *const *overrides, sp_config **c)
{
    sp_session s;

    *c = runs_config(&r, overrides);
    if (sp_session_open(
            &s, *c,
            (sp_session_opt){ .train = true, .eval = true, .data = true }) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return s;
}

static void do_switch(sp_session *s, double lr)
{
    sp_text told = { 0 };

    if (sp_switch(s, lr, NULL, &told) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_ptr_nonnull(strstr(sp_text_string(&told), "factorized"));
    sp_text_free(&told);
}

/* Two steps, so that there are momenta and running statistics. */
static void train_steps(sp_session *s, int count)
{
    sp_loader *loader;
    sp_batch b;

    ck_assert_int_eq(sp_session_batches(s, &loader), SP_OK);
    for (int i = 0; i < count; i++) {
        sp_step_at at = { .step = i, .lr = 0.05 };
        sp_step_result result;
        ck_assert_int_eq(sp_loader_next(loader, &b), SP_OK);
        ck_assert(!b.end);
        ck_assert_int_eq(sp_train_step(s, &b, &at, &result), SP_OK);
    }
    sp_loader_free(loader);
}

static sp_scores score(sp_session *s)
{
    sp_scores out;

    ck_assert_int_eq(sp_evaluate(s, SP_PART_TEST, NULL, NULL, &out), SP_OK);
    return out;
}

START_TEST(at_full_rank_the_network_stays_what_it_is)
{
    static const char *const whole[] = { "lowrank.rank_ratio=1", NULL };
    const char *with[RUNS_MOST];
    sp_config *c;
    sp_session s;
    sp_scores before, after;

    runs_join(with, networks[_i], whole);
    s = open_session(with, &c);
    train_steps(&s, 2);
    before = score(&s);
    do_switch(&s, 0.05);
    ck_assert(s.low);
    after = score(&s);
    ck_assert_double_eq_tol(before.loss, after.loss, 1e-5 * before.loss);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* Loaders read the data all the time: a switch that fails must leave them. */
START_TEST(weights_that_are_not_finite_fail_and_leave_the_data)
{
    sp_config *c;
    sp_session s = open_session(mlp, &c);
    sp_text told = { 0 };

    sp_params_find(s.params, "fc1.weight")->value[3] = NAN;
    ck_assert_int_eq(sp_switch(&s, 0.05, NULL, &told), SP_ENUMERIC);
    ck_assert(runs_error("fc1.weight cannot be factorized"));
    ck_assert(!s.low);
    ck_assert_ptr_nonnull(s.data);
    ck_assert_uint_eq(score(&s).count, s.data->count[SP_PART_TEST]);
    sp_text_free(&told);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* By the sizes of the configuration: 16 x 16, 12 x 16 and 4 x 12 at a quarter.
 */
START_TEST(ranks_are_the_share_of_the_smaller_side)
{
    static const int rank[] = { 4, 3, 1 };
    sp_config *c;
    sp_session s = open_session(mlp, &c);
    int at = 0;

    do_switch(&s, 0.05);
    for (int i = 0; sp_params_at(s.params, i); i++) {
        const sp_param *p = sp_params_at(s.params, i);
        if (p->other && p->left)
            ck_assert_int_eq(p->dims[1], rank[at++]);
    }
    ck_assert_int_eq(at, 3);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* Every parameter's name, value and momentum before the switch. */
typedef struct memory {
    char name[64];
    int dims[2];
    float *value, *momentum;
} memory;

static int remember(const sp_session *s, memory *m)
{
    const sp_param *p;
    int count = 0;

    for (int i = 0; (p = sp_params_at(s->params, i)); i++, m++, count++) {
        snprintf(m->name, sizeof m->name, "%s", p->name);
        memcpy(m->dims, p->dims, sizeof m->dims);
        m->value = malloc(p->count * sizeof(float));
        m->momentum = malloc(p->count * sizeof(float));
        memcpy(m->value, p->value, p->count * sizeof(float));
        memcpy(m->momentum, sp_optim_state(s->optim, p, 0),
               p->count * sizeof(float));
    }
    return count;
}

static void forget(memory *m, int count)
{
    for (int i = 0; i < count; i++) {
        free(m[i].value);
        free(m[i].momentum);
    }
}

static const memory *find(const memory *m, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(m[i].name, name) == 0)
            return &m[i];
    return NULL;
}

/* m_u = v' m and m_v = m u', in double and by hand. */
static void check_projected(const sp_session *s, const sp_param *u,
                            const memory *old)
{
    const sp_param *v = u->other;
    const float *mu = sp_optim_state(s->optim, u, 0);
    const float *mv = sp_optim_state(s->optim, v, 0);
    int rows = old->dims[0], columns = old->dims[1], rank = u->dims[0];

    for (int k = 0; k < rank; k++)
        for (int j = 0; j < columns; j++) {
            double sum = 0;
            for (int i = 0; i < rows; i++)
                sum += (double)v->value[i * rank + k] *
                       old->momentum[i * columns + j];
            ck_assert_double_eq_tol(mu[k * columns + j], sum, 1e-6);
        }
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < rank; k++) {
            double sum = 0;
            for (int j = 0; j < columns; j++)
                sum += (double)u->value[k * columns + j] *
                       old->momentum[i * columns + j];
            ck_assert_double_eq_tol(mv[i * rank + k], sum, 1e-6);
        }
}

static void check_momentum(const sp_session *s, const memory *old, int count,
                           bool project)
{
    const sp_param *p;
    int seen = 0;

    for (int i = 0; (p = sp_params_at(s->params, i)); i++) {
        const memory *m = find(old, count, p->whole ? p->whole : p->name);
        const float *state = sp_optim_state(s->optim, p, 0);

        ck_assert_ptr_nonnull(m);
        if (!project) {
            for (size_t k = 0; k < p->count; k++)
                ck_assert_float_eq(state[k], 0);
        } else if (!p->other) {
            ck_assert_mem_eq(state, m->momentum, p->count * sizeof(float));
        } else if (!p->left) {
            check_projected(s, p, m);
            seen++;
        }
        if (!p->other)
            ck_assert_mem_eq(p->value, m->value, p->count * sizeof(float));
    }
    ck_assert_int_eq(seen, project ? 3 : 0);
}

START_TEST(momentum_starts_anew_or_is_projected)
{
    const char *const how[] = { _i ? "lowrank.at_switch=project"
                                   : "lowrank.at_switch=restart",
                                NULL };
    const char *with[RUNS_MOST];
    memory old[16];
    sp_config *c;
    sp_session s;
    int count;

    runs_join(with, mlp, how);
    s = open_session(with, &c);
    train_steps(&s, 3);
    count = remember(&s, old);
    do_switch(&s, 0.05);
    check_momentum(&s, old, count, _i == 1);
    forget(old, count);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

START_TEST(low_rank_from_the_start_has_no_switch)
{
    static const char *const now[] = { "lowrank.warmup_epochs=0", NULL };
    const char *with[RUNS_MOST];
    char *log;

    runs_join(with, resnet, now);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = with }), SP_OK);
    log = runs_read(runs_path(&r, "a", "log.txt"));
    ck_assert_ptr_nonnull(strstr(log, "of low rank"));
    ck_assert_ptr_null(strstr(log, "switch "));
    free(log);
}
END_TEST

START_TEST(checkpoints_of_both_programs_are_evaluated_and_verified)
{
    sp_scores first, last;
    char *run;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = resnet }), SP_OK);
    run = strdup(runs_path(&r, "a", ""));
    ck_assert_int_eq(sp_eval(r.registry, run, "start", SP_PART_TEST, &first),
                     SP_OK);
    ck_assert_int_eq(sp_eval(r.registry, run, "last", SP_PART_TEST, &last),
                     SP_OK);
    ck_assert_int_eq(sp_eval(r.registry, run, "best", SP_PART_TEST, &last),
                     SP_OK);
    free(run);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("switch");
    TCase *t = tcase_create("switch");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(
        t, a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not, 0,
        9 * NETWORKS);
    tcase_add_loop_test(t, at_full_rank_the_network_stays_what_it_is, 0,
                        NETWORKS);
    tcase_add_test(t, ranks_are_the_share_of_the_smaller_side);
    tcase_add_test(t, weights_that_are_not_finite_fail_and_leave_the_data);
    tcase_add_loop_test(t, momentum_starts_anew_or_is_projected, 0, 2);
    tcase_add_test(t, low_rank_from_the_start_has_no_switch);
    tcase_add_test(t, checkpoints_of_both_programs_are_evaluated_and_verified);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
