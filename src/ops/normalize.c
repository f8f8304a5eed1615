/* Batch normalisation, with a sum and a ReLU in the same pass.
 *
 *   xhat = (x - mean) / sqrt(var + eps)
 *   y    = relu?(gamma * xhat + beta + add)
 *
 * training: mean and (biased) var per channel over the m = t*n*h*w valid rows,
 *   and running mean, running var <- (1-k) * old + k * new, with the momentum k
 *   and the unbiased var, m/(m-1) times the biased (as PyTorch does);
 * else: mean and var are the running ones.
 *
 *   dz     = dy where y > 0 with the ReLU, else dy;   dadd = dz
 *   dbeta  = sum dz,   dgamma = sum dz * xhat
 *   dx     = gamma / sqrt(var+eps) * (dz - dbeta/m - xhat * dgamma/m)
 *
 * Backward always goes through the batch's statistics. Of a batch that is
 * shared out (sp_run.across), m, mean, var, and in dx dbeta and dgamma, are
 * those of all rows.
 *
 * Shapes: x {t,n,h,w,c}, add the same, gamma, beta, mean, var {c} -> y as x.
 * Saved:  mean and 1/sqrt(var + eps), 2 c floats.
 * Recomputed: y, from x, add and what is saved.
 * Errors: SP_ESHAPE when add or a parameter has another size; SP_EARG when eps
 *         or the momentum is out of range.
 * Source: Ioffe, Szegedy 2015, "Batch Normalization", algorithms 1 and 2.
 * Differs: no rows leave running statistics as they are; one row has an
 *         unbiased variance of 0.
 */
#include <math.h>

#include "kernels/norm.h"
#include "ops/attr.h"
#include "sprat/nn.h"
#include "sprat/op.h"

enum { GAMMA, BETA, MEAN, VAR, PARAMS };

/* The work space of one call, in order. */
typedef struct work {
    double *a, *b;                 /* c each: sums */
    float *scale, *slope, *offset; /* c each: tables */
    float *mean, *invstd;          /* of running statistics */
    double *shared;                /* 2 c + 1: what is added over all shares */
    void *rest;                    /* of the kernels */
} work;

static size_t padded(size_t bytes)
{
    return (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN;
}

static size_t work_bytes(size_t c)
{
    return 2 * padded(c * sizeof(double)) + 5 * padded(c * sizeof(float)) +
           padded((2 * c + 1) * sizeof(double));
}

static work open_work(const sp_node *n)
{
    size_t c = (size_t)n->x[0]->shape.c;
    size_t wide = padded(c * sizeof(double)), small = padded(c * sizeof(float));
    char *at = n->scratch_data;
    char *tables = at + 2 * wide;

    return (work){
        .a = (double *)at,
        .b = (double *)(at + wide),
        .scale = (float *)tables,
        .slope = (float *)(tables + small),
        .offset = (float *)(tables + 2 * small),
        .mean = (float *)(tables + 3 * small),
        .invstd = (float *)(tables + 4 * small),
        .shared = (double *)(void *)(tables + 5 * small),
        .rest = tables + 5 * small + padded((2 * c + 1) * sizeof(double)),
    };
}

static sp_err check_params(const sp_node *n)
{
    int c = n->x[0]->shape.c;

    for (int i = 0; i < PARAMS; i++)
        if (n->p[i]->ndim != 1 || n->p[i]->dims[0] != c)
            return sp_fail(SP_ESHAPE,
                           "%s (normalize): %s must have %d elements, one for "
                           "each channel",
                           n->name, n->p[i]->name, c);
    return SP_OK;
}

static sp_err check_add(const sp_node *n)
{
    sp_shape x = n->x[0]->shape, a = n->x[1]->shape;

    if (n->x[1]->dtype != SP_F32 || a.t != x.t || a.n != x.n || a.h != x.h ||
        a.w != x.w || a.c != x.c)
        return sp_fail(SP_ESHAPE,
                       "%s (normalize): %s has %d x %d pixels of %d channels, "
                       "but %s, to be added, has %d x %d of %d",
                       n->name, n->x[0]->name, x.h, x.w, x.c, n->x[1]->name,
                       a.h, a.w, a.c);
    return SP_OK;
}

static sp_err normalize_shape(sp_node *n)
{
    const sp_normalize_attr *a = n->attr;
    sp_shape s = n->x[0]->shape;
    size_t c = (size_t)s.c;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (normalize): the input must be floats",
                       n->name);
    if (!(a->eps > 0.0f) || !(a->momentum > 0.0f && a->momentum <= 1.0f))
        return sp_fail(SP_EARG,
                       "%s (normalize): eps %g must be above 0, momentum %g in "
                       "(0, 1]",
                       n->name, (double)a->eps, (double)a->momentum);
    SP_TRY(check_params(n));
    if (n->x_count > 1)
        SP_TRY(check_add(n));
    n->y[0]->shape = s;
    n->keep_x = 1;
    n->recompute_x = n->x_count > 1 ? 3 : 1;
    /* Without a sum, the sign of y follows from x, which is read anyway. */
    n->keep_y = a->relu && n->x_count > 1;
    n->inplace = !n->train;
    n->statistics = n->train;
    n->saved = n->train ? 2 * c * sizeof(float) : 0;
    n->scratch = work_bytes(c) + sp_norm_scratch(sp_count(s) / c, s.c);
    return SP_OK;
}

static sp_norm_how how_of(const sp_node *n, const sp_run *r, const work *w)
{
    return (sp_norm_how){ .kernels = r->kernels,
                          .threads = r->threads,
                          .rows = sp_rows(n->x[0], r),
                          .c = n->x[0]->shape.c,
                          .scratch = w->rest };
}

/* Add two tables over all shares of the batch; the rows of all are returned. */
static double add_shares(const sp_node *n, const sp_run *r, const work *w)
{
    int c = n->x[0]->shape.c;
    double *x = w->shared;

    x[2 * c] = (double)sp_rows(n->x[0], r);
    for (int i = 0; i < c; i++) {
        x[i] = w->a[i];
        x[c + i] = w->b[i];
    }
    r->across->sum(r->across->arg, x, 2 * (size_t)c + 1);
    for (int i = 0; i < c; i++) {
        w->a[i] = x[i];
        w->b[i] = x[c + i];
    }
    return x[2 * c];
}

/* From a share's means and squared distances to those of all. */
static double join_moments(const sp_node *n, const sp_run *r, const work *w)
{
    double rows = (double)sp_rows(n->x[0], r);

    for (int i = 0; i < n->x[0]->shape.c; i++) {
        w->b[i] += rows * w->a[i] * w->a[i];
        w->a[i] *= rows;
    }
    rows = add_shares(n, r, w);
    for (int i = 0; rows > 0 && i < n->x[0]->shape.c; i++) {
        w->a[i] /= rows;
        w->b[i] = fmax(w->b[i] - rows * w->a[i] * w->a[i], 0);
    }
    return rows;
}

/* The batch's statistics into mean and invstd, and into the running ones. */
static void batch_statistics(const sp_node *n, const sp_run *r,
                             const sp_norm_how *how, const work *w)
{
    const sp_normalize_attr *a = n->attr;
    double rows = (double)how->rows, k = (double)a->momentum;
    float *run_mean = n->p[MEAN]->value, *run_var = n->p[VAR]->value;
    float *mean = n->saved_data, *invstd = mean + how->c;

    sp_norm_moments(how, n->x[0]->data, w->a, w->b);
    if (r->across)
        rows = join_moments(n, r, w);
    if (rows == 0)
        return;
    for (int i = 0; i < how->c; i++) {
        double var = w->b[i] / rows, unbiased = w->b[i] / fmax(rows - 1, 1);
        mean[i] = (float)w->a[i];
        invstd[i] = (float)(1 / sqrt(var + (double)a->eps));
        run_mean[i] = (float)((1 - k) * (double)run_mean[i] + k * w->a[i]);
        run_var[i] = (float)((1 - k) * (double)run_var[i] + k * unbiased);
    }
}

static void running_statistics(const sp_node *n, float *mean, float *invstd)
{
    double eps = (double)((const sp_normalize_attr *)n->attr)->eps;

    for (int i = 0; i < n->x[0]->shape.c; i++) {
        mean[i] = n->p[MEAN]->value[i];
        invstd[i] = (float)(1 / sqrt((double)n->p[VAR]->value[i] + eps));
    }
}

/* y from the statistics, one and the same loop each time it is called for. */
static void apply(const sp_node *n, const sp_norm_how *how, const work *w,
                  const float *mean, const float *invstd)
{
    for (int i = 0; i < how->c; i++)
        w->scale[i] = n->p[GAMMA]->value[i] * invstd[i];
    sp_norm_apply(how, &(sp_norm_forward){
                           .x = n->x[0]->data,
                           .add = n->x_count > 1 ? n->x[1]->data : NULL,
                           .mean = mean,
                           .scale = w->scale,
                           .shift = n->p[BETA]->value,
                           .relu = ((const sp_normalize_attr *)n->attr)->relu,
                           .y = n->y[0]->data,
                       });
}

static void normalize_forward(const sp_node *n, const sp_run *r)
{
    work w = open_work(n);
    sp_norm_how how = how_of(n, r, &w);
    float *mean = w.mean, *invstd = w.invstd;

    if (n->train && r->train) {
        mean = n->saved_data;
        invstd = mean + how.c;
        batch_statistics(n, r, &how, &w);
    } else {
        running_statistics(n, mean, invstd);
    }
    if (how.rows > 0)
        apply(n, &how, &w, mean, invstd);
}

static void normalize_recompute(const sp_node *n, const sp_run *r)
{
    work w = open_work(n);
    sp_norm_how how = how_of(n, r, &w);
    const float *saved = n->saved_data;

    if (how.rows == 0)
        return;
    if (r->train) {
        apply(n, &how, &w, saved, saved + how.c);
    } else {
        running_statistics(n, w.mean, w.invstd);
        apply(n, &how, &w, w.mean, w.invstd);
    }
}

/* Parameter gradients from the sums: of this share alone, as all gradients. */
static void param_grads(const sp_node *n, const sp_run *r, const work *w,
                        const float *invstd)
{
    bool any = sp_rows(n->x[0], r) > 0;
    float *dgamma = n->p[GAMMA]->grad, *dbeta = n->p[BETA]->grad;
    bool add_gamma = sp_param_beta(n, GAMMA, r) != 0.0f;
    bool add_beta = sp_param_beta(n, BETA, r) != 0.0f;

    for (int i = 0; i < n->x[0]->shape.c; i++) {
        double gamma_sum = any ? w->b[i] * (double)invstd[i] : 0;

        dgamma[i] = (add_gamma ? dgamma[i] : 0.0f) + (float)gamma_sum;
        dbeta[i] = (add_beta ? dbeta[i] : 0.0f) + (float)w->a[i];
    }
}

/* The tables of dx from the sums, and from the rows that they are of. */
static void input_tables(const sp_node *n, const work *w, const float *invstd,
                         double rows)
{
    for (int i = 0; i < n->x[0]->shape.c; i++) {
        double std1 = rows > 0 ? (double)invstd[i] : 0;
        double m1 = rows > 0 ? 1 / rows : 0;
        double gamma_sum = w->b[i] * std1;
        double scale = (double)n->p[GAMMA]->value[i] * std1;

        w->slope[i] = (float)(-scale * std1 * gamma_sum * m1);
        w->offset[i] = (float)(-scale * w->a[i] * m1);
    }
}

static void normalize_backward(const sp_node *n, const sp_run *r)
{
    work w = open_work(n);
    sp_norm_how how = how_of(n, r, &w);
    const float *mean = n->saved_data, *invstd = mean + how.c;
    sp_norm_backward b = { .x = n->x[0]->data,
                           .y = n->keep_y ? n->y[0]->data : NULL,
                           .dy = n->y[0]->grad,
                           .mean = mean,
                           .scale = w.scale,
                           .shift = n->p[BETA]->value,
                           .relu = ((const sp_normalize_attr *)n->attr)->relu };
    sp_norm_grads g = { .dx = n->x[0]->grad, .dx_beta = sp_beta(n, 0) };

    if (n->x_count > 1) {
        g.dadd = n->x[1]->grad;
        g.dadd_beta = sp_beta(n, 1);
    }
    for (int i = 0; i < how.c; i++)
        w.scale[i] = how.rows ? n->p[GAMMA]->value[i] * invstd[i] : 0.0f;
    sp_norm_back_sums(&how, &b, w.a, w.b);
    param_grads(n, r, &w, invstd);
    input_tables(n, &w, invstd,
                 r->across ? add_shares(n, r, &w) : (double)how.rows);
    if (g.dx || g.dadd)
        sp_norm_back_apply(&how, &b, w.slope, w.offset, &g);
}

static sp_tensor *normalize_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape shape;
        bool add, relu;
    } cases[] = {
        { { .n = 3, .h = 3, .w = 5, .c = 7 }, false, false },
        { { .n = 4, .h = 2, .w = 2, .c = 16 }, false, true },
        { { .n = 2, .h = 5, .w = 3, .c = 3 }, true, true },
        { { .n = 5 }, true, false },
        { { .t = 2, .n = 2, .w = 3, .c = 17 }, true, true },
        { { .n = 8, .h = 3, .w = 3, .c = 128 }, true, false },
    };
    const sp_init any = { SP_UNIFORM, 2.0f };
    int dims[] = { 0, 0 };
    sp_normalize_params p;
    sp_normalize_opt o = { 0 };

    if (i >= (int)(sizeof cases / sizeof *cases))
        return NULL;
    dims[0] = cases[i].shape.c > 0 ? cases[i].shape.c : 1;
    p.gamma = sp_weight(g, "gamma", dims, any);
    p.beta = sp_weight(g, "beta", dims, any);
    p.mean = sp_buffer(g, "mean", dims, (sp_init){ SP_CONSTANT, 0.0f });
    p.var = sp_buffer(g, "var", dims, (sp_init){ SP_CONSTANT, 1.0f });
    o.relu = cases[i].relu;
    if (cases[i].add)
        o.add = sp_input(g, "add", cases[i].shape, SP_F32);
    return sp_normalize(g, "normalize",
                        sp_input(g, "x", cases[i].shape, SP_F32), p, o);
}

const sp_op sp_op_normalize = {
    .name = "normalize",
    .help = "y = gamma * (x - mean) / sqrt(var + eps) + beta, + add, ReLU",
    .shape = normalize_shape,
    .forward = normalize_forward,
    .backward = normalize_backward,
    .recompute = normalize_recompute,
    .example = normalize_example,
};

sp_tensor *sp_normalize(sp_graph *g, const char *name, sp_tensor *x,
                        sp_normalize_params p, sp_normalize_opt o)
{
    sp_normalize_attr a = { .relu = o.relu,
                            .eps = o.eps != 0.0f ? o.eps : 1e-5f,
                            .momentum =
                                o.momentum != 0.0f ? o.momentum : 0.1f };

    return sp_record(g, &sp_op_normalize, name, &a, sizeof a,
                     (sp_tensor *[]){ x, o.add, NULL },
                     (sp_param *[]){ p.gamma, p.beta, p.mean, p.var, NULL });
}
