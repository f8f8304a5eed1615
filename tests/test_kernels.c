/* The choice among instruction sets. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/table.h"

static const char *const names[] = { "avx512", "avx2", "neon", "base" };

enum { NAMES = sizeof names / sizeof *names };

START_TEST(every_cpu_has_the_base)
{
    ck_assert_ptr_nonnull(sp_kernels_find("base"));
    ck_assert_str_eq(sp_kernels_isa(sp_kernels_find("base")), "base");
}
END_TEST

START_TEST(auto_is_the_first_of_the_list)
{
    ck_assert_ptr_nonnull(sp_kernels_at(0));
    ck_assert_ptr_eq(sp_kernels_find(NULL), sp_kernels_at(0));
    ck_assert_ptr_eq(sp_kernels_find("auto"), sp_kernels_at(0));
}
END_TEST

START_TEST(what_this_cpu_lacks_is_not_found)
{
    static const char *const wrong[] = {
        "",
        "AVX2",
        "avx",
        "avx512 ",
#if defined(__aarch64__)
        "avx2",
#else
        "neon",
#endif
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_ptr_null(sp_kernels_find(wrong[i]));
#if defined(__x86_64__)
    ck_assert_int_eq(sp_kernels_find("avx2") != NULL,
                     __builtin_cpu_supports("avx2") &&
                         __builtin_cpu_supports("fma"));
#endif
}
END_TEST

/* Listed once each, wider vectors first, and found by their names. */
START_TEST(list_is_in_order)
{
    const sp_kernels *k;
    int i = 0;
    size_t last = 0;

    for (; (k = sp_kernels_at(i)); i++) {
        size_t at = 0;
        while (at < NAMES && strcmp(names[at], sp_kernels_isa(k)) != 0)
            at++;
        ck_assert_uint_lt(at, NAMES);
        ck_assert(i == 0 || at > last);
        ck_assert_ptr_eq(sp_kernels_find(sp_kernels_isa(k)), k);
        last = at;
    }
    ck_assert_uint_eq(last, NAMES - 1);
    ck_assert_ptr_null(sp_kernels_at(i));
}
END_TEST

/* A loop that the compiler had emptied would be faster than any machine: 64
 * multiply-adds of 16 floats in a nanosecond. */
START_TEST(peak_is_what_a_machine_can_do)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        double peak = sp_kernels_peak(k, 1, 0.02);
        ck_assert_double_gt(peak, 0.05);
        ck_assert_double_lt(peak, 2048);
    }
}
END_TEST

/* The same for memory: 2 TB/s on one thread. */
START_TEST(bandwidth_is_what_memory_can_do)
{
    double rate = sp_kernels_bandwidth(sp_kernels_find("base"), 2, 0.02);

    ck_assert_double_gt(rate, 0.05);
    ck_assert_double_lt(rate, 2048);
}
END_TEST

/* At lengths around those of vectors; nothing behind the end is touched. The
 * values are whole, so that a fused multiply-add gives the same. */
START_TEST(triad_is_a_sum_of_products)
{
    float a[40], b[40], c[40];
    const sp_kernels *k;

    for (int j = 0; j < 40; j++) {
        b[j] = (float)j;
        c[j] = (float)(7 * j % 11);
    }
    for (int i = 0; (k = sp_kernels_at(i)); i++)
        for (int n = 0; n < 40; n++) {
            memset(a, 0, sizeof a);
            k->rows->triad((size_t)n, b, c, 3.0f, a);
            for (int j = 0; j < 40; j++)
                ck_assert(a[j] == (j < n ? b[j] + 3.0f * c[j] : 0.0f));
        }
}
END_TEST

START_TEST(blas_says_what_it_is)
{
    ck_assert_ptr_nonnull(strstr(sp_blas_version(), "OpenBLAS"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernels");
    TCase *tc = tcase_create("kernels");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60); /* large arrays, under sanitizers */
    tcase_add_test(tc, every_cpu_has_the_base);
    tcase_add_test(tc, auto_is_the_first_of_the_list);
    tcase_add_test(tc, what_this_cpu_lacks_is_not_found);
    tcase_add_test(tc, list_is_in_order);
    tcase_add_test(tc, peak_is_what_a_machine_can_do);
    tcase_add_test(tc, bandwidth_is_what_memory_can_do);
    tcase_add_test(tc, triad_is_a_sum_of_products);
    tcase_add_test(tc, blas_says_what_it_is);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
