/* The backward-weight pass of wide layers over rows. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv.h"

/* Wide enough, with ragged columns and rows, and chunks of rows. */
enum { IN = 523, OUT = 510, NARROW = 70, MOST_ROWS = 301 };

static float *random_floats(size_t count, uint32_t seed)
{
    float *p = malloc(sizeof *p * count);

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    return p;
}

/* dw of a layer, with room for as many rows as there may be. */
static float *weights(const sp_conv_how *how, int out, int n, const float *x,
                      const float *dy, float beta)
{
    sp_conv_shape s = sp_linear_shape(IN, out);
    size_t bytes = sp_conv_scratch(how, &s, MOST_ROWS, SP_BACKWARD_WEIGHT);
    void *scratch = aligned_alloc(SP_ALIGN, (bytes / SP_ALIGN + 1) * SP_ALIGN);
    float *dw = random_floats((size_t)IN * (size_t)out, 3);

    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0xff, bytes);
    for (size_t i = 0; beta == 0.0f && i < (size_t)IN * (size_t)out; i++)
        dw[i] = NAN;
    sp_conv_backward_weight(how, &s, n, x, dy, dw, beta, scratch);
    free(scratch);
    return dw;
}

static bool is_wide(int out, int n)
{
    sp_conv_shape s = sp_linear_shape(IN, out);
    sp_conv_form f = sp_conv_simplify(&s, n);

    return sp_rows_pay(&f);
}

static const int rows[] = { 64, 65, 128, 255, MOST_ROWS };

enum { ROWS = sizeof rows / sizeof *rows };

START_TEST(sums_are_those_of_plain_loops)
{
    float *x = random_floats((size_t)MOST_ROWS * IN, 1);
    float *dy = random_floats((size_t)MOST_ROWS * OUT, 2);
    float *old = random_floats((size_t)IN * OUT, 3);
    sp_conv_how how = { .threads = 2 };

    for (int t = 0; (how.kernels = sp_kernels_at(t)); t++)
        for (int k = 0; k < 2; k++) {
            int n = rows[k == 0 ? 1 : ROWS - 1];
            float beta = k == 0 ? 0.0f : 0.5f;
            float *dw = weights(&how, OUT, n, x, dy, beta);
            ck_assert(is_wide(OUT, n));
            for (size_t i = 0; i < (size_t)IN * OUT; i += 7) {
                double sum = beta == 0.0f ? 0.0 : 0.5 * (double)old[i];
                for (size_t m = 0; m < (size_t)n; m++)
                    sum += (double)dy[m * OUT + i / IN] *
                           (double)x[m * IN + i % IN];
                ck_assert_double_le(fabs((double)dw[i] - sum), 2e-5);
            }
            free(dw);
        }
    free(x);
    free(dy);
    free(old);
}
END_TEST

/* A narrow layer with the first of the outputs goes the other way. */
START_TEST(bits_are_those_of_a_narrow_layer_and_of_any_threads)
{
    float *x = random_floats((size_t)MOST_ROWS * IN, 1);
    float *dy = random_floats((size_t)MOST_ROWS * OUT, 2);
    float *first = random_floats((size_t)MOST_ROWS * NARROW, 2);
    sp_conv_how how = { .threads = 1 };

    for (size_t i = 0; i < (size_t)MOST_ROWS * NARROW; i++)
        first[i] = dy[i / NARROW * OUT + i % NARROW];
    for (int t = 0; (how.kernels = sp_kernels_at(t)); t++)
        for (int k = 0; k < ROWS; k++) {
            float beta = (float)(k % 2);
            float *wide, *narrow, *many;
            how.threads = 1;
            wide = weights(&how, OUT, rows[k], x, dy, beta);
            narrow = weights(&how, NARROW, rows[k], x, first, beta);
            how.threads = 4;
            many = weights(&how, OUT, rows[k], x, dy, beta);
            ck_assert(is_wide(OUT, rows[k]) && !is_wide(NARROW, rows[k]));
            ck_assert_mem_eq(wide, narrow, sizeof *wide * IN * NARROW);
            ck_assert_mem_eq(wide, many, sizeof *wide * IN * OUT);
            free(wide);
            free(narrow);
            free(many);
        }
    free(x);
    free(dy);
    free(first);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conv_rows");
    TCase *tc = tcase_create("conv_rows");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, sums_are_those_of_plain_loops);
    tcase_add_test(tc, bits_are_those_of_a_narrow_layer_and_of_any_threads);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
