/* Layers of low rank while they are recorded: who is asked, what the factors
 * are called, how they start, and what is refused. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/factorize.h"
#include "sprat/nn.h"

/* ---- Lists of layers ----------------------------------------------------- */

static const struct {
    const char *list, *layer;
    bool listed;
} lists[] = {
    { "conv1", "conv1", true },
    { "conv1", "conv10", false },
    { "conv1", "layer1.0.conv1", false },
    { "conv", "conv1", false },
    { "layer1", "layer1.0.conv1", true },
    { "layer1.0", "layer1.0.conv1", true },
    { "layer1.0", "layer1.01.conv1", false },
    { "layer1.0", "layer1", false },
    { "layer1.0.conv1", "layer1.0.conv1", true },
    { ".downsample", "layer2.0.downsample.0", true },
    { ".downsample", "downsample.0", true },
    { ".downsample.0", "layer2.0.downsample.0", true },
    { ".downsample.1", "layer2.0.downsample.0", false },
    { ".down", "layer2.0.downsample.0", false },
    { ".0", "layer2.0.conv1", true },
    { "downsample", "layer2.0.downsample.0", false },
    { "conv1 layer1.0 fc", "fc", true },
    { "  conv1   fc ", "fc", true },
    { "conv1 layer1.0 fc", "layer1.1.conv1", false },
    { "", "fc", false },
    { "   ", "fc", false },
    { ".", "fc", false },
};

START_TEST(a_list_has_whole_parts_of_names)
{
    ck_assert_msg(sp_layer_listed(lists[_i].list, lists[_i].layer) ==
                      lists[_i].listed,
                  "%s in %s", lists[_i].layer, lists[_i].list);
}
END_TEST

/* ---- Recording ----------------------------------------------------------- */

/* Who was asked. */
typedef struct asked {
    char text[256];
    int rank; /* the answer */
} asked;

static int answer(void *arg, const char *name, int rows, int columns)
{
    asked *a = arg;
    size_t at = strlen(a->text);

    snprintf(a->text + at, sizeof a->text - at, "%s %dx%d;", name, rows,
             columns);
    return a->rank;
}

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
} net;

static const sp_shape image = { .n = 2, .h = 9, .w = 7, .c = 4 };

static net open_net(sp_graph_opt opt)
{
    net t = { .p = sp_params_new() };

    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", image, SP_F32);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void compile(net *t, sp_tensor *y)
{
    sp_output(t->g, "loss", sp_project(t->g, y));
    ck_assert_msg(sp_compile(t->g) == SP_OK, "%s", sp_last_error());
}

/* A parameter by its name, with these sizes. */
static const sp_param *find(const net *t, const char *name, const int *dims)
{
    const sp_param *p = sp_params_find(t->p, name);

    ck_assert_msg(p != NULL, "no %s", name);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(i < p->ndim ? p->dims[i] : 0, dims[i]);
    return p;
}

static void are_factors(const sp_param *u, const sp_param *v, const char *whole)
{
    ck_assert_ptr_eq(u->other, v);
    ck_assert_ptr_eq(v->other, u);
    ck_assert(!u->left && v->left);
    ck_assert_str_eq(u->whole, whole);
    ck_assert_str_eq(v->whole, whole);
}

/* Also where no memory is given. */
START_TEST(a_convolution_becomes_two)
{
    sp_graph_opt opt = { .train = true, .no_memory = _i };
    net t = open_net(opt);
    sp_tensor *y;

    sp_push(t.g, "a");
    y = sp_conv(
        t.g, "c", t.x,
        (sp_conv_opt){ .out = 6, .stride = 2, .bias = true, .rank = 3 });
    sp_pop(t.g);
    ck_assert_int_eq(y->shape.h, 5);
    ck_assert_int_eq(y->shape.w, 4);
    ck_assert_int_eq(y->shape.c, 6);
    compile(&t, y);
    const sp_param *u = find(&t, "a.c_u.weight", (int[]){ 3, 4, 3, 3 });
    const sp_param *v = find(&t, "a.c_v.weight", (int[]){ 6, 3, 1, 1 });
    const sp_param *b = find(&t, "a.c_v.bias", (int[]){ 6, 0, 0, 0 });
    are_factors(u, v, "a.c.weight");
    ck_assert_str_eq(b->whole, "a.c.bias");
    ck_assert_ptr_null(b->other);
    ck_assert_int_eq(sp_params_size(t.p), 3);
    ck_assert_double_eq(sp_graph_macs(t.g), 20 * (3 * 36 + 6 * 3));
    close_net(&t);
}
END_TEST

/* The stride of a single pixel's convolution is that of the second. */
START_TEST(a_point_keeps_all_pixels_for_its_second_half)
{
    net t = open_net((sp_graph_opt){ .train = true });
    sp_tensor *y =
        sp_conv(t.g, "c", t.x,
                (sp_conv_opt){ .out = 6, .kernel = 1, .stride = 2, .rank = 3 });

    compile(&t, y);
    ck_assert_int_eq(y->shape.h * y->shape.w, 5 * 4);
    ck_assert_double_eq(sp_graph_macs(t.g), 9 * 7 * 3 * 4 + 5 * 4 * 6 * 3);
    close_net(&t);
}
END_TEST

START_TEST(a_linear_layer_becomes_two)
{
    net t = open_net((sp_graph_opt){ .train = true });
    sp_tensor *y =
        sp_linear(t.g, "fc", t.x, (sp_linear_opt){ .out = 5, .rank = 2 });

    compile(&t, y);
    const sp_param *u = find(&t, "fc_u.weight", (int[]){ 2, 9 * 7 * 4, 0, 0 });
    const sp_param *v = find(&t, "fc_v.weight", (int[]){ 5, 2, 0, 0 });
    const sp_param *b = find(&t, "fc_v.bias", (int[]){ 5, 0, 0, 0 });
    are_factors(u, v, "fc.weight");
    ck_assert_str_eq(b->whole, "fc.bias");
    /* As that of the layer of full rank. */
    ck_assert_float_eq_tol(b->init.a, 1 / sqrtf(9 * 7 * 4), 1e-7f);
    ck_assert_int_eq(sp_params_size(t.p), 3);
    close_net(&t);
}
END_TEST

/* All kinds of layers: groups and ties are not asked for. */
static sp_tensor *record_all(sp_graph *g, sp_tensor *x)
{
    sp_tensor *y;

    sp_push(g, "a");
    x = sp_conv(g, "c", x, (sp_conv_opt){ .out = 6 });
    x = sp_conv(g, "d", x, (sp_conv_opt){ .out = 6, .groups = 2 });
    x = sp_conv(g, "e", x, (sp_conv_opt){ .out = 8, .kernel = 1, .rank = 5 });
    sp_pop(g);
    x = sp_global_pool(g, x);
    y = sp_linear(g, "f", x, (sp_linear_opt){ .out = 7, .no_bias = true });
    x = sp_linear(g, "t", x, (sp_linear_opt){ .out = 7, .tied = "w.weight" });
    return sp_add(g, x, y);
}

START_TEST(the_rule_is_asked_by_full_names)
{
    asked a = { .rank = _i };
    sp_rank_rule rule = { .rank = answer, .arg = &a };
    net t = open_net((sp_graph_opt){ .train = true, .ranks = &rule });

    sp_weight(t.g, "w.weight", (int[]){ 7, 8, 0 }, (sp_init){ 0 });
    compile(&t, record_all(t.g, t.x));
    ck_assert_str_eq(a.text, "a.c 6x36;f 7x8;");
    ck_assert_int_eq(sp_params_find(t.p, "a.c.weight") == NULL, _i > 0);
    ck_assert_int_eq(sp_params_find(t.p, "a.c_u.weight") != NULL, _i > 0);
    ck_assert_ptr_nonnull(sp_params_find(t.p, "a.d.weight"));
    find(&t, "a.e_u.weight", (int[]){ 5, 6, 1, 1 });
    ck_assert_ptr_null(sp_params_find(t.p, "t.weight"));
    close_net(&t);
}
END_TEST

/* A second program over the same parameters, as evaluation has. */
START_TEST(programs_share_their_factors)
{
    asked a = { .rank = 2 };
    sp_rank_rule rule = { .rank = answer, .arg = &a };
    sp_graph_opt opt = { .train = true, .ranks = &rule };
    net t = open_net(opt);

    sp_weight(t.g, "w.weight", (int[]){ 7, 8, 0 }, (sp_init){ 0 });
    compile(&t, record_all(t.g, t.x));
    int size = sp_params_size(t.p);
    sp_graph_free(t.g);
    opt.train = false;
    t.g = sp_graph_new(t.p, opt);
    compile(&t, record_all(t.g, sp_input(t.g, "x", image, SP_F32)));
    ck_assert_int_eq(sp_params_size(t.p), size);
    close_net(&t);
}
END_TEST

START_TEST(a_norm_between_the_factors_of_a_convolution)
{
    asked a = { .rank = 2 };
    sp_rank_rule rule = { .rank = answer, .arg = &a, .extra_norm = true };
    sp_graph_opt opt = { .train = true, .input_grads = true, .ranks = &rule };
    sp_run run = { .n = 2, .t = 1, .train = true, .weight = 1 };
    sp_gradcheck_result worst;
    net t = open_net(opt);
    sp_tensor *y = sp_conv(t.g, "c", t.x, (sp_conv_opt){ .out = 6 });

    compile(&t, sp_linear(t.g, "f", y, (sp_linear_opt){ .out = 3 }));
    ck_assert_str_eq(sp_params_at(t.p, 0)->name, "c_u.weight");
    ck_assert_str_eq(sp_params_at(t.p, 1)->name, "c_u_norm.weight");
    find(&t, "c_u_norm.running_var", (int[]){ 2, 0, 0, 0 });
    ck_assert_str_eq(sp_params_at(t.p, 5)->name, "c_v.weight");
    ck_assert_str_eq(sp_params_at(t.p, 6)->name, "f_u.weight");
    ck_assert_int_eq(sp_params_size(t.p), 9);
    sp_params_init(t.p, 1);
    for (size_t i = 0; i < sp_count(image); i++)
        ((float *)t.x->data)[i] = sinf((float)i);
    sp_gradcheck(t.g, &run, 1e-2, 20, &worst);
    ck_assert_uint_gt(worst.checked, 80);
    ck_assert_msg(worst.error < 1e-2, "%s: %g", worst.name, worst.error);
    close_net(&t);
}
END_TEST

/* ---- Starting values ----------------------------------------------------- */

enum { ROWS = 150, COLUMNS = 100, LARGE = ROWS * COLUMNS, SEEDS = 50 };

/* Mean of the squares of a product's elements. */
static double spread_of(sp_init start, int rank)
{
    net t = open_net((sp_graph_opt){ 0 });
    sp_init each = sp_factor_init(start, rank);
    sp_param *u = sp_weight(t.g, "u", (int[]){ rank, COLUMNS, 0 }, each);
    sp_param *v = sp_weight(t.g, "v", (int[]){ ROWS, rank, 0 }, each);
    float *w = malloc(LARGE * sizeof *w);
    double sum = 0;
    sp_tensor *x =
        sp_input(t.g, "a", (sp_shape){ .n = 1, .c = COLUMNS }, SP_F32);

    ck_assert_ptr_nonnull(w);
    sp_factors_of(t.g, "w", u, v);
    x = sp_matmul(t.g, "u", x, u, NULL);
    sp_output(t.g, "y", sp_matmul(t.g, "v", x, v, NULL));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sp_params_init(t.p, seed);
        sp_factors_product(u, w);
        for (int i = 0; i < LARGE; i++)
            sum += (double)w[i] * (double)w[i];
    }
    free(w);
    close_net(&t);
    return sum / (LARGE * SEEDS);
}

START_TEST(products_start_as_spread_as_the_layer)
{
    static const int ranks[] = { 1, 7, 100 };
    sp_init normal = { SP_NORMAL, 0.07f }, uniform = { SP_UNIFORM, 0.2f };
    int r = ranks[_i];

    ck_assert_double_eq_tol(r * pow(sp_factor_init(normal, r).a, 4),
                            0.07 * 0.07, 1e-8);
    ck_assert_double_eq_tol(r * pow(sp_factor_init(uniform, r).a, 4) / 9,
                            0.2 * 0.2 / 3, 1e-8);
    ck_assert_double_eq_tol(spread_of(normal, r) / (0.07 * 0.07), 1, 0.1);
    ck_assert_double_eq_tol(spread_of(uniform, r) / (0.2 * 0.2 / 3), 1, 0.1);
}
END_TEST

/* ---- Refusals ------------------------------------------------------------ */

static const struct {
    int rank, ruled, out, kernel, groups;
    const char *says;
} bad_convs[] = {
    { -1, 0, 6, 3, 1, "asked for is -1" }, { 7, 0, 6, 3, 1, "6 x 36" },
    { 5, 0, 6, 1, 1, "from 1 to 4" },      { 0, 7, 6, 3, 1, "asked for is 7" },
    { 0, -3, 6, 3, 1, "asked for is -3" }, { 2, 0, 6, 3, 2, "2 groups" },
};

START_TEST(ranks_of_convolutions_that_cannot_be)
{
    asked a = { .rank = bad_convs[_i].ruled };
    sp_rank_rule rule = { .rank = answer, .arg = &a };
    net t = open_net((sp_graph_opt){ .ranks = &rule });

    sp_conv(t.g, "layer", t.x,
            (sp_conv_opt){ .out = bad_convs[_i].out,
                           .kernel = bad_convs[_i].kernel,
                           .groups = bad_convs[_i].groups,
                           .rank = bad_convs[_i].rank });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_msg(strstr(sp_last_error(), bad_convs[_i].says) != NULL, "%s",
                  sp_last_error());
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "layer"));
    close_net(&t);
}
END_TEST

static const struct {
    int rank;
    const char *tied, *says;
} bad_linears[] = {
    { -1, NULL, "asked for is -1" },
    { 6, NULL, "5 x 252" },
    { 2, "w.weight", "tied to w.weight" },
};

START_TEST(ranks_of_linear_layers_that_cannot_be)
{
    net t = open_net((sp_graph_opt){ 0 });

    sp_weight(t.g, "w.weight", (int[]){ 5, 252, 0 }, (sp_init){ 0 });
    sp_linear(t.g, "layer", t.x,
              (sp_linear_opt){ .out = 5,
                               .rank = bad_linears[_i].rank,
                               .tied = bad_linears[_i].tied });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_msg(strstr(sp_last_error(), bad_linears[_i].says) != NULL, "%s",
                  sp_last_error());
    close_net(&t);
}
END_TEST

/* Factors u {u_rows, 8} and v {v_rows, columns} of `whole`, after those of w,
 * which are a {2, 8} and b {6, 2}. */
static const struct {
    int u_rows, v_rows, columns;
    const char *u, *v, *whole;
    sp_err error;
} bad_factors[] = {
    { 2, 6, 2, "u", "v", "x", SP_OK },
    { 4, 6, 2, "u", "v", "x", SP_OK },
    { 2, 6, 2, "a", "b", "w", SP_OK },
    { 3, 6, 2, "u", "v", "x", SP_ESHAPE },
    { 8, 6, 2, "u", "v", "x", SP_ESHAPE },
    { 1, 6, 2, "u", "v", "x", SP_ESHAPE },
    { 2, 6, 0, "u", "v", "x", SP_ESHAPE },
    { 2, 2, 8, "u", "u", "x", SP_ESHAPE },
    { 2, 6, 2, "a", "b", "x", SP_EARG },
    { 2, 6, 2, "a", "v", "w", SP_EARG },
    { 2, 6, 2, "u", "b", "w", SP_EARG },
};

START_TEST(factors_have_to_fit)
{
    net t = open_net((sp_graph_opt){ 0 });
    const int a[] = { 2, 8, 0 }, b[] = { 6, 2, 0 };
    const int u[] = { bad_factors[_i].u_rows, 8, 0 };
    const int v[] = { bad_factors[_i].v_rows, bad_factors[_i].columns, 0 };
    sp_init zero = { 0 };

    sp_factors_of(t.g, "w", sp_weight(t.g, "a", a, zero),
                  sp_weight(t.g, "b", b, zero));
    sp_factors_of(t.g, bad_factors[_i].whole,
                  sp_weight(t.g, bad_factors[_i].u, u, zero),
                  sp_weight(t.g, bad_factors[_i].v, v, zero));
    sp_output(t.g, "y", sp_relu(t.g, t.x));
    ck_assert_msg(sp_compile(t.g) == bad_factors[_i].error, "%s",
                  sp_last_error());
    close_net(&t);
}
END_TEST

START_TEST(a_name_stands_for_one)
{
    net t = open_net((sp_graph_opt){ 0 });
    sp_param *p = sp_weight(t.g, "p", (int[]){ 3, 0 }, (sp_init){ 0 });

    sp_stands_for(t.g, "q", p);
    sp_stands_for(t.g, "q", p);
    ck_assert_str_eq(p->whole, "q");
    sp_stands_for(t.g, "r", p);
    sp_output(t.g, "y", sp_relu(t.g, t.x));
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "belongs to q"));
    close_net(&t);
}
END_TEST

START_TEST(names_have_an_end)
{
    char name[400] = "";
    net t = open_net((sp_graph_opt){ 0 });

    memset(name, 'n', sizeof name - 1);
    sp_linear(t.g, name, t.x, (sp_linear_opt){ .out = 5, .rank = 2 });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    close_net(&t);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("lowrank");
    TCase *tc = tcase_create("lowrank");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, a_list_has_whole_parts_of_names, 0, COUNT(lists));
    tcase_add_loop_test(tc, a_convolution_becomes_two, 0, 2);
    tcase_add_test(tc, a_point_keeps_all_pixels_for_its_second_half);
    tcase_add_test(tc, a_linear_layer_becomes_two);
    tcase_add_loop_test(tc, the_rule_is_asked_by_full_names, 0, 3);
    tcase_add_test(tc, programs_share_their_factors);
    tcase_add_test(tc, a_norm_between_the_factors_of_a_convolution);
    tcase_add_loop_test(tc, products_start_as_spread_as_the_layer, 0, 3);
    tcase_add_loop_test(tc, ranks_of_convolutions_that_cannot_be, 0,
                        COUNT(bad_convs));
    tcase_add_loop_test(tc, ranks_of_linear_layers_that_cannot_be, 0,
                        COUNT(bad_linears));
    tcase_add_loop_test(tc, factors_have_to_fit, 0, COUNT(bad_factors));
    tcase_add_test(tc, a_name_stands_for_one);
    tcase_add_test(tc, names_have_an_end);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
