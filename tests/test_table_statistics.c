/* Means over few seeds: against published tables of Student's t, and by hand.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "table/statistics.h"

/* Fisher & Yates, "Statistical Tables", III; as printed everywhere. */
START_TEST(quantiles_are_those_of_tables)
{
    static const struct {
        double p;
        int freedom;
        double t;
    } rows[] = {
        { 0.95, 1, 6.3138 },   { 0.975, 1, 12.7062 },  { 0.995, 1, 63.6567 },
        { 0.95, 2, 2.9200 },   { 0.975, 2, 4.3027 },   { 0.995, 2, 9.9248 },
        { 0.975, 3, 3.1824 },  { 0.95, 4, 2.1318 },    { 0.975, 4, 2.7764 },
        { 0.975, 5, 2.5706 },  { 0.9, 9, 1.3830 },     { 0.975, 10, 2.2281 },
        { 0.995, 10, 3.1693 }, { 0.975, 29, 2.0452 },  { 0.975, 30, 2.0423 },
        { 0.95, 60, 1.6706 },  { 0.975, 120, 1.9799 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_double_eq_tol(sp_t_quantile(rows[i].p, rows[i].freedom),
                                rows[i].t, 5.1e-5);
}
END_TEST

/* With 1 degree of freedom t is Cauchy's, with 2 algebraic. */
START_TEST(quantiles_of_closed_forms)
{
    const double pi = 3.14159265358979323846;

    for (double p = 0.51; p < 0.9999; p += 0.01) {
        double a = tan(pi * (p - 0.5));
        double b = (2 * p - 1) / sqrt(2 * p * (1 - p));

        ck_assert_double_eq_tol(sp_t_quantile(p, 1) / a, 1, 1e-9);
        ck_assert_double_eq_tol(sp_t_quantile(p, 2) / b, 1, 1e-9);
        ck_assert_double_eq_tol(sp_t_quantile(1 - p, 2), -b, 1e-9 * b);
    }
    ck_assert_double_eq_tol(sp_t_quantile(0.5, 7), 0, 1e-12);
}
END_TEST

/* 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, so that the variance is 7; the
 * half width at 95 % is 4.3027 sqrt(7 / 3). */
START_TEST(estimates_by_hand)
{
    static const double x[] = { 1, 2, 6 };
    sp_estimate e = sp_estimate_of(x, 3, 0.95);

    ck_assert_int_eq(e.n, 3);
    ck_assert_double_eq_tol(e.mean, 3, 1e-12);
    ck_assert_double_eq_tol(e.sd, sqrt(7), 1e-12);
    ck_assert_double_eq_tol(e.half, 4.302653 * sqrt(7.0 / 3), 1e-5);
    e = sp_estimate_of(x, 3, 0.9);
    ck_assert_double_eq_tol(e.half, 2.919986 * sqrt(7.0 / 3), 1e-5);
    e = sp_estimate_of(x, 2, 0.95); /* 1 and 2: sd sqrt(1/2) */
    ck_assert_double_eq_tol(e.half, 12.706205 * 0.5, 1e-5);
}
END_TEST

START_TEST(one_value_has_no_interval)
{
    static const double x[] = { 5 };
    sp_estimate e = sp_estimate_of(x, 1, 0.95);

    ck_assert_double_eq(e.mean, 5);
    ck_assert_double_nan(e.sd);
    ck_assert_double_nan(e.half);
    e = sp_estimate_of(x, 0, 0.95);
    ck_assert_double_nan(e.mean);
    ck_assert_int_eq(e.n, 0);
}
END_TEST

static sp_verdict verdict(double mean, double half, bool higher)
{
    sp_estimate d = { .n = 3, .mean = mean, .half = half };

    return sp_verdict_of(&d, 0.5, higher);
}

START_TEST(verdicts_by_where_the_interval_lies)
{
    sp_estimate one = { .n = 1, .half = NAN };

    ck_assert_int_eq(verdict(0.1, 0.3, true), SP_VERDICT_EQUAL);
    ck_assert_int_eq(verdict(-0.25, 0.25, true), SP_VERDICT_EQUAL);
    ck_assert_int_eq(verdict(-0.25, 0.5, true), SP_VERDICT_OPEN);
    ck_assert_int_eq(verdict(-2, 1, true), SP_VERDICT_WORSE);
    ck_assert_int_eq(verdict(-2, 1.75, true), SP_VERDICT_OPEN);
    ck_assert_int_eq(verdict(2, 1, true), SP_VERDICT_GOOD);
    ck_assert_int_eq(verdict(0.5, 0.25, true), SP_VERDICT_GOOD);
    ck_assert_int_eq(verdict(0.5, 20, true), SP_VERDICT_OPEN);
    /* A perplexity is better when lower. */
    ck_assert_int_eq(verdict(2, 1, false), SP_VERDICT_WORSE);
    ck_assert_int_eq(verdict(-2, 1, false), SP_VERDICT_GOOD);
    ck_assert_int_eq(verdict(0.1, 0.3, false), SP_VERDICT_EQUAL);
    ck_assert_int_eq(verdict(0, NAN, true), SP_VERDICT_OPEN);
    /* A perplexity beyond all numbers; of the baseline, of both. */
    ck_assert_int_eq(verdict(INFINITY, NAN, false), SP_VERDICT_WORSE);
    ck_assert_int_eq(verdict(-INFINITY, NAN, false), SP_VERDICT_OPEN);
    ck_assert_int_eq(verdict(NAN, NAN, false), SP_VERDICT_OPEN);
    one.mean = INFINITY;
    ck_assert_int_eq(sp_verdict_of(&one, 0.5, false), SP_VERDICT_OPEN);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_statistics");
    TCase *t = tcase_create("table_statistics");
    SRunner *r = srunner_create(s);
    int failures;

    tcase_add_test(t, quantiles_are_those_of_tables);
    tcase_add_test(t, quantiles_of_closed_forms);
    tcase_add_test(t, estimates_by_hand);
    tcase_add_test(t, one_value_has_no_interval);
    tcase_add_test(t, verdicts_by_where_the_interval_lies);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failures = srunner_ntests_failed(r);
    srunner_free(r);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
