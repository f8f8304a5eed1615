/* Long short-term memory over all time steps.
 *
 *   (i, f, g, o) = x_t w_ih^T + b_ih + h_(t-1) w_hh^T + b_hh
 *   c_t = s(f) * c_(t-1) + s(i) * tanh(g)
 *   h_t = s(o) * tanh(c_t),  y_t = h_t,  with s(v) = 1 / (1 + e^-v)
 *
 * and, from the last step to the first, with dh and dc from the step behind,
 *
 *   dh  = dy_t + dh,  dc = dc + dh s(o) (1 - tanh(c_t)^2)
 *   di  = dc tanh(g) s(i) (1 - s(i)),  df = dc c_(t-1) s(f) (1 - s(f))
 *   dg  = dc s(i) (1 - tanh(g)^2),     do = dh tanh(c_t) s(o) (1 - s(o))
 *   dh <- (di, df, dg, do) w_hh,       dc <- dc s(f)
 *
 * In reverse, "before" and "behind" change places. The products with w_ih, and
 * both matrices' gradients, are over the rows of all steps at once; the
 * products with w_hh, step by step, by weights that are packed once.
 *
 * Shapes: x {t,n,1,1,d}, h and c {1,n,1,1,k}, w_ih {4k,d}, w_hh {4k,k}, b_ih
 *         and b_hh {4k} or absent -> y {t,n,1,1,k}, h and c {1,n,1,1,k}, those
 *         behind the last step, which are the first ones if there is none. Of
 *         low rank, u_ih {4r,d} or {r,d} and v_ih {4k,r} in the place of w_ih;
 *         w_hh alike: see recurrent_matrix.h.
 * Saved:  the gates behind s and tanh, and c, of every step: 5 k floats a row.
 *         Backward writes the gates' gradients over the gates. Of low rank,
 *         what stands between the factors too: 4 r or r floats a row and
 *         matrix.
 * Errors: SP_ESHAPE when states or parameters do not fit; SP_EARG when a matrix
 *         is given twice or not at all.
 * Source: Hochreiter, Schmidhuber 1997, "Long Short-Term Memory"; Gers,
 *         Schmidhuber, Cummins 2000, "Learning to Forget". No peepholes; the
 *         order of the gates is PyTorch's.
 */
#include <string.h>

#include "kernels/conv.h"
#include "kernels/elements.h"
#include "kernels/gates.h"
#include "ops/recurrent.h"
#include "sprat/op.h"

enum { GATES = 4, STATES = 2 };

/* Where everything stands in one call. */
typedef struct memory {
    float *gates, *c; /* of all rows; c: in training only */
    float *bias;      /* the sum of both biases, or their gradient */
    float *dh, *dc;   /* of a step */
    sp_recurrent_work work;
} memory;

/* What forward leaves for backward. */
static size_t lay_saved(const sp_recurrence *s, void *base, memory *m)
{
    sp_carver at = { .base = base };
    size_t rows = (size_t)s->rows * sizeof(float);

    m->gates = sp_carve(&at, rows * (size_t)s->wide);
    m->c = sp_carve(&at, rows * (size_t)s->hidden);
    return at.used +
           sp_recurrent_lay_saved(s, base ? at.base + at.used : NULL, &m->work);
}

static size_t lay_scratch(const sp_recurrence *s, bool backward, void *base,
                          memory *m)
{
    sp_carver at = { .base = base };
    size_t state = sp_recurrent_state(s) * sizeof(float);
    size_t wide = (size_t)s->wide * sizeof(float);

    m->bias = sp_carve(&at, wide);
    if (backward) {
        m->dh = sp_carve(&at, state);
        m->dc = sp_carve(&at, state);
    } else if (!s->node->train) {
        m->gates = sp_carve(&at, (size_t)s->rows * wide);
    }
    return at.used + sp_recurrent_lay(s, backward,
                                      base ? at.base + at.used : NULL,
                                      &m->work);
}

/* One step, each row by itself: pointers are to the first. */
typedef struct step {
    const sp_kernels *kernels;
    sp_lstm_row to;
    sp_lstm_back back;
} step;

static void forward_rows(void *arg, size_t begin, size_t end)
{
    const step *s = arg;
    size_t k = s->to.units;

    for (size_t i = begin; i < end; i++) {
        sp_lstm_row row = s->to;
        row.gates += i * GATES * k;
        row.before += i * k;
        row.c += i * k;
        row.h += i * k;
        sp_lstm_row_forward(s->kernels, &row);
    }
}

static void backward_rows(void *arg, size_t begin, size_t end)
{
    const step *s = arg;
    size_t k = s->back.units;

    for (size_t i = begin; i < end; i++) {
        sp_lstm_back row = s->back;
        row.gates += i * GATES * k;
        row.before += i * k;
        row.c += i * k;
        row.dh += i * k;
        row.dc += i * k;
        if (row.dy)
            row.dy += i * k;
        sp_lstm_row_backward(s->kernels, &row);
    }
}

static sp_err lstm_shape(sp_node *n)
{
    sp_recurrence s;
    memory m;

    SP_TRY(sp_recurrent_shape(n, GATES));
    s = sp_recurrent_open(n, NULL);
    n->scratch = lay_scratch(&s, false, NULL, &m);
    if (n->train) {
        size_t back = lay_scratch(&s, true, NULL, &m);
        n->saved = lay_saved(&s, NULL, &m);
        n->scratch = back > n->scratch ? back : n->scratch;
    }
    return SP_OK;
}

/* The sum of the biases that there are, or NULL. */
static const float *add_biases(const sp_recurrence *s, float *sum)
{
    if (!s->b_ih || !s->b_hh)
        return s->b_ih ? s->b_ih->value : s->b_hh ? s->b_hh->value : NULL;
    for (int i = 0; i < s->wide; i++)
        sum[i] = s->b_ih->value[i] + s->b_hh->value[i];
    return sum;
}

static void lstm_forward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    const float *h = n->x[1]->data, *c = n->x[2]->data;
    size_t bytes = sp_recurrent_state(&s) * sizeof(float);
    memory m = { 0 };
    sp_recurrent_steps w_hh;
    step now = { .kernels = r->kernels,
                 .to = { .units = (size_t)s.hidden,
                         .step = (size_t)s.hidden } };

    if (n->train)
        lay_saved(&s, n->saved_data, &m);
    lay_scratch(&s, false, n->scratch_data, &m);
    sp_recurrent_input(&s, &m.work, add_biases(&s, m.bias), m.gates);
    w_hh = sp_recurrent_pack(&s, &m.work, false, 1.0f);
    for (int i = 0; i < s.t; i++) {
        now.to.gates = sp_recurrent_rows(&s, m.gates, i, s.wide);
        now.to.before = c;
        now.to.c =
            n->train ? sp_recurrent_rows(&s, m.c, i, s.hidden) : n->y[2]->data;
        now.to.h = sp_recurrent_rows(&s, n->y[0]->data, i, s.hidden);
        sp_recurrent_product(&s, &w_hh, i, h, now.to.gates);
        sp_recurrent_for_rows(&s, forward_rows, &now);
        h = now.to.h;
        c = now.to.c;
    }
    memcpy(n->y[1]->data, h, bytes);
    if (c != n->y[2]->data)
        memcpy(n->y[2]->data, c, bytes);
}

/* Both biases have the same gradient. */
static void grad_biases(const sp_recurrence *s, const sp_run *r,
                        const memory *m)
{
    const sp_param *b[] = { s->b_ih, s->b_hh };
    int at = s->biases;

    if (!s->b_ih && !s->b_hh)
        return;
    sp_bias_backward(&s->how, (size_t)s->rows, s->wide, m->gates, m->bias,
                     0.0f);
    for (int i = 0; i < 2; i++)
        if (b[i])
            sp_accumulate(r, (size_t)s->wide, m->bias, b[i]->grad,
                          sp_param_beta(s->node, at++, r));
    sp_lap(r, s->node, SP_BACKWARD_BIAS);
}

/* From the last step to the first: the gates' gradients, and the states'. */
static void lstm_steps_back(const sp_recurrence *s, const memory *m)
{
    const sp_node *n = s->node;
    float *dy = n->y[0]->grad;
    sp_recurrent_steps w_hh = sp_recurrent_pack(s, &m->work, true, 0.0f);
    step now = { .kernels = s->how.kernels,
                 .back = { .units = (size_t)s->hidden,
                           .step = (size_t)s->hidden,
                           .dh = m->dh,
                           .dc = m->dc } };

    sp_recurrent_last_grad(s, 1, m->dh);
    sp_recurrent_last_grad(s, 2, m->dc);
    for (int i = s->t - 1; i >= 0; i--) {
        now.back.gates = sp_recurrent_rows(s, m->gates, i, s->wide);
        now.back.before = sp_recurrent_before(s, n->x[2]->data, m->c, i);
        now.back.c = sp_recurrent_rows(s, m->c, i, s->hidden);
        now.back.dy = dy ? sp_recurrent_rows(s, dy, i, s->hidden) : NULL;
        sp_recurrent_for_rows(s, backward_rows, &now);
        sp_recurrent_product(s, &w_hh, i, now.back.gates, m->dh);
    }
}

static void lstm_backward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    memory m = { 0 };

    lay_saved(&s, n->saved_data, &m);
    lay_scratch(&s, true, n->scratch_data, &m);
    lstm_steps_back(&s, &m);
    sp_recurrent_grad_input(&s, &m.work, m.gates);
    sp_recurrent_first_grad(&s, r, 1, m.dh);
    sp_recurrent_first_grad(&s, r, 2, m.dc);
    sp_lap(r, n, SP_BACKWARD_INPUT);
    sp_recurrent_turn(&s, &m.work, m.gates);
    sp_recurrent_grad_w_ih(&s, r, &m.work);
    sp_recurrent_grad_w_hh(&s, r, &m.work);
    sp_lap(r, n, SP_BACKWARD_WEIGHT);
    grad_biases(&s, r, &m);
}

static sp_tensor *lstm_example(sp_graph *g, int i)
{
    sp_recurrent_example e;
    sp_lstm_result l;

    if (!sp_recurrent_example_at(g, i, GATES, STATES, &e))
        return NULL;
    l = sp_lstm(g, "lstm", e.x[0], e.x[1], e.x[2], e.p, e.reverse);
    if (e.twice)
        l = sp_lstm(g, "again", l.y, l.h, l.c, e.p, e.reverse);
    return e.last ? sp_concat(g, l.h, l.c) : l.y;
}

const sp_op sp_op_lstm = {
    .name = "lstm",
    .help = "c = s(f) * c + s(i) * tanh(g), y = s(o) * tanh(c), step by step",
    .shape = lstm_shape,
    .forward = lstm_forward,
    .backward = lstm_backward,
    .parts = true,
    .example = lstm_example,
};

sp_lstm_result sp_lstm(sp_graph *g, const char *name, sp_tensor *x,
                       sp_tensor *h, sp_tensor *c, sp_recurrent_params p,
                       bool reverse)
{
    sp_tensor *y[1 + STATES];

    sp_recurrent_record(g, &sp_op_lstm, name, (sp_tensor *[]){ x, h, c, NULL },
                        &p, reverse, y);
    return (sp_lstm_result){ .y = y[0], .h = y[1], .c = y[2] };
}
