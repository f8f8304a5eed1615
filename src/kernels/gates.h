/* One time step of a recurrent layer behind its products: some units of one
 * row. The gates of a row stand one after the other, `step` floats apart, each
 * of them unit by unit; pointers are to the first unit. So `step` is the units
 * of the row, and `units` fewer where a call is for a part of it. No array may
 * be another but where said. What is not a number stays so. */
#ifndef SP_KERNELS_GATES_H
#define SP_KERNELS_GATES_H

#include <stddef.h>

#include "sprat/op.h"

/* LSTM: gates i, f, g, o.
 *
 *   i, f, o = sigmoid, g = tanh of what the products gave, biases added
 *   c = f * before + i * g
 *   h = o * tanh(c)
 *
 * Forward writes the gates in place of what the products gave, c and h. c may
 * be `before`, where backward is not wanted. */
typedef struct sp_lstm_row {
    size_t units, step;
    float *gates;
    const float *before; /* c of the step before */
    float *c, *h;
} sp_lstm_row;

void sp_lstm_row_forward(const sp_kernels *k, const sp_lstm_row *a);

/* Backward reads c and what forward left in `gates`, and writes the gradients
 * of what the products gave over the gates. */
typedef struct sp_lstm_back {
    size_t units, step;
    float *gates;
    const float *before, *c;
    const float *dh;
    const float *dy; /* the gradient of h is dh + dy; NULL: dh */
    float *dc;       /* of c, without what comes through h; becomes that of
                        `before` */
} sp_lstm_back;

void sp_lstm_row_backward(const sp_kernels *k, const sp_lstm_back *a);

/* GRU: gates r, z, n of the inputs' products (`gates`, with their bias) and of
 * the states' (`state`).
 *
 *   r, z = sigmoid(gates + state + bias)
 *   m = state + bias, of n
 *   n = tanh(gates + r * m)
 *   h = (1 - z) * n + z * before
 *
 * Forward writes r, z and n over `gates`, m and h. `h` may be `before`, where
 * backward is not wanted. */
typedef struct sp_gru_row {
    size_t units, step;
    float *gates;
    const float *state;
    const float *bias; /* of `state`, `step` floats apart as well; NULL: 0 */
    float *m;
    const float *before; /* h of the step before */
    float *h;
} sp_gru_row;

void sp_gru_row_forward(const sp_kernels *k, const sp_gru_row *a);

/* Backward reads m and what forward left in `gates`, and writes the gradients
 * of the inputs' products over `gates` and those of the states' into `state`,
 * which are the same for r and z. */
typedef struct sp_gru_back {
    size_t units, step;
    float *gates, *state;
    const float *m, *before;
    const float *dy; /* the gradient of h is dh + dy; NULL: dh */
    float *dh;       /* becomes that of `before`, without what comes through
                        the products */
} sp_gru_back;

void sp_gru_row_backward(const sp_kernels *k, const sp_gru_back *a);

#endif
