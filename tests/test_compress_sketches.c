/* Two compressors of other kinds than those that Sprat has, to see that the
 * interface takes them without special cases: one that sums in two rounds and
 * keeps factors, one that decides when all packets have come. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/draw.h"
#include "ranks.h"

/* ---- PowerSGD ------------------------------------------------------------ */

/* M = gradient + error, rows x columns, is sent as a product of rank 2:
 *   round 0   P = sum of M Q        then orthogonal columns
 *   round 1   Q = sum of M' P       (M' transposed)
 *   g = P Q',   error = M - g / ranks
 *
 * Source: Vogels, Karimireddy, Jaggi 2019, "PowerSGD", algorithm 1.
 */
enum { RANK = 2, Q = 1, P = 2 };

static size_t rows_of(const sp_slot *s) { return (size_t)s->dims[0]; }
static size_t columns_of(const sp_slot *s) { return s->n / rows_of(s); }

static size_t power_floats(const sp_slot *s, int i)
{
    return i == 0 ? s->n : RANK * (i == Q ? columns_of(s) : rows_of(s));
}

static bool power_accepts(const sp_slot *s) { return s->ndim > 1; }

static size_t power_room(const sp_slot *s, int round)
{
    return RANK * (round == 0 ? rows_of(s) : columns_of(s)) * sizeof(float);
}

/* The same start on all ranks. */
static void power_start(const sp_slot *s)
{
    sp_slot any = *s;
    size_t n = RANK * columns_of(s);
    bool fresh = true;

    for (size_t i = 0; i < n; i++)
        fresh &= s->state[Q][i] == 0;
    any.rank = 0;
    for (size_t i = 0; fresh && i < n; i++) {
        uint32_t r[4];
        sp_draw(&any, i, r);
        s->state[Q][i] = sp_normal(r[0], r[1]);
    }
}

/* Gram and Schmidt. */
static void orthogonalize(float *p, size_t rows)
{
    for (size_t k = 0; k < RANK; k++) {
        float *x = p + k * rows;
        double norm = 0;
        for (size_t j = 0; j < k; j++) {
            double dot = 0;
            for (size_t i = 0; i < rows; i++)
                dot += (double)x[i] * (double)p[j * rows + i];
            for (size_t i = 0; i < rows; i++)
                x[i] -= (float)dot * p[j * rows + i];
        }
        for (size_t i = 0; i < rows; i++)
            norm += (double)x[i] * (double)x[i];
        for (size_t i = 0; i < rows; i++)
            x[i] = norm > 0 ? x[i] / (float)sqrt(norm) : 0;
    }
}

static void power_encode(const sp_slot *s, int round, const float *grad,
                         sp_packet *p)
{
    size_t rows = rows_of(s), columns = columns_of(s);
    float *m = s->state[0], *out = (float *)(void *)p->bytes;

    if (round == 0) {
        power_start(s);
        for (size_t i = 0; i < s->n; i++)
            m[i] += grad[i];
    }
    memset(out, 0, power_room(s, round));
    for (size_t k = 0; k < RANK; k++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++) {
                if (round == 0)
                    out[k * rows + i] +=
                        m[i * columns + j] * s->state[Q][k * columns + j];
                else
                    out[k * columns + j] +=
                        m[i * columns + j] * s->state[P][k * rows + i];
            }
    p->values = power_room(s, round);
}

static sp_err power_decode(const sp_slot *s, int round, const void *packet,
                           size_t bytes, float *grad)
{
    size_t rows = rows_of(s), columns = columns_of(s);
    float *p = s->state[P], *q = s->state[Q];

    memcpy(round == 0 ? p : q, packet, bytes);
    if (round == 0) {
        orthogonalize(p, rows);
        return SP_OK;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            float g = 0;
            for (size_t k = 0; k < RANK; k++)
                g += p[k * rows + i] * q[k * columns + j];
            grad[i * columns + j] = g;
            s->state[0][i * columns + j] -= g / (float)s->ranks;
        }
    return SP_OK;
}

static const sp_compressor power = {
    .entry = { .name = "powersgd", .help = "a product of low rank" },
    .rounds = 2,
    .combine = { SP_SUM, SP_SUM },
    .state_count = 3,
    .state_names = { "power_error", "power_q", "power_p" },
    .state_adds = { true, false, false },
    .state_floats = power_floats,
    .accepts = power_accepts,
    .packet_room = power_room,
    .encode = power_encode,
    .decode = power_decode,
};

/* Gradients of rank 2 arrive whole. */
START_TEST(powersgd_finds_what_has_its_rank)
{
    ranks_opt o = {
        .compressor = &power, .count = _i + 1, .rows = 7, .columns = 11
    };
    ranks *r = ranks_new(&o);

    for (int t = 0; t < 3; t++) {
        for (int k = 0; k < r->count; k++)
            for (size_t i = 0; i < r->n; i++) {
                size_t row = i / 11, column = i % 11;
                float x = ranks_noise(1, row) * ranks_noise(2, column);
                float y = ranks_noise(3, row) * ranks_noise(4, column);
                r->grad[k][i] = x + (float)(k + 1) * y;
            }
        ranks_step(r);
        for (size_t i = 0; i < r->n; i++) {
            float sum = 0;
            for (int k = 0; k < r->count; k++)
                sum += r->grad[k][i];
            ck_assert_float_eq_tol(r->got[0][i], sum, 1e-4f);
        }
    }
    ranks_free(r);
}
END_TEST

/* Of others, what has not arrived waits. */
START_TEST(powersgd_loses_nothing)
{
    ranks_opt o = {
        .compressor = &power, .count = _i + 1, .rows = 9, .columns = 6
    };
    ranks *r = ranks_new(&o);
    double rest[54] = { 0 };

    for (int t = 0; t < 20; t++) {
        for (int k = 0; k < r->count; k++)
            for (size_t i = 0; i < r->n; i++) {
                r->grad[k][i] = ranks_noise((uint64_t)(10 + 4 * t + k), i);
                rest[i] += (double)r->grad[k][i];
            }
        ranks_step(r);
        for (size_t i = 0; i < r->n; i++)
            rest[i] -= (double)r->got[0][i];
    }
    for (size_t i = 0; i < r->n; i++) {
        double kept = 0;
        for (int k = 0; k < r->count; k++)
            kept += (double)r->slot[k].state[0][i];
        ck_assert_double_eq_tol(rest[i], kept, 1e-4);
    }
    ranks_free(r);
}
END_TEST

/* ---- Signum -------------------------------------------------------------- */

/* m = 0.9 m + 0.1 g; the signs of m are sent, 1 bit each; the step is the sign
 * that most ranks have.
 *
 * Source: Bernstein, Wang, Azizzadenesheli, Anandkumar 2018, "signSGD",
 *         algorithm 3 (majority vote), with momentum.
 */
static size_t signum_room(const sp_slot *s, int round)
{
    (void)round;
    return (s->n + 7) / 8;
}

static void signum_encode(const sp_slot *s, int round, const float *grad,
                          sp_packet *p)
{
    float *m = s->state[0];

    memset(p->bytes, 0, signum_room(s, round));
    for (size_t i = 0; i < s->n; i++) {
        m[i] = 0.9f * m[i] + 0.1f * grad[i];
        if (m[i] < 0)
            p->bytes[i / 8] |= (uint8_t)(1 << i % 8);
    }
    p->values = signum_room(s, round);
}

static sp_err signum_decode(const sp_slot *s, int round, const void *packet,
                            size_t bytes, float *grad)
{
    const uint8_t *bits = packet;

    if (bytes != signum_room(s, round))
        return sp_fail(SP_EFORMAT, "packet of %s: %zu bytes", s->name, bytes);
    for (size_t i = 0; i < s->n; i++)
        grad[i] += bits[i / 8] >> i % 8 & 1 ? -1 : 1;
    return SP_OK;
}

static void signum_finish(const sp_slot *s, float *grad)
{
    for (size_t i = 0; i < s->n; i++)
        grad[i] = (float)((grad[i] > 0) - (grad[i] < 0));
}

static bool always(const void *own)
{
    (void)own;
    return true;
}

static const sp_compressor signum = {
    .entry = { .name = "signum", .help = "signs, by majority" },
    .rounds = 1,
    .combine = { SP_GATHER },
    .state_count = 1,
    .state_names = { "signum_momentum" },
    .owns_momentum = always,
    .packet_room = signum_room,
    .encode = signum_encode,
    .decode = signum_decode,
    .finish = signum_finish,
};

START_TEST(signum_votes)
{
    ranks_opt o = {
        .compressor = &signum, .count = _i + 1, .rows = 5, .columns = 5
    };
    ranks *r = ranks_new(&o);
    double m[RANKS_MAX][25] = { 0 };

    for (int t = 0; t < 10; t++) {
        for (int k = 0; k < r->count; k++)
            for (size_t i = 0; i < r->n; i++) {
                r->grad[k][i] = ranks_noise((uint64_t)(8 * t + k), i);
                m[k][i] = 0.9 * m[k][i] + 0.1 * (double)r->grad[k][i];
            }
        ranks_step(r);
        ck_assert_uint_eq(sp_packet_size(&r->packet[0]), 4);
        for (size_t i = 0; i < r->n; i++) {
            int votes = 0;
            for (int k = 0; k < r->count; k++)
                votes += m[k][i] < 0 ? -1 : 1;
            ck_assert_float_eq(r->got[0][i],
                               (float)((votes > 0) - (votes < 0)));
        }
    }
    ranks_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compress_sketches");
    TCase *tc = tcase_create("compress_sketches");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, powersgd_finds_what_has_its_rank, 0, 3);
    tcase_add_loop_test(tc, powersgd_loses_nothing, 0, 3);
    tcase_add_loop_test(tc, signum_votes, 0, 3);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
