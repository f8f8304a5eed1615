#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_terngrad;

START_TEST(terngrad_is_right_on_average)
{
    enum { STEPS = 4000, N = 40 };
    ranks_opt o = { .compressor = &sp_compressor_terngrad,
                    .settings = { "sigma=0" },
                    .count = 2,
                    .rows = 5,
                    .columns = 8 };
    ranks *r = ranks_new(&o);
    double sum[N] = { 0 };

    for (int t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < N; i++) {
            r->grad[0][i] = ((float)i - 13) / 32;
            r->grad[1][i] = ((float)i - 29) / 16;
        }
        ranks_step(r);
        for (size_t i = 0; i < N; i++)
            sum[i] += (double)r->got[0][i];
    }
    for (size_t i = 0; i < N; i++) {
        /* The variance of s * Bernoulli(|g| / s) is |g| (s - |g|); 5 standard
         * errors. */
        double a = fabs((double)r->grad[0][i]), b = fabs((double)r->grad[1][i]);
        double var = a * (26.0 / 32 - a) + b * (29.0 / 16 - b);
        double mean = (double)r->grad[0][i] + (double)r->grad[1][i];
        ck_assert_double_eq_tol(sum[i] / STEPS, mean,
                                5 * sqrt(var / STEPS) + 1e-6);
    }
    ranks_free(r);
}
END_TEST

START_TEST(terngrad_by_hand)
{
    ranks_opt o = { .compressor = &sp_compressor_terngrad,
                    .settings = { "sigma=0" },
                    .count = 1,
                    .rows = 2,
                    .columns = 3 };
    static const float grad[] = { 0.5f, -0.5f, 0, 0.5f, 0, -0.5f };
    /* 1, 2, 0, 1; 0, 2: two bits each, the first lowest. */
    static const uint8_t bytes[] = { 0, 0, 0, 0x3F, 0x49, 0x08 };
    ranks *r = ranks_new(&o);

    /* Of the largest size, each is sent for sure. */
    memcpy(r->grad[0], grad, sizeof grad);
    ranks_step(r);
    ck_assert_uint_eq(sp_packet_size(&r->packet[0]), sizeof bytes);
    ck_assert_mem_eq(r->packet[0].bytes, bytes, sizeof bytes);
    ck_assert_mem_eq(r->got[0], grad, sizeof grad);
    ranks_free(r);
}
END_TEST

/* One in a hundred is 10, the others are 0.1: the deviation is 1.005, so that
 * 2.5 of them are 2.512. */
START_TEST(terngrad_clips)
{
    ranks_opt o = { .compressor = &sp_compressor_terngrad,
                    .count = 1,
                    .rows = 10,
                    .columns = 10 };
    ranks *r = ranks_new(&o);
    float most = 0;

    for (size_t i = 0; i < r->n; i++)
        r->grad[0][i] = i == 50 ? -10 : 0.1f;
    ranks_step(r);
    for (size_t i = 0; i < r->n; i++)
        most = fmaxf(most, fabsf(r->got[0][i]));
    ck_assert_float_eq_tol(most, 2.5f * sqrtf((100 + 99 * 0.01f) / 100), 1e-5f);
    ck_assert_float_eq(r->got[0][50], -most);
    ranks_free(r);
}
END_TEST

/* Ranks and steps draw different numbers. */
START_TEST(terngrad_draws_anew)
{
    ranks_opt o = { .compressor = &sp_compressor_terngrad,
                    .count = 2,
                    .rows = 20,
                    .columns = 20 };
    ranks *r = ranks_new(&o);
    uint8_t first[200];
    size_t size;

    for (size_t i = 0; i < r->n; i++)
        r->grad[0][i] = r->grad[1][i] = ranks_noise(2, i);
    ranks_step(r);
    size = sp_packet_size(&r->packet[0]);
    ck_assert_uint_eq(size, 4 + 100);
    ck_assert_int_ne(memcmp(r->packet[0].bytes, r->packet[1].bytes, size), 0);
    memcpy(first, r->packet[0].bytes, size);
    ranks_step(r);
    ck_assert_int_ne(memcmp(r->packet[0].bytes, first, size), 0);
    ranks_free(r);
}
END_TEST

START_TEST(terngrad_refuses_other_codes)
{
    static const struct {
        uint8_t bytes[6];
        size_t size;
        const char *text;
    } cases[] = {
        { { 0, 0, 0, 0x3F, 0x03, 0 }, 6, "byte 4" },
        { { 0, 0, 0, 0x3F, 0, 0x10 }, 6, "byte 5" },
        { { 0, 0, 0, 0xBF, 0, 0 }, 6, "its scale" },
        { { 0, 0, 0x80, 0x7F, 0, 0 }, 6, "its scale" },
        { { 0, 0, 0xC0, 0x7F, 0, 0 }, 6, "its scale" },
        { { 0, 0, 0, 0x3F, 0 }, 5, "5 bytes instead of 6" },
    };
    sp_slot s = { .name = "w", .n = 6 };
    float grad[6] = { 0 };

    ck_assert_int_eq(sp_compressor_terngrad.decode(&s, 0, cases[_i].bytes,
                                                   cases[_i].size, grad),
                     SP_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), cases[_i].text));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("terngrad");
    TCase *tc = tcase_create("terngrad");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, terngrad_is_right_on_average);
    tcase_add_test(tc, terngrad_by_hand);
    tcase_add_test(tc, terngrad_clips);
    tcase_add_test(tc, terngrad_draws_anew);
    tcase_add_loop_test(tc, terngrad_refuses_other_codes, 0, 6);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
