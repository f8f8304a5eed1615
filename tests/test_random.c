#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/random.h"

/* Known answers of the paper's own implementation (Random123, kat_vectors),
 * written as the arguments that give its counters and keys. */
static const struct {
    uint64_t seed, a, b;
    int purpose;
    uint32_t out[4];
} known[] = {
    { 0, 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { UINT64_MAX,
      0xffffffffffffff,
      UINT64_MAX,
      255,
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    /* Digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344,
     * key a4093822 299f31d0. */
    { 0x299f31d0a4093822,
      0x70734413198a2e,
      0x85a308d3243f6a88,
      3,
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

START_TEST(known_answers)
{
    uint32_t out[4];

    sp_random(known[_i].seed, (sp_purpose)known[_i].purpose, known[_i].a,
              known[_i].b, out);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(out[i], known[_i].out[i]);
}
END_TEST

/* Every bit of every argument must matter. */
START_TEST(each_argument_changes_the_number)
{
    uint32_t x[4], y[4];

    sp_random(7, SP_FOR_TEST, 3, 5, x);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t flip = (uint64_t)1 << bit;
        sp_random(7 ^ flip, SP_FOR_TEST, 3, 5, y);
        ck_assert_int_ne(memcmp(x, y, sizeof x), 0);
        sp_random(7, SP_FOR_TEST, 3, 5 ^ flip, y);
        ck_assert_int_ne(memcmp(x, y, sizeof x), 0);
        if (bit >= 56)
            continue;
        sp_random(7, SP_FOR_TEST, 3 ^ flip, 5, y);
        ck_assert_int_ne(memcmp(x, y, sizeof x), 0);
    }
    sp_random(7, SP_FOR_USER, 3, 5, y);
    ck_assert_int_ne(memcmp(x, y, sizeof x), 0);
}
END_TEST

START_TEST(unit_covers_zero_to_below_one)
{
    ck_assert_float_eq(sp_unit(0), 0.0f);
    ck_assert_float_eq(sp_unit(0x80000000), 0.5f);
    ck_assert_float_eq(sp_unit(UINT32_MAX), 1.0f - 0x1p-24f);
}
END_TEST

START_TEST(normal_at_exact_points)
{
    /* u = 1 gives radius 0; u = e^-2 gives radius 2. */
    uint32_t u = (uint32_t)(exp(-2.0) * 0x1p32) - 1;

    ck_assert_float_eq_tol(sp_normal(UINT32_MAX, 12345), 0, 1e-6f);
    ck_assert_float_eq_tol(sp_normal(u, 0), 2, 1e-5f);
    ck_assert_float_eq_tol(sp_normal(u, 0x40000000), 0, 1e-5f);
    ck_assert_float_eq_tol(sp_normal(u, 0x80000000), -2, 1e-5f);
    /* The largest radius: u = 2^-32. */
    ck_assert_float_eq_tol(sp_normal(0, 0), 6.66044f, 1e-4f);
}
END_TEST

START_TEST(normal_has_the_moments_of_a_normal)
{
    enum { N = 100000 };
    double sum[4] = { 0 };

    for (uint64_t i = 0; i < N; i++) {
        uint32_t r[4];
        sp_random(1, SP_FOR_TEST, 0, i, r);
        double z = sp_normal(r[0], r[1]), p = 1;
        for (int k = 0; k < 4; k++)
            sum[k] += p *= z;
    }
    /* Five standard errors of each moment: var(z^k) = 1, 2, 15, 96. */
    ck_assert_double_lt(fabs(sum[0] / N), 5 * sqrt(1.0 / N));
    ck_assert_double_lt(fabs(sum[1] / N - 1), 5 * sqrt(2.0 / N));
    ck_assert_double_lt(fabs(sum[2] / N), 5 * sqrt(15.0 / N));
    ck_assert_double_lt(fabs(sum[3] / N - 3), 5 * sqrt(96.0 / N));
}
END_TEST

START_TEST(permutation_holds_each_index_once)
{
    static const size_t sizes[] = { 0, 1, 2, 3, 1000 };
    size_t n = sizes[_i], order[1001];
    char seen[1001] = { 0 };

    order[n] = 4711;
    sp_permute(9, SP_FOR_TEST, 2, order, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_lt(order[i], n);
        ck_assert_int_eq(seen[order[i]]++, 0);
    }
    ck_assert_uint_eq(order[n], 4711);
}
END_TEST

START_TEST(permutation_is_a_function_of_its_arguments)
{
    size_t x[100], y[100];

    sp_permute(9, SP_FOR_SHUFFLE, 2, x, 100);
    sp_permute(9, SP_FOR_SHUFFLE, 2, y, 100);
    ck_assert_mem_eq(x, y, sizeof x);
    sp_permute(9, SP_FOR_SHUFFLE, 3, y, 100);
    ck_assert_mem_ne(x, y, sizeof x);
    sp_permute(8, SP_FOR_SHUFFLE, 2, y, 100);
    ck_assert_mem_ne(x, y, sizeof x);
    sp_permute(9, SP_FOR_SPLIT, 2, y, 100);
    ck_assert_mem_ne(x, y, sizeof x);
}
END_TEST

/* The 24 orders of four things come equally often: chi-squared with 23 degrees
 * of freedom is below 49.7 in 999 of 1000 cases. */
START_TEST(permutations_are_equally_likely)
{
    enum { N = 24000 };
    int count[256] = { 0 };
    double chi = 0;
    int cells = 0;

    for (uint64_t a = 0; a < N; a++) {
        size_t p[4];
        sp_permute(1, SP_FOR_TEST, a, p, 4);
        count[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i] > 0) {
            chi += (count[i] - N / 24.0) * (count[i] - N / 24.0) / (N / 24.0);
            cells++;
        }
    ck_assert_int_eq(cells, 24);
    ck_assert_double_lt(chi, 49.7);
}
END_TEST

START_TEST(name_hash_is_fnv_1a_folded)
{
    /* Published 64-bit values: "" cbf29ce484222325, "a" af63dc4c8601ec8c,
     * "foobar" 85944171f73967e8. */
    ck_assert_uint_eq(sp_name_hash(""), 0xf29ce484222325 ^ 0xcb);
    ck_assert_uint_eq(sp_name_hash("a"), 0x63dc4c8601ec8c ^ 0xaf);
    ck_assert_uint_eq(sp_name_hash("foobar"), 0x944171f73967e8 ^ 0x85);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("random");
    TCase *tc = tcase_create("random");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, known_answers, 0, sizeof known / sizeof *known);
    tcase_add_test(tc, each_argument_changes_the_number);
    tcase_add_test(tc, unit_covers_zero_to_below_one);
    tcase_add_test(tc, normal_at_exact_points);
    tcase_add_test(tc, normal_has_the_moments_of_a_normal);
    tcase_add_loop_test(tc, permutation_holds_each_index_once, 0, 5);
    tcase_add_test(tc, permutation_is_a_function_of_its_arguments);
    tcase_add_test(tc, permutations_are_equally_likely);
    tcase_add_test(tc, name_hash_is_fnv_1a_folded);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
