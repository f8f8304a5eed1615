/* Which of Winograd's tiles a graph uses, and the record of it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"
#include "sprat/random.h"

enum { N = 3, SIDE = 9, IN = 20, MID = 16 };

/* Three convolutions: of 3 x 3, with a stride, and of 1 x 1. */
typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
    char *tiles;
} net;

static sp_tensor *convolve(sp_graph *g, const char *name, sp_tensor *x, int k,
                           int stride)
{
    sp_conv_opt o = { .out = MID, .kernel = k, .stride = stride };

    return sp_conv(g, name, x, o);
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
    y = convolve(t.g, "strided", y, 3, 2);
    y = convolve(t.g, "point", y, 1, 1);
    sp_output(t.g, "loss", sp_project(t.g, y));
    ck_assert_int_eq(sp_compile(t.g), SP_OK);
    ck_assert_int_eq(sp_graph_tiles(t.g, &t.tiles), SP_OK);
    return t;
}

static void close_net(net *t)
{
    free(t->tiles);
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void expect_tiles(sp_graph_opt o, const char *tiles)
{
    net t = open_net(o);

    ck_assert_str_eq(t.tiles, tiles);
    close_net(&t);
}

START_TEST(as_set_where_it_is_possible)
{
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_OFF }, "");
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_2 }, "plain=222");
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_4 }, "plain=444");
    expect_tiles((sp_graph_opt){ .winograd = SP_WINOGRAD_4, .reference = true },
                 "");
}
END_TEST

START_TEST(auto_follows_a_record)
{
    static const char *const records[] = { "", "plain=042", "plain=444" };

    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        expect_tiles((sp_graph_opt){ .tiles = records[i] }, records[i]);
    expect_tiles((sp_graph_opt){ .tiles = "other=222 plain=404 a=222" },
                 "plain=404");
    /* What is set comes before what was recorded. */
    expect_tiles(
        (sp_graph_opt){ .tiles = "plain=444", .winograd = SP_WINOGRAD_2 },
        "plain=222");
}
END_TEST

/* A record of what cannot be is not followed. */
START_TEST(a_record_that_does_not_fit_is_direct)
{
    static const char *const records[] = {
        "plain=44", "plain=4444",  "plai=444",  "plain 444", "xplain=444",
        "=",        "strided=444", "plain=999", "plain=x3 ", " plain ",
    };

    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        expect_tiles((sp_graph_opt){ .tiles = records[i] }, "");
}
END_TEST

/* The rule's choice does not depend on threads or planner, and is repeated by
 * its record. */
START_TEST(the_rule_is_repeated_by_its_record)
{
    net t = open_net((sp_graph_opt){ 0 });

    expect_tiles((sp_graph_opt){ .threads = 3, .no_planner = true }, t.tiles);
    expect_tiles((sp_graph_opt){ .tiles = t.tiles }, t.tiles);
    close_net(&t);
}
END_TEST

static double loss(sp_winograd w)
{
    sp_run r = { .n = N, .t = 1, .train = true, .weight = 1 };
    net t = open_net((sp_graph_opt){ .winograd = w });
    float *x = t.x->data;
    double sum;

    sp_params_init(t.p, 1);
    for (size_t i = 0; i < sp_count(t.x->shape); i++) {
        uint32_t u[4];
        sp_random(1, SP_FOR_TEST, 0, i, u);
        x[i] = sp_unit(u[0]) - 0.5f;
    }
    sp_forward(t.g, &r);
    sum = sp_loss(t.g, &r);
    close_net(&t);
    return sum;
}

/* Other tiles are other sums, of the same terms. */
START_TEST(tiles_change_the_last_digits_alone)
{
    double direct = loss(SP_WINOGRAD_OFF);

    ck_assert_double_eq_tol(loss(SP_WINOGRAD_2), direct, 1e-4 * fabs(direct));
    ck_assert_double_eq_tol(loss(SP_WINOGRAD_4), direct, 1e-4 * fabs(direct));
    ck_assert_double_ne(loss(SP_WINOGRAD_4), direct);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tiles");
    TCase *tc = tcase_create("tiles");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, as_set_where_it_is_possible);
    tcase_add_test(tc, auto_follows_a_record);
    tcase_add_test(tc, a_record_that_does_not_fit_is_direct);
    tcase_add_test(tc, the_rule_is_repeated_by_its_record);
    tcase_add_test(tc, tiles_change_the_last_digits_alone);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
