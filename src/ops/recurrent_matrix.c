/* Products with a matrix of a recurrent layer, or with its factors. */
#include "ops/recurrent_matrix.h"

#include <string.h>

#include "kernels/conv.h"

sp_recurrent_matrix sp_recurrent_matrix_at(const sp_node *n, int index,
                                           bool factors)
{
    const sp_param *u = n->p[index], *v = factors ? n->p[index + 1] : NULL;
    sp_recurrent_matrix m = { .u = u,
                              .v = v,
                              .index = index,
                              .wide = u->dims[0],
                              .columns = u->dims[1] };

    if (factors) {
        m.wide = v->dims[0];
        m.rank = v->dims[1];
        m.blocks = u->dims[0] / m.rank;
    }
    return m;
}

/* The product with u (or w), or with v. */
static sp_packed product_with(const sp_recurrent_matrix *m, bool v, bool back)
{
    sp_packed p = { .in = m->columns,
                    .out = m->v ? m->blocks * m->rank : m->wide,
                    .transposed = back,
                    .groups = 1 };
    int in;

    if (v) {
        p.in = m->rank;
        p.out = m->wide / m->blocks;
        p.groups = m->blocks;
    }
    in = p.in;
    p.in = back ? p.out : in;
    p.out = back ? in : p.out;
    return p;
}

/* Of factors, u comes first, and going back v. */
static bool is_v(const sp_recurrent_matrix *m, int part, bool back)
{
    return m->v && (part == 1) != back;
}

static sp_recurrent_packed lay(const sp_conv_how *how,
                               const sp_recurrent_matrix *m, bool back,
                               sp_carver *at)
{
    sp_recurrent_packed p = { .parts = m->v ? 2 : 1 };

    for (int i = 0; i < p.parts; i++) {
        sp_packed *q = &p.part[i];
        *q = product_with(m, is_v(m, i, back), back);
        q->data = sp_carve(at, (size_t)q->groups *
                                   sp_packed_size(how, q->in, q->out));
    }
    return p;
}

size_t sp_recurrent_packed_size(const sp_conv_how *how,
                                const sp_recurrent_matrix *m, bool back)
{
    sp_carver at = { 0 };

    lay(how, m, back, &at);
    return at.used;
}

sp_recurrent_packed sp_recurrent_matrix_pack(const sp_conv_how *how,
                                             const sp_recurrent_matrix *m,
                                             bool back, float *to)
{
    sp_carver at = { .base = (char *)to };
    sp_recurrent_packed p = lay(how, m, back, &at);

    for (int i = 0; i < p.parts; i++)
        sp_pack(how, &p.part[i], (is_v(m, i, back) ? m->v : m->u)->value);
    return p;
}

void sp_recurrent_matrix_product(const sp_conv_how *how,
                                 const sp_recurrent_packed *p,
                                 const sp_recurrent_operands *r)
{
    const float *x = r->x;

    if (p->parts == 2) {
        sp_packed_product(how, &p->part[0], r->n, x, r->z, 0.0f);
        x = r->z;
    }
    if (r->y)
        sp_packed_product(how, &p->part[p->parts - 1], r->n, x, r->y, p->beta);
}

/* Rows of x or, of factors, those of z too, a block at a time. */
size_t sp_recurrent_sums_size(const sp_conv_how *how,
                              const sp_recurrent_matrix *m, int rows)
{
    size_t x = sp_packed_size(how, rows, m->columns);
    size_t z = m->v ? sp_packed_size(how, rows, m->rank) : 0;

    return x > z ? x : z;
}

/* to = beta * to + turned x, with `turned` {count, rows}. */
static void sum_with_x(const sp_conv_how *how, const sp_recurrent_sums *s,
                       const sp_param *to, const float *turned, float beta)
{
    sp_packed p = {
        .in = s->rows, .out = to->dims[1], .transposed = true, .data = s->packed
    };

    sp_pack(how, &p, s->x);
    sp_packed_product(how, &p, to->dims[0], turned, to->grad, beta);
}

/* Block by block: z_k is a row's part, so z has to be turned for its own to be
 * adjacent. */
static void sum_with_z(const sp_conv_how *how, const sp_recurrent_matrix *m,
                       const sp_recurrent_sums *s, float beta)
{
    size_t rows = (size_t)s->rows, rank = (size_t)m->rank;
    int high = m->wide / m->blocks;
    sp_packed p = { .in = s->rows, .out = m->rank, .data = s->packed };

    sp_transpose(how->kernels, how->threads, rows, sp_recurrent_narrow(m), s->z,
                 s->narrow);
    for (size_t k = 0; k < (size_t)m->blocks; k++) {
        size_t row = k * (size_t)high;
        sp_pack(how, &p, s->narrow + k * rank * rows);
        sp_packed_product(how, &p, high, s->turned + row * rows,
                          m->v->grad + row * rank, beta);
    }
}

static void clear(const sp_param *p, float beta)
{
    if (beta == 0.0f)
        memset(p->grad, 0, p->count * sizeof *p->grad);
}

void sp_recurrent_matrix_grad(const sp_conv_how *how,
                              const sp_recurrent_matrix *m, const sp_node *n,
                              const sp_run *r, const sp_recurrent_sums *s)
{
    float beta_u = sp_param_beta(n, m->index, r);
    float beta_v = m->v ? sp_param_beta(n, m->index + 1, r) : 0.0f;

    if (s->rows == 0) {
        clear(m->u, beta_u);
        if (m->v)
            clear(m->v, beta_v);
    } else if (m->v) {
        sum_with_z(how, m, s, beta_v);
        sp_transpose(how->kernels, how->threads, (size_t)s->rows,
                     sp_recurrent_narrow(m), s->dz, s->narrow);
        sum_with_x(how, s, m->u, s->narrow, beta_u);
    } else {
        sum_with_x(how, s, m->u, s->turned, beta_u);
    }
}
