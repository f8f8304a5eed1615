/* Rows of a table: what is read, which rows' gradients are touched, and that
 * two tensors side by side are one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"

enum { T = 3, N = 4, ROWS = 50, C = 6 };

static const int32_t tokens[T * N] = { 7, 0, 7, 49, 3, 7, 8, 0, 21, 8, 3, 7 };

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
    sp_param *w;
    sp_run run;
} net;

static net open_net(void)
{
    net t = { .p = sp_params_new(),
              .run = { .n = N, .t = T, .train = true, .weight = 1 } };

    t.g = sp_graph_new(t.p, (sp_graph_opt){ .train = true, .threads = 2 });
    t.x = sp_input(t.g, "x", (sp_shape){ .t = T, .n = N }, SP_I32);
    t.w = sp_weight(t.g, "w", (int[]){ ROWS, C, 0 },
                    (sp_init){ SP_UNIFORM, 1.0f });
    t.y = sp_lookup(t.g, "lookup", t.x, t.w);
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss", sp_project(t.g, t.y));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 1);
    memcpy(t.x->data, tokens, sizeof tokens);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

START_TEST(rows_of_the_table_are_read)
{
    net t = open_net();

    sp_forward(t.g, &t.run);
    for (int i = 0; i < T * N; i++)
        ck_assert_mem_eq((float *)t.y->data + i * C, t.w->value + tokens[i] * C,
                         C * sizeof(float));
    close_net(&t);
}
END_TEST

static int occurrences(int row)
{
    int count = 0;

    for (int i = 0; i < T * N; i++)
        count += tokens[i] == row;
    return count;
}

/* Each occurrence adds its gradient; the rows of the table that do not occur
 * get zeros, or are left as they are. */
static void check_rows(bool add, float before)
{
    net t = open_net();
    const float *dy = t.y->grad;
    float sum[ROWS][C] = { { 0 } };

    t.run.add = add;
    for (size_t i = 0; i < t.w->count; i++)
        t.w->grad[i] = before;
    sp_forward(t.g, &t.run);
    sp_backward(t.g, &t.run, NULL, NULL);
    for (int i = 0; i < T * N; i++)
        for (int k = 0; k < C; k++)
            sum[tokens[i]][k] += dy[i * C + k];
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < C; k++) {
            float got = t.w->grad[row * C + k], start = add ? before : 0;
            if (occurrences(row) == 0)
                ck_assert_float_eq(got, start);
            else
                ck_assert_float_eq_tol(got, start + sum[row][k], 1e-6f);
        }
    close_net(&t);
}

START_TEST(storing_clears_the_other_rows) { check_rows(false, 99.0f); }
END_TEST

START_TEST(adding_leaves_the_other_rows) { check_rows(true, 0.1f); }
END_TEST

START_TEST(tables_and_lists_must_be_such)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_shape s = { .n = 3, .c = _i == 1 ? 2 : 1 };
    sp_tensor *x = sp_input(g, "x", s, _i == 0 ? SP_F32 : SP_I32);
    static const char *const says[] = { "1 x 1 pixels of 1 floats",
                                        "1 x 1 pixels of 2 ints",
                                        "w has 1 dimensions" };
    int dims[] = { 5, _i == 2 ? 0 : 4, 0 };

    sp_lookup(g, "lookup", x, sp_weight(g, "w", dims, (sp_init){ 0 }));
    ck_assert_int_eq(sp_compile(g), SP_ESHAPE);
    ck_assert_msg(strstr(sp_last_error(), says[_i]) != NULL, "%s",
                  sp_last_error());
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(channels_stand_side_by_side)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *a = sp_input(g, "a", (sp_shape){ .n = 2, .c = 2 }, SP_F32);
    sp_tensor *b = sp_input(g, "b", (sp_shape){ .n = 2, .c = 1 }, SP_F32);
    sp_tensor *y = sp_concat(g, a, b);
    sp_run run = { .n = 2, .t = 1 };

    sp_output(g, "y", y);
    ck_assert_int_eq(sp_compile(g), SP_OK);
    memcpy(a->data, (float[]){ 1, 2, 3, 4 }, 4 * sizeof(float));
    memcpy(b->data, (float[]){ 5, 6 }, 2 * sizeof(float));
    sp_forward(g, &run);
    ck_assert_mem_eq(y->data, ((float[]){ 1, 2, 5, 3, 4, 6 }),
                     6 * sizeof(float));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(other_shapes_do_not_stand_side_by_side)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *a = sp_input(g, "a", (sp_shape){ .n = 2, .c = 2 }, SP_F32);
    sp_tensor *b = sp_input(g, "b", (sp_shape){ .n = 3, .c = 2 }, SP_F32);

    sp_concat(g, a, b);
    ck_assert_int_eq(sp_compile(g), SP_ESHAPE);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "concat"));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lookup");
    TCase *tc = tcase_create("lookup");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, rows_of_the_table_are_read);
    tcase_add_test(tc, storing_clears_the_other_rows);
    tcase_add_test(tc, adding_leaves_the_other_rows);
    tcase_add_loop_test(tc, tables_and_lists_must_be_such, 0, 3);
    tcase_add_test(tc, channels_stand_side_by_side);
    tcase_add_test(tc, other_shapes_do_not_stand_side_by_side);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
