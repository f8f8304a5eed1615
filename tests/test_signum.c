/* Signum: votes, packets and momenta by hand, and against sums in double. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_signum;

static ranks *make(int count, int n, const char *setting)
{
    ranks_opt o = { .compressor = &sp_compressor_signum,
                    .settings = { setting },
                    .count = count,
                    .rows = 1,
                    .columns = n };

    return ranks_new(&o);
}

/* ---- Votes --------------------------------------------------------------- */

/* The first step, where momenta have the signs of gradients: with one rank
 * they are the step, two that differ cancel, and of three the two that agree
 * decide, however large the third is. */
static const struct {
    int count;
    float grad[3][4], want[4];
} votes[] = {
    { 1, { { 3, -1e-6f, 0.5f, -2 } }, { 1, -1, 1, -1 } },
    { 2, { { 3, -1, 5, -2 }, { 1, -9, -1, 7 } }, { 1, -1, 0, 0 } },
    { 3,
      { { 900, -900, 1, -1 }, { -1, 1, 1, -1 }, { -1, 1, -900, -900 } },
      { -1, 1, 1, -1 } },
};

START_TEST(votes_by_hand)
{
    ranks *r = make(votes[_i].count, 4, NULL);

    for (int k = 0; k < r->count; k++)
        memcpy(r->grad[k], votes[_i].grad[k], sizeof votes[_i].grad[k]);
    ranks_step(r);
    for (size_t i = 0; i < r->n; i++)
        ck_assert_float_eq(r->got[0][i], votes[_i].want[i]);
    ranks_free(r);
}
END_TEST

/* With 0.9: m = 0.1 x 1; then 0.09 - 0.05, 0.036 - 0.1, -0.0576 + 0.05.
 * Without momentum: the signs of the gradients. */
START_TEST(momentum_by_hand)
{
    static const float grad[] = { 1, -0.5f, -1, 0.5f };
    static const float want[2][4] = { { 1, 1, -1, -1 }, { 1, -1, -1, 1 } };
    ranks *r = make(1, 1, _i == 0 ? NULL : "momentum=0");

    for (int t = 0; t < 4; t++) {
        r->grad[0][0] = grad[t];
        ranks_step(r);
        ck_assert_float_eq(r->got[0][0], want[_i][t]);
    }
    if (_i == 0)
        ck_assert_float_eq_tol(r->slot[0].state[0][0], -0.0076f, 1e-6f);
    ranks_free(r);
}
END_TEST

/* Sizes about those of bytes, of what is looked at together and of what a
 * thread takes. */
static const int sizes[] = { 1, 7, 8, 9, 63, 64, 65, 1000, 65535, 70001 };
enum { SIZES = sizeof sizes / sizeof *sizes };

START_TEST(votes_as_in_double)
{
    ranks *r = make(_i / SIZES + 1, sizes[_i % SIZES], NULL);
    double *m = calloc(r->n * RANKS_MAX, sizeof *m);

    for (int t = 0; t < 4; t++) {
        for (int k = 0; k < r->count; k++)
            for (size_t i = 0; i < r->n; i++) {
                double *at = &m[r->n * (size_t)k + i];

                r->grad[k][i] = ranks_noise((uint64_t)(8 * t + k), i);
                *at = 0.9 * *at + 0.1 * (double)r->grad[k][i];
            }
        ranks_step(r);
        ck_assert_uint_eq(r->packet[0].headers, 1);
        ck_assert_uint_eq(r->packet[0].values, (r->n + 7) / 8);
        for (size_t i = 0; i < r->n; i++) {
            int sum = 0, near = 0;

            for (int k = 0; k < r->count; k++) {
                double x = m[r->n * (size_t)k + i];
                sum += x < 0 ? -1 : 1;
                near |= fabs(x) < 1e-6; /* of which rounding decides */
            }
            if (!near && r->got[0][i] != (float)((sum > 0) - (sum < 0)))
                ck_abort_msg("%g for a sum of %d", (double)r->got[0][i], sum);
        }
    }
    free(m);
    ranks_free(r);
}
END_TEST

/* ---- Momenta of 0 -------------------------------------------------------- */

/* Beside an element that has a gradient: a rank's vote alternates, and two
 * neighbours' cancel. */
START_TEST(zeros_cancel)
{
    ranks *r = make(_i + 1, 2, NULL);
    float sum = 0;

    for (int t = 0; t < 4; t++) {
        for (int k = 0; k < r->count; k++)
            r->grad[k][0] = 1;
        ranks_step(r);
        ck_assert_float_eq(r->got[0][0], 1);
        ck_assert_float_eq(r->got[0][1], r->count == 2 ? 0.0f
                                         : t % 2 == 0  ? 1.0f
                                                       : -1.0f);
        sum += r->got[0][1];
    }
    ck_assert_float_eq(sum, 0);
    ranks_free(r);
}
END_TEST

/* A rank that has no gradient leaves the vote to the others. */
START_TEST(who_has_nothing_has_no_vote)
{
    ranks *r = make(3, 9, NULL);

    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < r->n; i++)
            r->grad[1][i] = i % 2 ? 1 : -1;
        ranks_step(r);
        ck_assert_uint_eq(sp_packet_size(&r->packet[0]), 1);
        ck_assert_uint_eq(sp_packet_size(&r->packet[1]), 3);
        for (size_t i = 0; i < r->n; i++)
            ck_assert_float_eq(r->got[0][i], i % 2 ? 1.0f : -1.0f);
    }
    ranks_free(r);
}
END_TEST

/* What has long had no gradient ends at 0: 0.9^k falls below the normal floats,
 * and stays among the others for ever. */
START_TEST(decay_ends)
{
    ranks *r = make(1, 1, "momentum=0.9");
    int steps = 0;

    r->grad[0][0] = 1;
    ranks_step(r);
    r->grad[0][0] = 0;
    for (; steps < 1000 && r->slot[0].state[0][0] != 0; steps++)
        ranks_step(r);
    /* 0.1 x 0.9^k < 2^-126 from k = 808 on. */
    ck_assert_int_ge(steps, 800);
    ck_assert_int_le(steps, 810);
    ck_assert_float_eq(r->got[0][0], 0);
    ranks_free(r);
}
END_TEST

/* ---- Packets ------------------------------------------------------------- */

START_TEST(packets_by_hand)
{
    /* - + + - - + + +, - +: bits 0, 3 and 4; bit 0. */
    static const float grad[] = { -1, 2, 3, -4, -5, 6, 7, 8, -9, 10 };
    static const uint8_t bytes[] = { 0, 0x19, 0x01 };
    ranks *r = make(1, 10, NULL);

    memcpy(r->grad[0], grad, sizeof grad);
    ranks_step(r);
    ck_assert_uint_eq(sp_packet_size(&r->packet[0]), sizeof bytes);
    ck_assert_mem_eq(r->packet[0].bytes, bytes, sizeof bytes);
    ck_assert_double_eq(r->c->nominal_bytes(&r->slot[0], 0), 1.25);
    ranks_free(r);
}
END_TEST

static const struct {
    uint8_t bytes[5];
    size_t size;
    sp_err want;
} packets[] = {
    { { 0, 0x19, 0x01 }, 3, SP_OK },
    { { 1 }, 1, SP_OK },
    { { 2 }, 1, SP_OK },
    { { 0 }, 0, SP_EFORMAT },
    { { 0 }, 1, SP_EFORMAT },
    { { 0, 0x19 }, 2, SP_EFORMAT },
    { { 0, 0x19, 0x01, 0 }, 4, SP_EFORMAT },
    { { 0, 0x19, 0x04 }, 3, SP_EFORMAT }, /* an eleventh element */
    { { 0, 0x19, 0x80 }, 3, SP_EFORMAT },
    { { 1, 0x19, 0x01 }, 3, SP_EFORMAT },
    { { 2, 0x19, 0x01 }, 3, SP_EFORMAT },
    { { 3, 0x19, 0x01 }, 3, SP_EFORMAT },
    { { 255 }, 1, SP_EFORMAT },
};

START_TEST(damaged_packets_are_refused)
{
    sp_slot s = { .name = "w", .n = 10, .ndim = 1, .dims = { 10 } };
    float grad[10] = { 0 };

    ck_assert_int_eq(sp_compressor_signum.decode(&s, 0, packets[_i].bytes,
                                                 packets[_i].size, grad),
                     packets[_i].want);
    if (packets[_i].want != SP_OK)
        ck_assert_ptr_nonnull(strstr(sp_last_error(), "packet of w: "));
    else
        ck_assert_int_eq(!isfinite(grad[0]), packets[_i].bytes[0] == 2);
}
END_TEST

/* A momentum that is not finite reaches all ranks, wherever it is. */
START_TEST(not_finite_is_told)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    ranks *r = make(3, 70001, NULL);

    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < r->n; i++)
            r->grad[k][i] = ranks_noise((uint64_t)k, i);
    r->grad[1][_i < 3 ? r->n - 1 : 3] = bad[_i % 3];
    ranks_step(r);
    ck_assert_uint_eq(sp_packet_size(&r->packet[1]), 1);
    ck_assert(!isfinite(r->got[0][0]));
    ranks_free(r);
}
END_TEST

/* ---- Settings ------------------------------------------------------------ */

static const struct {
    sp_compress_use use;
    const char *text; /* part of the message; NULL: fine */
} checks[] = {
    { { "sgd", true, 0, false, 0 }, NULL },
    { { "adam", false, 0, false, 0 }, "optim.name=sgd" },
    { { "sgd", true, 0.9, false, 0 }, "set optim.momentum=0" },
    { { "sgd", true, 0.9, true, 0 }, "=0 and optim.nesterov=false" },
    { { "sgd", true, 0, false, 0.25 }, "set optim.clip=0" },
};

START_TEST(settings_are_checked)
{
    ranks r = { 0 };
    sp_err e;

    ranks_settings(&r, &sp_compressor_signum, NULL);
    e = sp_compressor_check(r.c, r.own, &checks[_i].use);
    ck_assert_int_eq(e, checks[_i].text ? SP_ECONFIG : SP_OK);
    if (e != SP_OK)
        ck_assert_msg(strncmp(sp_last_error(), "compress.name: ", 15) == 0 &&
                          strstr(sp_last_error(), checks[_i].text),
                      "%s", sp_last_error());
    sp_config_free(r.config);
    sp_registry_free(r.registry);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *s = suite_create("signum");
    TCase *tc = tcase_create("signum");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, votes_by_hand, 0, COUNT(votes));
    tcase_add_loop_test(tc, momentum_by_hand, 0, 2);
    tcase_add_loop_test(tc, votes_as_in_double, 0, SIZES * RANKS_MAX);
    tcase_add_loop_test(tc, zeros_cancel, 0, 3);
    tcase_add_test(tc, who_has_nothing_has_no_vote);
    tcase_add_test(tc, decay_ends);
    tcase_add_test(tc, packets_by_hand);
    tcase_add_loop_test(tc, damaged_packets_are_refused, 0, COUNT(packets));
    tcase_add_loop_test(tc, not_finite_is_told, 0, 6);
    tcase_add_loop_test(tc, settings_are_checked, 0, COUNT(checks));
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
