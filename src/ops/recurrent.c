/* Recording and checking the operators of recurrent layers. */
#include "ops/recurrent.h"

#include <limits.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/elements.h"

/* Append a matrix, or its factors, to a list; whether these. */
static bool add_matrix(sp_param **list, int *count, sp_param *w, sp_param *u,
                       sp_param *v)
{
    list[(*count)++] = w ? w : u;
    if (!w)
        list[(*count)++] = v;
    return !w;
}

static bool given(const sp_param *w, const sp_param *u, const sp_param *v)
{
    return w ? !u && !v : u && v;
}

void sp_recurrent_record(sp_graph *g, const sp_op *op, const char *name,
                         sp_tensor *const *x, const sp_recurrent_params *p,
                         bool reverse, sp_tensor **y)
{
    sp_recurrent_attr a = { .reverse = reverse,
                            .b_ih = p->b_ih != NULL,
                            .b_hh = p->b_hh != NULL };
    sp_param *list[7] = { 0 };
    int count = 0, outputs = 0;

    if (!given(p->w_ih, p->u_ih, p->v_ih) || !given(p->w_hh, p->u_hh, p->v_hh))
        sp_graph_fail(g, SP_EARG,
                      "%s (%s): each matrix must be given once: w_ih, or u_ih "
                      "and v_ih; w_hh, or u_hh and v_hh",
                      name, op->name);
    a.factors_ih = add_matrix(list, &count, p->w_ih, p->u_ih, p->v_ih);
    a.factors_hh = add_matrix(list, &count, p->w_hh, p->u_hh, p->v_hh);
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

/* Matrix `index`, in one piece. */
static sp_err check_whole(const sp_node *n, int index, int wide, int columns)
{
    const sp_param *w = n->p[index];

    if (w->ndim != 2 || w->dims[0] != wide || w->dims[1] != columns)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must be %d x %d, for %d inputs and states "
                       "of %d",
                       n->name, n->op->name, w->name, wide, columns,
                       n->x[0]->shape.c, n->x[1]->shape.c);
    return SP_OK;
}

/* Its factors, gate by gate or joined: v tells the rank. */
static sp_err check_factors(const sp_node *n, int index, int wide, int columns)
{
    const sp_param *u = n->p[index], *v = n->p[index + 1];
    int gates = wide / n->x[1]->shape.c, rank = v->dims[1];

    if (v->ndim != 2 || v->dims[0] != wide)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must be %d x rank, for states of %d",
                       n->name, n->op->name, v->name, wide, n->x[1]->shape.c);
    if (u->ndim != 2 || u->dims[1] != columns ||
        (u->dims[0] != rank && (double)u->dims[0] != (double)gates * rank))
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %s must be %.0f x %d or, joined, %d x %d, for "
                       "%s of %d x %d, %d inputs and states of %d",
                       n->name, n->op->name, u->name, (double)gates * rank,
                       columns, rank, columns, v->name, wide, rank,
                       n->x[0]->shape.c, n->x[1]->shape.c);
    return SP_OK;
}

static sp_err check_params(const sp_node *n, int gates)
{
    const sp_recurrent_attr *a = n->attr;
    int in = n->x[0]->shape.c, hidden = n->x[1]->shape.c, at = 0;

    if (hidden > INT_MAX / gates)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): %d gates of %d are more than 2^31 - 1",
                       n->name, n->op->name, gates, hidden);
    SP_TRY((a->factors_ih ? check_factors : check_whole)(n, at, gates * hidden,
                                                         in));
    at += a->factors_ih ? 2 : 1;
    SP_TRY((a->factors_hh ? check_factors : check_whole)(n, at, gates * hidden,
                                                         hidden));
    for (at += a->factors_hh ? 2 : 1; at < n->p_count; at++)
        if (n->p[at]->ndim != 1 || n->p[at]->dims[0] != gates * hidden)
            return sp_fail(SP_ESHAPE,
                           "%s (%s): %s must have %d elements, for states of "
                           "%d",
                           n->name, n->op->name, n->p[at]->name, gates * hidden,
                           hidden);
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
                                     .c = n->x[1]->shape.c };
    n->keep_x = (1u << n->x_count) - 1;
    n->keep_y = 1;
    n->macs = 0;
    for (int i = 0; i < n->p_count; i++)
        if (n->p[i]->ndim == 2)
            n->macs += (double)n->p[i]->count;
    return SP_OK;
}

static int least(int a, int b) { return a < b ? a : b; }

sp_recurrence sp_recurrent_open(const sp_node *n, const sp_run *r)
{
    const sp_recurrent_attr *a = n->attr;
    sp_shape x = n->x[0]->shape;
    int hh = a->factors_ih ? 2 : 1, biases = hh + (a->factors_hh ? 2 : 1);
    sp_recurrence s = {
        .node = n,
        .how = { .kernels = n->kernels,
                 .threads = n->threads,
                 .reference = n->reference },
        .t = r ? least(r->t, x.t) : x.t,
        .n = r ? least(r->n, x.n) : x.n,
        .in = x.c,
        .hidden = n->x[1]->shape.c,
        .reverse = a->reverse,
        .ih = sp_recurrent_matrix_at(n, 0, a->factors_ih),
        .hh = sp_recurrent_matrix_at(n, hh, a->factors_hh),
        .b_ih = a->b_ih ? n->p[biases] : NULL,
        .b_hh = a->b_hh ? n->p[biases + a->b_ih] : NULL,
        .biases = biases,
    };

    s.wide = s.ih.wide;
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

size_t sp_recurrent_lay_saved(const sp_recurrence *s, void *base,
                              sp_recurrent_work *w)
{
    size_t row = (size_t)s->rows * sizeof(float);
    sp_carver at = { .base = base };

    w->z_ih = sp_carve(&at, row * sp_recurrent_narrow(&s->ih));
    w->z_hh = sp_carve(&at, row * sp_recurrent_narrow(&s->hh));
    return at.used;
}

/* What stands between factors, where forward leaves nothing for backward, or
 * its gradient. */
static void lay_between(const sp_recurrence *s, bool backward, sp_carver *at,
                        sp_recurrent_work *w)
{
    size_t row = (size_t)s->rows * sizeof(float);
    size_t ih = sp_recurrent_narrow(&s->ih), hh = sp_recurrent_narrow(&s->hh);

    if (backward) {
        w->dz_ih = sp_carve(at, row * ih);
        w->dz_hh = sp_carve(at, row * hh);
    } else if (!s->node->train) {
        w->z_ih = sp_carve(at, row * ih);
        w->z_hh = sp_carve(at, (size_t)s->n * sizeof(float) * hh);
    }
}

/* The matrices' gradients come last: what they need stands where the matrices
 * were. */
size_t sp_recurrent_lay(const sp_recurrence *s, bool backward, void *base,
                        sp_recurrent_work *w)
{
    size_t row = (size_t)s->rows * sizeof(float);
    sp_carver at = { .base = base }, last;

    lay_between(s, backward, &at, w);
    last = at;
    w->packed = sp_carve(
        &at, larger(sp_recurrent_packed_size(&s->how, &s->ih, backward),
                    sp_recurrent_packed_size(&s->how, &s->hh, backward)));
    if (!backward)
        return at.used;
    w->turned = sp_carve(&last, row * (size_t)s->wide);
    w->narrow = sp_carve(&last, row * larger(sp_recurrent_narrow(&s->ih),
                                             sp_recurrent_narrow(&s->hh)));
    w->before = sp_carve(&last, row * (size_t)s->hidden);
    w->rows = sp_carve(
        &last, larger(sp_recurrent_sums_size(&s->how, &s->ih, s->rows),
                      sp_recurrent_sums_size(&s->how, &s->hh, s->rows)));
    return larger(at.used, last.used);
}

sp_recurrent_steps sp_recurrent_pack(const sp_recurrence *s,
                                     const sp_recurrent_work *w, bool back,
                                     float beta)
{
    sp_recurrent_steps p = {
        .w_hh = sp_recurrent_matrix_pack(&s->how, &s->hh, back, w->packed),
        .z = back ? w->dz_hh : w->z_hh,
        .width = s->node->train ? (int)sp_recurrent_narrow(&s->hh) : 0
    };

    p.w_hh.beta = beta;
    return p;
}

void sp_recurrent_product(const sp_recurrence *s, const sp_recurrent_steps *w,
                          int step, const float *x, float *y)
{
    sp_recurrent_operands o = { .n = s->n, .x = x, .y = y };

    o.z = sp_recurrent_rows(s, w->z, step, w->width);
    sp_recurrent_matrix_product(&s->how, &w->w_hh, &o);
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
    sp_recurrent_packed p =
        sp_recurrent_matrix_pack(&s->how, &s->ih, false, w->packed);
    sp_recurrent_operands o = {
        .n = s->rows, .x = s->node->x[0]->data, .z = w->z_ih, .y = gates
    };

    if (bias)
        sp_parallel_for(s->how.threads, (size_t)s->rows, 1 + 65536 / j.wide,
                        bias_rows, &j);
    p.beta = bias ? 1.0f : 0.0f;
    sp_recurrent_matrix_product(&s->how, &p, &o);
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
    sp_recurrent_operands o = {
        .n = s->rows, .x = gates, .z = w->dz_ih, .y = s->node->x[0]->grad
    };
    sp_recurrent_packed p;

    if (!o.y && !s->ih.v)
        return;
    p = sp_recurrent_matrix_pack(&s->how, &s->ih, true, w->packed);
    p.beta = sp_beta(s->node, 0);
    sp_recurrent_matrix_product(&s->how, &p, &o);
}

void sp_recurrent_turn(const sp_recurrence *s, const sp_recurrent_work *w,
                       const float *gates)
{
    sp_transpose(s->how.kernels, s->how.threads, (size_t)s->rows,
                 (size_t)s->wide, gates, w->turned);
}

static sp_recurrent_sums sums_of(const sp_recurrence *s,
                                 const sp_recurrent_work *w)
{
    return (sp_recurrent_sums){ .rows = s->rows,
                                .turned = w->turned,
                                .narrow = w->narrow,
                                .packed = w->rows };
}

void sp_recurrent_grad_w_ih(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w)
{
    sp_recurrent_sums sums = sums_of(s, w);

    sums.x = s->node->x[0]->data;
    sums.z = w->z_ih;
    sums.dz = w->dz_ih;
    sp_recurrent_matrix_grad(&s->how, &s->ih, s->node, r, &sums);
}

/* The h before each step are the first state and all of y but its last step. To
 * be multiplied at once they have to be adjacent. */
void sp_recurrent_grad_w_hh(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w)
{
    size_t state = sp_recurrent_state(s) * sizeof(float);
    sp_recurrent_sums sums = sums_of(s, w);

    for (int i = 0; i < s->t; i++)
        memcpy(
            sp_recurrent_rows(s, w->before, i, s->hidden),
            sp_recurrent_before(s, s->node->x[1]->data, s->node->y[0]->data, i),
            state);
    sums.x = w->before;
    sums.z = w->z_hh;
    sums.dz = w->dz_hh;
    sp_recurrent_matrix_grad(&s->how, &s->hh, s->node, r, &sums);
}
