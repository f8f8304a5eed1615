/* The matrix product operator: values by hand, PyTorch's order of flattening,
 * and what it says about weights that do not fit. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
    sp_param *w, *b;
    sp_err err;
} net;

static net open_net(sp_shape x, const int dims[2], int biases, sp_graph_opt opt)
{
    static const sp_init zero = { SP_CONSTANT, 0 };
    net t = { .p = sp_params_new() };

    opt.train = true;
    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", x, SP_F32);
    t.w = sp_weight(t.g, "w", (int[]){ dims[0], dims[1], 0 }, zero);
    t.b = biases ? sp_weight(t.g, "b", (int[]){ biases, 0 }, zero) : NULL;
    t.y = sp_matmul(t.g, "fc", t.x, t.w, t.b);
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss", sp_project(t.g, t.y));
    t.err = sp_compile(t.g);
    if (t.err == SP_OK)
        sp_params_init(t.p, 1);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void copy(float *to, const float *from, int count)
{
    memcpy(to, from, sizeof *to * (size_t)count);
}

static void expect(const float *got, const float *values, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_float_eq(got[i], values[i]);
}

/* Two rows (1 2 3), (4 5 6) times two filters, and their gradients. */
START_TEST(by_hand)
{
    sp_run r = { .n = 2, .t = 1, .train = true, .weight = 1 };
    net t = open_net((sp_shape){ .n = 2, .c = 3 }, (int[]){ 2, 3 }, 2,
                     (sp_graph_opt){ .reference = _i, .input_grads = true });

    ck_assert_int_eq(t.err, SP_OK);
    copy(t.x->data, (float[]){ 1, 2, 3, 4, 5, 6 }, 6);
    copy(t.w->value, (float[]){ 1, 0, -1, 2, 1, 0.5f }, 6);
    copy(t.b->value, (float[]){ 10, 20 }, 2);
    sp_forward(t.g, &r);
    expect(t.y->data, (float[]){ 8, 25.5f, 8, 36 }, 4);
    sp_backward(t.g, &r, NULL, NULL);
    /* The loss has the same dy for both rows: half of db. */
    float dy[] = { t.b->grad[0] / 2, t.b->grad[1] / 2 };
    const float *dx = t.x->grad;
    ck_assert(dy[0] != 0 && dy[1] != 0 && dy[0] != dy[1]);
    for (int o = 0; o < 2; o++)
        for (int k = 0; k < 3; k++)
            ck_assert_float_eq_tol(t.w->grad[o * 3 + k],
                                   dy[o] * (float)(5 + 2 * k), 1e-5f);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq_tol(
            dx[i], dy[0] * t.w->value[i % 3] + dy[1] * t.w->value[3 + i % 3],
            1e-6f);
    close_net(&t);
}
END_TEST

/* PyTorch flattens an image channel by channel: input k = (c*H + y)*W + x. */
START_TEST(flattening_is_pytorchs)
{
    enum { H = 2, W = 3, C = 4, K = H * W * C };
    sp_run r = { .n = 1, .t = 1, .train = true };
    net t = open_net((sp_shape){ .h = H, .w = W, .c = C }, (int[]){ 1, K }, 0,
                     (sp_graph_opt){ .reference = _i });

    ck_assert_int_eq(t.err, SP_OK);
    for (int k = 0; k < K; k++)
        t.w->value[k] = (float)k;
    for (int c = 0; c < C; c++)
        for (int q = 0; q < H * W; q++) {
            float *x = t.x->data;
            memset(x, 0, sizeof *x * K);
            x[q * C + c] = 1;
            sp_forward(t.g, &r);
            expect(t.y->data, (float[]){ (float)(c * H * W + q) }, 1);
        }
    ck_assert_double_eq(sp_graph_macs(t.g), K);
    close_net(&t);
}
END_TEST

/* Rows of all time steps; those beyond the run's extents stay out. */
START_TEST(steps_are_rows)
{
    sp_run r = { .n = 2, .t = 2, .train = true, .weight = 1 };
    net t = open_net((sp_shape){ .t = 3, .n = 5, .c = 2 }, (int[]){ 1, 2 }, 1,
                     (sp_graph_opt){ .reference = _i });

    ck_assert_int_eq(t.err, SP_OK);
    ck_assert(t.y->shape.t == 3 && t.y->shape.n == 5 && t.y->shape.c == 1);
    copy(t.x->data, (float[]){ 1, 2, 3, 4, 5, 6, 7, 8, 1e9f, 1e9f }, 10);
    copy(t.w->value, (float[]){ 1, 10 }, 2);
    sp_forward(t.g, &r);
    expect(t.y->data, (float[]){ 21, 43, 65, 87 }, 4);
    sp_backward(t.g, &r, NULL, NULL);
    /* dy is the same for the four rows: dw = dy (1+3+5+7, 2+4+6+8). */
    ck_assert_float_ne(t.b->grad[0], 0);
    ck_assert_float_eq_tol(t.w->grad[0], 4 * t.b->grad[0], 1e-5f);
    ck_assert_float_eq_tol(t.w->grad[1], 5 * t.b->grad[0], 1e-5f);
    close_net(&t);
}
END_TEST

START_TEST(mistakes_are_named)
{
    sp_shape s = { .n = 2, .h = 2, .w = 3, .c = 4 };

    for (int i = 0; i < 2; i++) {
        net t = open_net(s, (int[]){ 5, i ? 24 : 23 }, i ? 4 : 5,
                         (sp_graph_opt){ 0 });
        ck_assert_int_eq(t.err, SP_ESHAPE);
        ck_assert_ptr_nonnull(strstr(sp_last_error(), "fc"));
        ck_assert_ptr_nonnull(strstr(sp_last_error(), i ? "bias of 4" : "23"));
        close_net(&t);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("matmul");
    TCase *tc = tcase_create("matmul");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, by_hand, 0, 2);
    tcase_add_loop_test(tc, flattening_is_pytorchs, 0, 2);
    tcase_add_loop_test(tc, steps_are_rows, 0, 2);
    tcase_add_test(tc, mistakes_are_named);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
