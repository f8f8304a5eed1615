/* Rows of a table: an embedding.
 *
 *   y[i]  = w[x[i]]
 *   dw[r] = sum of dy[i] over the rows i with x[i] = r, in their order
 *
 * Backward that adds to the gradient touches the rows that occur and no others;
 * one that stores has to write zeros to all of them first.
 *
 * Shapes: x {t,n,1,1,1} of int in [0, rows), w {rows,c} -> y {t,n,1,1,c}.
 * Errors: SP_ESHAPE when x is no list of ints or w no table. Numbers outside
 *         the table are the caller's mistake.
 */
#include <assert.h>
#include <string.h>

#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err lookup_shape(sp_node *n)
{
    sp_shape x = n->x[0]->shape;

    if (n->x[0]->dtype != SP_I32 || x.h * x.w * x.c != 1)
        return sp_fail(SP_ESHAPE,
                       "%s (lookup): %s must be one int a row, but has %d x %d "
                       "pixels of %d %s",
                       n->name, n->x[0]->name, x.h, x.w, x.c,
                       n->x[0]->dtype == SP_I32 ? "ints" : "floats");
    if (n->p[0]->ndim != 2)
        return sp_fail(SP_ESHAPE,
                       "%s (lookup): %s has %d dimensions; a table has 2",
                       n->name, n->p[0]->name, n->p[0]->ndim);
    n->y[0]->shape = (sp_shape){ .t = x.t, .n = x.n, .c = n->p[0]->dims[1] };
    n->keep_x = 1;
    return SP_OK;
}

typedef struct job {
    const int32_t *at; /* rows of the table */
    size_t count, rows, c;
    const float *from;
    float *to;
} job;

static job open_job(const sp_node *n, const sp_run *r)
{
    return (job){ .at = n->x[0]->data,
                  .count = sp_rows(n->x[0], r),
                  .rows = (size_t)n->p[0]->dims[0],
                  .c = (size_t)n->p[0]->dims[1] };
}

static size_t row_of(const job *j, size_t i)
{
    assert(j->at[i] >= 0 && (size_t)j->at[i] < j->rows);
    return (size_t)j->at[i];
}

static void copy_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = begin; i < end; i++)
        memcpy(j->to + i * j->c, j->from + row_of(j, i) * j->c,
               j->c * sizeof(float));
}

static void lookup_forward(const sp_node *n, const sp_run *r)
{
    job j = open_job(n, r);

    j.from = n->p[0]->value;
    j.to = n->y[0]->data;
    sp_parallel_for(r->threads, j.count, 1 + 4096 / j.c, copy_rows, &j);
}

static void clear_floats(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    memset(j->to + begin, 0, (end - begin) * sizeof(float));
}

/* All rows' gradients in channels [begin, end): whichever thread does it, each
 * row of the table gets its sum in the same order. */
static void add_channels(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = 0; i < j->count; i++) {
        const float *from = j->from + i * j->c;
        float *to = j->to + row_of(j, i) * j->c;
        for (size_t k = begin; k < end; k++)
            to[k] += from[k];
    }
}

static void lookup_backward(const sp_node *n, const sp_run *r)
{
    job j = open_job(n, r);

    j.from = n->y[0]->grad;
    j.to = n->p[0]->grad;
    if (sp_param_beta(n, 0, r) == 0.0f)
        sp_parallel_for(r->threads, j.rows * j.c, 1 << 16, clear_floats, &j);
    sp_parallel_for(r->threads, j.c, 64, add_channels, &j);
}

static sp_tensor *lookup_example(sp_graph *g, int i)
{
    static const struct {
        int t, n, rows, c;
    } cases[] = { { 1, 1, 2, 1 }, { 5, 3, 4, 7 }, { 2, 9, 3, 130 } };
    sp_tensor *x;
    sp_param *w;

    if (i >= (int)(sizeof cases / sizeof *cases))
        return NULL;
    x = sp_input(g, "x", (sp_shape){ .t = cases[i].t, .n = cases[i].n },
                 SP_I32);
    w = sp_weight(g, "w", (int[]){ cases[i].rows, cases[i].c, 0 },
                  (sp_init){ SP_UNIFORM, 0.5f });
    return sp_lookup(g, "lookup", x, w);
}

const sp_op sp_op_lookup = {
    .name = "lookup",
    .help = "y[i] = w[x[i]], rows of a table",
    .shape = lookup_shape,
    .forward = lookup_forward,
    .backward = lookup_backward,
    .example = lookup_example,
};

sp_tensor *sp_lookup(sp_graph *g, const char *name, sp_tensor *x, sp_param *w)
{
    return sp_record(g, &sp_op_lookup, name, NULL, 0,
                     (sp_tensor *[]){ x, NULL }, (sp_param *[]){ w, NULL });
}
