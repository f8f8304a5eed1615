#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_fp16;

static ranks_opt options(int count)
{
    return (ranks_opt){ .compressor = &sp_compressor_fp16,
                        .count = count,
                        .rows = 23,
                        .columns = 41 };
}

/* From the smallest to the largest sizes the sum has a half's accuracy: never
 * infinite, never lost. */
START_TEST(fp16_sums_any_size)
{
    static const float sizes[] = { 1e-44f, 1e-38f, 1e-30f, 1e-8f,
                                   1,      6e4f,   1e20f,  8e37f };
    float size = sizes[_i % 8];
    ranks_opt o = options(_i / 8 + 1);
    ranks *r = ranks_new(&o);

    for (int k = 0; k < r->count; k++)
        for (size_t i = 0; i < r->n; i++)
            r->grad[k][i] =
                size * (i == 3 ? 1 : 0.5f * ranks_noise((uint64_t)k, i));
    ranks_step(r);
    for (size_t i = 0; i < r->n; i++) {
        double sum = 0;
        for (int k = 0; k < r->count; k++)
            sum += (double)r->grad[k][i];
        /* Each rank's rounding and each addition's: 2^-11 of 2 * size * ranks,
         * and where floats end, their last place. */
        double far =
            (double)size * r->count * r->count * 0x1p-11 + 0x1p-149 * r->count;
        if (!(fabs((double)r->got[0][i] - sum) <= far))
            ck_abort_msg("%g instead of %g", (double)r->got[0][i], sum);
    }
    ranks_free(r);
}
END_TEST

START_TEST(fp16_halves_the_bytes)
{
    ranks_opt o = options(2);
    ranks *r = ranks_new(&o);

    ranks_step(r);
    ck_assert_uint_eq(sp_packet_size(&r->packet[0]), 2 * r->n);
    ck_assert_uint_eq(r->c->packet_room(&r->slot[0], 0), 4);
    ranks_free(r);
}
END_TEST

/* 1 + 2^-12 is not a half, the sum of two of them is not 2 + 2^-11. */
START_TEST(fp16_rounds)
{
    ranks_opt o = options(2);
    ranks *r = ranks_new(&o);

    for (int k = 0; k < 2; k++) {
        r->grad[k][0] = 1 + 0x1p-12f;
        r->grad[k][1] = 1 + 0x1p-10f;
    }
    ranks_step(r);
    ck_assert_float_eq(r->got[0][0], 2);
    ck_assert_float_eq(r->got[0][1], 2 + 0x1p-9f);
    ranks_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fp16");
    TCase *tc = tcase_create("fp16");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, fp16_sums_any_size, 0, 8 * RANKS_MAX);
    tcase_add_test(tc, fp16_halves_the_bytes);
    tcase_add_test(tc, fp16_rounds);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
