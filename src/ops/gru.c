/* Gated recurrent unit over all time steps.
 *
 *   r = s(x_t w_ir^T + b_ir + h_(t-1) w_hr^T + b_hr)
 *   z = s(x_t w_iz^T + b_iz + h_(t-1) w_hz^T + b_hz)
 *   q = h_(t-1) w_hn^T + b_hn
 *   n = tanh(x_t w_in^T + b_in + r * q)
 *   h_t = (1 - z) * n + z * h_(t-1),  y_t = h_t,  with s(v) = 1 / (1 + e^-v)
 *
 * and, from the last step to the first, with dh from the step behind,
 *
 *   dh = dy_t + dh
 *   dn = dh (1 - z) (1 - n^2),  dz = dh (h_(t-1) - n) z (1 - z)
 *   dq = dn r,                  dr = dn q r (1 - r)
 *   dh <- dh z + (dr, dz, dq) w_hh
 *
 * In reverse, "before" and "behind" change places. What multiplies w_hh has the
 * gradient (dr, dz, dq), what multiplies w_ih has (dr, dz, dn).
 *
 * Shapes: x {t,n,1,1,d}, h {1,n,1,1,k}, w_ih {3k,d}, w_hh {3k,k}, b_ih and
 *         b_hh {3k} or absent -> y {t,n,1,1,k}, h {1,n,1,1,k}, that behind the
 *         last step, which is the first one if there is none.
 * Saved:  r, z, n and q of every step: 4 k floats a row. Backward writes their
 *         gradients over them.
 * Errors: SP_ESHAPE when states or parameters do not fit.
 * Source: Cho et al. 2014, "Learning Phrase Representations using RNN
 *         Encoder-Decoder". Differs: r multiplies behind the product with w_hn,
 *         as cuDNN and PyTorch have it, so that one product serves all gates.
 */
#include <math.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/elements.h"
#include "ops/recurrent.h"
#include "sprat/op.h"

enum { GATES = 3, STATES = 1 };

/* Where everything stands in one call. */
typedef struct memory {
    float *gates,
        *q;        /* of all rows; q: of a step where nobody reads it again */
    float *bias;   /* of the gates but for q, or the gradient of one */
    float *sums;   /* h w_hh^T of a step */
    float *dh;     /* of a step */
    float *before; /* h before each step */
    sp_packed w;   /* w_hh */
    void *work, *after; /* of products: of the steps, of those behind them */
} memory;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* What forward leaves for backward. */
static size_t lay_saved(const sp_recurrence *s, void *base, memory *m)
{
    sp_carver at = { .base = base };
    size_t rows = (size_t)s->rows * sizeof(float);

    m->gates = sp_carve(&at, rows * (size_t)s->wide);
    m->q = sp_carve(&at, rows * (size_t)s->hidden);
    return at.used;
}

static size_t lay_forward(const sp_recurrence *s, void *base, memory *m)
{
    sp_carver at = { .base = base };
    size_t wide = (size_t)s->wide * sizeof(float);

    m->w = (sp_packed){ .in = s->hidden, .out = s->wide };
    if (!s->node->train)
        m->gates = sp_carve(&at, (size_t)s->rows * wide);
    m->bias = sp_carve(&at, wide);
    m->sums = sp_carve(&at, (size_t)s->n * wide);
    m->w.data = sp_carve(&at, sp_packed_size(&s->how, s->hidden, s->wide));
    m->work = sp_carve(
        &at, larger(sp_recurrent_scratch(s, SP_FORWARD),
                    sp_packed_scratch(&s->how, s->hidden, s->wide, s->n)));
    return at.used;
}

/* The packed weights serve the steps; what stands in their place, the products
 * behind them. */
static size_t lay_backward(const sp_recurrence *s, void *base, memory *m)
{
    sp_carver at = { .base = base }, then;
    size_t state = sp_recurrent_state(s) * sizeof(float);

    m->w = (sp_packed){ .in = s->wide, .out = s->hidden, .transposed = true };
    m->dh = sp_carve(&at, state);
    then = at;
    m->w.data = sp_carve(&at, sp_packed_size(&s->how, s->wide, s->hidden));
    m->work =
        sp_carve(&at, sp_packed_scratch(&s->how, s->wide, s->hidden, s->n));
    m->before = sp_carve(&then, (size_t)s->t * state);
    m->after =
        sp_carve(&then, larger(sp_recurrent_scratch(s, SP_BACKWARD_INPUT),
                               sp_recurrent_scratch(s, SP_BACKWARD_WEIGHT)));
    return larger(at.used, then.used);
}

static float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

static void gru_step(const sp_recurrence *s, const memory *m, float *gates,
                     float *q, const float *from, float *y)
{
    size_t k = (size_t)s->hidden;
    const float *b = s->b_hh ? s->b_hh->value + 2 * k : NULL;

    for (size_t row = 0; row < (size_t)s->n; row++) {
        float *r = gates + row * 3 * k, *z = r + k, *n = z + k;
        const float *sum = m->sums + row * 3 * k;
        for (size_t j = 0; j < k; j++) {
            size_t at = row * k + j;
            float v = sum[2 * k + j] + (b ? b[j] : 0);
            if (q)
                q[at] = v;
            r[j] = sigmoid(r[j] + sum[j]);
            z[j] = sigmoid(z[j] + sum[k + j]);
            n[j] = tanhf(n[j] + r[j] * v);
            y[at] = (1 - z[j]) * n[j] + z[j] * from[at];
        }
    }
}

/* The gates become (dr, dz, dq), q becomes dn, dh what goes by z. */
static void gru_step_back(const sp_recurrence *s, const memory *m, int step,
                          const float *dy)
{
    size_t k = (size_t)s->hidden;
    float *gates = sp_recurrent_rows(s, m->gates, step, s->wide);
    float *q = sp_recurrent_rows(s, m->q, step, s->hidden);
    const float *from =
        sp_recurrent_before(s, s->node->x[1]->data, s->node->y[0]->data, step);

    for (size_t row = 0; row < (size_t)s->n; row++) {
        float *r = gates + row * 3 * k, *z = r + k, *n = z + k;
        for (size_t j = 0; j < k; j++) {
            size_t at = row * k + j;
            float dh = m->dh[at] + (dy ? dy[at] : 0);
            float dn = dh * (1 - z[j]) * (1 - n[j] * n[j]);
            float dz = dh * (from[at] - n[j]) * z[j] * (1 - z[j]);
            float dr = dn * q[at] * r[j] * (1 - r[j]);
            m->dh[at] = dh * z[j];
            n[j] = dn * r[j];
            q[at] = dn;
            r[j] = dr;
            z[j] = dz;
        }
    }
}

static sp_err gru_shape(sp_node *n)
{
    sp_recurrence s;
    memory m;

    SP_TRY(sp_recurrent_shape(n, GATES));
    s = sp_recurrent_open(n, NULL);
    n->scratch = lay_forward(&s, NULL, &m);
    if (n->train) {
        n->saved = lay_saved(&s, NULL, &m);
        n->scratch = larger(n->scratch, lay_backward(&s, NULL, &m));
    }
    return SP_OK;
}

/* The biases of r and z, and that of n's input; b_hn is added to q. */
static const float *add_biases(const sp_recurrence *s, float *sum)
{
    for (int i = 0; i < s->wide; i++)
        sum[i] = (s->b_ih ? s->b_ih->value[i] : 0.0f) +
                 (s->b_hh && i < 2 * s->hidden ? s->b_hh->value[i] : 0.0f);
    return sum;
}

static void gru_forward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    const float *h = n->x[1]->data;
    memory m = { 0 };

    if (n->train)
        lay_saved(&s, n->saved_data, &m);
    lay_forward(&s, n->scratch_data, &m);
    sp_recurrent_input(&s, add_biases(&s, m.bias), m.gates, m.work);
    sp_pack(&s.how, &m.w, s.w_hh->value);
    for (int i = 0; i < s.t; i++) {
        float *gates = sp_recurrent_rows(&s, m.gates, i, s.wide);
        float *q = m.q ? sp_recurrent_rows(&s, m.q, i, s.hidden) : NULL;
        float *y = sp_recurrent_rows(&s, n->y[0]->data, i, s.hidden);
        sp_packed_product(&s.how, &m.w, s.n, h, m.sums, 0.0f, m.work);
        gru_step(&s, &m, gates, q, h, y);
        h = y;
    }
    memcpy(n->y[1]->data, h, sp_recurrent_state(&s) * sizeof(float));
}

/* From the last step to the first: the gates' gradients, and the state's. */
static void gru_steps_back(const sp_recurrence *s, const memory *m)
{
    float *dy = s->node->y[0]->grad;

    sp_recurrent_last_grad(s, 1, m->dh);
    sp_pack(&s->how, &m->w, s->w_hh->value);
    for (int i = s->t - 1; i >= 0; i--) {
        float *gates = sp_recurrent_rows(s, m->gates, i, s->wide);
        gru_step_back(s, m, i,
                      dy ? sp_recurrent_rows(s, dy, i, s->hidden) : NULL);
        sp_packed_product(&s->how, &m->w, s->n, gates, m->dh, 1.0f, m->work);
    }
}

typedef struct exchange {
    float *gates, *q;
    size_t k;
} exchange;

static void exchange_rows(void *arg, size_t begin, size_t end)
{
    const exchange *e = arg;

    for (size_t i = begin; i < end; i++) {
        float *n = e->gates + (3 * i + 2) * e->k, *q = e->q + i * e->k;
        for (size_t j = 0; j < e->k; j++) {
            float kept = n[j];
            n[j] = q[j];
            q[j] = kept;
        }
    }
}

/* Between (dr, dz, dq) with dn beside it, and (dr, dz, dn) with dq. */
static void exchange_last(const sp_recurrence *s, const memory *m)
{
    exchange e = { m->gates, m->q, (size_t)s->hidden };

    sp_parallel_for(s->how.threads, (size_t)s->rows, 1 + 4096 / e.k,
                    exchange_rows, &e);
}

static void gru_backward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    memory m = { 0 };

    lay_saved(&s, n->saved_data, &m);
    lay_backward(&s, n->scratch_data, &m);
    gru_steps_back(&s, &m);
    exchange_last(&s, &m);
    sp_recurrent_grad_input(&s, m.gates, m.after);
    sp_recurrent_first_grad(&s, r, 1, m.dh);
    sp_lap(r, n, SP_BACKWARD_INPUT);
    sp_recurrent_grad_w_ih(&s, r, m.gates, m.after);
    if (s.b_ih)
        sp_bias_backward(&s.how, (size_t)s.rows, s.wide, m.gates, s.b_ih->grad,
                         sp_param_beta(n, 2, r));
    exchange_last(&s, &m);
    sp_recurrent_grad_w_hh(&s, r, m.gates, m.before, m.after);
    sp_lap(r, n, SP_BACKWARD_WEIGHT);
    if (s.b_hh)
        sp_bias_backward(&s.how, (size_t)s.rows, s.wide, m.gates, s.b_hh->grad,
                         sp_param_beta(n, s.b_ih ? 3 : 2, r));
    sp_lap(r, n, SP_BACKWARD_BIAS);
}

static sp_tensor *gru_example(sp_graph *g, int i)
{
    sp_recurrent_example e;
    sp_gru_result u;

    if (!sp_recurrent_example_at(g, i, GATES, STATES, &e))
        return NULL;
    u = sp_gru(g, "gru", e.x[0], e.x[1], e.p, e.reverse);
    if (e.twice)
        u = sp_gru(g, "again", u.y, u.h, e.p, e.reverse);
    return e.last ? u.h : u.y;
}

const sp_op sp_op_gru = {
    .name = "gru",
    .help = "y = (1 - z) * tanh(x w^T + r * (h v^T)) + z * h, step by step",
    .shape = gru_shape,
    .forward = gru_forward,
    .backward = gru_backward,
    .parts = true,
    .example = gru_example,
};

sp_gru_result sp_gru(sp_graph *g, const char *name, sp_tensor *x, sp_tensor *h,
                     sp_recurrent_params p, bool reverse)
{
    sp_tensor *y[1 + STATES];

    sp_recurrent_record(g, &sp_op_gru, name, (sp_tensor *[]){ x, h, NULL }, &p,
                        reverse, y);
    return (sp_gru_result){ .y = y[0], .h = y[1] };
}
