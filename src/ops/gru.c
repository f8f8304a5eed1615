/* Gated recurrent unit over all time steps.
 *
 *   r = s(x_t w_ir^T + b_ir + h_(t-1) w_hr^T + b_hr)
 *   z = s(x_t w_iz^T + b_iz + h_(t-1) w_hz^T + b_hz)
 *   m = h_(t-1) w_hn^T + b_hn
 *   n = tanh(x_t w_in^T + b_in + r * m)
 *   h_t = (1 - z) * n + z * h_(t-1),  y_t = h_t,  with s(v) = 1 / (1 + e^-v)
 *
 * and, from the last step to the first, with dh from the step behind,
 *
 *   dh = dy_t + dh
 *   dn = dh (1 - z) (1 - n^2),  dz = dh (h_(t-1) - n) z (1 - z)
 *   dm = dn r,                  dr = dn m r (1 - r)
 *   dh <- dh z + (dr, dz, dm) w_hh
 *
 * In reverse, "before" and "behind" change places. What the products with w_hh
 * gave has the gradient (dr, dz, dm), those with w_ih have (dr, dz, dn).
 *
 * Shapes: x {t,n,1,1,d}, h {1,n,1,1,k}, w_ih {3k,d}, w_hh {3k,k}, b_ih and
 *         b_hh {3k} or absent -> y {t,n,1,1,k}, h {1,n,1,1,k}, that behind the
 *         last step, which is the first one if there is none. Of low rank,
 *         u_ih {3r,d} or {r,d} and v_ih {3k,r} in the place of w_ih; w_hh
 *         alike: see recurrent_matrix.h.
 * Saved:  r, z, n and m of every step: 4 k floats a row. Backward writes (dr,
 *         dz, dn) over the first three. Of low rank, what stands between the
 *         factors too: 3 r or r floats a row and matrix.
 * Errors: SP_ESHAPE when states or parameters do not fit; SP_EARG when a matrix
 *         is given twice or not at all.
 * Source: Cho et al. 2014, "Learning Phrase Representations using RNN
 *         Encoder-Decoder". Differs: r multiplies behind the product with w_hn,
 *         as cuDNN and PyTorch have it, so that one product serves all gates.
 */
#include <string.h>

#include "kernels/conv.h"
#include "kernels/gates.h"
#include "ops/recurrent.h"
#include "sprat/op.h"

enum { GATES = 3, STATES = 1 };

/* Where everything stands in one call. */
typedef struct memory {
    float *gates, *m; /* of all rows; m: of a step, in evaluation */
    float *state;     /* forward: h w_hh^T of a step; backward: its gradient,
                         of all rows */
    float *dh;        /* of a step */
    sp_recurrent_work work;
} memory;

/* What forward leaves for backward. */
static size_t lay_saved(const sp_recurrence *s, void *base, memory *mem)
{
    sp_carver at = { .base = base };
    size_t rows = (size_t)s->rows * sizeof(float);

    mem->gates = sp_carve(&at, rows * (size_t)s->wide);
    mem->m = sp_carve(&at, rows * (size_t)s->hidden);
    return at.used + sp_recurrent_lay_saved(s, base ? at.base + at.used : NULL,
                                            &mem->work);
}

static size_t lay_scratch(const sp_recurrence *s, bool backward, void *base,
                          memory *mem)
{
    sp_carver at = { .base = base };
    size_t state = sp_recurrent_state(s) * sizeof(float);
    size_t wide = (size_t)s->wide * sizeof(float);

    mem->state = sp_carve(&at, (size_t)(backward ? s->rows : s->n) * wide);
    if (backward) {
        mem->dh = sp_carve(&at, state);
    } else if (!s->node->train) {
        mem->gates = sp_carve(&at, (size_t)s->rows * wide);
        mem->m = sp_carve(&at, state);
    }
    return at.used + sp_recurrent_lay(s, backward,
                                      base ? at.base + at.used : NULL,
                                      &mem->work);
}

/* One step, each row by itself: pointers are to the first. */
typedef struct step {
    const sp_kernels *kernels;
    sp_gru_row to;
    sp_gru_back back;
} step;

static void forward_rows(void *arg, size_t begin, size_t end)
{
    const step *s = arg;
    size_t k = s->to.units;

    for (size_t i = begin; i < end; i++) {
        sp_gru_row row = s->to;
        row.gates += i * GATES * k;
        row.state += i * GATES * k;
        row.m += i * k;
        row.before += i * k;
        row.h += i * k;
        sp_gru_row_forward(s->kernels, &row);
    }
}

static void backward_rows(void *arg, size_t begin, size_t end)
{
    const step *s = arg;
    size_t k = s->back.units;

    for (size_t i = begin; i < end; i++) {
        sp_gru_back row = s->back;
        row.gates += i * GATES * k;
        row.state += i * GATES * k;
        row.m += i * k;
        row.before += i * k;
        row.dh += i * k;
        if (row.dy)
            row.dy += i * k;
        sp_gru_row_backward(s->kernels, &row);
    }
}

static sp_err gru_shape(sp_node *n)
{
    sp_recurrence s;
    memory mem;

    SP_TRY(sp_recurrent_shape(n, GATES));
    s = sp_recurrent_open(n, NULL);
    n->scratch = lay_scratch(&s, false, NULL, &mem);
    if (n->train) {
        size_t back = lay_scratch(&s, true, NULL, &mem);
        n->saved = lay_saved(&s, NULL, &mem);
        n->scratch = back > n->scratch ? back : n->scratch;
    }
    return SP_OK;
}

static void gru_forward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    const float *h = n->x[1]->data;
    memory mem = { 0 };
    sp_recurrent_steps w_hh;
    step now = { .kernels = r->kernels,
                 .to = { .units = (size_t)s.hidden,
                         .step = (size_t)s.hidden,
                         .bias = s.b_hh ? s.b_hh->value : NULL } };

    if (n->train)
        lay_saved(&s, n->saved_data, &mem);
    lay_scratch(&s, false, n->scratch_data, &mem);
    sp_recurrent_input(&s, &mem.work, s.b_ih ? s.b_ih->value : NULL, mem.gates);
    w_hh = sp_recurrent_pack(&s, &mem.work, false, 0.0f);
    for (int i = 0; i < s.t; i++) {
        sp_recurrent_product(&s, &w_hh, i, h, mem.state);
        now.to.gates = sp_recurrent_rows(&s, mem.gates, i, s.wide);
        now.to.state = mem.state;
        now.to.m = n->train ? sp_recurrent_rows(&s, mem.m, i, s.hidden) : mem.m;
        now.to.before = h;
        now.to.h = sp_recurrent_rows(&s, n->y[0]->data, i, s.hidden);
        sp_recurrent_for_rows(&s, forward_rows, &now);
        h = now.to.h;
    }
    memcpy(n->y[1]->data, h, sp_recurrent_state(&s) * sizeof(float));
}

/* From the last step to the first: the gates' gradients, and the state's. */
static void gru_steps_back(const sp_recurrence *s, const memory *mem)
{
    const sp_node *n = s->node;
    float *dy = n->y[0]->grad;
    sp_recurrent_steps w_hh = sp_recurrent_pack(s, &mem->work, true, 1.0f);
    step now = { .kernels = s->how.kernels,
                 .back = { .units = (size_t)s->hidden,
                           .step = (size_t)s->hidden,
                           .dh = mem->dh } };

    sp_recurrent_last_grad(s, 1, mem->dh);
    for (int i = s->t - 1; i >= 0; i--) {
        now.back.gates = sp_recurrent_rows(s, mem->gates, i, s->wide);
        now.back.state = sp_recurrent_rows(s, mem->state, i, s->wide);
        now.back.m = sp_recurrent_rows(s, mem->m, i, s->hidden);
        now.back.before =
            sp_recurrent_before(s, n->x[1]->data, n->y[0]->data, i);
        now.back.dy = dy ? sp_recurrent_rows(s, dy, i, s->hidden) : NULL;
        sp_recurrent_for_rows(s, backward_rows, &now);
        sp_recurrent_product(s, &w_hh, i, now.back.state, mem->dh);
    }
}

static void gru_backward(const sp_node *n, const sp_run *r)
{
    sp_recurrence s = sp_recurrent_open(n, r);
    memory mem = { 0 };

    lay_saved(&s, n->saved_data, &mem);
    lay_scratch(&s, true, n->scratch_data, &mem);
    gru_steps_back(&s, &mem);
    sp_recurrent_grad_input(&s, &mem.work, mem.gates);
    sp_recurrent_first_grad(&s, r, 1, mem.dh);
    sp_lap(r, n, SP_BACKWARD_INPUT);
    sp_recurrent_turn(&s, &mem.work, mem.gates);
    sp_recurrent_grad_w_ih(&s, r, &mem.work);
    sp_recurrent_turn(&s, &mem.work, mem.state);
    sp_recurrent_grad_w_hh(&s, r, &mem.work);
    sp_lap(r, n, SP_BACKWARD_WEIGHT);
    if (s.b_ih)
        sp_bias_backward(&s.how, (size_t)s.rows, s.wide, mem.gates,
                         s.b_ih->grad, sp_param_beta(n, s.biases, r));
    if (s.b_hh)
        sp_bias_backward(&s.how, (size_t)s.rows, s.wide, mem.state,
                         s.b_hh->grad,
                         sp_param_beta(n, s.biases + (s.b_ih != NULL), r));
    if (s.b_ih || s.b_hh)
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
