/* Max, average and global pooling, and the subsampling shortcut. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pool.h"
#include "sprat/nn.h"
#include "sprat/op.h"

/* An evaluation program of one input. */
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

static const float *run(net *t, sp_tensor *y, const float *x)
{
    sp_run r = { .n = t->x->shape.n, .t = 1 };

    sp_output(t->g, "y", y);
    ck_assert_msg(sp_compile(t->g) == SP_OK, "%s", sp_last_error());
    memcpy(t->x->data, x, sp_count(t->x->shape) * sizeof *x);
    sp_forward(t->g, &r);
    return y->data;
}

static const float nine[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static const sp_shape square = { .n = 1, .h = 3, .w = 3, .c = 1 };

START_TEST(padding_counts_in_averages)
{
    net t = open_net(square);
    const float *y =
        run(&t,
            sp_avg_pool(t.g, t.x,
                        (sp_pool_opt){ .kernel = 3, .stride = 2, .pad = 1 }),
            nine);

    ck_assert_float_eq_tol(y[0], (1 + 2 + 4 + 5) / 9.0f, 1e-6f);
    ck_assert_float_eq_tol(y[1], (2 + 3 + 5 + 6) / 9.0f, 1e-6f);
    ck_assert_float_eq_tol(y[2], (4 + 5 + 7 + 8) / 9.0f, 1e-6f);
    ck_assert_float_eq_tol(y[3], (5 + 6 + 8 + 9) / 9.0f, 1e-6f);
    close_net(&t);
}
END_TEST

START_TEST(padding_is_never_the_largest)
{
    const float x[] = { -1, -2, -3, -4, -5, -6, -7, -8, -9 };
    const float want[] = { -1, -2, -4, -5 };
    net t = open_net(square);
    const float *y =
        run(&t,
            sp_max_pool(t.g, t.x,
                        (sp_pool_opt){ .kernel = 3, .stride = 2, .pad = 1 }),
            x);

    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(y[i], want[i]);
    close_net(&t);
}
END_TEST

START_TEST(windows_end_within_the_image)
{
    net t = open_net(square);
    sp_tensor *y = sp_max_pool(t.g, t.x, (sp_pool_opt){ .kernel = 2 });

    ck_assert_float_eq(run(&t, y, nine)[0], 5);
    ck_assert_int_eq(y->shape.h, 1);
    ck_assert_int_eq(y->shape.w, 1);
    close_net(&t);
}
END_TEST

START_TEST(what_is_not_a_number_is_the_largest)
{
    float x[9];
    net t = open_net(square);

    memcpy(x, nine, sizeof x);
    x[1] = NAN;
    ck_assert_float_nan(
        run(&t, sp_max_pool(t.g, t.x, (sp_pool_opt){ .kernel = 3 }), x)[0]);
    close_net(&t);
}
END_TEST

enum { H = 5, C = 21 };

/* Equal pixels: the gradient goes to the first in order of rows; windows that
 * overlap there add up. */
START_TEST(ties_go_to_the_first)
{
    const sp_kernels *k = sp_kernels_at(_i);
    float x[H * H * C], y[4 * C], dy[4 * C], dx[H * H * C];
    uint8_t tap[4 * C];
    sp_pool_how how = { k, 1, 1, { H, H, C, 2, 2, 3, 2, 0 } };

    for (int i = 0; i < H * H * C; i++)
        x[i] = 7;
    for (int i = 0; i < 4 * C; i++)
        dy[i] = (float)(i / C + 1);
    sp_max_pool_forward(&how, x, y, tap);
    memset(dx, -1, sizeof dx); /* NaN: must not be read */
    sp_max_pool_backward(&how, dy, tap, dx, 0);
    for (int p = 0; p < H * H; p++)
        for (int c = 0; c < C; c++) {
            int row = p / H, col = p % H;
            bool corner = row % 2 == 0 && col % 2 == 0 && row < 4 && col < 4;
            float want = corner ? (float)(row + col / 2 + 1) : 0;
            ck_assert_float_eq(dx[p * C + c], want);
        }
    /* All at the pixel that the four windows share. */
    for (int c = 0; c < C; c++)
        x[(2 * H + 2) * C + c] = 8;
    sp_max_pool_forward(&how, x, y, tap);
    sp_max_pool_backward(&how, dy, tap, dx, 0);
    sp_max_pool_backward(&how, dy, tap, dx, 1);
    for (int c = 0; c < C; c++)
        ck_assert_float_eq(dx[(2 * H + 2) * C + c], 2 * (1 + 2 + 3 + 4));
}
END_TEST

START_TEST(global_pool_is_the_mean)
{
    net t = open_net(square);

    ck_assert_float_eq(run(&t, sp_global_pool(t.g, t.x), nine)[0], 5);
    close_net(&t);
}
END_TEST

START_TEST(subsample_takes_every_second_pixel)
{
    const float want[] = { 1, 0, 3, 0, 7, 0, 9, 0 };
    net t = open_net(square);
    const float *y = run(&t, sp_subsample(t.g, t.x, 2, 2), nine);

    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(y[i], want[i]);
    close_net(&t);
}
END_TEST

static const struct {
    sp_pool_opt o;
    sp_err err;
    const char *text;
} refused[] = {
    { { .kernel = 4 }, SP_ESHAPE, "does not fit" },
    { { .kernel = 17 }, SP_EARG, "1 to 16" },
    { { .kernel = 2, .pad = 2 }, SP_EARG, "half the kernel" },
    { { .kernel = 2, .stride = -1 }, SP_EARG, "stride" },
};

START_TEST(bad_windows_are_refused)
{
    net t = open_net(square);

    sp_max_pool(t.g, t.x, refused[_i].o);
    ck_assert_int_eq(sp_compile(t.g), refused[_i].err);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), refused[_i].text));
    close_net(&t);
}
END_TEST

START_TEST(subsample_cannot_drop_channels)
{
    net t = open_net((sp_shape){ .n = 1, .h = 2, .w = 2, .c = 3 });

    sp_subsample(t.g, t.x, 1, 2);
    ck_assert_int_eq(sp_compile(t.g), SP_ESHAPE);
    close_net(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool");
    TCase *tc = tcase_create("pool");
    SRunner *r = srunner_create(s);
    int isas = 0;

    while (sp_kernels_at(isas))
        isas++;
    tcase_add_test(tc, padding_counts_in_averages);
    tcase_add_test(tc, padding_is_never_the_largest);
    tcase_add_test(tc, windows_end_within_the_image);
    tcase_add_test(tc, what_is_not_a_number_is_the_largest);
    tcase_add_loop_test(tc, ties_go_to_the_first, 0, isas);
    tcase_add_test(tc, global_pool_is_the_mean);
    tcase_add_test(tc, subsample_takes_every_second_pixel);
    tcase_add_loop_test(tc, bad_windows_are_refused, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tc, subsample_cannot_drop_channels);
    suite_add_tcase(s, tc);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
