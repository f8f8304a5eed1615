/* What compressors keep over the switch to low rank: residuals, momenta, and
 * factors of their own. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/factorize.h"
#include "runs.h"
#include "train/step.h"
#include "train/switch.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static const char *const mlp[] = { "model.hidden=[16,12]",
                                   "lowrank.name=pufferfish",
                                   "lowrank.warmup_epochs=1",
                                   "lowrank.full=", NULL };
static const char *const dgc[] = { "compress.name=dgc", "compress.ratio=0.1",
                                   "compress.warmup=[]", NULL };
static const char *const powersgd[] = { "compress.name=powersgd",
                                        "compress.rank=1", NULL };
static const char *const signum[] = { "compress.name=signum",
                                      "optim.momentum=0", NULL };

static const char *const *const compressors[] = { dgc, powersgd, signum };
enum { RESIDUALS = 2 /* the first so many have one */, COMPRESSORS = 3 };

/* ---- Sessions ------------------------------------------------------------ */

static sp_session open_session(const char *const *compressor,
                               const char *const *more, sp_config **c)
{
    const char *all[RUNS_MOST], *with[RUNS_MOST];
    sp_session s;

    runs_join(with, mlp, compressor);
    runs_join(all, with, more);
    *c = runs_config(&r, all);
    if (sp_session_open(
            &s, *c, (sp_session_opt){ .train = true, .data = true }) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return s;
}

static void train_steps(sp_session *s, int first, int count)
{
    sp_loader *loader;
    sp_batch b;

    ck_assert_int_eq(sp_session_batches(s, &loader), SP_OK);
    for (int i = first; i < first + count; i++) {
        sp_step_at at = { .step = i, .lr = 0.05 };
        sp_step_result result;
        ck_assert_int_eq(sp_loader_next(loader, &b), SP_OK);
        ck_assert_int_eq(sp_train_step(s, &b, &at, &result), SP_OK);
    }
    sp_loader_free(loader);
}

static void do_switch(sp_session *s, sp_text *told)
{
    if (sp_switch(s, 0.05, NULL, told) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

/* What the compressor keeps of a parameter under a name that ends so; NULL:
 * nothing. */
static const float *kept(const sp_session *s, const sp_param *p,
                         const char *end)
{
    for (int k = 0; k < SP_MAX_SLOT_STATE; k++) {
        const char *name;
        size_t n;
        bool adds;
        const float *x = sp_exchange_state(s->exchange, p, k, &n, &name, &adds);
        if (x && strcmp(name + strlen(name) - strlen(end), end) == 0)
            return x;
    }
    return NULL;
}

static const float *unsent(const sp_session *s, const sp_param *p)
{
    return kept(s, p, s->set.compressor->residual);
}

static float *copy(const float *x, size_t n)
{
    float *out = malloc((n + 1) * sizeof *out);

    ck_assert_ptr_nonnull(out);
    memcpy(out, x, n * sizeof *out);
    return out;
}

static double squares(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; x && i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* ---- Residuals ----------------------------------------------------------- */

static const char *const layers[] = { "fc1", "fc2", "fc3" };

/* weights - lr * residual, of a layer. */
static float *flushed(const sp_session *s, const char *layer, size_t *n)
{
    char name[32];
    const sp_param *p;
    const float *rest;
    float *out;

    snprintf(name, sizeof name, "%s.weight", layer);
    p = sp_params_find(s->params, name);
    rest = unsent(s, p);
    out = copy(p->value, p->count);
    for (size_t i = 0; rest && i < p->count; i++)
        out[i] -= 0.05f * rest[i];
    *n = p->count;
    return out;
}

START_TEST(what_was_not_sent_is_applied_before_the_weights_are_factorized)
{
    static const char *const whole[] = { "lowrank.rank_ratio=1", NULL };
    float *want[3], product[16 * 16];
    sp_config *c;
    sp_session s = open_session(compressors[_i], whole, &c);
    sp_text told = { 0 };
    size_t n[3];

    train_steps(&s, 0, 3);
    ck_assert_double_gt(
        squares(unsent(&s, sp_params_find(s.params, "fc1.weight")), 256), 0);
    for (int i = 0; i < 3; i++)
        want[i] = flushed(&s, layers[i], &n[i]);
    do_switch(&s, &told);
    ck_assert_ptr_nonnull(
        strstr(sp_text_string(&told), "not sent yet is applied"));
    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "%s_u.weight", layers[i]);
        sp_factors_product(sp_params_find(s.params, name), product);
        for (size_t k = 0; k < n[i]; k++)
            ck_assert_float_eq_tol(product[k], want[i][k], 1e-5f);
        free(want[i]);
    }
    train_steps(&s, 3, 2);
    sp_text_free(&told);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* u's is v' times the layer's, in double and by hand. */
static void check_projected(const sp_session *s, const char *layer,
                            const float *old, const char *end)
{
    char name[32];
    const sp_param *u, *v;
    const float *now;

    snprintf(name, sizeof name, "%s_u.weight", layer);
    u = sp_params_find(s->params, name);
    v = u->other;
    now = kept(s, u, end);
    ck_assert_ptr_nonnull(now);
    for (int k = 0; k < u->dims[0]; k++)
        for (int j = 0; j < u->dims[1]; j++) {
            double sum = 0;
            for (int i = 0; i < v->dims[0]; i++)
                sum += (double)v->value[i * v->dims[1] + k] *
                       (double)old[i * u->dims[1] + j];
            ck_assert_double_eq_tol(now[k * u->dims[1] + j], sum, 1e-5);
        }
}

START_TEST(what_was_not_sent_can_be_projected_instead)
{
    static const char *const project[] = { "lowrank.residual=project", NULL };
    sp_config *c;
    sp_session s = open_session(compressors[_i], project, &c);
    const sp_param *p = sp_params_find(s.params, "fc1.weight");
    sp_text told = { 0 };
    float *old;

    train_steps(&s, 0, 3);
    old = copy(unsent(&s, p), p->count);
    do_switch(&s, &told);
    ck_assert_ptr_nonnull(
        strstr(sp_text_string(&told), "not sent yet is lost"));
    check_projected(&s, "fc1", old, s.set.compressor->residual);
    free(old);
    sp_text_free(&told);
    train_steps(&s, 3, 2);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* PowerSGD of rank 3 takes the matrix of the second layer, 12 x 16, but of its
 * factors not u, 3 x 16, since 3 * (3 + 16) > 48: all of it is lost, beside
 * what the first layer's factors have no place for. The third layer's, 4 x 12,
 * it does not take. */
START_TEST(what_has_no_place_any_more_is_told)
{
    static const char *const project[] = { "compress.rank=3",
                                           "lowrank.residual=project", NULL };
    const char *line, *at;
    sp_config *c;
    sp_session s = open_session(powersgd, project, &c);
    const sp_param *first, *second, *u;
    double all, lost, share;
    sp_text told = { 0 };
    float *old;

    train_steps(&s, 0, 3);
    first = sp_params_find(s.params, "fc1.weight");
    second = sp_params_find(s.params, "fc2.weight");
    ck_assert_ptr_null(unsent(&s, sp_params_find(s.params, "fc3.weight")));
    old = copy(unsent(&s, first), first->count);
    all = squares(old, first->count);
    lost = squares(unsent(&s, second), second->count);
    ck_assert_double_gt(lost, 0);
    do_switch(&s, &told);
    line = sp_text_string(&told);
    ck_assert_ptr_nonnull(
        strstr(line, "fc2.weight: powersgd_error is dropped"));
    ck_assert_ptr_null(strstr(line, "fc1.weight: powersgd_error"));
    u = sp_params_find(s.params, "fc1_u.weight");
    ck_assert_int_eq(sp_factors_lost(u, old, &share), SP_OK);
    at = strstr(line, " % of the squared norm of what was not sent");
    ck_assert_ptr_nonnull(at);
    while (at[-1] != ' ')
        at--;
    ck_assert_double_eq_tol(atof(at), 100 * (share * all + lost) / (all + lost),
                            0.006);
    free(old);
    sp_text_free(&told);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

START_TEST(what_was_not_sent_and_is_not_finite_ends_the_switch)
{
    static const char *const project[] = { "lowrank.residual=project", NULL };
    sp_config *c;
    sp_session s = open_session(dgc, project, &c);
    sp_text told = { 0 };
    float *rest;

    train_steps(&s, 0, 2);
    rest = (float *)unsent(&s, sp_params_find(s.params, "fc1.weight"));
    rest[5] = NAN;
    ck_assert_int_eq(sp_switch(&s, 0.05, NULL, &told), SP_ENUMERIC);
    sp_text_free(&told);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* ---- Momenta ------------------------------------------------------------- */

START_TEST(momenta_of_signum_start_anew_or_are_projected)
{
    static const char *const how[][2] = { { "lowrank.at_switch=restart", NULL },
                                          { "lowrank.at_switch=project",
                                            NULL } };
    sp_config *c;
    sp_session s = open_session(signum, how[_i], &c);
    const sp_param *p = sp_params_find(s.params, "fc1.weight"), *u;
    sp_text told = { 0 };
    float *old;

    train_steps(&s, 0, 3);
    old = copy(kept(&s, p, "momentum"), p->count);
    ck_assert_double_gt(squares(old, p->count), 0);
    do_switch(&s, &told);
    u = sp_params_find(s.params, "fc1_u.weight");
    if (_i == 0)
        ck_assert_double_eq(squares(kept(&s, u, "momentum"), u->count), 0);
    else
        check_projected(&s, "fc1", old, "momentum");
    ck_assert_ptr_null(strstr(sp_text_string(&told), "not sent"));
    free(old);
    sp_text_free(&told);
    train_steps(&s, 3, 2);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* ---- Runs ---------------------------------------------------------------- */

/* Epochs have 6 steps: at the end of the second's first lines. */
START_TEST(a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not)
{
    static const int lines[] = { 6, 7, 8, 10 };
    static const char *const project[] = { "lowrank.at_switch=project",
                                           "lowrank.residual=project", NULL };
    static const char *const files[] = { "model.safetensors",
                                         "optim.safetensors",
                                         "rank-0000.safetensors" };
    const char *both[RUNS_MOST], *with[RUNS_MOST];
    runs_job die = {
        .run = "b", .overrides = with, .end = RUNS_DIE, .lines = lines[_i % 4]
    };

    runs_join(both, mlp, compressors[_i / 4 % COMPRESSORS]);
    runs_join(with, both, _i % 2 ? project : NULL);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = with }), SP_OK);
    ck_assert(runs_train_killed(&r, die));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "b" }), SP_OK);
    for (int i = 0; i < 3; i++)
        ck_assert(runs_same(&r, "a", "b", files[i]));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("switch_kept");
    TCase *t = tcase_create("switch_kept");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(
        t, what_was_not_sent_is_applied_before_the_weights_are_factorized, 0,
        RESIDUALS);
    tcase_add_loop_test(t, what_was_not_sent_can_be_projected_instead, 0,
                        RESIDUALS);
    tcase_add_test(t, what_has_no_place_any_more_is_told);
    tcase_add_test(t, what_was_not_sent_and_is_not_finite_ends_the_switch);
    tcase_add_loop_test(t, momenta_of_signum_start_anew_or_are_projected, 0, 2);
    tcase_add_loop_test(
        t, a_run_that_dies_around_the_switch_goes_on_as_if_it_had_not, 0,
        4 * COMPRESSORS);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
