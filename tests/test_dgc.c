#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_dgc;

enum { U, V, ROWS = 13, COLUMNS = 17, N = ROWS * COLUMNS };

static float noise(int step, int rank, size_t i)
{
    return ranks_noise((uint64_t)(step * 8 + rank), i);
}

static ranks_opt options(int count, const double *weight)
{
    ranks_opt o = { .compressor = &sp_compressor_dgc,
                    .count = count,
                    .rows = ROWS,
                    .columns = COLUMNS };

    for (int k = 0; weight && k < count; k++)
        o.weight[k] = weight[k];
    return o;
}

/* Shares of a batch; of 2 and 3 ranks, unequal. */
static const double shares[RANKS_MAX][RANKS_MAX] = {
    { 1 }, { 0.75, 0.25 }, { 0.5, 0.375, 0.125 }, { 0.25, 0.25, 0.25, 0.25 }
};

/* ---- Ratio 1 without masking is momentum SGD ----------------------------- */

static const struct {
    double momentum;
    bool nesterov;
    double decay;
} rules[] = {
    { 0, false, 0 },   { 0.9, false, 0 },   { 0.9, true, 0 },
    { 0, false, 0.1 }, { 0.9, false, 0.1 }, { 0.9, true, 0.1 },
};
enum { RULES = sizeof rules / sizeof *rules, STEPS = 30 };

#define RATE 0.05

/* The gradient of rank k at weight w: its share of a bowl, and noise. */
static double slope(int step, const sp_slot *s, size_t i, double w)
{
    double target = (double)ranks_noise(1000, i);

    return s->weight * (w - target) + 0.1 * (double)noise(step, s->rank, i);
}

/* Plain SGD, decay being part of the gradient. */
static double plain(const ranks *r, int rule, size_t i)
{
    double w = 1, buf = 0, m = rules[rule].momentum;

    for (int t = 0; t < STEPS; t++) {
        double g = rules[rule].decay * w;

        for (int k = 0; k < r->count; k++)
            g += slope(t, &r->slot[k], i, w);
        buf = m * buf + g;
        w -= RATE * (rules[rule].nesterov ? g + m * buf : buf);
    }
    return w;
}

START_TEST(ratio_1_is_momentum_sgd)
{
    int rule = _i / RANKS_MAX, count = _i % RANKS_MAX + 1;
    ranks_opt o = options(count, shares[count - 1]);
    float w[N], decayed[N] = { 0 };
    double m = rules[rule].momentum;
    ranks *r;

    o.settings[0] = "masking=false";
    o.momentum = m;
    o.nesterov = rules[rule].nesterov;
    r = ranks_new(&o);
    for (size_t i = 0; i < N; i++)
        w[i] = 1;
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < count; k++)
            for (size_t i = 0; i < N; i++)
                r->grad[k][i] = (float)slope(t, &r->slot[k], i, (double)w[i]);
        ranks_step(r);
        /* The step of plain SGD; decay has a momentum of its own. */
        for (size_t i = 0; i < N; i++) {
            float d = (float)rules[rule].decay * w[i];
            decayed[i] = (float)m * decayed[i] + d;
            d = o.nesterov ? d + (float)m * decayed[i] : decayed[i];
            w[i] -= (float)RATE * (r->got[0][i] + d);
        }
    }
    for (size_t i = 0; i < N; i++)
        if (!(fabs((double)w[i] - plain(r, rule, i)) < 1e-5))
            ck_abort_msg("%.8f instead of %.8f", (double)w[i],
                         plain(r, rule, i));
    ranks_free(r);
}
END_TEST

/* Dense steps first: the hand-over loses nothing of the momentum. */
START_TEST(momentum_is_taken_over)
{
    enum { DENSE = 7 };
    int rule = _i / RANKS_MAX, count = _i % RANKS_MAX + 1;
    ranks_opt o = options(count, shares[count - 1]);
    float w[N], buf[N] = { 0 };
    ranks *r;

    o.settings[0] = "masking=false";
    o.momentum = rules[rule].momentum;
    o.nesterov = rules[rule].nesterov;
    r = ranks_new(&o);
    for (size_t i = 0; i < N; i++)
        w[i] = 1;
    for (int t = 0; t < STEPS; t++) {
        if (t == DENSE)
            for (int k = 0; k < count; k++)
                r->c->take_over(&r->slot[k], buf);
        for (int k = 0; k < count; k++)
            for (size_t i = 0; i < N; i++)
                r->grad[k][i] = (float)slope(t, &r->slot[k], i, (double)w[i]);
        if (t >= DENSE)
            ranks_step(r);
        for (size_t i = 0; i < N; i++) {
            float m = (float)o.momentum, g = 0;
            for (int k = 0; k < count; k++)
                g += r->grad[k][i];
            buf[i] = m * buf[i] + g;
            g = o.nesterov ? g + m * buf[i] : buf[i];
            w[i] -= (float)RATE * (t >= DENSE ? r->got[0][i] : g);
        }
    }
    for (size_t i = 0; i < N; i++)
        if (!(fabs((double)w[i] - plain(r, rule, i)) < 1e-5))
            ck_abort_msg("%.8f instead of %.8f", (double)w[i],
                         plain(r, rule, i));
    ranks_free(r);
}
END_TEST

/* ---- What is sent and what is kept --------------------------------------- */

/* Multiples of 2^-12 below 4: their sums are exact. */
static float exact(int step, int rank, size_t i)
{
    return floorf(16384 * powf(noise(step, rank, i), 3)) * 0x1p-12f;
}

static const char *const forms[][2] = {
    { "index=run16", "values=float" },
    { "index=index32", "values=float" },
    { "index=run16", "values=fp16" },
    { "index=index32", "values=fp16" },
};
enum { FORMS = 4 };

/* Momentum 0: all sent so far and all that waits are all gradients so far, to
 * the bit, with halfs too. */
START_TEST(nothing_is_lost)
{
    int count = _i % RANKS_MAX + 1, form = _i / RANKS_MAX;
    ranks_opt o = options(count, NULL);
    double put[N] = { 0 }, got[N] = { 0 };
    ranks *r;

    o.settings[0] = forms[form][0];
    o.settings[1] = forms[form][1];
    o.ratio = 0.05;
    r = ranks_new(&o);
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < count; k++)
            for (size_t i = 0; i < N; i++)
                put[i] += (double)(r->grad[k][i] = exact(t, k, i));
        ranks_step(r);
        for (size_t i = 0; i < N; i++) {
            double kept = 0;
            got[i] += (double)r->got[0][i];
            for (int k = 0; k < count; k++)
                kept += (double)r->slot[k].state[V][i];
            if (got[i] + kept != put[i])
                ck_abort_msg("step %d, element %zu: %g + %g of %g", t, i,
                             got[i], kept, put[i]);
        }
    }
    ranks_free(r);
}
END_TEST

/* Where something was sent, v is 0 (of halfs: less than what rounding takes),
 * and u is 0 exactly with masking. */
START_TEST(masking_forgets_momentum_where_sent)
{
    bool masking = _i % 2, half = _i / 2 % 2, nesterov = _i / 4;
    ranks_opt o = options(1, NULL);
    size_t sent = 0;
    ranks *r;

    o.settings[0] = masking ? "masking=true" : "masking=false";
    o.settings[1] = half ? "values=fp16" : "values=float";
    o.ratio = 0.02;
    o.momentum = 0.9;
    o.nesterov = nesterov;
    r = ranks_new(&o);
    for (int t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < N; i++)
            r->grad[0][i] = noise(t, 0, i);
        ranks_step(r);
        for (size_t i = 0; i < N; i++) {
            float u = r->slot[0].state[U][i], v = r->slot[0].state[V][i];
            float x = r->got[0][i];
            float most = half ? fabsf(x) * 0x1p-11f : 0;
            sent += x != 0;
            if (x == 0 ? u == 0 || v == 0
                       : fabsf(v) > most || (u == 0) != masking)
                ck_abort_msg("sent %g: u %g, v %g", (double)x, (double)u,
                             (double)v);
        }
    }
    /* ceil(221 * 0.02) = 5 a step. */
    ck_assert_uint_eq(sent, 5 * STEPS);
    ranks_free(r);
}
END_TEST

/* By hand, element by element: two steps of momentum 1/2 on (4, 1) with room
 * for one entry of two. */
START_TEST(two_steps_by_hand)
{
    static const struct {
        const char *masking;
        bool nesterov;
        float first, second; /* what is sent of element 0, then of 1 */
        float u[2], v[2];    /* at the end */
    } cases[] = {
        /* u = 4, 1; v = 4, 1: sent 4. u = 4 or 2+4, 1.5; v = 4, 2.5: the
         * first again; so the second step has gradients (0, 1). */
        { "masking=true", false, 4, 2.5f, { 0, 0 }, { 0, 0 } },
        { "masking=false", false, 4, 2.5f, { 2, 1.5f }, { 2, 0 } },
        /* u = 2, 0.5; v = 6, 1.5: sent 6. Then u = 0 or 1, 0.75; v = 0 or 1,
         * 1.5 + 0.75 + 1 = 3.25. */
        { "masking=true", true, 6, 3.25f, { 0, 0 }, { 0, 0 } },
        { "masking=false", true, 6, 3.25f, { 1, 0.75f }, { 1, 0 } },
    };
    ranks_opt o = { .compressor = &sp_compressor_dgc,
                    .settings = { cases[_i].masking },
                    .count = 1,
                    .rows = 1,
                    .columns = 2,
                    .ratio = 0.5,
                    .momentum = 0.5,
                    .nesterov = cases[_i].nesterov };
    ranks *r = ranks_new(&o);

    r->grad[0][0] = 4;
    r->grad[0][1] = 1;
    ranks_step(r);
    ck_assert_float_eq(r->got[0][0], cases[_i].first);
    ck_assert_float_eq(r->got[0][1], 0);
    r->grad[0][0] = 0;
    ranks_step(r);
    ck_assert_float_eq(r->got[0][0], 0);
    ck_assert_float_eq(r->got[0][1], cases[_i].second);
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(r->slot[0].state[U][i], cases[_i].u[i]);
        ck_assert_float_eq(r->slot[0].state[V][i], cases[_i].v[i]);
    }
    ranks_free(r);
}
END_TEST

/* Without its correction, momentum is the optimizer's: v = v + g. */
START_TEST(correction_can_be_switched_off)
{
    ranks_opt o = options(2, NULL);
    ranks *r;

    o.settings[0] = "momentum_correction=false";
    o.momentum = 0.9;
    r = ranks_new(&o);
    ck_assert(!r->c->owns_momentum(r->own));
    ck_assert_uint_eq(r->c->state_floats(&r->slot[0], U), 0);
    ck_assert_uint_eq(r->c->state_floats(&r->slot[0], V), N);
    for (int t = 0; t < 3; t++) {
        for (size_t i = 0; i < N; i++)
            r->grad[0][i] = r->grad[1][i] = exact(t, 0, i);
        ranks_step(r);
        for (size_t i = 0; i < N; i++)
            if (r->got[0][i] != 2 * r->grad[0][i])
                ck_abort_msg("%g of two times %g", (double)r->got[0][i],
                             (double)r->grad[0][i]);
    }
    ranks_free(r);
}
END_TEST

/* A rank that got no samples has gradients of 0 and goes on sending. */
START_TEST(ranks_without_samples_send_what_waits)
{
    ranks_opt o = options(2, NULL);
    ranks *r;
    int steps;

    o.ratio = 0.1;
    r = ranks_new(&o);
    for (size_t i = 0; i < N; i++)
        r->grad[1][i] = exact(0, 1, i);
    ranks_step(r);
    memset(r->grad[1], 0, N * sizeof(float));
    r->slot[0].weight = 1;
    r->slot[1].weight = 0;
    for (steps = 1; sp_packet_size(&r->packet[1]) > 4; steps++) {
        ck_assert_int_lt(steps, 20);
        ranks_step(r);
    }
    for (size_t i = 0; i < N; i++)
        ck_assert_float_eq(r->slot[1].state[V][i], 0);
    /* A tenth of 221 elements, 23, in each step. */
    ck_assert_int_ge(steps, N / 23);
    ranks_free(r);
}
END_TEST

/* ---- Clipping ------------------------------------------------------------ */

/* The scale acts on the gradient before anything is added up. */
START_TEST(clipped_gradients_are_accumulated)
{
    bool nesterov = _i;
    ranks_opt o = options(1, NULL);
    ranks *r;

    o.momentum = 0.5;
    o.nesterov = nesterov;
    o.settings[0] = "masking=false";
    r = ranks_new(&o);
    for (size_t i = 0; i < N; i++)
        r->grad[0][i] = 4;
    r->slot[0].scale = 0.25;
    ranks_step(r);
    for (size_t i = 0; i < N; i++)
        ck_assert_float_eq(r->got[0][i], nesterov ? 1.5f : 1);
    r->slot[0].scale = 1;
    ranks_step(r);
    /* 1/2 * 1 + 4, or 1/2 * (1/2 + 4) + 4. */
    for (size_t i = 0; i < N; i++)
        ck_assert_float_eq(r->got[0][i], nesterov ? 6.25f : 4.5f);
    ranks_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dgc");
    TCase *tc = tcase_create("dgc");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, ratio_1_is_momentum_sgd, 0, RULES * RANKS_MAX);
    tcase_add_loop_test(tc, momentum_is_taken_over, 0, 3 * RANKS_MAX);
    tcase_add_loop_test(tc, nothing_is_lost, 0, FORMS * RANKS_MAX);
    tcase_add_loop_test(tc, masking_forgets_momentum_where_sent, 0, 8);
    tcase_add_loop_test(tc, two_steps_by_hand, 0, 4);
    tcase_add_test(tc, correction_can_be_switched_off);
    tcase_add_test(tc, ranks_without_samples_send_what_waits);
    tcase_add_loop_test(tc, clipped_gradients_are_accumulated, 0, 2);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
