/* Which of Winograd's tiles a graph uses, and the record of it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"
#include "sprat/nn.h"
#include "sprat/random.h"

enum { N = 3, SIDE = 9, IN = 20, MID = 16 };

/* Convolutions of 3 x 3, with a stride, of 1 x 1, and two of 3 x 3 that share
 * name and weights on images of other sizes. */
typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
    sp_err err;
} net;

static sp_tensor *convolve(sp_graph *g, const char *name, sp_tensor *x, int k,
                           int stride)
{
    return sp_conv(g, name, x,
                   (sp_conv_opt){ .out = MID, .kernel = k, .stride = stride });
}

static net open_net(sp_graph_opt o)
{
    net t = { .p = sp_params_new() };
    sp_tensor *y;

    o.train = true;
    t.g = sp_graph_new(t.p, o);
    t.x = sp_input(t.g, "x",
                   (sp_shape){ .n = N, .h = SIDE, .w = SIDE, .c = IN }, SP_F32);
    y = convolve(t.g, "plain", t.x, 3, 1);
    y = convolve(t.g, "a b=c", y, 3, 1);
    y = convolve(t.g, "strided", y, 3, 2);
    y = convolve(t.g, "a b=c", y, 3, 1);
    y = convolve(t.g, "point", y, 1, 1);
    sp_output(t.g, "y", y);
    sp_output(t.g, "loss", sp_project(t.g, y));
    t.err = sp_compile(t.g);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

/* What the convolutions use, and what is recorded of it (NULL: nothing). */
static void expect_tiles(sp_graph_opt o, const char *used, const char *record)
{
    net t = open_net(o);
    char text[64] = "", *recorded;

    ck_assert_msg(t.err == SP_OK, "%s", sp_last_error());
    for (int i = 0; i < t.g->steps.count; i++) {
        const sp_node *n = &sp_step_at(t.g, i)->node;
        size_t at = strlen(text);
        if (n->p_count > 0)
            snprintf(text + at, sizeof text - at, "%d%d%d ", n->tile[0],
                     n->tile[1], n->tile[2]);
    }
    ck_assert_str_eq(text, used);
    ck_assert_int_eq(sp_graph_tiles(t.g, &recorded), SP_OK);
    if (record)
        ck_assert_str_eq(recorded, record);
    else
        ck_assert_ptr_null(recorded);
    free(recorded);
    close_net(&t);
}

START_TEST(as_set_where_it_is_possible)
{
    static const char none[] = "000 000 000 000 000 ";

    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_OFF }, none, NULL);
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_2 },
                 "222 222 000 222 000 ", NULL);
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_4 },
                 "444 444 000 444 000 ", NULL);
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_4, .reference = true },
                 none, NULL);
    expect_tiles((sp_graph_opt){ .reference = true }, none, NULL);
    /* What is set comes before what was recorded. */
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_OFF, .tiles = "x" },
                 none, NULL);
}
END_TEST

/* Entry by entry, whatever the names. */
START_TEST(auto_follows_a_record)
{
    static const char record[] = "plain=042 a b=c=404 a b=c=220";

    expect_tiles((sp_graph_opt){ .tiles = record }, "042 404 000 220 000 ",
                 record);
    expect_tiles((sp_graph_opt){ .tiles = "" }, "000 000 000 000 000 ",
                 "plain=000 a b=c=000 a b=c=000");
}
END_TEST

START_TEST(a_record_of_another_network_is_refused)
{
    static const struct {
        const char *record, *word;
    } at[] = {
        { "plain=44", "plain: the checkpoint's" },
        { "plain=449 a b=c=444 a b=c=444", "plain: the checkpoint's" },
        { "plain=/44 a b=c=444 a b=c=444", "plain: the checkpoint's" },
        { "plan=444 a b=c=444 a b=c=444", "\"plan=444" },
        { "plain=444", "a b=c: the checkpoint's" },
        { "plain=444 a b=c=444 strided=444", "\"strided=444\"" },
        { "plain=444 a b=c=444 a b=c=444 d=444", "\"d=444\" on" },
        { " ", "plain: the checkpoint's" },
    };

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        net t = open_net((sp_graph_opt){ .tiles = at[i].record });
        ck_assert_int_eq(t.err, SP_EARG);
        ck_assert_msg(strstr(sp_last_error(), at[i].word), "%s",
                      sp_last_error());
        close_net(&t);
    }
}
END_TEST

/* The rule's choice does not depend on threads or planner, and its record
 * repeats it. */
START_TEST(the_rule_is_repeated_by_its_record)
{
    net t = open_net((sp_graph_opt){ 0 });
    char *record, *again;

    ck_assert_int_eq(sp_graph_tiles(t.g, &record), SP_OK);
    ck_assert_ptr_nonnull(strpbrk(record, "24")); /* it chose some */
    close_net(&t);
    for (int i = 0; i < 2; i++) {
        t = open_net((sp_graph_opt){
            .threads = 3, .no_planner = true, .tiles = i ? record : NULL });
        ck_assert_int_eq(sp_graph_tiles(t.g, &again), SP_OK);
        ck_assert_str_eq(again, record);
        free(again);
        close_net(&t);
    }
    free(record);
}
END_TEST

/* The bits of the output, of the first weights' gradient, and of the second's,
 * which depends on the gradient that reaches it from the third. */
typedef struct bits {
    float y[8], dw[2][8];
} bits;

static bits bits_of(const char *tiles)
{
    sp_run r = { .n = N, .t = 1, .train = true, .weight = 1 };
    net t = open_net((sp_graph_opt){ .tiles = tiles });
    float *x = t.x->data;
    bits b;

    ck_assert_int_eq(t.err, SP_OK);
    sp_params_init(t.p, 1);
    for (size_t i = 0; i < sp_count(t.x->shape); i++) {
        uint32_t u[4];
        sp_random(1, SP_FOR_TEST, 0, i, u);
        x[i] = sp_unit(u[0]) - 0.5f;
    }
    sp_forward(t.g, &r);
    sp_backward(t.g, &r, NULL, NULL);
    memcpy(b.y, sp_graph_output(t.g, "y")->data, sizeof b.y);
    memcpy(b.dw[0], sp_params_find(t.p, "plain.weight")->grad, sizeof b.dw[0]);
    memcpy(b.dw[1], sp_params_find(t.p, "strided.weight")->grad,
           sizeof b.dw[1]);
    close_net(&t);
    return b;
}

static bool same(const float *a, const float *b)
{
    return memcmp(a, b, sizeof(float[8])) == 0;
}

/* Each digit is for its own pass, and other tiles are other sums of the same
 * terms. */
START_TEST(each_pass_has_its_own_tiles)
{
    bits direct = bits_of("");
    bits forward = bits_of("plain=000 a b=c=000 a b=c=400");
    bits input = bits_of("plain=000 a b=c=000 a b=c=040");
    bits weights = bits_of("plain=004 a b=c=000 a b=c=000");

    ck_assert(!same(forward.y, direct.y));
    ck_assert(same(input.y, direct.y) && same(weights.y, direct.y));
    ck_assert(!same(input.dw[1], direct.dw[1]));
    ck_assert(same(forward.dw[1], direct.dw[1]));
    ck_assert(same(weights.dw[1], direct.dw[1]));
    ck_assert(!same(weights.dw[0], direct.dw[0]));
    for (int i = 0; i < 8; i++) {
        ck_assert_float_eq_tol(forward.y[i], direct.y[i], 1e-4f);
        ck_assert_float_eq_tol(input.dw[1][i], direct.dw[1][i], 1e-3f);
        ck_assert_float_eq_tol(weights.dw[0][i], direct.dw[0][i], 1e-3f);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tiles");
    TCase *tc = tcase_create("tiles");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, as_set_where_it_is_possible);
    tcase_add_test(tc, auto_follows_a_record);
    tcase_add_test(tc, a_record_of_another_network_is_refused);
    tcase_add_test(tc, the_rule_is_repeated_by_its_record);
    tcase_add_test(tc, each_pass_has_its_own_tiles);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
