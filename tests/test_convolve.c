/* The convolution operator: values that can be worked out by hand, shapes,
 * short batches, and what it says about settings that do not fit. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"

/* A convolution under a loss, compiled. */
typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
    sp_param *w, *b;
    sp_err err;
} net;

static net open_net(sp_shape x, const int dims[4], sp_conv_geometry o,
                    sp_graph_opt opt)
{
    static const sp_init zero = { SP_CONSTANT, 0 };
    net t = { .p = sp_params_new() };

    opt.train = true;
    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", x, SP_F32);
    t.w = sp_weight(t.g, "w", dims, zero);
    t.b = sp_weight(t.g, "b", (int[]){ dims[0], 0 }, zero);
    t.y = sp_convolve(t.g, "conv", t.x, t.w, t.b, o);
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss", sp_project(t.g, t.y));
    t.err = sp_compile(t.g);
    return t;
}

static net open_good(sp_shape x, const int dims[4], sp_conv_geometry o,
                     sp_graph_opt opt)
{
    net t = open_net(x, dims, o, opt);

    ck_assert_msg(t.err == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 1);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void expect(const sp_tensor *y, const float *values, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_float_eq(((const float *)y->data)[i], values[i]);
}

static void count_up(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i + 1);
}

static void fill(float *p, size_t n, float v)
{
    for (size_t i = 0; i < n; i++)
        p[i] = v;
}

/* Sums over the 3 x 3 neighbours of 1 2 3 / 4 5 6 / 7 8 9, and bias 100. */
START_TEST(sums_of_neighbours)
{
    static const float all[] = { 112, 121, 116, 127, 145, 133, 124, 139, 128 };
    static const float corners[] = { 112, 116, 124, 128 };
    int dims[] = { 1, 1, 3, 3 };
    sp_run r = { .n = 1, .t = 1, .train = true };

    for (int stride = 1; stride <= 2; stride++) {
        net t = open_good((sp_shape){ .h = 3, .w = 3 }, dims,
                          (sp_conv_geometry){ .pad = 1, .stride = stride },
                          (sp_graph_opt){ .reference = _i });
        count_up(t.x->data, 9);
        fill(t.w->value, 9, 1);
        t.b->value[0] = 100;
        sp_forward(t.g, &r);
        expect(t.y, stride == 1 ? all : corners, stride == 1 ? 9 : 4);
        close_net(&t);
    }
}
END_TEST

/* Weights and channels in their places: w[o][i][a][b] = 1000 o + 100 i + 10 a
 * + b on an image that is 1 at one pixel of one channel. */
START_TEST(weights_are_in_pytorchs_order)
{
    int dims[] = { 2, 3, 2, 2 };
    sp_run r = { .n = 1, .t = 1, .train = true };
    net t =
        open_good((sp_shape){ .h = 2, .w = 2, .c = 3 }, dims,
                  (sp_conv_geometry){ 0 }, (sp_graph_opt){ .reference = _i });

    for (int k = 0; k < 24; k++)
        t.w->value[k] = (float)(1000 * (k / 12) + 100 * (k / 4 % 3) +
                                10 * (k / 2 % 2) + k % 2);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 2; x++)
            for (int c = 0; c < 3; c++) {
                float *image = t.x->data, v = (float)(100 * c + 10 * y + x);
                fill(image, 12, 0);
                image[(y * 2 + x) * 3 + c] = 1;
                sp_forward(t.g, &r);
                expect(t.y, (float[]){ v, 1000 + v }, 2);
            }
    close_net(&t);
}
END_TEST

/* Each group sees its own channels: two of one, scaled by 2 and 3. */
START_TEST(groups_are_apart)
{
    int dims[] = { 2, 1, 1, 1 };
    sp_run r = { .n = 1, .t = 1, .train = true };
    net t = open_good((sp_shape){ .w = 2, .c = 2 }, dims,
                      (sp_conv_geometry){ .groups = 2 },
                      (sp_graph_opt){ .reference = _i });

    count_up(t.x->data, 4);
    t.w->value[0] = 2;
    t.w->value[1] = 3;
    sp_forward(t.g, &r);
    expect(t.y, (float[]){ 2, 6, 6, 12 }, 4);
    close_net(&t);
}
END_TEST

START_TEST(shapes_round_down)
{
    static const struct {
        int h, w, kernel, stride, pad, oh, ow;
    } at[] = {
        { 32, 32, 3, 1, 1, 32, 32 },     { 32, 31, 3, 2, 1, 16, 16 },
        { 224, 225, 7, 2, 3, 112, 113 }, { 5, 9, 1, 2, 0, 3, 5 },
        { 4, 5, 4, 1, 0, 1, 2 },         { 1, 1, 5, 3, 2, 1, 1 },
    };

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        int k = at[i].kernel, dims[] = { 6, 2, k, k };
        net t = open_net(
            (sp_shape){ .t = 2, .n = 3, .h = at[i].h, .w = at[i].w, .c = 4 },
            dims,
            (sp_conv_geometry){
                .stride = at[i].stride, .pad = at[i].pad, .groups = 2 },
            (sp_graph_opt){ .no_memory = true });
        sp_shape s = t.y->shape;
        ck_assert_int_eq(t.err, SP_OK);
        ck_assert(s.t == 2 && s.n == 3 && s.c == 6);
        ck_assert_int_eq(s.h, at[i].oh);
        ck_assert_int_eq(s.w, at[i].ow);
        ck_assert_double_eq(sp_graph_macs(t.g),
                            (double)at[i].oh * at[i].ow * 6 * k * k * 2);
        close_net(&t);
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
    static const struct {
        int dims[4];
        sp_conv_geometry o;
        sp_err err;
        const char *says;
    } at[] = {
        { { 4, 2, 3, 3 }, { .groups = 2 }, SP_ESHAPE, "6 inputs" },
        { { 4, 6, 3, 3 }, { .groups = 4 }, SP_ESHAPE, "4 groups" },
        { { 5, 3, 3, 3 }, { .groups = 2 }, SP_ESHAPE, "5 outputs" },
        { { 4, 6, 9, 3 }, { .pad = 1 }, SP_ESHAPE, "9 x 3 kernel" },
        { { 4, 6, 3, 3 }, { .stride = -1 }, SP_EARG, "stride -1" },
        { { 4, 6, 3, 3 }, { .pad = 2147483647 }, SP_EARG, "pad 2147483647" },
        { { 4, 6, 3, 3 }, { .groups = -6 }, SP_EARG, "groups -6" },
        { { 4, 6, 3, 3 }, { .pad = 1000000 }, SP_ESHAPE, "too large" },
        { { 4, 6, 3, 0 }, { 0 }, SP_ESHAPE, "out, in, kh, kw" },
    };

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        net t = open_net((sp_shape){ .n = 2, .h = 5, .w = 5, .c = 6 },
                         at[i].dims, at[i].o, (sp_graph_opt){ 0 });
        ck_assert_int_eq(t.err, at[i].err);
        ck_assert_msg(strstr(sp_last_error(), at[i].says) &&
                          strstr(sp_last_error(), "conv"),
                      "%zu: %s", i, sp_last_error());
        close_net(&t);
    }
}
END_TEST

/* Gradients of the first rows of a larger program are those of a program for
 * as many, by tiles and by the reference; an image gets no gradient. */
START_TEST(short_batches)
{
    int dims[] = { 18, 5, 3, 3 };
    sp_shape s = { .t = 2, .n = 9, .h = 6, .w = 5, .c = 5 };
    sp_conv_geometry o = { .pad = 1, .stride = 2 };
    sp_run r = { .n = 2, .t = 1, .train = true, .weight = 1 };
    net wide = open_good(s, dims, o, (sp_graph_opt){ .reference = _i });
    s.t = 1;
    s.n = 2;
    net tight = open_good(s, dims, o, (sp_graph_opt){ .reference = _i });

    ck_assert_ptr_null(wide.x->grad);
    for (int i = 0; i < 2; i++) {
        net *t = i ? &tight : &wide;
        count_up(t->x->data, 300);
        fill(t->w->value, t->w->count, 0.5f);
        sp_forward(t->g, &r);
        sp_backward(t->g, &r, NULL, NULL);
    }
    ck_assert_mem_eq(wide.y->data, tight.y->data, 2 * 9 * 18 * sizeof(float));
    ck_assert_mem_eq(wide.w->grad, tight.w->grad,
                     wide.w->count * sizeof(float));
    ck_assert_mem_eq(wide.b->grad, tight.b->grad, 18 * sizeof(float));
    close_net(&wide);
    close_net(&tight);
}
END_TEST

/* With `add`, gradients of micro-batches are summed; without rows, nothing
 * comes in. */
START_TEST(gradients_accumulate)
{
    int dims[] = { 2, 1, 3, 3 };
    sp_run r = { .n = 2, .t = 1, .train = true, .weight = 1 };
    net t = open_good((sp_shape){ .n = 2, .h = 4, .w = 4 }, dims,
                      (sp_conv_geometry){ .pad = 1 },
                      (sp_graph_opt){ .reference = _i });
    float once[18];

    count_up(t.x->data, 32);
    sp_forward(t.g, &r);
    sp_backward(t.g, &r, NULL, NULL);
    memcpy(once, t.w->grad, sizeof once);
    r.add = true;
    sp_backward(t.g, &r, NULL, NULL);
    for (int i = 0; i < 18; i++)
        ck_assert_float_eq_tol(t.w->grad[i], 2 * once[i], 1e-3f);
    memcpy(once, t.w->grad, sizeof once);
    r.n = 0;
    sp_forward(t.g, &r);
    sp_backward(t.g, &r, NULL, NULL);
    ck_assert_mem_eq(t.w->grad, once, sizeof once);
    r.add = false;
    sp_backward(t.g, &r, NULL, NULL);
    for (int i = 0; i < 18; i++)
        ck_assert_float_eq(t.w->grad[i], 0);
    close_net(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("convolve");
    TCase *tc = tcase_create("convolve");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, sums_of_neighbours, 0, 2);
    tcase_add_loop_test(tc, weights_are_in_pytorchs_order, 0, 2);
    tcase_add_loop_test(tc, groups_are_apart, 0, 2);
    tcase_add_test(tc, shapes_round_down);
    tcase_add_test(tc, mistakes_are_named);
    tcase_add_loop_test(tc, short_batches, 0, 2);
    tcase_add_loop_test(tc, gradients_accumulate, 0, 2);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
