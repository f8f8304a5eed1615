#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

static const struct {
    float x;
    uint16_t h;
    float back; /* h as a float */
} cases[] = {
    { 0.0f, 0x0000, 0.0f },
    { -0.0f, 0x8000, -0.0f },
    { 1.0f, 0x3C00, 1.0f },
    { -2.0f, 0xC000, -2.0f },
    { 0x1.554p-2f, 0x3555, 0x1.554p-2f },
    /* 2049 lies between 2048 and 2050, whose last place is odd; 2051 between
     * 2050 and 2052, whose is even. */
    { 2049.0f, 0x6800, 2048.0f },
    { 2051.0f, 0x6802, 2052.0f },
    { 0x1.001p11f, 0x6800, 2048.0f },
    { 0x1.002002p11f, 0x6801, 2050.0f },
    { 65504.0f, 0x7BFF, 65504.0f },
    { 65519.996f, 0x7BFF, 65504.0f },
    { 65520.0f, 0x7C00, INFINITY },
    { 65536.0f, 0x7C00, INFINITY },
    { 3e38f, 0x7C00, INFINITY },
    { -INFINITY, 0xFC00, -INFINITY },
    { 0x1p-14f, 0x0400, 0x1p-14f }, /* the smallest normal one */
    /* The largest subnormal one is 1023 * 2^-24; half a place above it, the
     * even neighbour is the smallest normal one. */
    { 0x1.ff8p-15f, 0x03FF, 0x1.ff8p-15f },
    { 0x1.ffcp-15f, 0x0400, 0x1p-14f },
    { 0x1p-24f, 0x0001, 0x1p-24f },
    { 0x1p-25f, 0x0000, 0.0f },
    { 0x1.000002p-25f, 0x0001, 0x1p-24f },
    { -0x1.8p-24f, 0x8002, -0x1p-23f },
    { 0x1p-149f, 0x0000, 0.0f },
};

START_TEST(halfs_round_to_the_nearest)
{
    float x = cases[_i].x, back = sp_half_float(cases[_i].h);

    ck_assert_uint_eq(sp_half(x), cases[_i].h);
    ck_assert_int_eq(memcmp(&back, &cases[_i].back, sizeof back), 0);
}
END_TEST

START_TEST(every_half_survives)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float x = sp_half_float((uint16_t)h);
        if ((h & 0x7FFF) > 0x7C00) {
            if (!isnan(x) || !isnan(sp_half_float(sp_half(x))))
                ck_abort_msg("%04x is a number", (unsigned)h);
            continue;
        }
        if (sp_half(x) != h)
            ck_abort_msg("%04x became %04x", (unsigned)h, sp_half(x));
        /* What it is worth: (1024 + significand) * 2^(exponent - 25). */
        int exponent = h >> 10 & 31, part = h & 1023;
        float worth = exponent == 31 ? INFINITY
                      : exponent == 0
                          ? ldexpf((float)part, -24)
                          : ldexpf((float)(1024 + part), exponent - 25);
        if (x != (h >> 15 ? -worth : worth))
            ck_abort_msg("%04x is %g", (unsigned)h, (double)x);
    }
}
END_TEST

START_TEST(the_nearest_is_the_nearest)
{
    /* Between neighbours a < b: what is nearer to a becomes a. */
    for (uint16_t h = 0; h < 0x7BFF; h++) {
        float a = sp_half_float(h), b = sp_half_float((uint16_t)(h + 1));
        float middle = 0.5f * (a + b);
        if (sp_half(nextafterf(middle, 0)) != h ||
            sp_half(nextafterf(middle, 1e9f)) != h + 1 ||
            sp_half(middle) != h + (h & 1) ||
            sp_half(-middle) != (0x8000 | (h + (h & 1))))
            ck_abort_msg("between %04x and the next one", h);
    }
}
END_TEST

START_TEST(arrays_are_as_single_numbers)
{
    enum { N = 37 };
    float x[N], back[N];
    uint16_t h[N], sum[N];

    for (int i = 0; i < N; i++)
        x[i] = ldexpf(1.0f + 0.37f * (float)i, i - 20);
    sp_half_from(N, x, -4.0f, h);
    sp_half_to(N, h, 0.25f, back);
    memcpy(sum, h, sizeof sum);
    sp_half_add(N, h, sum);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(h[i], sp_half(-4.0f * x[i]));
        ck_assert_float_eq(back[i], 0.25f * sp_half_float(h[i]));
        ck_assert_uint_eq(sum[i], sp_half(2.0f * sp_half_float(h[i])));
    }
    /* Each addition rounds: 2048 + 1 is 2048 again. */
    uint16_t a = sp_half(2048.0f), b = sp_half(1.0f);
    sp_half_add(1, &b, &a);
    ck_assert_float_eq(sp_half_float(a), 2048.0f);
}
END_TEST

START_TEST(exponents_bring_numbers_below_a_power)
{
    ck_assert_int_eq(sp_half_exponent(1.0f, 15), 14);
    ck_assert_int_eq(sp_half_exponent(0x1.fffffep0f, 15), 14);
    ck_assert_int_eq(sp_half_exponent(2.0f, 15), 13);
    ck_assert_int_eq(sp_half_exponent(0x1p-20f, 14), 33);
    ck_assert_int_eq(sp_half_exponent(FLT_MAX, 15), -113);
    ck_assert_int_eq(sp_half_exponent(0x1p-149f, 15), SP_HALF_EXPONENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("half");
    TCase *tc = tcase_create("half");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, halfs_round_to_the_nearest, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tc, every_half_survives);
    tcase_add_test(tc, the_nearest_is_the_nearest);
    tcase_add_test(tc, arrays_are_as_single_numbers);
    tcase_add_test(tc, exponents_bring_numbers_below_a_power);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
