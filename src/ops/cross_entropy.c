/* Softmax cross-entropy of every row, with label smoothing.
 *
 *   y     = log sum_j e^(x_j) - (1-e) x_label - e/C sum_j x_j
 *   dx_j  = dy (softmax(x)_j - (1-e) [j = label] - e/C)
 *
 * with the row's largest x taken off first, and sums in double.
 *
 * Shapes: x {t,n,1,1,C}, label {t,n,1,1,1} of int in [0, C) -> y {t,n,1,1,1}.
 * Saved:  two floats a row: the largest x, and 1 / sum_j e^(x_j - largest).
 *         dx may take the memory of x.
 * Errors: SP_ESHAPE when the inputs do not fit; SP_EARG for a smoothing outside
 *         [0, 1).
 * Source: Szegedy et al. 2016, "Rethinking the Inception Architecture for
 *         Computer Vision", section 7.
 */
#include <assert.h>
#include <math.h>

#include "kernels/elements.h"
#include "sprat/nn.h"
#include "sprat/op.h"

typedef struct entropy_attr {
    float smoothing;
} entropy_attr;

static sp_err entropy_shape(sp_node *n)
{
    const entropy_attr *a = n->attr;
    sp_shape x = n->x[0]->shape, label = n->x[1]->shape;

    if (n->x[0]->dtype != SP_F32 || n->x[1]->dtype != SP_I32)
        return sp_fail(SP_ESHAPE,
                       "%s (cross_entropy): needs logits of floats and labels "
                       "of ints",
                       n->name);
    if (x.h != 1 || x.w != 1 || label.h != 1 || label.w != 1 || label.c != 1 ||
        label.t != x.t || label.n != x.n)
        return sp_fail(SP_ESHAPE,
                       "%s (cross_entropy): logits %s of %d x %d rows of %d x "
                       "%d pixels need as many rows of one label and one "
                       "pixel; %s has %d x %d rows",
                       n->name, n->x[0]->name, x.t, x.n, x.h, x.w,
                       n->x[1]->name, label.t, label.n);
    if (!(a->smoothing >= 0.0f && a->smoothing < 1.0f))
        return sp_fail(SP_EARG,
                       "%s (cross_entropy): label smoothing %g, must be in "
                       "[0, 1)",
                       n->name, (double)a->smoothing);
    n->y[0]->shape = (sp_shape){ .t = x.t, .n = x.n };
    n->keep_x = 3;
    n->grad_inplace = true; /* logits may be large: 10,000 words */
    n->saved = 2 * (size_t)x.t * (size_t)x.n * sizeof(float);
    return SP_OK;
}

typedef struct job {
    const sp_node *n;
    const sp_run *r;
} job;

static size_t label_of(const sp_node *n, size_t row)
{
    int label = ((const int32_t *)n->x[1]->data)[row];

    assert(label >= 0 && label < n->x[0]->shape.c);
    return (size_t)label;
}

static void forward_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    const sp_node *n = j->n;
    size_t c = (size_t)n->x[0]->shape.c;
    double e = (double)((const entropy_attr *)n->attr)->smoothing;
    float *saved = n->saved_data, *y = n->y[0]->data;

    for (size_t i = begin; i < end; i++) {
        const float *x = (const float *)n->x[0]->data + i * c;
        float max;
        double sum, total = 0, hit;
        sp_softmax_sums(j->r->kernels, c, x, &max, &sum, e > 0 ? &total : NULL);
        hit = (double)x[label_of(n, i)] - (double)max;
        saved[2 * i] = max;
        saved[2 * i + 1] = (float)(1 / sum);
        y[i] = (float)(log(sum) - (1 - e) * hit - e / (double)c * total);
    }
}

/* Rows that a thread takes at a time. */
static size_t grain(const sp_node *n)
{
    return 1 + 4096 / (size_t)n->x[0]->shape.c;
}

static void entropy_forward(const sp_node *n, const sp_run *r)
{
    job j = { n, r };

    sp_parallel_for(r->threads, sp_rows(n->x[0], r), grain(n), forward_rows,
                    &j);
}

static void backward_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    const sp_node *n = j->n;
    size_t c = (size_t)n->x[0]->shape.c;
    float e = ((const entropy_attr *)n->attr)->smoothing;
    const float *saved = n->saved_data, *dy = n->y[0]->grad;

    for (size_t i = begin; i < end; i++) {
        float *dx = (float *)n->x[0]->grad + i * c;
        sp_softmax s = { .max = saved[2 * i],
                         .factor = saved[2 * i + 1] * dy[i],
                         .target = e / (float)c * dy[i],
                         .beta = sp_beta(n, 0) };
        sp_softmax_grad(j->r->kernels, c, (const float *)n->x[0]->data + i * c,
                        dx, &s);
        dx[label_of(n, i)] -= (1.0f - e) * dy[i];
    }
}

static void entropy_backward(const sp_node *n, const sp_run *r)
{
    job j = { n, r };

    if (n->x[0]->grad)
        sp_parallel_for(r->threads, sp_rows(n->x[0], r), grain(n),
                        backward_rows, &j);
}

static sp_tensor *entropy_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape shape;
        float smoothing;
    } cases[] = {
        { { .n = 3, .c = 7 }, 0.0f },
        { { .n = 1, .c = 2 }, 0.1f },
        { { .t = 3, .n = 2, .c = 37 }, 0.1f },
        { { .n = 5, .c = 70 }, 0.3f },
    };
    sp_shape s;
    sp_tensor *x, *label;

    if (i >= (int)(sizeof cases / sizeof *cases))
        return NULL;
    s = cases[i].shape;
    x = sp_input(g, "x", s, SP_F32);
    label = sp_input(g, "label", (sp_shape){ .t = s.t, .n = s.n }, SP_I32);
    return sp_cross_entropy(g, x, label, cases[i].smoothing);
}

const sp_op sp_op_cross_entropy = {
    .name = "cross_entropy",
    .help = "y = -log softmax(x)[label], with label smoothing",
    .shape = entropy_shape,
    .forward = entropy_forward,
    .backward = entropy_backward,
    .example = entropy_example,
};

sp_tensor *sp_cross_entropy(sp_graph *g, sp_tensor *x, sp_tensor *label,
                            float smoothing)
{
    entropy_attr a = { .smoothing = smoothing };

    return sp_record(g, &sp_op_cross_entropy, "cross_entropy", &a, sizeof a,
                     (sp_tensor *[]){ x, label, NULL }, NULL);
}
