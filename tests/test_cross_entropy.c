/* Softmax cross-entropy against PyTorch's float64 values, sizes that vectors
 * do not divide, and extreme logits. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "sprat/nn.h"
#include "sprat/random.h"

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *label, *y;
} net;

static net open_net(int rows, int classes, float smoothing, const char *isa)
{
    net t = { .p = sp_params_new() };

    t.g = sp_graph_new(
        t.p, (sp_graph_opt){ .train = true, .input_grads = true, .isa = isa });
    t.x = sp_input(t.g, "x", (sp_shape){ .n = rows, .c = classes }, SP_F32);
    t.label = sp_input(t.g, "label", (sp_shape){ .n = rows }, SP_I32);
    t.y = sp_cross_entropy(t.g, t.x, t.label, smoothing);
    sp_output(t.g, "loss", t.y);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void step(net *t, double weight)
{
    sp_run run = {
        .n = t->x->shape.n, .t = 1, .train = true, .weight = weight
    };

    sp_forward(t->g, &run);
    sp_backward(t->g, &run, NULL, NULL);
}

/* torch.nn.functional.cross_entropy in float64; the loss is half the sum. */
static const struct {
    float smoothing;
    double y[2], dx[6];
} torch[] = {
    { 0,
      { 0.24131130, 3.07694664 },
      { 0.08764520, 0.01955629, -0.10720148, 0.46296963, -0.47695010,
        0.01398047 } },
    { 0.1f,
      { 0.39131130, 2.99361331 },
      { 0.07097853, 0.00288962, -0.07386815, 0.44630296, -0.44361677,
        -0.00268620 } },
};

START_TEST(agrees_with_pytorch)
{
    const float x[] = { 0.5f, -1, 2, 3, 0, -0.5f };
    const int32_t label[] = { 2, 1 };
    net t = open_net(2, 3, torch[_i].smoothing, NULL);

    memcpy(t.x->data, x, sizeof x);
    memcpy(t.label->data, label, sizeof label);
    step(&t, 0.5);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol((double)((float *)t.y->data)[i], torch[_i].y[i],
                                1e-6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol((double)((float *)t.x->grad)[i],
                                torch[_i].dx[i], 1e-7);
    close_net(&t);
}
END_TEST

/* One row by the formula, in double. */
static void check_row(const net *t, int i, double e)
{
    int c = t->x->shape.c, hit = ((int32_t *)t->label->data)[i];
    const float *x = (const float *)t->x->data + i * c;
    const float *dx = (const float *)t->x->grad + i * c;
    double sum = 0, want = 0;

    for (int j = 0; j < c; j++)
        sum += exp((double)x[j]);
    for (int j = 0; j < c; j++) {
        double target = (j == hit ? 1 - e : 0) + e / c;
        want -= target * ((double)x[j] - log(sum));
        ck_assert_double_eq_tol((double)dx[j], exp((double)x[j]) / sum - target,
                                3e-7);
    }
    ck_assert_double_eq_tol((double)((float *)t->y->data)[i], want,
                            1e-6 * (1 + want));
}

START_TEST(any_number_of_classes_agrees_with_double)
{
    static const int classes[] = { 1, 2, 10, 33, 1001 };
    int c = classes[_i];

    for (int k = 0; sp_kernels_at(k); k++) {
        net t = open_net(3, c, 0.2f, sp_kernels_isa(sp_kernels_at(k)));
        for (int i = 0; i < 3 * c; i++) {
            uint32_t word[4];
            sp_random(1, SP_FOR_TEST, 0, (uint64_t)i, word);
            ((float *)t.x->data)[i] = 4 * sp_normal(word[0], word[1]);
        }
        for (int i = 0; i < 3; i++)
            ((int32_t *)t.label->data)[i] = i * 7 % c;
        step(&t, 1);
        for (int i = 0; i < 3; i++)
            check_row(&t, i, (double)0.2f);
        close_net(&t);
    }
}
END_TEST

/* e^1000 is beyond any float; the loss is not. */
START_TEST(huge_logits_are_stable)
{
    net t = open_net(3, 2, 0, NULL);
    const float x[] = { 1000, 0, -1000, 1000, -INFINITY, 3 };
    const int32_t label[] = { 0, 0, 1 };

    memcpy(t.x->data, x, sizeof x);
    memcpy(t.label->data, label, sizeof label);
    step(&t, 1);
    ck_assert_float_eq(((float *)t.y->data)[0], 0);
    ck_assert_float_eq(((float *)t.y->data)[1], 2000);
    ck_assert_float_eq(((float *)t.y->data)[2], 0);
    ck_assert_float_eq(((float *)t.x->grad)[2], -1);
    ck_assert_float_eq(((float *)t.x->grad)[3], 1);
    ck_assert_float_eq(((float *)t.x->grad)[4], 0);
    close_net(&t);
}
END_TEST

START_TEST(what_is_not_a_number_stays)
{
    for (int at = 0; at < 20; at++) {
        net t = open_net(1, 20, 0, NULL);
        ((float *)t.x->data)[at] = NAN;
        step(&t, 1);
        ck_assert_float_nan(((float *)t.y->data)[0]);
        close_net(&t);
    }
}
END_TEST

START_TEST(inputs_that_do_not_fit_are_refused)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 2, .c = 3 }, SP_F32);
    sp_tensor *label = sp_input(g, "l", (sp_shape){ .n = 3 }, SP_I32);

    sp_cross_entropy(g, x, label, 0);
    ck_assert_int_eq(sp_compile(g), SP_ESHAPE);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cross_entropy");
    TCase *tc = tcase_create("cross_entropy");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, agrees_with_pytorch, 0, 2);
    tcase_add_loop_test(tc, any_number_of_classes_agrees_with_double, 0, 5);
    tcase_add_test(tc, huge_logits_are_stable);
    tcase_add_test(tc, what_is_not_a_number_stays);
    tcase_add_test(tc, inputs_that_do_not_fit_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
