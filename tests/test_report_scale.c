#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/scale.h"

/* ---- Ticks -------------------------------------------------------------- */

/* Whether x is 1, 2 or 5 times a power of ten. */
static bool is_round(double x)
{
    double part = x / pow(10, floor(log10(x) + 1e-9));

    return fabs(part - 1) < 1e-6 || fabs(part - 2) < 1e-6 ||
           fabs(part - 5) < 1e-6;
}

static const double ranges[][2] = {
    { 0, 1 },         { 0.0123, 0.0127 }, { -3, 7 },        { 88.84, 89.05 },
    { 1e-12, 3e-12 }, { 0, 123456789 },   { -1e9, -9e8 },   { 5, 5 },
    { 0, 0 },         { -2, -2 },         { 1e300, 2e300 },
};

START_TEST(linear_ticks_are_round_and_cover_the_values)
{
    double least = ranges[_i][0], most = ranges[_i][1];
    sp_scale s = { .from = 100, .to = 500 };

    sp_scale_set(&s, least, most, 5, false);
    ck_assert(!s.log);
    ck_assert(s.min <= least && s.max >= most && s.max > s.min);
    ck_assert_int_ge(s.ticks, 2);
    ck_assert_int_le(s.ticks, SP_TICKS);
    for (int i = 0; i < s.ticks; i++) {
        ck_assert(s.tick[i] >= s.min - 1e-9 * fabs(s.min));
        ck_assert(s.tick[i] <= s.max + 1e-9 * fabs(s.max));
    }
    for (int i = 1; i < s.ticks; i++)
        ck_assert(is_round(s.tick[i] - s.tick[i - 1]));
    /* No more is empty than what the values themselves take. */
    if (most > least)
        ck_assert(s.max - s.min <= 2 * (most - least));
    ck_assert_double_eq_tol(sp_scale_place(&s, s.min), 100, 1e-9);
    ck_assert_double_eq_tol(sp_scale_place(&s, s.max), 500, 1e-9);
    ck_assert_double_eq_tol(sp_scale_place(&s, s.min / 2 + s.max / 2), 300,
                            1e-9);
}
END_TEST

START_TEST(wide_spreads_are_logarithmic)
{
    sp_scale s = { .from = 0, .to = 300 };

    sp_scale_set(&s, 1, 99, 5, false);
    ck_assert(!s.log);
    sp_scale_set(&s, -1, 1000, 5, false);
    ck_assert(!s.log);
    sp_scale_set(&s, 0.001, 1, 5, false);
    ck_assert(s.log);
    ck_assert_int_eq(s.ticks, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(s.tick[i], pow(10, i - 3), 1e-12);
    /* Equal factors are equal lengths. */
    ck_assert_double_eq_tol(sp_scale_place(&s, 0.1) - sp_scale_place(&s, 0.01),
                            sp_scale_place(&s, 1) - sp_scale_place(&s, 0.1),
                            1e-9);
    sp_scale_set(&s, 1e-300, 1e300, 5, false);
    ck_assert_int_ge(s.ticks, 2);
    ck_assert_int_le(s.ticks, SP_TICKS);
}
END_TEST

START_TEST(an_axis_may_begin_at_zero)
{
    sp_scale s;

    sp_scale_set(&s, 40, 100, 5, true);
    ck_assert_double_eq(s.min, 0);
    sp_scale_set(&s, 90, 100, 5, true);
    ck_assert_double_eq(s.min, 90);
}
END_TEST

/* ---- Numbers ------------------------------------------------------------ */

#define NARROW "\xe2\x80\xaf"
#define FIRM "\xc2\xa0"

static const struct {
    double value;
    sp_unit unit;
    const char *text;
} shown[] = {
    { 269722, SP_COUNT, "269" NARROW "722" },
    { 40551040, SP_COUNT, "40" NARROW "551" NARROW "040" },
    { 1170, SP_COUNT, "1170" },
    { 88.99, SP_PERCENT, "88.99" FIRM "%" },
    { 7377.86, SP_BYTES, "7.38" FIRM "kB" },
    { 999, SP_BYTES, "999" FIRM "B" },
    { 1078888, SP_BYTES, "1.08" FIRM "MB" },
    { 0, SP_BYTES, "0" FIRM "B" },
    { 59.94, SP_SECONDS, "59.9" FIRM "s" },
    { 2510.99, SP_SECONDS, "41" FIRM "min" FIRM "50" FIRM "s" },
    { 4956.7, SP_SECONDS, "1" FIRM "h" FIRM "22" FIRM "min" },
    { 146.2331, SP_TIMES_OF, "146.2\xc3\x97" },
    { 0.33438, SP_PLAIN, "0.3344" },
    { -2.5, SP_PLAIN,
      "\xe2\x88\x92"
      "2.5" },
    { 12345.6, SP_PLAIN, "12" NARROW "346" },
    { 1e-9, SP_PLAIN, "1e-09" },
    { NAN, SP_PERCENT, "\xe2\x80\x93" },
    { INFINITY, SP_PLAIN, "infinite" },
};

START_TEST(numbers_have_units_and_few_digits)
{
    char word[SP_WORD];

    ck_assert_str_eq(sp_show(word, shown[_i].value, shown[_i].unit),
                     shown[_i].text);
}
END_TEST

START_TEST(tick_labels_have_equally_many_places)
{
    sp_scale s;
    char word[SP_WORD];

    sp_scale_set(&s, 0, 0.1, 5, false);
    ck_assert_int_eq(s.ticks, 6);
    ck_assert_str_eq(sp_show_tick(word, &s, 0, SP_PLAIN), "0.00");
    ck_assert_str_eq(sp_show_tick(word, &s, 5, SP_PLAIN), "0.10");
}
END_TEST

/* ---- Thinning -------------------------------------------------------------
 */

START_TEST(thinning_keeps_ends_and_extremes)
{
    sp_xy_list in = { 0 }, out = { 0 };
    const sp_xy *at;

    /* Columns 10 wide: the first has 10 points with a peak and a dip. */
    for (int i = 0; i < 20; i++)
        sp_xy_list_add(&in, i, i == 3 ? 50 : i == 7 ? -50 : i);
    sp_thin(&in, 10, &out);
    at = sp_xy_list_at(&out);
    ck_assert_uint_eq(sp_xy_list_count(&out), 6);
    ck_assert_double_eq(at[0].x, 0);
    ck_assert_double_eq(at[1].y, 50);
    ck_assert_double_eq(at[2].y, -50);
    ck_assert_double_eq(at[3].x, 9);
    ck_assert_double_eq(at[4].x, 10);
    ck_assert_double_eq(at[5].x, 19);
    sp_xy_list_free(&in);
    sp_xy_list_free(&out);
}
END_TEST

START_TEST(thinning_keeps_few_points_and_gaps)
{
    static const double ys[] = { 1, NAN, 2, 3, INFINITY, 4 };
    sp_xy_list in = { 0 }, out = { 0 };

    for (int i = 0; i < 6; i++)
        sp_xy_list_add(&in, i, ys[i]);
    sp_thin(&in, 1, &out);
    ck_assert_uint_eq(sp_xy_list_count(&out), 6);
    for (int i = 0; i < 6; i++) {
        double y = sp_xy_list_at(&out)[i].y;
        ck_assert(isfinite(ys[i]) ? y == ys[i] : isnan(y));
    }
    sp_xy_list_free(&in);
    sp_xy_list_free(&out);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("report_scale");
    TCase *tc = tcase_create("report_scale");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, linear_ticks_are_round_and_cover_the_values, 0,
                        COUNT(ranges));
    tcase_add_test(tc, wide_spreads_are_logarithmic);
    tcase_add_test(tc, an_axis_may_begin_at_zero);
    tcase_add_loop_test(tc, numbers_have_units_and_few_digits, 0, COUNT(shown));
    tcase_add_test(tc, tick_labels_have_equally_many_places);
    tcase_add_test(tc, thinning_keeps_ends_and_extremes);
    tcase_add_test(tc, thinning_keeps_few_points_and_gaps);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
