/* Operators and layers, as calls that record. Each kind of operator is
 * described in full in its file in src/ops/, each layer in src/nn/.
 * A zero field in an options struct means its default. */
#ifndef SPRAT_NN_H
#define SPRAT_NN_H

#include "sprat/graph.h"

/* ---- Operators: tensors and parameters in, tensors out ------------------ */

/* Convolution. w: out, in/groups, kh, kw; b: out, or NULL. */
typedef struct sp_conv_geometry {
    int stride; /* default 1 */
    int pad;    /* zeros around the image */
    int groups; /* default 1 */
} sp_conv_geometry;

sp_tensor *sp_convolve(sp_graph *g, const char *name, sp_tensor *x, sp_param *w,
                       sp_param *b, sp_conv_geometry o);

/* y = x W^T + b over rows of h*w*c inputs taken channel by channel (as
 * PyTorch flattens). w: out, in; b: out, or NULL. */
sp_tensor *sp_matmul(sp_graph *g, const char *name, sp_tensor *x, sp_param *w,
                     sp_param *b);

/* Batch normalisation, y = gamma * (x - mean) / sqrt(var + eps) + beta, then
 * + add, then ReLU, as asked. */
typedef struct sp_normalize_opt {
    sp_tensor *add; /* NULL: nothing to add */
    bool relu;
    float eps;      /* default 1e-5 */
    float momentum; /* of the running statistics, default 0.1 */
} sp_normalize_opt;

/* The four arrays of a batch norm, each of c elements. */
typedef struct sp_normalize_params {
    sp_param *gamma, *beta, *mean, *var;
} sp_normalize_params;

sp_tensor *sp_normalize(sp_graph *g, const char *name, sp_tensor *x,
                        sp_normalize_params p, sp_normalize_opt o);

sp_tensor *sp_relu(sp_graph *g, sp_tensor *x);
sp_tensor *sp_add(sp_graph *g, sp_tensor *a, sp_tensor *b);

/* Pooling; stride 0 means the kernel's size. Average pooling counts padded
 * pixels as PyTorch does (count_include_pad). */
typedef struct sp_pool_opt {
    int kernel, stride, pad;
} sp_pool_opt;

sp_tensor *sp_max_pool(sp_graph *g, sp_tensor *x, sp_pool_opt o);
sp_tensor *sp_avg_pool(sp_graph *g, sp_tensor *x, sp_pool_opt o);

/* The mean over all pixels: {n,h,w,c} -> {n,1,1,c}. */
sp_tensor *sp_global_pool(sp_graph *g, sp_tensor *x);

/* Every stride-th pixel, and zeros for the channels beyond those of x: the
 * parameter-free shortcut (option A) of He et al. 2015. */
sp_tensor *sp_subsample(sp_graph *g, sp_tensor *x, int stride, int channels);

/* Zero each element with probability p, scale the others by 1/(1-p); nothing
 * when not training. */
sp_tensor *sp_dropout(sp_graph *g, const char *name, sp_tensor *x, float p);

/* Rows of a table, y[i] = w[x[i]]: an embedding. x: ints {t,n,1,1,1} in
 * [0, rows); w: rows, c. */
sp_tensor *sp_lookup(sp_graph *g, const char *name, sp_tensor *x, sp_param *w);

/* Two tensors side by side: the channels of a, then those of b.
 *
 * Shapes: a {t,n,h,w,c}, b {t,n,h,w,d} -> {t,n,h,w,c+d}.
 * Errors: SP_ESHAPE when they are not floats or differ in more than channels.
 */
sp_tensor *sp_concat(sp_graph *g, sp_tensor *a, sp_tensor *b);

/* The arrays of a recurrent layer in one direction, as PyTorch has them, with
 * G = 4 gates (LSTM: i, f, g, o) or 3 (GRU: r, z, n). */
typedef struct sp_recurrent_params {
    sp_param *w_ih; /* G*hidden, inputs */
    sp_param *w_hh; /* G*hidden, hidden */
    sp_param *b_ih; /* G*hidden, or NULL */
    sp_param *b_hh; /* G*hidden, or NULL */
    /* Of low rank: instead of either or both matrices, their factors,
     *   gate k of w = gate k of v times gate k of u,
     * u: G*rank, inputs or hidden; v: G*hidden, rank. Joined: u: rank, inputs
     * or hidden; v: G*hidden, rank. */
    sp_param *u_ih, *v_ih, *u_hh, *v_hh;
} sp_recurrent_params;

/* An LSTM layer over all time steps, from the states h and c, which it also
 * gives as they are after the last valid step; without one they stay. With
 * `reverse`, from the last step to the first.
 *
 *   (i, f, g, o) = x_t w_ih^T + b_ih + h_(t-1) w_hh^T + b_hh
 *   c_t = s(f) * c_(t-1) + s(i) * tanh(g),  s(v) = 1 / (1 + e^-v)
 *   y_t = h_t = s(o) * tanh(c_t)
 *
 * Shapes: x {t,n,1,1,d}, h and c {1,n,1,1,hidden}
 *         -> y {t,n,1,1,hidden}, h and c as before.
 * Errors: SP_ESHAPE when states or parameters do not fit.
 * Source: Hochreiter, Schmidhuber 1997, "Long Short-Term Memory"; Gers,
 *         Schmidhuber, Cummins 2000, "Learning to Forget".
 */
typedef struct sp_lstm_result {
    sp_tensor *y, *h, *c;
} sp_lstm_result;

sp_lstm_result sp_lstm(sp_graph *g, const char *name, sp_tensor *x,
                       sp_tensor *h, sp_tensor *c, sp_recurrent_params p,
                       bool reverse);

/* The same for a GRU, whose only state is h.
 *
 *   r, z = s(x_t w_ih^T + b_ih + h_(t-1) w_hh^T + b_hh), of their gates
 *   n = tanh(x_t w_in^T + b_in + r * (h_(t-1) w_hn^T + b_hn))
 *   y_t = h_t = (1 - z) * n + z * h_(t-1)
 *
 * Shapes: x {t,n,1,1,d}, h {1,n,1,1,hidden} -> y {t,n,1,1,hidden}, h as before.
 * Errors: SP_ESHAPE when state or parameters do not fit.
 * Source: Cho et al. 2014, "Learning Phrase Representations using RNN
 *         Encoder-Decoder".
 * Differs: r multiplies behind the product with w_hn, as in PyTorch.
 */
typedef struct sp_gru_result {
    sp_tensor *y, *h;
} sp_gru_result;

sp_gru_result sp_gru(sp_graph *g, const char *name, sp_tensor *x, sp_tensor *h,
                     sp_recurrent_params p, bool reverse);

/* -log softmax(x)[label] for every row. Smoothing e: the target is (1-e) on the
 * label plus e/classes everywhere (PyTorch's rule). The logits' memory may be
 * reused in backward: who wants them after it has to make them an sp_output().
 *
 * Shapes: x {t,n,1,1,classes}, label of ints {t,n,1,1,1} -> {t,n,1,1,1}.
 * Errors: SP_ESHAPE when both do not fit; SP_EARG for a smoothing outside
 *         [0, 1).
 */
sp_tensor *sp_cross_entropy(sp_graph *g, sp_tensor *x, sp_tensor *label,
                            float smoothing);

/* sum_j r_j x_j for every row, {n,1,1,1}, with fixed pseudo-random r: a loss
 * for checking any tensor's gradient. */
sp_tensor *sp_project(sp_graph *g, sp_tensor *x);

/* ---- Layers: they own parameters ----------------------------------------
 * Parameters are named as PyTorch does: NAME.weight, NAME.bias.
 *
 * Convolutions, linear and recurrent layers may be of low rank: `rank`, or the
 * graph's sp_rank_rule, replaces their weights, taken as a matrix
 * {out, inputs}, by a product v u of NAME_v.weight {out, rank} and
 * NAME_u.weight {rank, inputs}; the bias is then NAME_v.bias.
 *
 * Source: Wang, Agarwal, Papailiopoulos 2021, "Pufferfish", section 2. */

/* Fully connected. */
typedef struct sp_linear_opt {
    int out;
    bool no_bias;
    float bound; /* weights and bias uniform in +-bound; default 1/sqrt(in) */
    bool normal; /* weights N(0, 2/in) and bias 0 instead (He et al. 2015) */
    bool zero_bias;
    int rank; /* 0: as the graph's rule says. NAME_u and NAME_v are linear
                 layers. One that is tied is of full rank: the rule is not
                 asked, and a rank is refused */
    const char *tied; /* the weights are this parameter's, by its full name,
                         {out, in}, and start as that does: `bound` is then
                         the bias's alone, and `normal` is refused; NULL: its
                         own */
} sp_linear_opt;

sp_tensor *sp_linear(sp_graph *g, const char *name, sp_tensor *x,
                     sp_linear_opt o);

/* Convolution; weights N(0, 2/(kernel^2 out)), He et al. 2015 with fan-out,
 * bias 0. */
typedef struct sp_conv_opt {
    int out;
    int kernel; /* default 3 */
    int stride; /* default 1 */
    int pad;    /* default kernel / 2; SP_NO_PAD for none */
    int groups; /* default 1 */
    bool bias;
    int rank; /* 0: as the graph's rule says. NAME_u has the kernel, the padding
                 and the stride, NAME_v is 1 x 1; of a 1 x 1 convolution NAME_v
                 has the stride. With the rule's extra_norm the batch norm
                 NAME_u_norm stands between them. Groups are of full rank: the
                 rule is not asked, and a rank is refused */
} sp_conv_opt;

enum { SP_NO_PAD = -1 };

sp_tensor *sp_conv(sp_graph *g, const char *name, sp_tensor *x, sp_conv_opt o);

/* Embedding, rows of a table: NAME.weight {rows, out}, uniform in +-bound.
 *
 * Shapes: x of ints {t,n,1,1,1} in [0, rows) -> {t,n,1,1,out}.
 * Errors: SP_EARG for rows or out below 1; SP_ESHAPE when x is not one int a
 *         row. Numbers outside the table are the caller's mistake.
 */
typedef struct sp_embedding_opt {
    int rows, out;
    float bound; /* default 0.1 */
} sp_embedding_opt;

sp_tensor *sp_embedding(sp_graph *g, const char *name, sp_tensor *x,
                        sp_embedding_opt o);

/* Recurrent layers on top of each other, with dropout between them, as
 * PyTorch's LSTM and GRU: NAME.weight_ih_l0, NAME.weight_hh_l0,
 * NAME.bias_ih_l0, NAME.bias_hh_l0, ..., "_reverse" behind those of the other
 * direction.
 *
 * In one direction, every layer's states are values that a run leaves to the
 * next (sp_state()): NAME.h_l0 and, of an LSTM, NAME.c_l0, ... In two, they are
 * inputs (sp_input()) of these names, zero unless the caller fills them: the
 * future does not carry over.
 *
 * Shapes: x {t,n,1,1,d} -> {t,n,1,1,hidden}, bidirectional {t,n,1,1,2 hidden}.
 * Errors: SP_EARG for options out of range; SP_ESHAPE when x is not one row of
 *         floats a time step.
 * Source: as sp_lstm() and sp_gru(); dropout between layers alone: Zaremba,
 *         Sutskever, Vinyals 2014, "Recurrent neural network regularization".
 */
typedef struct sp_rnn_opt {
    enum { SP_LSTM, SP_GRU } kind;
    int hidden;
    int layers;         /* default 1 */
    bool bidirectional; /* the outputs of both directions, concatenated */
    int biases;         /* vectors a layer: 2, PyTorch's, by default; 1: b_ih
                           alone; SP_NO_BIAS: none */
    float dropout;      /* between layers */
    float bound;        /* all uniform in +-bound; default 1/sqrt(hidden) */
    int rank;           /* 0: as the graph's rule says. NAME.weight_ih_l0 gives
                           way to NAME.weight_ih_l0_u.weight {G rank, d} and
                           NAME.weight_ih_l0_v.weight {G hidden, rank}, gate by
                           gate; weight_hh_l0 alike; biases stay */
    bool joined;        /* with `rank`: a matrix's gates as one, u {rank, d} */
} sp_rnn_opt;

enum { SP_NO_BIAS = -1 };

sp_tensor *sp_rnn(sp_graph *g, const char *name, sp_tensor *x, sp_rnn_opt o);

/* Batch norm; gamma 1, beta 0, running mean 0, running variance 1. */
typedef struct sp_norm_opt {
    sp_tensor *add; /* added before the ReLU; NULL: nothing */
    bool relu;
} sp_norm_opt;

sp_tensor *sp_norm(sp_graph *g, const char *name, sp_tensor *x, sp_norm_opt o);

#endif
