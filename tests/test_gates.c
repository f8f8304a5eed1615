/* The units of LSTMs and GRUs, against the C library in double. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gates.h"
#include "kernels/kernels.h"

enum { UNITS = 67, STEP = 70, MORE = 8, ALL = 4 * STEP + MORE };

/* The smallest, around what loops may cut at, and the largest. */
static const float edges[] = { 0.0f,    -0.0f,     1e-38f,   -1e-38f,  1e-20f,
                               -1e-8f,  1e-4f,     -3e-4f,   0.01f,    -0.17f,
                               0.1732f, 0.1735f,   -0.3466f, 0.34658f, -0.5f,
                               0.625f,  0.99999f,  -1.0398f, 8.7f,     -9.0f,
                               9.02f,   -9.99999f, 10.0f,    -16.6f,   17.4f,
                               -87.0f,  87.4f,     -88.8f,   104.0f,   -1e4f,
                               3.4e38f, -3.4e38f,  INFINITY, -INFINITY };

enum { EDGES = sizeof edges / sizeof *edges };

static float number(uint32_t *seed, float size)
{
    *seed = *seed * 1664525u + 1013904223u;
    return ((float)(*seed >> 8) * 0x1p-23f - 1.0f) * size;
}

static void fill(float *p, size_t count, uint32_t seed, float size)
{
    for (size_t i = 0; i < count; i++)
        p[i] = number(&seed, size);
}

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

static void near(double got, double want, double error, const char *what,
                 double at)
{
    ck_assert_msg(fabs(got - want) <= error, "%s at %.9g: %.9g instead of %.9g",
                  what, at, got, want);
}

/* With f = 0 gates, i = 1 and o = 1, what is left of an LSTM is c = tanh(g), h
 * = tanh(c); and the gates themselves are sigmoids. */
static void check_values(const sp_kernels *k, const float *v, size_t count)
{
    float gates[ALL], zero[STEP] = { 0 }, c[STEP], h[STEP];
    sp_lstm_row a = { .units = count, .step = STEP, .gates = gates };

    a.before = zero;
    a.c = c;
    a.h = h;
    for (size_t j = 0; j < count; j++) {
        gates[j] = 200.0f;
        gates[STEP + j] = gates[2 * STEP + j] = v[j];
        gates[3 * STEP + j] = 200.0f;
    }
    sp_lstm_row_forward(k, &a);
    for (size_t j = 0; j < count; j++) {
        double x = (double)v[j], s = sigmoid(x), t = tanh(x);
        ck_assert(gates[j] == 1.0f && gates[3 * STEP + j] == 1.0f);
        near((double)gates[STEP + j], s, x < -87 ? 2e-38 : 3e-7 * s, "sigmoid",
             x);
        near((double)gates[2 * STEP + j], t, 3e-7 * fabs(t), "tanh", x);
        ck_assert_int_eq(signbit(gates[2 * STEP + j]), signbit(v[j]));
        ck_assert(c[j] == gates[2 * STEP + j]);
        t = tanh((double)c[j]);
        near((double)h[j], t, 3e-7 * fabs(t), "tanh", (double)c[j]);
    }
}

START_TEST(sigmoid_and_tanh_are_those_of_the_library)
{
    const sp_kernels *k;
    float v[STEP];
    uint32_t seed = 1;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        check_values(k, edges, EDGES);
        for (int turn = 0; turn < 400; turn++) {
            float size = ldexpf(1.0f, turn % 40 - 30);
            fill(v, UNITS, seed++, size);
            check_values(k, v, UNITS);
        }
    }
}
END_TEST

/* Neither far out nor at the turn is one value above the next. */
START_TEST(sigmoid_and_tanh_rise)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        float last = -1, gates[4 * STEP], c[STEP], h[STEP];
        const float zero[STEP] = { 0 };
        for (int j = -3000; j <= 3000; j++) {
            sp_lstm_row a = { 1, STEP, gates, zero, c, h };
            gates[0] = gates[STEP] = gates[3 * STEP] = 0;
            gates[2 * STEP] = (float)j * 0x1p-8f;
            sp_lstm_row_forward(k, &a);
            ck_assert(gates[2 * STEP] >= last - 6e-8f);
            last = gates[2 * STEP];
            ck_assert(last >= -1 && last <= 1);
        }
        ck_assert(last == 1);
    }
}
END_TEST

START_TEST(not_a_number_stays_so)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++)
        for (size_t gate = 0; gate < 4; gate++) {
            float gates[ALL], before[STEP], c[STEP], h[STEP];
            sp_lstm_row a = { UNITS, STEP, gates, before, c, h };
            fill(gates, ALL, 1, 3.0f);
            fill(before, STEP, 2, 3.0f);
            gates[gate * STEP + 50] = NAN;
            sp_lstm_row_forward(k, &a);
            ck_assert(isnan(gates[gate * STEP + 50]) && isnan(h[50]));
            ck_assert_int_eq(isnan(c[50]) != 0, gate < 3);
            for (size_t j = 0; j < UNITS; j++)
                ck_assert_int_eq(isnan(h[j]) != 0, j == 50);
        }
}
END_TEST

/* All arrays of a time step: what a call reads and writes, then a copy of what
 * it found. */
typedef struct arrays {
    float gates[ALL], state[ALL], bias[ALL];
    float before[STEP + MORE], c[STEP + MORE], h[STEP + MORE];
    float dh[STEP + MORE], dy[STEP + MORE], dc[STEP + MORE];
} arrays;

static arrays arrays_open(uint32_t seed)
{
    arrays a;

    fill((float *)&a, sizeof a / sizeof(float), seed, 2.0f);
    return a;
}

typedef struct unit {
    double i, f, g, o, c, h;
} unit;

static unit lstm_unit(const arrays *a, size_t j)
{
    unit u = { .i = sigmoid((double)a->gates[j]),
               .f = sigmoid((double)a->gates[STEP + j]),
               .g = tanh((double)a->gates[2 * STEP + j]),
               .o = sigmoid((double)a->gates[3 * STEP + j]) };

    u.c = u.f * (double)a->before[j] + u.i * u.g;
    u.h = u.o * tanh(u.c);
    return u;
}

static void run_lstm(const sp_kernels *k, arrays *a, size_t at, size_t units)
{
    sp_lstm_row r = { units,          STEP,      a->gates + at,
                      a->before + at, a->c + at, a->h + at };

    sp_lstm_row_forward(k, &r);
}

static void run_lstm_back(const sp_kernels *k, arrays *a, size_t at,
                          size_t units)
{
    sp_lstm_back r = { .units = units,
                       .step = STEP,
                       .gates = a->gates + at,
                       .before = a->before + at,
                       .c = a->c + at,
                       .dh = a->dh + at,
                       .dy = a->dy + at,
                       .dc = a->dc + at };

    sp_lstm_row_backward(k, &r);
}

static void run_gru(const sp_kernels *k, arrays *a, size_t at, size_t units)
{
    sp_gru_row r = { .units = units,
                     .step = STEP,
                     .gates = a->gates + at,
                     .state = a->state + at,
                     .bias = a->bias + at,
                     .m = a->c + at,
                     .before = a->before + at,
                     .h = a->h + at };

    sp_gru_row_forward(k, &r);
}

static void run_gru_back(const sp_kernels *k, arrays *a, size_t at,
                         size_t units)
{
    sp_gru_back r = { .units = units,
                      .step = STEP,
                      .gates = a->gates + at,
                      .state = a->state + at,
                      .m = a->c + at,
                      .before = a->before + at,
                      .dy = a->dy + at,
                      .dh = a->dh + at };

    sp_gru_row_backward(k, &r);
}

static void close_to(float got, double want, const char *what, size_t j)
{
    near((double)got, want, 1e-6, what, (double)j);
}

START_TEST(lstm_is_its_formula)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        const arrays old = arrays_open(1);
        arrays a = old;
        run_lstm(k, &a, 0, UNITS);
        for (size_t j = 0; j < UNITS; j++) {
            unit u = lstm_unit(&old, j);
            close_to(a.gates[j], u.i, "i", j);
            close_to(a.gates[STEP + j], u.f, "f", j);
            close_to(a.gates[2 * STEP + j], u.g, "g", j);
            close_to(a.gates[3 * STEP + j], u.o, "o", j);
            close_to(a.c[j], u.c, "c", j);
            close_to(a.h[j], u.h, "h", j);
        }
    }
}
END_TEST

/* The loss whose gradients dh + dy and dc are. */
static double lstm_loss(const arrays *a, size_t j)
{
    unit u = lstm_unit(a, j);

    return u.h * ((double)a->dh[j] + (double)a->dy[j]) + u.c * (double)a->dc[j];
}

/* d loss / d *at by central differences. */
static double slope(const arrays *a, size_t j, float *at,
                    double (*loss)(const arrays *a, size_t j))
{
    const float h = 0x1p-9f;
    float middle = *at;
    double more, less, width;

    *at = middle + h;
    width = (double)*at;
    more = loss(a, j);
    *at = middle - h;
    width -= (double)*at;
    less = loss(a, j);
    *at = middle;
    return (more - less) / width;
}

START_TEST(lstm_gradients_are_those_of_differences)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        arrays old = arrays_open(5), a = old;
        run_lstm(k, &a, 0, UNITS);
        run_lstm_back(k, &a, 0, UNITS);
        for (size_t j = 0; j < UNITS; j++) {
            for (size_t gate = 0; gate < 4; gate++)
                near((double)a.gates[gate * STEP + j],
                     slope(&old, j, &old.gates[gate * STEP + j], lstm_loss),
                     2e-5, "gate's gradient", (double)j);
            near((double)a.dc[j], slope(&old, j, &old.before[j], lstm_loss),
                 2e-5, "gradient of c before", (double)j);
        }
    }
}
END_TEST

static double gru_h(const arrays *a, size_t j)
{
    double in[3], state[3], r, z, n;

    for (size_t g = 0; g < 3; g++) {
        in[g] = (double)a->gates[g * STEP + j];
        state[g] =
            (double)a->state[g * STEP + j] + (double)a->bias[g * STEP + j];
    }
    r = sigmoid(in[0] + state[0]);
    z = sigmoid(in[1] + state[1]);
    n = tanh(in[2] + r * state[2]);
    return (1 - z) * n + z * (double)a->before[j];
}

static double gru_loss(const arrays *a, size_t j)
{
    return gru_h(a, j) * ((double)a->dh[j] + (double)a->dy[j]);
}

START_TEST(gru_is_its_formula)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        const arrays old = arrays_open(7);
        arrays a = old;
        run_gru(k, &a, 0, UNITS);
        for (size_t j = 0; j < UNITS; j++) {
            close_to(a.h[j], gru_h(&old, j), "h", j);
            close_to(a.c[j],
                     (double)old.state[2 * STEP + j] +
                         (double)old.bias[2 * STEP + j],
                     "m", j);
        }
    }
}
END_TEST

START_TEST(gru_gradients_are_those_of_differences)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        arrays old = arrays_open(11), a = old;
        run_gru(k, &a, 0, UNITS);
        run_gru_back(k, &a, 0, UNITS);
        for (size_t j = 0; j < UNITS; j++) {
            for (size_t g = 0; g < 3; g++) {
                size_t at = g * STEP + j;
                near((double)a.gates[at],
                     slope(&old, j, &old.gates[at], gru_loss), 2e-5,
                     "input gate's gradient", (double)j);
                near((double)a.state[at],
                     slope(&old, j, &old.state[at], gru_loss), 2e-5,
                     "state gate's gradient", (double)j);
            }
            near((double)a.dh[j], slope(&old, j, &old.before[j], gru_loss),
                 2e-5, "gradient of h before", (double)j);
        }
    }
}
END_TEST

/* Gradients and biases that are not there count as zeros. */
START_TEST(what_is_not_there_is_zero)
{
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        arrays a = arrays_open(13), b;
        sp_lstm_back l = { UNITS, STEP, a.gates, a.before, a.c, a.dh, 0, a.dc };
        sp_gru_row g = { UNITS, STEP, a.gates, a.state, 0, a.c, a.before, a.h };
        memset(a.dy, 0, sizeof a.dy);
        memset(a.bias, 0, sizeof a.bias);
        b = a;
        sp_lstm_row_backward(k, &l);
        run_lstm_back(k, &b, 0, UNITS);
        ck_assert_mem_eq(&a, &b, sizeof a);
        sp_gru_row_forward(k, &g);
        run_gru(k, &b, 0, UNITS);
        ck_assert_mem_eq(&a, &b, sizeof a);
    }
}
END_TEST

/* Of any number of units from any place on, those have the bits that they have
 * among all, and the others are not touched. */
START_TEST(bits_do_not_depend_on_where_units_stand)
{
    static void (*const steps[])(const sp_kernels *, arrays *, size_t,
                                 size_t) = { run_lstm, run_lstm_back, run_gru,
                                             run_gru_back };
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++)
        for (int s = 0; s < 4; s++) {
            const arrays old = arrays_open(17);
            arrays whole = old;
            steps[s](k, &whole, 0, STEP);
            for (size_t at = 0; at < 19; at += at < 5 ? 1 : 3)
                for (size_t n = 0; n + at <= STEP; n += n < 18 ? 1 : 9) {
                    arrays part = old;
                    steps[s](k, &part, 0, at);
                    steps[s](k, &part, at, n);
                    steps[s](k, &part, at + n, STEP - at - n);
                    ck_assert_mem_eq(&part, &whole, sizeof part);
                }
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gates");
    TCase *tc = tcase_create("gates");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, sigmoid_and_tanh_are_those_of_the_library);
    tcase_add_test(tc, sigmoid_and_tanh_rise);
    tcase_add_test(tc, not_a_number_stays_so);
    tcase_add_test(tc, lstm_is_its_formula);
    tcase_add_test(tc, lstm_gradients_are_those_of_differences);
    tcase_add_test(tc, gru_is_its_formula);
    tcase_add_test(tc, gru_gradients_are_those_of_differences);
    tcase_add_test(tc, what_is_not_there_is_zero);
    tcase_add_test(tc, bits_do_not_depend_on_where_units_stand);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
