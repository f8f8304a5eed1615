/* Which tiles the rule chooses, worked out by hand from its counts. */
#include <check.h>
#include <stdlib.h>

#include "kernels/kernels.h"

static sp_conv_shape square(int side, int cin, int cout)
{
    return (sp_conv_shape){ side, side, cin, side, side, cout, 3, 3, 1, 1, 1 };
}

/* The same on every instruction set. */
static void expect(const sp_conv_shape *s, sp_pass pass, int tile)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++)
        ck_assert_msg(sp_conv_best_tile(k, s, pass) == tile,
                      "%s: %d x %d, %d to %d channels: %d instead of %d",
                      sp_kernels_isa(k), s->h, s->w, s->cin, s->cout,
                      sp_conv_best_tile(k, s, pass), tile);
}

/* Layers of residual networks: a 4 x 4 tile has 36 products for 144. */
START_TEST(large_tiles_where_there_are_many_products)
{
    static const int layers[][2] = { { 32, 16 }, { 16, 32 },  { 8, 64 },
                                     { 32, 64 }, { 16, 128 }, { 8, 256 },
                                     { 4, 512 } };

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (sp_pass p = SP_FORWARD; p <= SP_BACKWARD_WEIGHT; p++) {
            sp_conv_shape s = square(layers[i][0], layers[i][1], layers[i][1]);
            expect(&s, p, 4);
        }
}
END_TEST

/* Maps of 2 x 2 pixels have 16 products that are in the image, as many as a
 * tile's points; 1 x 1 has one. */
START_TEST(small_maps_are_direct)
{
    for (int side = 1; side <= 2; side++) {
        sp_conv_shape s = square(side, 512, 512);
        expect(&s, SP_FORWARD, 0);
        expect(&s, SP_BACKWARD_INPUT, 0);
        expect(&s, SP_BACKWARD_WEIGHT, 0);
    }
}
END_TEST

/* Of 3 channels, transforming them takes longer than the products. */
START_TEST(few_channels_are_direct)
{
    sp_conv_shape s = square(32, 3, 16);

    expect(&s, SP_FORWARD, 0);
    expect(&s, SP_BACKWARD_WEIGHT, 0);
}
END_TEST

START_TEST(only_what_has_tiles_is_given_some)
{
    sp_conv_shape plain = square(8, 64, 64), s[6];

    for (int i = 0; i < 6; i++)
        s[i] = plain;
    s[0].stride = 2;
    s[0].oh = s[0].ow = 4;
    s[1].groups = 2;
    s[2].kh = s[2].kw = 1;
    s[2].pad = 0;
    s[3].kh = 5;
    s[3].oh = 6;
    s[4].pad = 3;
    s[4].oh = s[4].ow = 12;
    s[5] = (sp_conv_shape){ 3, 3, 64, 1, 1, 64, 3, 3, 1, 0, 1 };
    ck_assert(sp_conv_has_tiles(&plain));
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(!sp_conv_has_tiles(&s[i]), "shape %d", i);
        expect(&s[i], SP_FORWARD, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conv_rule");
    TCase *tc = tcase_create("conv_rule");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, large_tiles_where_there_are_many_products);
    tcase_add_test(tc, small_maps_are_direct);
    tcase_add_test(tc, few_channels_are_direct);
    tcase_add_test(tc, only_what_has_tiles_is_given_some);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
