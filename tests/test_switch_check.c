/* What is refused, or warned of, before step 0 of a run that is to be switched
 * to low rank; and a switch that fails. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/factorize.h"
#include "runs.h"
#include "sprat/nn.h"
#include "train/switch.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static const char *const mlp[] = { "model.hidden=[16,12]",
                                   "lowrank.name=pufferfish",
                                   "lowrank.warmup_epochs=1",
                                   "lowrank.full=", NULL };

/* ---- Models whose programs do not go together ---------------------------- */

static sp_tensor *layer(sp_graph *g, const char *name, sp_tensor *x, int out)
{
    return sp_linear(g, name, x, (sp_linear_opt){ .out = out });
}

/* x times factors of rank 2 of `whole`. */
static sp_tensor *factors(sp_graph *g, sp_tensor *x, int out, const char *whole)
{
    int in = x->shape.h * x->shape.w * x->shape.c;
    sp_init spread = { SP_NORMAL, 0.1f };
    sp_param *u = sp_weight(g, "left.weight", (int[]){ 2, in, 0 }, spread);
    sp_param *v = sp_weight(g, "right.weight", (int[]){ out, 2, 0 }, spread);

    sp_factors_of(g, whole, u, v);
    return sp_matmul(g, "right", sp_matmul(g, "left", x, u, NULL), v, NULL);
}

static bool is_low(sp_graph *g) { return sp_graph_ranks(g).rank != NULL; }

static sp_tensor *misnamed(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    if (is_low(g))
        return factors(g, x, a->classes, "head.weight");
    return sp_linear(g, "fc", x,
                     (sp_linear_opt){ .out = a->classes, .no_bias = true });
}

/* A layer that stays whole. */
static sp_tensor *plain(sp_graph *g, sp_tensor *x, int out)
{
    int in = x->shape.h * x->shape.w * x->shape.c;

    return sp_matmul(g, "first", x,
                     sp_weight(g, "first.weight", (int[]){ out, in, 0 },
                               (sp_init){ SP_NORMAL, 0.1f }),
                     NULL);
}

static sp_tensor *narrower(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    if (is_low(g))
        return factors(g, plain(g, x, 8), a->classes, "fc.weight");
    return sp_linear(g, "fc", x,
                     (sp_linear_opt){ .out = a->classes, .no_bias = true });
}

static sp_tensor *forgetful(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    if (is_low(g))
        return factors(g, x, a->classes, "fc.weight");
    return layer(g, "fc", x, a->classes);
}

static sp_tensor *wider(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    return layer(g, "fc", plain(g, x, is_low(g) ? 24 : 8), a->classes);
}

static sp_tensor *right(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    if (is_low(g))
        return factors(g, x, a->classes, "fc.weight");
    return sp_linear(g, "fc", x,
                     (sp_linear_opt){ .out = a->classes, .no_bias = true });
}

static sp_err train_mine(sp_model *mine, const char *rank)
{
    const char *with[] = { "model.name=mine", "lowrank.name=pufferfish",
                           "lowrank.warmup_epochs=1", rank, NULL };
    sp_config *c;
    sp_job job = { .run = runs_path(&r, "x", "") };
    sp_err e;

    ck_assert_int_eq(sp_registry_add(r.registry, "model", &mine->entry), SP_OK);
    c = runs_config(&r, with);
    e = sp_train(c, &job);
    ck_assert_int_eq(job.started, e == SP_OK);
    sp_config_free(c);
    return e;
}

START_TEST(a_model_whose_programs_do_not_go_together_is_refused)
{
    static const struct {
        sp_tensor *(*build)(sp_graph *, sp_tensor *, const sp_model_args *);
        sp_err e;
        const char *word;
    } cases[] = {
        { misnamed, SP_EARG, "left.weight for head.weight" },
        { narrower, SP_ESHAPE, "fc.weight is 4 x 16" },
        { forgetful, SP_EARG, "fc.bias of full rank has no place" },
        { wider, SP_ESHAPE, "first.weight of low rank" },
        { right, SP_OK, "" },
    };
    static const char *const rank[] = { "lowrank.rank=ratio",
                                        "lowrank.rank=auto" };
    sp_model mine = { .entry = { .name = "mine" },
                      .build = cases[_i / 2].build };

    ck_assert_int_eq(train_mine(&mine, rank[_i % 2]), cases[_i / 2].e);
    ck_assert_msg(runs_error(cases[_i / 2].word), "%s", sp_last_error());
}
END_TEST

/* ---- Compressors --------------------------------------------------------- */

/* Rank 1 of 16 x 16 and 12 x 16: factors of 16 and 12 numbers, of which
 * PowerSGD of rank 3 would send more. The matrices themselves it takes. */
START_TEST(a_compressor_that_would_take_no_factor_is_refused)
{
    static const char *const powersgd[] = { "compress.name=powersgd",
                                            "compress.rank=3",
                                            "lowrank.rank_ratio=0.1", NULL };
    static const char *const full[] = { "compress.name=powersgd",
                                        "compress.rank=3",
                                        "lowrank.warmup_epochs=99", NULL };
    const char *with[RUNS_MOST];

    runs_join(with, mlp, powersgd);
    runs_refused(&r, with, "takes none of this network's parameters");
    runs_join(with, mlp, full);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = with }), SP_OK);
}
END_TEST

/* ---- A switch that fails ------------------------------------------------- */

/* What was saved before stays, and is what the run can go on from. */
static void break_weights(const char *run)
{
    static const char file[] = "checkpoints/last/model.safetensors";
    char *path = strdup(runs_path(&r, run, file));
    FILE *f = fopen(path, "r+b");
    const float bad = NAN;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, -(long)sizeof bad, SEEK_END), 0);
    ck_assert_uint_eq(fwrite(&bad, sizeof bad, 1, f), 1);
    fclose(f);
    free(path);
}

START_TEST(weights_to_start_from_that_are_not_finite_end_the_run_at_the_switch)
{
    static const char *const now[] = { "lowrank.warmup_epochs=0", NULL };
    const char *with[RUNS_MOST], *more[RUNS_MOST], *init[2] = { NULL };
    char *status, path[300];

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a", .overrides = mlp }),
                     SP_OK);
    break_weights("a");
    snprintf(path, sizeof path, "model.init=%s",
             runs_path(&r, "a", "checkpoints/start/model.safetensors"));
    init[0] = path;
    runs_join(more, mlp, now);
    runs_join(with, more, init);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "b", .overrides = with }), SP_OK);
    snprintf(path, sizeof path, "model.init=%s",
             runs_path(&r, "a", "checkpoints/last/model.safetensors"));
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "c", .overrides = with }),
        SP_ENUMERIC);
    ck_assert_msg(runs_error("not finite"), "%s", sp_last_error());
    status = runs_result(&r, "c", "status");
    ck_assert_str_eq(status, "not_finite");
    free(status);
}
END_TEST

/* And can be trained: one factor is not zero. */
START_TEST(weights_of_zeros_are_a_product_of_zeros)
{
    sp_config *c = runs_config(&r, mlp);
    sp_text told = { 0 };
    const sp_param *p;
    sp_session s;

    ck_assert_int_eq(
        sp_session_open(&s, c, (sp_session_opt){ .train = true, .data = true }),
        SP_OK);
    memset(sp_params_values(s.params), 0,
           sp_params_count(s.params) * sizeof(float));
    ck_assert_int_eq(sp_switch(&s, 0.05, NULL, &told), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_text_string(&told), "0.00 % lost"));
    for (int i = 0; (p = sp_params_at(s.params, i)); i++) {
        float product[16 * 16], most = 0;

        if (!sp_is_right_factor(p))
            continue;
        sp_factors_product(p, product);
        for (int k = 0; k < p->other->dims[0] * p->dims[1]; k++)
            ck_assert_float_eq(product[k], 0);
        for (size_t k = 0; k < p->count; k++)
            most = fmaxf(most, fabsf(p->value[k]));
        for (size_t k = 0; k < p->other->count; k++)
            most = fmaxf(most, fabsf(p->other->value[k]));
        ck_assert_float_gt(most, 0);
    }
    sp_text_free(&told);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* ---- Warnings ------------------------------------------------------------ */

START_TEST(what_is_hardly_meant_is_warned_of)
{
    static const struct {
        const char *override, *word;
    } cases[] = {
        { "lowrank.rank_ratio=1", "are no smaller" },
        { "lowrank.gates=joined", "no recurrent layer" },
        { "lowrank.lr_factor=0", "nothing is trained after" },
        { "lowrank.extra_norm=true", "not what it was before" },
        { "lowrank.warmup_epochs=3", "never becomes one of low rank" },
        { "lowrank.rank=auto", "needs 11 epochs" },
    };
    const char *one[] = { cases[_i].override, NULL };

    for (int given = 0; given < 2; given++) {
        const char *with[RUNS_MOST];
        char *log;

        runs_join(with, mlp, given ? one : NULL);
        ck_assert_int_eq(runs_train(&r, (runs_job){ .run = given ? "b" : "a",
                                                    .overrides = with }),
                         SP_OK);
        log = runs_read(runs_path(&r, given ? "b" : "a", "log.txt"));
        ck_assert_int_eq(strstr(log, cases[_i].word) != NULL, given);
        free(log);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("switch_check");
    TCase *t = tcase_create("switch_check");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_model_whose_programs_do_not_go_together_is_refused,
                        0, 10);
    tcase_add_test(t, a_compressor_that_would_take_no_factor_is_refused);
    tcase_add_test(
        t, weights_to_start_from_that_are_not_finite_end_the_run_at_the_switch);
    tcase_add_test(t, weights_of_zeros_are_a_product_of_zeros);
    tcase_add_loop_test(t, what_is_hardly_meant_is_warned_of, 0, 6);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
