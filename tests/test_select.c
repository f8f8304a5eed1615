#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compress/select.h"
#include "sprat/random.h"

enum { GUARD = 16 };

/* Select, check what holds always, and return the indices, to be freed. */
static uint32_t *select_by(int threads, const float *x, size_t n, double ratio,
                           uint32_t draw, size_t *count)
{
    sp_select p = sp_select_plan(n, ratio, 0.01);
    uint32_t *index = malloc((p.room + GUARD) * sizeof *index);
    float *value = malloc((p.room + GUARD) * sizeof *value);
    uint32_t *peak = malloc((p.blocks + 1) * sizeof *peak);
    char *sent = calloc(n + 1, 1);
    size_t selectable = 0;
    float least = INFINITY, most = 0;

    for (size_t i = 0; i < GUARD; i++) {
        index[p.room + i] = 12345;
        value[p.room + i] = 54321;
    }
    for (size_t b = 0, first = 0; b < p.blocks; b++) {
        size_t rest = n - first;
        size_t size = rest < SP_SELECT_BLOCK ? rest : SP_SELECT_BLOCK;
        peak[b] = sp_select_peak(x + first, size);
        first += size;
        ck_assert_uint_eq(first < n, b + 1 < p.blocks);
    }
    *count = sp_select_largest(
        &p, x, &(sp_select_work){ peak, value, draw, threads }, index);
    for (size_t i = 0; i < GUARD; i++)
        if (index[p.room + i] != 12345 || value[p.room + i] != 54321)
            ck_abort_msg("written %zu elements beyond the room", i + 1);
    ck_assert_uint_le(*count, p.take);
    for (size_t i = 0; i < *count; i++) {
        if (index[i] >= n || (i > 0 && index[i] <= index[i - 1]))
            ck_abort_msg("index %u of %zu", (unsigned)index[i], n);
        if (!isfinite(x[index[i]]) || x[index[i]] == 0)
            ck_abort_msg("%g was selected", (double)x[index[i]]);
        sent[index[i]] = 1;
        least = fminf(least, fabsf(x[index[i]]));
    }
    for (size_t i = 0; i < n; i++) {
        bool can = isfinite(x[i]) && x[i] != 0;
        selectable += can;
        if (can && !sent[i])
            most = fmaxf(most, fabsf(x[i]));
    }
    /* The largest ones, and enough. */
    ck_assert_float_ge(least, most);
    if (*count < selectable)
        ck_assert_double_ge((double)*count, 0.8 * (double)p.take);
    free(sent);
    free(value);
    free(peak);
    return index;
}

static uint32_t *select_from(const float *x, size_t n, double ratio,
                             uint32_t draw, size_t *count)
{
    return select_by(1, x, n, ratio, draw, count);
}

static float noise(uint64_t a, uint64_t b)
{
    uint32_t r[4];

    sp_random(4, SP_FOR_TEST, a, b, r);
    return sp_normal(r[0], r[1]);
}

START_TEST(plans_are_those_of_the_reference)
{
    static const struct {
        size_t n, take, stride, samples, sample_take;
    } plans[] = {
        { 18432, 19, 9, 2048, 3 },
        { 2359296, 2360, 97, 24322, 25 },
        { 102760448, 102761, 97, 1059386, 1060 },
        { 2000, 2, 0, 0, 0 },
        { 1, 1, 0, 0, 0 },
    };
    sp_select p = sp_select_plan(plans[_i].n, 0.001, 0.01);

    ck_assert_uint_eq(p.take, plans[_i].take);
    ck_assert_uint_eq(p.stride, plans[_i].stride);
    ck_assert_uint_eq(p.samples, plans[_i].samples);
    ck_assert_uint_eq(p.sample_take, plans[_i].sample_take);
}
END_TEST

/* Kinds of tensors. */
typedef float element(size_t i);

static float normal(size_t i) { return noise(1, i); }
static float heavy(size_t i) { return powf(noise(2, i), 9); }
static float zeros(size_t i) { return i % 2 ? 0.0f : -0.0f; }
static float equal(size_t i) { return i % 3 ? 0.25f : -0.25f; }
static float few(size_t i) { return i % 1511 == 3 ? noise(3, i) : 0; }
static float one(size_t i) { return i == 7 ? 1e-30f : 0; }
static float rows(size_t i) { return i / 64 % 50 == 1 ? noise(4, i) : 0; }
static float steps(size_t i) { return (float)(i % 5); }
static float tiny(size_t i) { return 0x1p-149f * (float)(i % 700); }
static float broken(size_t i)
{
    return i % 4 == 0 ? NAN : i % 4 == 1 ? -INFINITY : noise(5, i);
}
static float rising(size_t i) { return (float)i; }

static element *const elements[] = { normal, heavy, zeros, equal,  few,   one,
                                     rows,   steps, tiny,  broken, rising };
static const size_t sizes[] = { 0,    1,    2,    9,     127,   128,   129,
                                2000, 2001, 4096, 18432, 70001, 200000 };
static const double ratios[] = { 0.001, 0.004, 0.25, 1 };
enum { ELEMENTS = 11, SIZES = 13, RATIOS = 4 };

START_TEST(the_largest_are_selected)
{
    element *of = elements[_i];

    for (int k = 0; k < SIZES; k++) {
        size_t n = sizes[k], count;
        float *x = malloc((n + 1) * sizeof *x);
        for (size_t i = 0; i < n; i++)
            x[i] = of(i);
        for (int r = 0; r < RATIOS; r++)
            free(select_from(x, n, ratios[r], 17u * (uint32_t)r + 3, &count));
        free(x);
    }
}
END_TEST

/* Threads look at parts of 262,144 elements; `rising` has too many in one. */
START_TEST(threads_change_nothing)
{
    enum { N = 270001 };
    float *x = malloc(N * sizeof *x);

    for (size_t i = 0; i < N; i++)
        x[i] = elements[_i](i);
    for (int r = 0; r < RATIOS; r += 2) {
        size_t alone, together;
        uint32_t *a = select_by(1, x, N, ratios[r], 9, &alone);
        uint32_t *b = select_by(3, x, N, ratios[r], 9, &together);

        ck_assert_uint_eq(alone, together);
        ck_assert_mem_eq(a, b, alone * sizeof *a);
        free(a);
        free(b);
    }
    free(x);
}
END_TEST

/* Whatever the start of the sample. */
START_TEST(all_samples_will_do)
{
    enum { N = 20000 };
    float *x = malloc(N * sizeof *x);
    size_t count;

    for (size_t i = 0; i < N; i++)
        x[i] = noise(6, i);
    for (uint32_t draw = 0; draw < 33; draw++)
        free(select_from(x, N, 0.002, draw, &count));
    free(x);
}
END_TEST

START_TEST(ties_go_to_the_lowest_indices)
{
    enum { N = 10000 };
    float *x = malloc(N * sizeof *x);
    size_t count;
    uint32_t *index;

    for (size_t i = 0; i < N; i++)
        x[i] = i == 9000 ? -3.0f : i >= 100 && i % 2 ? 2.0f : 1.0f;
    index = select_from(x, N, 0.001, 5, &count);
    ck_assert_uint_eq(count, 10);
    for (uint32_t i = 0; i < 9; i++)
        ck_assert_uint_eq(index[i], 101 + 2 * i);
    ck_assert_uint_eq(index[9], 9000);
    free(index);
    free(x);
}
END_TEST

/* A sample that is nothing like the rest: its threshold is far too high, or far
 * too low. */
START_TEST(samples_may_mislead)
{
    enum { N = 100000 };
    sp_select p = sp_select_plan(N, 0.001, 0.01);
    float *x = malloc(N * sizeof *x);
    size_t count;

    ck_assert_uint_gt(p.samples, 0);
    for (size_t i = 0; i < N; i++)
        x[i] = noise(7, i) * (i % p.stride == 2 ? 1e6f : 1);
    free(select_from(x, N, 0.001, 2, &count));
    for (size_t i = 0; i < N; i++)
        x[i] = noise(7, i) * (i % p.stride == 2 ? 1e-6f : 1);
    free(select_from(x, N, 0.001, 2, &count));
    ck_assert_uint_eq(count, 100);
    /* Two large elements in the sample, all others the 5th lower threshold
     * away. */
    for (size_t i = 0; i < N; i++)
        x[i] = (i % p.stride == 2 ? 1.0f : 0.4f) + 1e-3f * noise(8, i);
    free(select_from(x, N, 0.001, 2, &count));
    free(x);
}
END_TEST

START_TEST(selecting_is_a_function_of_its_arguments)
{
    enum { N = 30000 };
    float *x = malloc(N * sizeof *x);
    size_t a_count, b_count;
    uint32_t *a, *b;

    for (size_t i = 0; i < N; i++)
        x[i] = noise(9, i);
    a = select_from(x, N, 0.004, 1, &a_count);
    b = select_from(x, N, 0.004, 1, &b_count);
    ck_assert_uint_eq(a_count, b_count);
    ck_assert_mem_eq(a, b, a_count * sizeof *a);
    free(a);
    free(b);
    free(x);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("select");
    TCase *tc = tcase_create("select");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, plans_are_those_of_the_reference, 0, 5);
    tcase_add_loop_test(tc, the_largest_are_selected, 0, ELEMENTS);
    tcase_add_loop_test(tc, threads_change_nothing, 0, ELEMENTS);
    tcase_add_test(tc, all_samples_will_do);
    tcase_add_test(tc, ties_go_to_the_lowest_indices);
    tcase_add_test(tc, samples_may_mislead);
    tcase_add_test(tc, selecting_is_a_function_of_its_arguments);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
