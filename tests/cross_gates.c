/* The units of LSTMs and GRUs, forward and backward. */
#include <math.h>
#include <stdlib.h>

#include "cross_kernels.h"
#include "kernels/gates.h"

enum { GATES = 4 };

/* A row of k units, as it is before a call: gates and what states gave to them,
 * then single values. */
typedef struct row {
    size_t k;
    float *gates, *state, *bias;
    float *before, *c, *dh, *dy, *dc;
} row;

static row row_open(size_t k)
{
    return (row){ .k = k,
                  .gates = numbers(GATES * k, 1, MANY),
                  .state = numbers(GATES * k, 2, MANY),
                  .bias = numbers(GATES * k, 3, MANY),
                  .before = numbers(k, 4, MANY),
                  .c = numbers(k, 5, MANY),
                  .dh = numbers(k, 6, MANY),
                  .dy = numbers(k, 7, MANY),
                  .dc = numbers(k, 8, MANY) };
}

static void row_close(row *a)
{
    float *const all[] = { a->gates, a->state, a->bias, a->before,
                           a->c,     a->dh,    a->dy,   a->dc };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

/* Gate g of unit j, as a number. */
static double gate(const row *a, const float *p, size_t g, size_t j)
{
    return (double)p[g * a->k + j];
}

static void try_lstm(trial *t, const row *a)
{
    size_t k = a->k;
    float *gates = copy_of(a->gates, GATES * k), *c = floats(k), *h = floats(k);
    sp_lstm_row r = { k, k, gates, a->before, c, h };

    sp_lstm_row_forward(t->kernels, &r);
    for (size_t j = 0; j < k; j++) {
        double want[GATES], now;
        for (size_t g = 0; g < GATES; g++) {
            double v = gate(a, a->gates, g, j);
            want[g] = g == 2 ? tanh(v) : sigmoid(v);
            compare(t, "lstm gate", g * k + j, gate(a, gates, g, j), want[g],
                    0);
        }
        now = want[1] * (double)a->before[j] + want[0] * want[2];
        compare(t, "lstm c", j, (double)c[j], now, 1);
        compare(t, "lstm h", j, (double)h[j], want[3] * tanh(now), 1);
    }
    free(gates);
    free(c);
    free(h);
}

/* What forward leaves may be any numbers here. */
static void try_lstm_back(trial *t, const row *a)
{
    size_t k = a->k;
    float *gates = copy_of(a->gates, GATES * k), *dc = copy_of(a->dc, k);
    sp_lstm_back r = { k, k, gates, a->before, a->c, a->dh, a->dy, dc };

    sp_lstm_row_backward(t->kernels, &r);
    for (size_t j = 0; j < k; j++) {
        double i = gate(a, a->gates, 0, j), f = gate(a, a->gates, 1, j);
        double g = gate(a, a->gates, 2, j), o = gate(a, a->gates, 3, j);
        double dh = (double)a->dh[j] + (double)a->dy[j];
        double y = tanh((double)a->c[j]);
        double d = (double)a->dc[j] + dh * o * (1 - y * y);
        const double want[] = { d * g * i * (1 - i),
                                d * (double)a->before[j] * f * (1 - f),
                                d * i * (1 - g * g), dh * y * o * (1 - o) };
        for (size_t n = 0; n < GATES; n++)
            compare(t, "lstm gradient", n * k + j, gate(a, gates, n, j),
                    want[n], 4);
        compare(t, "lstm dc", j, (double)dc[j], d * f, 4);
    }
    free(gates);
    free(dc);
}

static void try_gru(trial *t, const row *a, const float *bias)
{
    size_t k = a->k;
    float *gates = copy_of(a->gates, GATES * k), *m = floats(k), *h = floats(k);
    sp_gru_row r = { k, k, gates, a->state, bias, m, a->before, h };

    sp_gru_row_forward(t->kernels, &r);
    for (size_t j = 0; j < k; j++) {
        double state[3], want[3];
        for (size_t g = 0; g < 3; g++) {
            state[g] =
                gate(a, a->state, g, j) + (bias ? gate(a, bias, g, j) : 0);
            want[g] = sigmoid(gate(a, a->gates, g, j) + state[g]);
        }
        want[2] = tanh(gate(a, a->gates, 2, j) + want[0] * state[2]);
        for (size_t g = 0; g < 3; g++)
            compare(t, "gru gate", g * k + j, gate(a, gates, g, j), want[g], 0);
        compare(t, "gru m", j, (double)m[j], state[2], 1);
        compare(t, "gru h", j, (double)h[j],
                (1 - want[1]) * want[2] + want[1] * (double)a->before[j], 1);
    }
    free(gates);
    free(m);
    free(h);
}

static void try_gru_back(trial *t, const row *a, const float *dy)
{
    size_t k = a->k;
    float *gates = copy_of(a->gates, GATES * k), *dh = copy_of(a->dh, k);
    float *state = floats(GATES * k);
    sp_gru_back r = { k, k, gates, state, a->c, a->before, dy, dh };

    sp_gru_row_backward(t->kernels, &r);
    for (size_t j = 0; j < k; j++) {
        double x = gate(a, a->gates, 0, j), z = gate(a, a->gates, 1, j);
        double n = gate(a, a->gates, 2, j);
        double d = (double)a->dh[j] + (dy ? (double)dy[j] : 0);
        double dn = d * (1 - z) * (1 - n * n);
        const double want[] = { dn * (double)a->c[j] * x * (1 - x),
                                d * ((double)a->before[j] - n) * z * (1 - z),
                                dn };
        for (size_t g = 0; g < 3; g++) {
            compare(t, "gru gradient", g * k + j, gate(a, gates, g, j), want[g],
                    8);
            compare(t, "gru state's gradient", g * k + j, gate(a, state, g, j),
                    g == 2 ? dn * x : want[g], 8);
        }
        compare(t, "gru dh", j, (double)dh[j], d * z, 2);
    }
    free(gates);
    free(state);
    free(dh);
}

void try_gates(trial *t)
{
    static const size_t units[] = { 1, 4, 21, 40 };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        row a = row_open(units[i]);
        try_lstm(t, &a);
        try_lstm_back(t, &a);
        try_gru(t, &a, a.bias);
        try_gru(t, &a, NULL);
        try_gru_back(t, &a, a.dy);
        try_gru_back(t, &a, NULL);
        row_close(&a);
    }
}
