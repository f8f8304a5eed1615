/* The units of LSTMs and GRUs, compiled once per instruction set.
 *
 * Source: Hochreiter, Schmidhuber 1997, "Long Short-Term Memory"; Gers et al.
 *         2000, "Learning to Forget". Cho et al. 2014, "Learning Phrase
 *         Representations using RNN Encoder-Decoder". Differs: in a GRU, r
 *         multiplies the states' product, bias and all, as in PyTorch.
 */
#include "kernels/gate_loops.h"

#include "kernels/vec.h"

/* Lanes that a step at i of n takes. */
SP_INLINE int lanes(size_t i, size_t n)
{
    return n - i < SP_VL ? (int)(n - i) : SP_VL;
}

SP_INLINE sp_vec load(const float *p, int m)
{
    return sp_load(p, m, (sp_vec){ 0 });
}

/* Zeros where there is no array. */
SP_INLINE sp_vec load_any(const float *p, size_t i, int m)
{
    return p ? load(p + i, m) : (sp_vec){ 0 };
}

/* The slope of a sigmoid or tanh at the point where it has this value. */
SP_INLINE sp_vec sigmoid_slope(sp_vec y) { return y * (1.0f - y); }

SP_INLINE sp_vec tanh_slope(sp_vec y) { return 1.0f - y * y; }

SP_INLINE void lstm_units(const sp_lstm_row *a, size_t j, int m)
{
    float *gates = a->gates + j;
    sp_vec i = sp_sigmoid(load(gates, m));
    sp_vec f = sp_sigmoid(load(gates + a->step, m));
    sp_vec g = sp_tanh(load(gates + 2 * a->step, m));
    sp_vec o = sp_sigmoid(load(gates + 3 * a->step, m));
    sp_vec c = f * load(a->before + j, m) + i * g;

    sp_store(gates, i, m);
    sp_store(gates + a->step, f, m);
    sp_store(gates + 2 * a->step, g, m);
    sp_store(gates + 3 * a->step, o, m);
    sp_store(a->c + j, c, m);
    sp_store(a->h + j, o * sp_tanh(c), m);
}

static void lstm(const sp_lstm_row *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        lstm_units(a, j, lanes(j, a->units));
}

SP_INLINE void lstm_back_units(const sp_lstm_back *a, size_t j, int m)
{
    float *gates = a->gates + j;
    sp_vec i = load(gates, m), f = load(gates + a->step, m);
    sp_vec g = load(gates + 2 * a->step, m), o = load(gates + 3 * a->step, m);
    sp_vec t = sp_tanh(load(a->c + j, m));
    sp_vec dh = load(a->dh + j, m) + load_any(a->dy, j, m);
    sp_vec dc = load(a->dc + j, m) + dh * o * tanh_slope(t);

    sp_store(gates, dc * g * sigmoid_slope(i), m);
    sp_store(gates + a->step, dc * load(a->before + j, m) * sigmoid_slope(f),
             m);
    sp_store(gates + 2 * a->step, dc * i * tanh_slope(g), m);
    sp_store(gates + 3 * a->step, dh * t * sigmoid_slope(o), m);
    sp_store(a->dc + j, dc * f, m);
}

static void lstm_back(const sp_lstm_back *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        lstm_back_units(a, j, lanes(j, a->units));
}

/* What the states' products and their bias give for one gate. */
SP_INLINE sp_vec from_state(const sp_gru_row *a, size_t at, int m)
{
    return load(a->state + at, m) + load_any(a->bias, at, m);
}

SP_INLINE void gru_units(const sp_gru_row *a, size_t j, int m)
{
    float *gates = a->gates + j;
    sp_vec r = sp_sigmoid(load(gates, m) + from_state(a, j, m));
    sp_vec z =
        sp_sigmoid(load(gates + a->step, m) + from_state(a, a->step + j, m));
    sp_vec state = from_state(a, 2 * a->step + j, m);
    sp_vec n = sp_tanh(load(gates + 2 * a->step, m) + r * state);

    sp_store(gates, r, m);
    sp_store(gates + a->step, z, m);
    sp_store(gates + 2 * a->step, n, m);
    sp_store(a->m + j, state, m);
    /* (1 - z) n + z before, with a single product: of two, compilers choose
     * which one is rounded, and may choose another for the end of a row. */
    sp_store(a->h + j, n + z * (load(a->before + j, m) - n), m);
}

static void gru(const sp_gru_row *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        gru_units(a, j, lanes(j, a->units));
}

SP_INLINE void gru_back_units(const sp_gru_back *a, size_t j, int m)
{
    float *gates = a->gates + j, *state = a->state + j;
    sp_vec r = load(gates, m), z = load(gates + a->step, m);
    sp_vec n = load(gates + 2 * a->step, m);
    sp_vec dh = load(a->dh + j, m) + load_any(a->dy, j, m);
    sp_vec dn = dh * (1.0f - z) * tanh_slope(n);
    sp_vec dz = dh * (load(a->before + j, m) - n) * sigmoid_slope(z);
    sp_vec dr = dn * load(a->m + j, m) * sigmoid_slope(r);

    sp_store(gates, dr, m);
    sp_store(gates + a->step, dz, m);
    sp_store(gates + 2 * a->step, dn, m);
    sp_store(state, dr, m);
    sp_store(state + a->step, dz, m);
    sp_store(state + 2 * a->step, dn * r, m);
    sp_store(a->dh + j, dh * z, m);
}

static void gru_back(const sp_gru_back *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        gru_back_units(a, j, lanes(j, a->units));
}

extern const sp_gate_loops SP_FOR_ISA(sp_gate_loops);

const sp_gate_loops SP_FOR_ISA(sp_gate_loops) = {
    .lstm = lstm,
    .lstm_back = lstm_back,
    .gru = gru,
    .gru_back = gru_back,
};
