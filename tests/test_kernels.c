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

/* Batch norm's arrays, 3 channels in wide rows of 96, up to a part of a row
 * that is no whole vector. */
enum { WIDE = 96, FLOATS = 9 * WIDE + 37, ROOM = 10 * WIDE };
static const int norm_ends[] = { FLOATS, 4 * WIDE, WIDE + 1, 3 };

typedef struct norm_arrays {
    _Alignas(SP_ALIGN) float y[ROOM], dx[ROOM], dadd[ROOM], x[ROOM], add[ROOM],
        dy[ROOM], tables[5][WIDE];
} norm_arrays;

static void run_norm(const sp_kernels *k, norm_arrays *n, int count, int how)
{
    sp_norm_part a = { .count = (size_t)count,
                       .wide = WIDE,
                       .stream = how & 1,
                       .relu = how & 2,
                       .x = n->x,
                       .add = how & 4 ? n->add : NULL,
                       .y = n->y,
                       .mean = n->tables[0],
                       .scale = n->tables[1],
                       .shift = n->tables[2],
                       .slope = n->tables[3],
                       .offset = n->tables[4],
                       .dy = n->dy,
                       .dx = n->dx,
                       .dadd = how & 4 ? n->dadd : NULL,
                       .dadd_beta = how & 8 ? 0.5f : 0.0f };

    for (size_t i = 0; i < sizeof *n / sizeof(float); i++)
        ((float *)n)[i] = (float)((int)(i * 37 % 101) - 50) / 8;
    k->rows->apply(&a);
    k->rows->back_apply(&a);
}

START_TEST(norms_write_the_same_past_the_caches)
{
    static norm_arrays cached, streamed;
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++)
        for (int how = 0; how < 16; how += 2)
            for (int e = 0; e < 4; e++) {
                run_norm(k, &cached, norm_ends[e], how);
                run_norm(k, &streamed, norm_ends[e], how | 1);
                ck_assert_mem_eq(&cached, &streamed, sizeof cached);
            }
}
END_TEST

START_TEST(last_cache_has_a_size)
{
    ck_assert_uint_ge(sp_last_cache(), (size_t)32 << 20);
    ck_assert_uint_lt(sp_last_cache(), (size_t)1 << 40);
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
    tcase_add_test(tc, norms_write_the_same_past_the_caches);
    tcase_add_test(tc, last_cache_has_a_size);
    tcase_add_test(tc, blas_says_what_it_is);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
