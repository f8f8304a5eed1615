#include "ops/recurrent.h"

#include <limits.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/elements.h"

void sp_recurrent_record(sp_graph *g, const sp_op *op, const char *name,
                         sp_tensor *const *x, const sp_recurrent_params *p,
                         bool reverse, sp_tensor **y)
{
    sp_recurrent_attr a = { .reverse = reverse,
                            .b_ih = p->b_ih != NULL,
                            .b_hh = p->b_hh != NULL };
    sp_param *list[5] = { p->w_ih, p->w_hh };
    int count = 2, outputs = 0;

    if (p->b_ih)
        list[count++] = p->b_ih;
    if (p->b_hh)
        list[count++] = p->b_hh;
    while (x[outputs])
        outputs++;
    sp_record_many(g, op, name, &a, sizeof a, x, list, y, outputs);
}

static sp_err check_states(const sp_node *n)
{
    sp_shape x = n->x[0]->shape, h = n->x[1]->shape;

    if (n->x[0]->dtype != SP_F32 || x.h != 1 || x.w != 1)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must be one row of floats a time step, but "
                       "has %d x %d pixels of %s",
                       n->name, n->op->name, n->x[0]->name, x.h, x.w,
                       n->x[0]->dtype == SP_F32 ? "floats" : "ints");
    for (int i = 1; i < n->x_count; i++) {
        sp_shape s = n->x[i]->shape;
        if (n->x[i]->dtype != SP_F32 || s.t != 1 || s.n != x.n || s.h != 1 ||
            s.w != 1 || s.c != h.c)
            return sp_fail(SP_ESHAPE,
                           "%s (%s): state %s must have %d rows of %d floats, "
                           "but has %d x %d rows of %d x %d x %d %s",
                           n->name, n->op->name, n->x[i]->name, x.n, h.c, s.t,
                           s.n, s.h, s.w, s.c,
                           n->x[i]->dtype == SP_F32 ? "floats" : "ints");
    }
    return SP_OK;
}

/* The i-th parameter: w_ih, w_hh, or a bias. */
static sp_err check_param(const sp_node *n, int i, int wide)
{
    const sp_param *p = n->p[i];
    int in = n->x[0]->shape.c, hidden = n->x[1]->shape.c;
    int columns = i == 0 ? in : hidden;

    if (i < 2 && (p->ndim != 2 || p->dims[0] != wide || p->dims[1] != columns))
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must be %d x %d, for %d inputs and states "
                       "of %d",
                       n->name, n->op->name, p->name, wide, columns, in,
                       hidden);
    if (i >= 2 && (p->ndim != 1 || p->dims[0] != wide))
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must have %d elements, for states of %d",
                       n->name, n->op->name, p->name, wide, hidden);
    return SP_OK;
}

static sp_err check_params(const sp_node *n, int gates)
{
    int hidden = n->x[1]->shape.c;

    if (hidden > INT_MAX / gates)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %d gates of %d are more than 2^31 - 1",
                       n->name, n->op->name, gates, hidden);
    for (int i = 0; i < n->p_count; i++)
        SP_TRY(check_param(n, i, gates * hidden));
    return SP_OK;
}

sp_err sp_recurrent_shape(sp_node *n, int gates)
{
    sp_shape x = n->x[0]->shape;

    SP_TRY(check_states(n));
    SP_TRY(check_params(n, gates));
    if ((double)x.t * x.n > INT_MAX)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %d steps of %d rows are more than 2^31 - 1",
                       n->name, n->op->name, x.t, x.n);
    for (int i = 0; i < n->y_count; i++)
        n->y[i]->shape = (sp_shape){ .t = i == 0 ? x.t : 1,
                                     .n = x.n,
                                     .c = n->p[1]->dims[1] };
    n->keep_x = (1u << n->x_count) - 1;
    n->keep_y = 1;
    n->macs = (double)n->p[0]->count + (double)n->p[1]->count;
    return SP_OK;
}

static int least(int a, int b) { return a < b ? a : b; }

sp_recurrence sp_recurrent_open(const sp_node *n, const sp_run *r)
{
    const sp_recurrent_attr *a = n->attr;
    sp_shape x = n->x[0]->shape;
    sp_recurrence s = {
        .node = n,
        .how = { .kernels = n->kernels,
                 .threads = n->threads,
                 .reference = n->reference },
        .t = r ? least(r->t, x.t) : x.t,
        .n = r ? least(r->n, x.n) : x.n,
        .in = x.c,
        .hidden = n->p[1]->dims[1],
        .wide = n->p[1]->dims[0],
        .reverse = a->reverse,
        .w_ih = n->p[0],
        .w_hh = n->p[1],
        .b_ih = a->b_ih ? n->p[2] : NULL,
        .b_hh = a->b_hh ? n->p[a->b_ih ? 3 : 2] : NULL,
    };

    s.rows = s.t * s.n;
    return s;
}

const float *sp_recurrent_before(const sp_recurrence *s, const float *first,
                                 float *all, int step)
{
    return step == 0 ? first : sp_recurrent_rows(s, all, step - 1, s->hidden);
}

/* Units that a thread takes at a time: some microseconds. */
enum { UNITS = 2048 };

void sp_recurrent_for_rows(const sp_recurrence *s, sp_body body, void *arg)
{
    sp_parallel_for(s->how.threads, (size_t)s->n, 1 + UNITS / (size_t)s->hidden,
                    body, arg);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* A matrix {rows, columns}, packed for products with it or, to go back, with
 * what it is transposed. */
typedef struct matrix {
    int rows, columns;
    bool back;
} matrix;

static sp_packed packed_of(const matrix *m, float *data)
{
    return (sp_packed){ .in = m->back ? m->rows : m->columns,
                        .out = m->back ? m->columns : m->rows,
                        .transposed = m->back,
                        .data = data };
}

static size_t bytes_of(const sp_recurrence *s, matrix m)
{
    sp_packed p = packed_of(&m, NULL);

    return sp_packed_size(&s->how, p.in, p.out);
}

/* The matrices' gradients come last: what they need stands where the matrices
 * were. */
size_t sp_recurrent_lay(const sp_recurrence *s, bool backward, void *base,
                        sp_recurrent_work *w)
{
    size_t row = (size_t)s->rows * sizeof(float);
    sp_carver at = { .base = base }, last = at;

    w->packed = sp_carve(
        &at, larger(bytes_of(s, (matrix){ s->wide, s->in, backward }),
                    bytes_of(s, (matrix){ s->wide, s->hidden, backward })));
    if (!backward)
        return at.used;
    w->turned = sp_carve(&last, row * (size_t)s->wide);
    w->before = sp_carve(&last, row * (size_t)s->hidden);
    w->rows = sp_carve(
        &last, larger(bytes_of(s, (matrix){ s->rows, s->in, true }),
                      bytes_of(s, (matrix){ s->rows, s->hidden, true })));
    return larger(at.used, last.used);
}

static sp_packed pack(const sp_recurrence *s, matrix m, const float *from,
                      float *to)
{
    sp_packed p = packed_of(&m, to);

    sp_pack(&s->how, &p, from);
    return p;
}

sp_packed sp_recurrent_pack(const sp_recurrence *s, const sp_recurrent_work *w,
                            bool back)
{
    return pack(s, (matrix){ s->wide, s->hidden, back }, s->w_hh->value,
                w->packed);
}

void sp_recurrent_product(const sp_recurrence *s, const sp_packed *p,
                          const float *x, float *y, float beta)
{
    sp_packed_product(&s->how, p, s->n, x, y, beta);
}

/* Rows that start as a bias. */
typedef struct bias_job {
    const float *bias;
    float *to;
    size_t wide;
} bias_job;

static void bias_rows(void *arg, size_t begin, size_t end)
{
    const bias_job *j = arg;

    for (size_t i = begin; i < end; i++)
        memcpy(j->to + i * j->wide, j->bias, j->wide * sizeof *j->bias);
}

void sp_recurrent_input(const sp_recurrence *s, const sp_recurrent_work *w,
                        const float *bias, float *gates)
{
    bias_job j = { bias, gates, (size_t)s->wide };
    sp_packed p =
        pack(s, (matrix){ s->wide, s->in, false }, s->w_ih->value, w->packed);

    if (bias)
        sp_parallel_for(s->how.threads, (size_t)s->rows, 1 + 65536 / j.wide,
                        bias_rows, &j);
    sp_packed_product(&s->how, &p, s->rows, s->node->x[0]->data, gates,
                      bias ? 1.0f : 0.0f);
}

void sp_recurrent_last_grad(const sp_recurrence *s, int k, float *grad)
{
    const float *from = s->node->y[k]->grad;
    size_t bytes = sp_recurrent_state(s) * sizeof *grad;

    if (from)
        memcpy(grad, from, bytes);
    else
        memset(grad, 0, bytes);
}

void sp_recurrent_first_grad(const sp_recurrence *s, const sp_run *r, int k,
                             const float *grad)
{
    float *to = s->node->x[k]->grad;

    if (to)
        sp_accumulate(r, sp_recurrent_state(s), grad, to, sp_beta(s->node, k));
}

void sp_recurrent_grad_input(const sp_recurrence *s, const sp_recurrent_work *w,
                             const float *gates)
{
    sp_packed p;

    if (!s->node->x[0]->grad)
        return;
    p = pack(s, (matrix){ s->wide, s->in, true }, s->w_ih->value, w->packed);
    sp_packed_product(&s->how, &p, s->rows, gates, s->node->x[0]->grad,
                      sp_beta(s->node, 0));
}

void sp_recurrent_turn(const sp_recurrence *s, const sp_recurrent_work *w,
                       const float *gates)
{
    sp_transpose(s->how.kernels, s->how.threads, (size_t)s->rows,
                 (size_t)s->wide, gates, w->turned);
}

/* dw = beta * dw + (gates' gradients)^T x. */
static void grad_matrix(const sp_recurrence *s, const sp_recurrent_work *w,
                        const float *x, const sp_param *m, float beta)
{
    sp_packed p;

    if (s->rows == 0) {
        if (beta == 0.0f)
            memset(m->grad, 0, m->count * sizeof *m->grad);
        return;
    }
    p = pack(s, (matrix){ s->rows, m->dims[1], true }, x, w->rows);
    sp_packed_product(&s->how, &p, s->wide, w->turned, m->grad, beta);
}

void sp_recurrent_grad_w_ih(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w)
{
    grad_matrix(s, w, s->node->x[0]->data, s->w_ih,
                sp_param_beta(s->node, 0, r));
}

/* The h before each step are the first state and all of y but its last step. To
 * be multiplied at once they have to be adjacent. */
void sp_recurrent_grad_w_hh(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w)
{
    size_t state = sp_recurrent_state(s) * sizeof(float);

    for (int i = 0; i < s->t; i++)
        memcpy(
            sp_recurrent_rows(s, w->before, i, s->hidden),
            sp_recurrent_before(s, s->node->x[1]->data, s->node->y[0]->data, i),
            state);
    grad_matrix(s, w, w->before, s->w_hh, sp_param_beta(s->node, 1, r));
}

bool sp_recurrent_example_at(sp_graph *g, int i, int gates, int states,
                             sp_recurrent_example *e)
{
    static const struct {
        int t, n, in, hidden;
        bool reverse, b_ih, b_hh, last, twice;
    } cases[] = {
        { 1, 1, 1, 1, false, true, true, false, false },
        { 5, 3, 4, 7, false, true, true, false, false },
        { 4, 2, 3, 5, true, true, false, false, false },
        { 3, 5, 9, 17, true, false, false, false, false },
        { 2, 13, 17, 33, false, false, true, false, false },
        { 3, 2, 5, 7, false, true, true, true, false },
        { 3, 2, 7, 7, true, true, true, false, true },
    };
    static const char *const names[] = { "h", "c" };
    const sp_init some = { SP_UNIFORM, 0.5f };

    if (i >= (int)(sizeof cases / sizeof *cases))
        return false;
    int n = cases[i].n, hidden = cases[i].hidden, wide = gates * hidden;
    sp_shape x = { .t = cases[i].t, .n = n, .c = cases[i].in };
    *e = (sp_recurrent_example){ .reverse = cases[i].reverse,
                                 .last = cases[i].last,
                                 .twice = cases[i].twice };
    e->x[0] = sp_input(g, "x", x, SP_F32);
    for (int k = 0; k < states; k++)
        e->x[1 + k] =
            sp_input(g, names[k], (sp_shape){ .n = n, .c = hidden }, SP_F32);
    e->p.w_ih = sp_weight(g, "w_ih", (int[]){ wide, x.c, 0 }, some);
    e->p.w_hh = sp_weight(g, "w_hh", (int[]){ wide, hidden, 0 }, some);
    if (cases[i].b_ih)
        e->p.b_ih = sp_weight(g, "b_ih", (int[]){ wide, 0 }, some);
    if (cases[i].b_hh)
        e->p.b_hh = sp_weight(g, "b_hh", (int[]){ wide, 0 }, some);
    return true;
}
