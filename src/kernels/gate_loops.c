/* The units of LSTMs and GRUs, compiled once per instruction set.
 *
 * Source: Hochreiter, Schmidhuber 1997, "Long Short-Term Memory"; Gers et al.
 *         2000, "Learning to Forget". Cho et al. 2014, "Learning Phrase
 *         Representations using RNN Encoder-Decoder". Differs: in a GRU, r
 *         multiplies the states' product, bias and all, as in PyTorch.
 */
#include "kernels/gate_loops.h"

#include "kernels/vec.h"

SP_INLINE sp_vec load(const float *p) { return *(const sp_vec *)p; }

SP_INLINE void store(float *p, sp_vec v) { *(sp_vec *)p = v; }

/* Zeros where there is no array. */
SP_INLINE sp_vec load_any(const float *p, size_t i)
{
    return p ? load(p + i) : (sp_vec){ 0 };
}

/* The slope of a sigmoid or tanh at the point where it has this value. */
SP_INLINE sp_vec sigmoid_slope(sp_vec y) { return y * (1.0f - y); }

SP_INLINE sp_vec tanh_slope(sp_vec y) { return 1.0f - y * y; }

SP_INLINE void lstm_units(const sp_lstm_row *a, size_t j)
{
    float *gates = a->gates + j;
    sp_vec i = sp_sigmoid(load(gates));
    sp_vec f = sp_sigmoid(load(gates + a->step));
    sp_vec g = sp_tanh(load(gates + 2 * a->step));
    sp_vec o = sp_sigmoid(load(gates + 3 * a->step));
    sp_vec c = f * load(a->before + j) + i * g;

    store(gates, i);
    store(gates + a->step, f);
    store(gates + 2 * a->step, g);
    store(gates + 3 * a->step, o);
    store(a->c + j, c);
    store(a->h + j, o * sp_tanh(c));
}

static void lstm(const sp_lstm_row *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        lstm_units(a, j);
}

SP_INLINE void lstm_back_units(const sp_lstm_back *a, size_t j)
{
    float *gates = a->gates + j;
    sp_vec i = load(gates), f = load(gates + a->step);
    sp_vec g = load(gates + 2 * a->step), o = load(gates + 3 * a->step);
    sp_vec t = sp_tanh(load(a->c + j));
    sp_vec dh = load(a->dh + j) + load_any(a->dy, j);
    sp_vec dc = load(a->dc + j) + dh * o * tanh_slope(t);

    store(gates, dc * g * sigmoid_slope(i));
    store(gates + a->step, dc * load(a->before + j) * sigmoid_slope(f));
    store(gates + 2 * a->step, dc * i * tanh_slope(g));
    store(gates + 3 * a->step, dh * t * sigmoid_slope(o));
    store(a->dc + j, dc * f);
}

static void lstm_back(const sp_lstm_back *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        lstm_back_units(a, j);
}

/* What the states' products and their bias give for one gate. */
SP_INLINE sp_vec from_state(const sp_gru_row *a, size_t at)
{
    return load(a->state + at) + load_any(a->bias, at);
}

SP_INLINE void gru_units(const sp_gru_row *a, size_t j)
{
    float *gates = a->gates + j;
    sp_vec r = sp_sigmoid(load(gates) + from_state(a, j));
    sp_vec z = sp_sigmoid(load(gates + a->step) + from_state(a, a->step + j));
    sp_vec state = from_state(a, 2 * a->step + j);
    sp_vec n = sp_tanh(load(gates + 2 * a->step) + r * state);

    store(gates, r);
    store(gates + a->step, z);
    store(gates + 2 * a->step, n);
    store(a->m + j, state);
    /* (1 - z) n + z before, with a single product: of two, compilers choose
     * which one is rounded. */
    store(a->h + j, n + z * (load(a->before + j) - n));
}

static void gru(const sp_gru_row *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        gru_units(a, j);
}

SP_INLINE void gru_back_units(const sp_gru_back *a, size_t j)
{
    float *gates = a->gates + j, *state = a->state + j;
    sp_vec r = load(gates), z = load(gates + a->step);
    sp_vec n = load(gates + 2 * a->step);
    sp_vec dh = load(a->dh + j) + load_any(a->dy, j);
    sp_vec dn = dh * (1.0f - z) * tanh_slope(n);
    sp_vec dz = dh * (load(a->before + j) - n) * sigmoid_slope(z);
    sp_vec dr = dn * load(a->m + j) * sigmoid_slope(r);

    store(gates, dr);
    store(gates + a->step, dz);
    store(gates + 2 * a->step, dn);
    store(state, dr);
    store(state + a->step, dz);
    store(state + 2 * a->step, dn * r);
    store(a->dh + j, dh * z);
}

static void gru_back(const sp_gru_back *a)
{
    for (size_t j = 0; j < a->units; j += SP_VL)
        gru_back_units(a, j);
}

extern const sp_gate_loops SP_FOR_ISA(sp_gate_loops);

const sp_gate_loops SP_FOR_ISA(sp_gate_loops) = {
    .lstm = lstm,
    .lstm_back = lstm_back,
    .gru = gru,
    .gru_back = gru_back,
};
