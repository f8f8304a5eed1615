/* Values that one run leaves to the next. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "plain_ops.h"

static sp_tensor *record(sp_graph *g, const sp_op *op, sp_tensor *x)
{
    plain_attr attr = { NULL };
    sp_param *w = op == &plain_scale ? sp_weight(g, "w", (int[]){ 1, 0 },
                                                 (sp_init){ SP_CONSTANT, 2 })
                                     : NULL;

    return sp_record(g, op, op->name, &attr, sizeof attr,
                     (sp_tensor *[]){ x, NULL }, (sp_param *[]){ w, NULL });
}

/* h <- 2 h: the next state is an output, under the state's full name. */
START_TEST(a_state_is_an_input_and_an_output)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    const sp_run run = { .n = 2, .t = 1 };

    sp_push(g, "a");
    sp_tensor *h = sp_state(g, "h", 2, 3);
    sp_next_state(g, h, record(g, &plain_scale, h));
    sp_pop(g);
    ck_assert_msg(sp_compile(g) == SP_OK, "%s", sp_last_error());
    sp_params_init(p, 1);
    const sp_state_pair *pair = sp_graph_state(g, 0);
    ck_assert_ptr_eq(pair->now, sp_graph_input(g, "a.h"));
    ck_assert_ptr_eq(pair->next, sp_graph_output(g, "a.h"));
    ck_assert_ptr_null(sp_graph_state(g, 1));
    ck_assert_ptr_null(sp_graph_state(g, -1));
    ((float *)h->data)[5] = 3;
    for (int i = 0; i < 2; i++) {
        sp_forward(g, &run);
        memcpy(pair->now->data, pair->next->data, 6 * sizeof(float));
    }
    ck_assert_float_eq(((float *)h->data)[5], 12);
    ck_assert_float_eq(((float *)h->data)[4], 0);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

static const struct {
    sp_err error;
    const char *says;
} mistakes[] = {
    { SP_EARG, "state h: sp_next_state() does not say" },
    { SP_EARG, "h: has its next state already" },
    { SP_EARG, "x: is no state" },
    { SP_ESHAPE, "state h: 2 rows of 3 floats, but the next one has 1 x 2 rows "
                 "of 1 x 1 x 1 floats" },
    { SP_ESHAPE, "1 x 2 rows of 1 x 1 x 3 ints" },
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* Kept until sp_compile(), which names the state. */
START_TEST(states_that_lead_nowhere_are_refused)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_shape s = { .n = 2, .c = 3 };
    sp_tensor *x = sp_input(g, "x", s, SP_F32);
    sp_tensor *ints = sp_input(g, "ints", s, SP_I32);
    sp_tensor *h = sp_state(g, "h", 2, 3);
    sp_tensor *row = record(g, &plain_sum, h);

    if (_i > 0)
        sp_next_state(g, h, _i == 3 ? row : _i == 4 ? ints : x);
    if (_i == 1 || _i == 2)
        sp_next_state(g, _i == 1 ? h : x, x);
    ck_assert_int_eq(sp_compile(g), mistakes[_i].error);
    ck_assert_msg(strstr(sp_last_error(), mistakes[_i].says) != NULL, "%s",
                  sp_last_error());
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("state");
    TCase *tc = tcase_create("state");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, a_state_is_an_input_and_an_output);
    tcase_add_loop_test(tc, states_that_lead_nowhere_are_refused, 0, MISTAKES);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
