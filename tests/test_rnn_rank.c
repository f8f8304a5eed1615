/* Recurrent layers of low rank: who asks for it, what their factors are called
 * and how they start; the published sizes of language models. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets.h"
#include "sprat/nn.h"

/* A rule: a rank for the layers of a list, or for all where there is none. */
typedef struct rule {
    const char *list;
    int rank;
    char asked[512]; /* "NAME ROWSxCOLUMNS ..." */
} rule;

static int rank_of(void *arg, const char *layer, int rows, int columns)
{
    rule *r = arg;
    size_t used = strlen(r->asked);

    snprintf(r->asked + used, sizeof r->asked - used, "%s %dx%d ", layer, rows,
             columns);
    return !r->list || sp_layer_listed(r->list, layer) ? r->rank : 0;
}

/* Layers "rnn" over 7 inputs, in the scope "a". */
static net open_layers(sp_rnn_opt o, sp_graph_opt opt)
{
    net t = { .p = sp_params_new() };
    sp_tensor *x;

    t.g = sp_graph_new(t.p, opt);
    sp_push(t.g, "a");
    x = sp_input(t.g, "x", (sp_shape){ .t = 2, .n = 3, .c = 7 }, SP_F32);
    t.y = sp_rnn(t.g, "rnn", x, o);
    sp_pop(t.g);
    sp_output(t.g, "y", t.y);
    return t;
}

static const sp_param *param(const net *t, const char *name)
{
    const sp_param *p = sp_params_find(t->p, name);

    ck_assert_msg(p != NULL, "no %s", name);
    return p;
}

static void has_size(const net *t, const char *name, int rows, int columns)
{
    const sp_param *p = param(t, name);

    ck_assert_int_eq(p->ndim, columns ? 2 : 1);
    ck_assert_int_eq(p->dims[0], rows);
    if (columns)
        ck_assert_int_eq(p->dims[1], columns);
}

static void are_factors(const net *t, const char *u, const char *v,
                        const char *whole)
{
    const sp_param *left = param(t, v), *right = param(t, u);

    ck_assert_str_eq(left->whole, whole);
    ck_assert_str_eq(right->whole, whole);
    ck_assert_ptr_eq(left->other, right);
    ck_assert_ptr_eq(right->other, left);
    ck_assert(left->left && !right->left);
}

START_TEST(factors_stand_in_the_place_of_matrices)
{
    static const struct {
        const char *name;
        int rows, columns;
    } want[] = {
        { "a.rnn.weight_ih_l0_u.weight", 4 * 2, 7 },
        { "a.rnn.weight_ih_l0_v.weight", 4 * 5, 2 },
        { "a.rnn.weight_hh_l0_u.weight", 4 * 2, 5 },
        { "a.rnn.weight_hh_l0_v.weight", 4 * 5, 2 },
        { "a.rnn.bias_ih_l0", 20, 0 },
        { "a.rnn.bias_hh_l0", 20, 0 },
    };
    enum { COUNT = sizeof want / sizeof *want };
    net t = open_layers((sp_rnn_opt){ .hidden = 5, .rank = 2 },
                        (sp_graph_opt){ 0 });

    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    for (int i = 0; i < COUNT; i++) {
        ck_assert_str_eq(sp_params_at(t.p, i)->name, want[i].name);
        has_size(&t, want[i].name, want[i].rows, want[i].columns);
    }
    ck_assert_ptr_null(sp_params_at(t.p, COUNT));
    are_factors(&t, want[0].name, want[1].name, "a.rnn.weight_ih_l0");
    are_factors(&t, want[2].name, want[3].name, "a.rnn.weight_hh_l0");
    ck_assert_ptr_null(param(&t, "a.rnn.bias_ih_l0")->whole);
    nets_close(&t);
}
END_TEST

START_TEST(joined_gates_share_a_factor)
{
    net t = open_layers((sp_rnn_opt){ .kind = SP_GRU,
                                      .hidden = 5,
                                      .rank = 3,
                                      .joined = true,
                                      .bidirectional = true },
                        (sp_graph_opt){ 0 });

    has_size(&t, "a.rnn.weight_ih_l0_u.weight", 3, 7);
    has_size(&t, "a.rnn.weight_ih_l0_v.weight", 15, 3);
    has_size(&t, "a.rnn.weight_hh_l0_reverse_u.weight", 3, 5);
    has_size(&t, "a.rnn.weight_hh_l0_reverse_v.weight", 15, 3);
    are_factors(&t, "a.rnn.weight_hh_l0_reverse_u.weight",
                "a.rnn.weight_hh_l0_reverse_v.weight",
                "a.rnn.weight_hh_l0_reverse");
    nets_close(&t);
}
END_TEST

/* The rule is asked by a gate's matrix, for each by itself; what the layer's
 * option says goes before it. */
START_TEST(a_rule_tells_each_matrix_its_rank)
{
    rule r = { .list = "a.rnn.weight_hh_l0 a.rnn.weight_ih_l1", .rank = 2 };
    sp_rank_rule ranks = { .rank = rank_of, .arg = &r };
    net t = open_layers((sp_rnn_opt){ .hidden = 5, .layers = 2, .biases = 1 },
                        (sp_graph_opt){ .ranks = &ranks });

    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_str_eq(r.asked, "a.rnn.weight_ih_l0 5x7 a.rnn.weight_hh_l0 5x5 "
                              "a.rnn.weight_ih_l1 5x5 a.rnn.weight_hh_l1 5x5 ");
    has_size(&t, "a.rnn.weight_ih_l0", 20, 7);
    has_size(&t, "a.rnn.weight_hh_l0_u.weight", 8, 5);
    has_size(&t, "a.rnn.weight_hh_l0_v.weight", 20, 2);
    has_size(&t, "a.rnn.weight_ih_l1_u.weight", 8, 5);
    has_size(&t, "a.rnn.weight_hh_l1", 20, 5);
    nets_close(&t);
}
END_TEST

START_TEST(whether_gates_are_joined_comes_with_the_rank)
{
    rule r = { .rank = 2 };
    sp_rank_rule ranks = { .rank = rank_of, .arg = &r, .joined = true };
    sp_graph_opt opt = { .ranks = &ranks };
    net ruled = open_layers((sp_rnn_opt){ .hidden = 5 }, opt);
    net own = open_layers((sp_rnn_opt){ .hidden = 5, .rank = 3 }, opt);

    has_size(&ruled, "a.rnn.weight_ih_l0_u.weight", 2, 7);
    has_size(&own, "a.rnn.weight_ih_l0_u.weight", 4 * 3, 7);
    nets_close(&own);
    nets_close(&ruled);
}
END_TEST

/* Products of factors are spread as the matrices would be: to 10 % for the mean
 * square over some ten thousand entries. */
START_TEST(products_are_spread_as_the_matrix)
{
    enum { HIDDEN = 100 };
    net t = open_layers((sp_rnn_opt){ .hidden = HIDDEN, .rank = 7 },
                        (sp_graph_opt){ 0 });
    const sp_param *u = param(&t, "a.rnn.weight_hh_l0_u.weight");
    const sp_param *v = param(&t, "a.rnn.weight_hh_l0_v.weight");
    int rank = v->dims[1];
    double square = 0;

    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 3);
    for (int i = 0; i < 4 * HIDDEN; i++)
        for (int j = 0; j < HIDDEN; j++) {
            double w = 0;
            for (int k = 0; k < rank; k++)
                w += (double)v->value[i * rank + k] *
                     (double)u->value[(i / HIDDEN * rank + k) * HIDDEN + j];
            square += w * w / (4 * HIDDEN * HIDDEN);
        }
    /* Uniform in +-1/sqrt(hidden). */
    ck_assert_double_eq_tol(square * 3 * HIDDEN, 1, 0.1);
    nets_close(&t);
}
END_TEST

static const struct {
    sp_rnn_opt o;
    const char *says;
} mistakes[] = {
    { { .hidden = 5, .rank = -1 }, "a.rnn.weight_ih_l0" },
    { { .hidden = 5, .rank = 6 }, "from 1 to 5" },
    { { .hidden = 9, .rank = 8 }, "from 1 to 7" },
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(ranks_out_of_range_are_refused)
{
    net t = open_layers(mistakes[_i].o, (sp_graph_opt){ 0 });

    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_msg(strstr(sp_last_error(), mistakes[_i].says) != NULL, "%s",
                  sp_last_error());
    nets_close(&t);
}
END_TEST

/* Wang et al. 2021 (Pufferfish), all 16 gates' matrices of rank 375, for
 * WikiText-2's 85,962,278 and 67,962,278; the others follow: a layer has
 * 4 d r + 12 h r weights, or d r + h r + 8 h r with joined gates. */
static const struct {
    const char *settings;
    int vocabulary, rank;
    bool joined;
    size_t params, params_1d;
    double macs;
} texts[] = {
    { "hidden=1500 tied=true biases=1", 33278, 0, false, 85962278, 45278,
      85917000 },
    { "hidden=1500 tied=true biases=1", 33278, 375, false, 67962278, 45278,
      67917000 },
    { "hidden=1500 tied=true biases=1", 33278, 375, true, 61212278, 45278,
      61167000 },
    { "hidden=1500 tied=true biases=1", 10000, 375, false, 33022000, 22000,
      33000000 },
    { "hidden=1500 tied=true biases=2", 10000, 375, false, 33034000, 34000,
      33000000 },
};
enum { TEXTS = sizeof texts / sizeof *texts };

START_TEST(language_models_have_the_published_sizes)
{
    rule r = { .list = "rnn", .rank = texts[_i].rank };
    sp_rank_rule ranks = { .rank = rank_of,
                           .arg = &r,
                           .joined = texts[_i].joined };
    net t;

    nets_record_text(&t, &sp_model_lstm_lm, texts[_i].settings,
                     texts[_i].vocabulary,
                     (sp_graph_opt){ .no_memory = true, .ranks = &ranks });
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), texts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), texts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), texts[_i].macs);
    nets_close(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rnn_rank");
    TCase *tc = tcase_create("rnn_rank");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, factors_stand_in_the_place_of_matrices);
    tcase_add_test(tc, joined_gates_share_a_factor);
    tcase_add_test(tc, a_rule_tells_each_matrix_its_rank);
    tcase_add_test(tc, whether_gates_are_joined_comes_with_the_rank);
    tcase_add_test(tc, products_are_spread_as_the_matrix);
    tcase_add_loop_test(tc, ranks_out_of_range_are_refused, 0, MISTAKES);
    tcase_add_loop_test(tc, language_models_have_the_published_sizes, 0, TEXTS);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
