/* Layers: what they call their parameters, the sizes and starts these get, and
 * the defaults of their options. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
} net;

static net open_net(sp_shape s)
{
    net t = { .p = sp_params_new() };

    t.g = sp_graph_new(t.p, (sp_graph_opt){ 0 });
    t.x = sp_input(t.g, "x", s, SP_F32);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static const sp_param *find(const net *t, const char *name)
{
    const sp_param *p = sp_params_find(t->p, name);

    ck_assert_msg(p != NULL, "no %s", name);
    return p;
}

static const sp_shape image = { .n = 2, .h = 9, .w = 7, .c = 4 };

START_TEST(conv_keeps_the_size_by_default)
{
    net t = open_net(image);
    sp_tensor *y = sp_conv(t.g, "c", t.x, (sp_conv_opt){ .out = 6 });
    const sp_param *w = find(&t, "c.weight");

    ck_assert_int_eq(y->shape.h, 9);
    ck_assert_int_eq(y->shape.w, 7);
    ck_assert_int_eq(y->shape.c, 6);
    ck_assert_int_eq(w->ndim, 4);
    ck_assert_int_eq(w->dims[0], 6);
    ck_assert_int_eq(w->dims[1], 4);
    ck_assert_int_eq(w->dims[2], 3);
    ck_assert_int_eq(w->init.kind, SP_NORMAL);
    ck_assert_float_eq_tol(w->init.a, sqrtf(2.0f / (9 * 6)), 1e-7f);
    ck_assert_ptr_null(sp_params_find(t.p, "c.bias"));
    close_net(&t);
}
END_TEST

START_TEST(conv_takes_its_options)
{
    net t = open_net(image);
    sp_tensor *y = sp_conv(t.g, "c", t.x,
                           (sp_conv_opt){ .out = 6,
                                          .kernel = 5,
                                          .stride = 2,
                                          .pad = SP_NO_PAD,
                                          .groups = 2,
                                          .bias = true });

    ck_assert_int_eq(y->shape.h, 3);
    ck_assert_int_eq(y->shape.w, 2);
    ck_assert_int_eq(find(&t, "c.weight")->dims[1], 2);
    ck_assert_int_eq(find(&t, "c.weight")->dims[3], 5);
    ck_assert_int_eq(find(&t, "c.bias")->dims[0], 6);
    ck_assert_float_eq(find(&t, "c.bias")->init.a, 0);
    close_net(&t);
}
END_TEST

START_TEST(linear_starts_as_pytorch_does)
{
    net t = open_net(image);
    sp_tensor *y = sp_linear(t.g, "fc", t.x, (sp_linear_opt){ .out = 5 });
    const sp_param *w = find(&t, "fc.weight"), *b = find(&t, "fc.bias");

    ck_assert_int_eq(y->shape.h * y->shape.w, 1);
    ck_assert_int_eq(y->shape.c, 5);
    ck_assert_int_eq(w->ndim, 2);
    ck_assert_int_eq(w->dims[0], 5);
    ck_assert_int_eq(w->dims[1], 9 * 7 * 4);
    ck_assert_int_eq(w->init.kind, SP_UNIFORM);
    ck_assert_float_eq_tol(w->init.a, 1 / sqrtf(9 * 7 * 4), 1e-7f);
    ck_assert_int_eq(b->init.kind, SP_UNIFORM);
    ck_assert_float_eq(b->init.a, w->init.a);
    close_net(&t);
}
END_TEST

START_TEST(linear_takes_its_options)
{
    net t = open_net((sp_shape){ .n = 1, .c = 8 });

    sp_linear(t.g, "a", t.x, (sp_linear_opt){ .out = 2, .no_bias = true });
    sp_linear(t.g, "b", t.x, (sp_linear_opt){ .out = 2, .normal = true });
    sp_linear(t.g, "c", t.x,
              (sp_linear_opt){ .out = 2, .bound = 0.1f, .zero_bias = true });
    ck_assert_ptr_null(sp_params_find(t.p, "a.bias"));
    ck_assert_int_eq(find(&t, "b.weight")->init.kind, SP_NORMAL);
    ck_assert_float_eq_tol(find(&t, "b.weight")->init.a, 0.5f, 1e-7f);
    ck_assert_int_eq(find(&t, "b.bias")->init.kind, SP_CONSTANT);
    ck_assert_float_eq(find(&t, "c.weight")->init.a, 0.1f);
    ck_assert_int_eq(find(&t, "c.bias")->init.kind, SP_CONSTANT);
    close_net(&t);
}
END_TEST

START_TEST(an_embedding_is_one_table)
{
    net t = open_net(image);
    sp_tensor *x = sp_input(t.g, "token", (sp_shape){ .t = 3, .n = 2 }, SP_I32);
    sp_tensor *y =
        sp_embedding(t.g, "e", x, (sp_embedding_opt){ .rows = 9, .out = 5 });
    const sp_param *w = find(&t, "e.weight");

    ck_assert_int_eq(y->shape.t, 3);
    ck_assert_int_eq(y->shape.n, 2);
    ck_assert_int_eq(y->shape.c, 5);
    ck_assert_int_eq(w->dims[0], 9);
    ck_assert_int_eq(w->dims[1], 5);
    ck_assert_int_eq(w->init.kind, SP_UNIFORM);
    ck_assert_float_eq(w->init.a, 0.1f);
    sp_embedding(t.g, "f", x,
                 (sp_embedding_opt){ .rows = 9, .out = 5, .bound = 1.0f });
    ck_assert_float_eq(find(&t, "f.weight")->init.a, 1);
    sp_embedding(t.g, "g", x, (sp_embedding_opt){ .rows = 9 });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_ptr_nonnull(
        strstr(sp_last_error(), "g (embedding): 9 rows of 0"));
    close_net(&t);
}
END_TEST

/* A decoder tied to an embedding has the embedding's weights and a bias of its
 * own, and the gradient is the sum of both uses'. */
START_TEST(a_linear_layer_may_be_tied)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
    sp_tensor *x = sp_input(g, "token", (sp_shape){ .n = 4 }, SP_I32);
    sp_tensor *label = sp_input(g, "label", (sp_shape){ .n = 4 }, SP_I32);
    sp_run run = { .n = 4, .t = 1, .train = true, .weight = 0.25 };
    sp_gradcheck_result worst;

    sp_push(g, "lm");
    sp_tensor *e = sp_embedding(
        g, "e", x, (sp_embedding_opt){ .rows = 7, .out = 5, .bound = 1.0f });
    sp_tensor *y = sp_linear(
        g, "fc", e, (sp_linear_opt){ .out = 7, .tied = "lm.e.weight" });
    sp_pop(g);
    sp_output(g, "loss", sp_cross_entropy(g, y, label, 0));
    ck_assert_msg(sp_compile(g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(p), 7 * 5 + 7);
    ck_assert_ptr_null(sp_params_find(p, "lm.fc.weight"));
    ck_assert_ptr_nonnull(sp_params_find(p, "lm.fc.bias"));
    sp_params_init(p, 2);
    memcpy(x->data, (int32_t[]){ 3, 0, 3, 6 }, 4 * sizeof(int32_t));
    memcpy(label->data, (int32_t[]){ 0, 5, 1, 6 }, 4 * sizeof(int32_t));
    sp_gradcheck(g, &run, 4e-3, 35, &worst);
    ck_assert_uint_eq(worst.checked, 7 * 5 + 7);
    ck_assert_double_lt(worst.error, 1e-3);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

static const struct {
    const char *to;
    int out;
    sp_err error;
    const char *says;
} bad_ties[] = {
    { "e.weigt", 9, SP_EARG, "no trained parameter e.weigt" },
    { "bn.running_mean", 9, SP_EARG, "no trained parameter bn.running_mean" },
    { "e.weight", 8, SP_ESHAPE, "it must be 8 x 4" },
    { "bn.weight", 4, SP_ESHAPE, "bn.weight cannot be tied" },
};

START_TEST(bad_ties_are_refused)
{
    net t = open_net((sp_shape){ .n = 2, .c = 4 });
    sp_tensor *x = sp_input(t.g, "token", (sp_shape){ .n = 2 }, SP_I32);

    sp_embedding(t.g, "e", x, (sp_embedding_opt){ .rows = 9, .out = 4 });
    sp_norm(t.g, "bn", t.x, (sp_norm_opt){ 0 });
    sp_linear(
        t.g, "fc", t.x,
        (sp_linear_opt){ .out = bad_ties[_i].out, .tied = bad_ties[_i].to });
    ck_assert_int_eq(sp_compile(t.g), bad_ties[_i].error);
    ck_assert_msg(strstr(sp_last_error(), bad_ties[_i].says) != NULL, "%s",
                  sp_last_error());
    close_net(&t);
}
END_TEST

/* Its weights start as those it is tied to, so that no other start is asked. */
START_TEST(a_tied_layer_cannot_be_normal)
{
    net t = open_net((sp_shape){ .n = 2, .c = 4 });
    sp_tensor *x = sp_input(t.g, "token", (sp_shape){ .n = 2 }, SP_I32);

    sp_embedding(t.g, "e", x, (sp_embedding_opt){ .rows = 9, .out = 4 });
    sp_linear(t.g, "fc", t.x,
              (sp_linear_opt){ .out = 9, .tied = "e.weight", .normal = true });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "is tied to e.weight"));
    close_net(&t);
}
END_TEST

START_TEST(norm_has_two_parameters_and_two_buffers)
{
    net t = open_net(image);

    sp_push(t.g, "layer1");
    sp_norm(t.g, "bn", t.x, (sp_norm_opt){ 0 });
    sp_pop(t.g);
    ck_assert_float_eq(find(&t, "layer1.bn.weight")->init.a, 1);
    ck_assert_float_eq(find(&t, "layer1.bn.bias")->init.a, 0);
    ck_assert_float_eq(find(&t, "layer1.bn.running_mean")->init.a, 0);
    ck_assert_float_eq(find(&t, "layer1.bn.running_var")->init.a, 1);
    ck_assert(find(&t, "layer1.bn.running_var")->buffer);
    ck_assert_uint_eq(sp_params_count(t.p), 8);
    close_net(&t);
}
END_TEST

START_TEST(scopes_nest_and_may_have_dots)
{
    net t = open_net(image);

    sp_push(t.g, "features");
    sp_push(t.g, "denseblock1.layer1");
    sp_norm(t.g, "a", t.x, (sp_norm_opt){ 0 });
    sp_pop(t.g);
    sp_norm(t.g, "b", t.x, (sp_norm_opt){ 0 });
    sp_pop(t.g);
    sp_norm(t.g, "c", t.x, (sp_norm_opt){ 0 });
    find(&t, "features.denseblock1.layer1.a.weight");
    find(&t, "features.b.weight");
    find(&t, "c.weight");
    sp_pop(t.g);
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "without its sp_push()"));
    close_net(&t);
}
END_TEST

static const sp_conv_opt bad[] = {
    { .out = 0 },
    { .out = 5, .groups = 2 },
    { .out = 3, .groups = 3 },
    { .out = 4, .kernel = -1 },
    { .out = 4, .stride = -1 },
};

START_TEST(bad_convolutions_are_refused)
{
    net t = open_net(image);

    sp_conv(t.g, "c", t.x, bad[_i]);
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "c (conv)"));
    close_net(&t);
}
END_TEST

START_TEST(no_outputs_are_refused)
{
    net t = open_net(image);

    sp_linear(t.g, "fc", t.x, (sp_linear_opt){ .out = 0 });
    ck_assert_int_eq(sp_compile(t.g), SP_EARG);
    close_net(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nn");
    TCase *tc = tcase_create("nn");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, conv_keeps_the_size_by_default);
    tcase_add_test(tc, conv_takes_its_options);
    tcase_add_test(tc, linear_starts_as_pytorch_does);
    tcase_add_test(tc, linear_takes_its_options);
    tcase_add_test(tc, an_embedding_is_one_table);
    tcase_add_test(tc, a_linear_layer_may_be_tied);
    tcase_add_loop_test(tc, bad_ties_are_refused, 0,
                        sizeof bad_ties / sizeof *bad_ties);
    tcase_add_test(tc, a_tied_layer_cannot_be_normal);
    tcase_add_test(tc, norm_has_two_parameters_and_two_buffers);
    tcase_add_test(tc, scopes_nest_and_may_have_dots);
    tcase_add_loop_test(tc, bad_convolutions_are_refused, 0,
                        sizeof bad / sizeof *bad);
    tcase_add_test(tc, no_outputs_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
