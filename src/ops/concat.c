/* Two tensors side by side.
 *
 *   y  = (a, b)
 *   da = the first channels of dy,  db = the others
 *
 * Shapes: a {t,n,h,w,c}, b {t,n,h,w,d} -> y {t,n,h,w,c+d}.
 * Errors: SP_ESHAPE when the shapes differ in more than channels.
 */
#include <limits.h>

#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err concat_shape(sp_node *n)
{
    sp_shape a = n->x[0]->shape, b = n->x[1]->shape;

    if (n->x[0]->dtype != SP_F32 || n->x[1]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (concat): both inputs must be floats",
                       n->name);
    if (a.t != b.t || a.n != b.n || a.h != b.h || a.w != b.w ||
        a.c > INT_MAX - b.c)
        return sp_fail(SP_ESHAPE,
                       "%s (concat): %s has %d x %d images of %d x %d pixels "
                       "of %d channels, which do not stand beside the %d x %d "
                       "of %d x %d of %d of %s",
                       n->name, n->x[0]->name, a.t, a.n, a.h, a.w, a.c, b.t,
                       b.n, b.h, b.w, b.c, n->x[1]->name);
    n->y[0]->shape = a;
    n->y[0]->shape.c = a.c + b.c;
    return SP_OK;
}

/* One of the two parts: `c` of the `wide` channels of y. */
typedef struct job {
    float *part;
    float *all; /* the part's first channel in y's first row */
    size_t c, wide;
    float beta;
} job;

static job open_job(const sp_node *n, int i, float *part, float *all)
{
    return (job){ .part = part,
                  .all = all + (i ? n->x[0]->shape.c : 0),
                  .c = (size_t)n->x[i]->shape.c,
                  .wide = (size_t)n->y[0]->shape.c };
}

static void join_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < j->c; k++)
            j->all[i * j->wide + k] = j->part[i * j->c + k];
}

static void cut_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = begin; i < end; i++) {
        const float *from = j->all + i * j->wide;
        float *to = j->part + i * j->c;
        for (size_t k = 0; k < j->c; k++)
            to[k] = (j->beta != 0.0f ? to[k] : 0.0f) + from[k];
    }
}

static size_t grain(const job *j) { return 1 + 4096 / j->c; }

static void concat_forward(const sp_node *n, const sp_run *r)
{
    for (int i = 0; i < 2; i++) {
        job j = open_job(n, i, n->x[i]->data, n->y[0]->data);
        sp_parallel_for(r->threads, sp_rows(n->y[0], r), grain(&j), join_rows,
                        &j);
    }
}

static void concat_backward(const sp_node *n, const sp_run *r)
{
    for (int i = 0; i < 2; i++) {
        job j = open_job(n, i, n->x[i]->grad, n->y[0]->grad);
        if (!j.part)
            continue;
        j.beta = sp_beta(n, i);
        sp_parallel_for(r->threads, sp_rows(n->y[0], r), grain(&j), cut_rows,
                        &j);
    }
}

static sp_tensor *concat_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape a, b;
    } cases[] = {
        { { .n = 1 }, { .n = 1 } },
        { { .t = 3, .n = 2, .c = 17 }, { .t = 3, .n = 2, .c = 5 } },
        { { .n = 2, .h = 3, .w = 5, .c = 2 }, { .n = 2, .h = 3, .w = 5 } },
    };
    sp_tensor *a, *b;

    if (i > (int)(sizeof cases / sizeof *cases))
        return NULL;
    if (i == (int)(sizeof cases / sizeof *cases)) { /* (a, a) */
        a = sp_input(g, "a", cases[1].a, SP_F32);
        return sp_concat(g, a, a);
    }
    a = sp_input(g, "a", cases[i].a, SP_F32);
    b = sp_input(g, "b", cases[i].b, SP_F32);
    return sp_concat(g, a, b);
}

const sp_op sp_op_concat = {
    .name = "concat",
    .help = "y = (a, b), the channels of both",
    .shape = concat_shape,
    .forward = concat_forward,
    .backward = concat_backward,
    .example = concat_example,
};

sp_tensor *sp_concat(sp_graph *g, sp_tensor *a, sp_tensor *b)
{
    return sp_record(g, &sp_op_concat, "concat", NULL, 0,
                     (sp_tensor *[]){ a, b, NULL }, NULL);
}
