/* Recurrent layers: parameters NAME.weight_ih_l0, NAME.weight_hh_l0,
 * NAME.bias_ih_l0, NAME.bias_hh_l0, ..., "_reverse" behind those of the other
 * direction; of low rank NAME.weight_ih_l0_u.weight,
 * NAME.weight_ih_l0_v.weight,
 * ...; states NAME.h_l0 and, of an LSTM, NAME.c_l0, which in two directions are
 * inputs of zeros instead. */
#include <math.h>
#include <stdio.h>

#include "sprat/nn.h"

enum { LAYERS_MAX = 1000, HIDDEN_MAX = INT32_MAX / 8, NAME_SIZE = 64 };

/* One layer in one direction. */
typedef struct part {
    sp_graph *g;
    const sp_rnn_opt *o;
    char suffix[NAME_SIZE]; /* "_l0_reverse" */
    int n;                  /* rows of a state */
    bool reverse;
} part;

static const char *name_of(const part *p, const char *stem,
                           char name[2 * NAME_SIZE])
{
    snprintf(name, 2 * NAME_SIZE, "%s%s", stem, p->suffix);
    return name;
}

static int gates_of(const part *p) { return p->o->kind == SP_LSTM ? 4 : 3; }

/* Whether a matrix of low rank has its gates as one: as is asked for with the
 * rank, or by who gives the rank. */
static bool is_joined(const part *p)
{
    return p->o->joined || (p->o->rank == 0 && sp_graph_ranks(p->g).joined);
}

static sp_init start_of(const part *p)
{
    float bound =
        p->o->bound > 0.0f ? p->o->bound : 1.0f / sqrtf((float)p->o->hidden);

    return (sp_init){ SP_UNIFORM, bound };
}

static sp_param *weight(const part *p, const char *stem, int columns)
{
    char name[2 * NAME_SIZE];

    return sp_weight(p->g, name_of(p, stem, name),
                     (int[]){ gates_of(p) * p->o->hidden, columns, 0 },
                     start_of(p));
}

/* NAME_u.weight or NAME_v.weight. */
static sp_param *factor(const part *p, const char *whole, char which,
                        const int size[3], sp_init start)
{
    char name[2 * NAME_SIZE + 16];

    snprintf(name, sizeof name, "%s_%c.weight", whole, which);
    return sp_weight(p->g, name, size, start);
}

/* One of the two matrices, or its factors. */
typedef struct matrix {
    sp_param *w, *u, *v;
} matrix;

static matrix matrix_of(const part *p, const char *stem, int columns)
{
    int hidden = p->o->hidden, gates = gates_of(p), blocks;
    char name[2 * NAME_SIZE];
    int rank = sp_layer_rank(p->g, name_of(p, stem, name), p->o->rank, hidden,
                             columns);
    sp_init start = start_of(p);
    matrix m = { 0 };

    if (rank == 0) {
        m.w = weight(p, stem, columns);
        return m;
    }
    start = sp_factor_init(start, rank);
    blocks = is_joined(p) ? 1 : gates;
    m.u = factor(p, name, 'u', (int[]){ blocks * rank, columns, 0 }, start);
    m.v = factor(p, name, 'v', (int[]){ gates * hidden, rank, 0 }, start);
    sp_factors_of(p->g, name, m.u, m.v);
    return m;
}

static sp_recurrent_params params_of(const part *p, int in)
{
    int biases = p->o->biases ? p->o->biases : 2;
    matrix ih = matrix_of(p, "weight_ih", in);
    matrix hh = matrix_of(p, "weight_hh", p->o->hidden);
    sp_recurrent_params a = { .w_ih = ih.w,
                              .w_hh = hh.w,
                              .u_ih = ih.u,
                              .v_ih = ih.v,
                              .u_hh = hh.u,
                              .v_hh = hh.v };

    if (biases > 0)
        a.b_ih = weight(p, "bias_ih", 0);
    if (biases > 1)
        a.b_hh = weight(p, "bias_hh", 0);
    return a;
}

/* What the layer starts from. Memory of inputs is zero until somebody fills it:
 * so are states that do not carry over. */
static sp_tensor *first(const part *p, const char *stem)
{
    char name[2 * NAME_SIZE];

    name_of(p, stem, name);
    if (p->o->bidirectional)
        return sp_input(p->g, name, (sp_shape){ .n = p->n, .c = p->o->hidden },
                        SP_F32);
    return sp_state(p->g, name, p->n, p->o->hidden);
}

static void carry(const part *p, sp_tensor *state, sp_tensor *next)
{
    if (!p->o->bidirectional)
        sp_next_state(p->g, state, next);
}

static sp_tensor *run_part(const part *p, sp_tensor *x)
{
    sp_recurrent_params a = params_of(p, x->shape.c);
    sp_tensor *h = first(p, "h"), *c;
    const char *name = p->suffix + 1; /* "l0" */

    if (p->o->kind == SP_GRU) {
        sp_gru_result u = sp_gru(p->g, name, x, h, a, p->reverse);
        carry(p, h, u.h);
        return u.y;
    }
    c = first(p, "c");
    sp_lstm_result l = sp_lstm(p->g, name, x, h, c, a, p->reverse);
    carry(p, h, l.h);
    carry(p, c, l.c);
    return l.y;
}

static sp_tensor *run_layer(sp_graph *g, const sp_rnn_opt *o, int layer,
                            sp_tensor *x)
{
    part p = { .g = g, .o = o, .n = x->shape.n };
    sp_tensor *y;

    snprintf(p.suffix, sizeof p.suffix, "_l%d", layer);
    y = run_part(&p, x);
    if (!o->bidirectional)
        return y;
    snprintf(p.suffix, sizeof p.suffix, "_l%d_reverse", layer);
    p.reverse = true;
    return sp_concat(g, y, run_part(&p, x));
}

static bool fits(const sp_rnn_opt *o)
{
    return (o->kind == SP_LSTM || o->kind == SP_GRU) && o->hidden >= 1 &&
           o->hidden <= HIDDEN_MAX && o->layers >= 0 &&
           o->layers <= LAYERS_MAX && o->biases >= SP_NO_BIAS && o->biases <= 2;
}

sp_tensor *sp_rnn(sp_graph *g, const char *name, sp_tensor *x, sp_rnn_opt o)
{
    int layers = o.layers ? o.layers : 1;

    if (!fits(&o)) {
        sp_graph_fail(g, SP_EARG,
                      "%s (rnn): %d layers of %d with %d biases: the kind must "
                      "be SP_LSTM or SP_GRU, layers from 1 to %d, of 1 to %d, "
                      "biases 1, 2 or SP_NO_BIAS",
                      name, layers, o.hidden, o.biases, LAYERS_MAX, HIDDEN_MAX);
        return x;
    }
    sp_push(g, name);
    for (int i = 0; i < layers; i++) {
        char dropout[NAME_SIZE];
        x = run_layer(g, &o, i, x);
        snprintf(dropout, sizeof dropout, "dropout_l%d", i);
        if (o.dropout != 0.0f && i + 1 < layers)
            x = sp_dropout(g, dropout, x, o.dropout);
    }
    sp_pop(g);
    return x;
}
