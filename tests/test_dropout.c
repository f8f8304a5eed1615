/* Dropout: how many elements go, that a batch may be cut anywhere, that
 * backward drops what forward dropped. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"

enum { ROWS = 8, COLUMNS = 999 };

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
} net;

/* Dropout of ones, so that the result is the mask. */
static net open_net(const char *name, int t, int n, float p)
{
    net d = { .p = sp_params_new() };

    d.g =
        sp_graph_new(d.p, (sp_graph_opt){ .train = true, .input_grads = true });
    d.x =
        sp_input(d.g, "x", (sp_shape){ .t = t, .n = n, .c = COLUMNS }, SP_F32);
    d.y = sp_dropout(d.g, name, d.x, p);
    sp_output(d.g, "y", d.y);
    sp_output(d.g, "loss", sp_project(d.g, d.y));
    ck_assert_msg(sp_compile(d.g) == SP_OK, "%s", sp_last_error());
    for (size_t i = 0; i < sp_count(d.x->shape); i++)
        ((float *)d.x->data)[i] = 1;
    return d;
}

static void close_net(net *d)
{
    sp_graph_free(d->g);
    sp_params_free(d->p);
}

static sp_run whole(const net *d)
{
    return (sp_run){ .n = d->x->shape.n,
                     .t = d->x->shape.t,
                     .train = true,
                     .weight = 1,
                     .seed = 1,
                     .step = 4 };
}

static void copy_mask(net *d, sp_run run, float *mask)
{
    sp_forward(d->g, &run);
    memcpy(mask, d->y->data, (size_t)(run.t * run.n) * COLUMNS * sizeof *mask);
}

START_TEST(the_share_that_goes_is_p)
{
    static const float shares[] = { 0.1f, 0.5f, 0.8f };
    float p = shares[_i];
    net d = open_net("d", 1, ROWS, p);
    sp_run run = whole(&d);
    double count = ROWS * COLUMNS, kept = 0;

    sp_forward(d.g, &run);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float v = ((float *)d.y->data)[i];
        ck_assert(v == 0 || fabsf(v - 1 / (1 - p)) < 1e-6f);
        kept += v != 0;
    }
    /* Five standard deviations of a binomial count. */
    ck_assert_double_lt(fabs(kept - count * (1 - (double)p)),
                        5 * sqrt(count * (double)(p * (1 - p))));
    close_net(&d);
}
END_TEST

START_TEST(a_batch_may_be_cut_anywhere)
{
    static float all[2 * ROWS * COLUMNS], part[2 * 3 * COLUMNS];
    net d = open_net("d", 2, ROWS, 0.5f), e = open_net("d", 2, 3, 0.5f);
    sp_run run = whole(&d);

    copy_mask(&d, run, all);
    run = whole(&e);
    run.row = 4; /* rows 4, 5, 6 of each time step */
    copy_mask(&e, run, part);
    for (int t = 0; t < 2; t++)
        ck_assert_mem_eq(part + t * 3 * COLUMNS, all + (t * ROWS + 4) * COLUMNS,
                         3 * COLUMNS * sizeof(float));
    /* Time steps differ. */
    ck_assert_mem_ne(all, all + ROWS * COLUMNS, COLUMNS * sizeof(float));
    close_net(&d);
    close_net(&e);
}
END_TEST

START_TEST(seed_step_row_and_layer_all_matter)
{
    static float first[COLUMNS], other[COLUMNS];
    net d = open_net("d", 1, 1, 0.5f), e = open_net("e", 1, 1, 0.5f);
    sp_run run = whole(&d), changed[3] = { run, run, run };

    copy_mask(&d, run, first);
    copy_mask(&d, run, other);
    ck_assert_mem_eq(first, other, sizeof first);
    changed[0].seed++;
    changed[1].step++;
    changed[2].row++;
    for (int i = 0; i < 3; i++) {
        copy_mask(&d, changed[i], other);
        ck_assert_mem_ne(first, other, sizeof first);
    }
    copy_mask(&e, run, other);
    ck_assert_mem_ne(first, other, sizeof first);
    close_net(&d);
    close_net(&e);
}
END_TEST

/* With x = 1, y = m / (1-p), and dx = r m / (1-p) = r y. */
START_TEST(backward_drops_the_same)
{
    net d = open_net("d", 1, ROWS, 0.5f), plain = open_net("d", 1, ROWS, 0);
    sp_run run = whole(&d);

    sp_forward(d.g, &run);
    sp_backward(d.g, &run, NULL, NULL);
    sp_forward(plain.g, &run);
    sp_backward(plain.g, &run, NULL, NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ck_assert_float_eq(((float *)d.x->grad)[i],
                           ((float *)plain.x->grad)[i] *
                               ((float *)d.y->data)[i]);
    close_net(&d);
    close_net(&plain);
}
END_TEST

START_TEST(evaluation_is_the_identity)
{
    net d = open_net("d", 1, ROWS, 0.5f);
    sp_run run = whole(&d);

    run.train = false;
    sp_forward(d.g, &run);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ck_assert_float_eq(((float *)d.y->data)[i], 1);
    close_net(&d);
}
END_TEST

START_TEST(bad_probabilities_are_refused)
{
    static const float bad[] = { -0.1f, 1, NAN };
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });

    sp_dropout(g, "d", sp_input(g, "x", (sp_shape){ 0 }, SP_F32), bad[_i]);
    ck_assert_int_eq(sp_compile(g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "[0, 1)"));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dropout");
    TCase *tc = tcase_create("dropout");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, the_share_that_goes_is_p, 0, 3);
    tcase_add_test(tc, a_batch_may_be_cut_anywhere);
    tcase_add_test(tc, seed_step_row_and_layer_all_matter);
    tcase_add_test(tc, backward_drops_the_same);
    tcase_add_test(tc, evaluation_is_the_identity);
    tcase_add_loop_test(tc, bad_probabilities_are_refused, 0, 3);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
