/* Dropout.
 *
 *   y  = x * m / (1 - p),  m = 0 with probability p, else 1
 *   dx = dy * m / (1 - p)
 *
 * and y = x when not training. m is a function of (seed, step, layer's name,
 * time step, index of the row in the whole job's batch, element): it does not
 * depend on how a batch is cut over ranks or micro-batches, and backward
 * computes it again.
 *
 * Shapes: any x -> y of the same shape, up to 65536 time steps.
 * Saved:  nothing.
 * Errors: SP_EARG when p is not in [0, 1).
 * Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural
 *         Networks from Overfitting". Differs: scaled in training, so that
 *         evaluation is the identity.
 */
#include <string.h>

#include "kernels/elements.h"
#include "sprat/nn.h"
#include "sprat/op.h"
#include "sprat/random.h"

typedef struct dropout_attr {
    float p;
} dropout_attr;

static sp_err dropout_shape(sp_node *n)
{
    const dropout_attr *a = n->attr;

    if (n->x[0]->dtype != SP_F32 || n->x[0]->shape.t > 65536)
        return sp_fail(SP_ESHAPE,
                       "%s (dropout): the input must be floats, over at most "
                       "65536 time steps",
                       n->name);
    if (!(a->p >= 0.0f && a->p < 1.0f))
        return sp_fail(SP_EARG,
                       "%s (dropout): probability %g, must be in [0, 1)",
                       n->name, (double)a->p);
    n->y[0]->shape = n->x[0]->shape;
    n->inplace = true;
    return SP_OK;
}

/* One pass over all rows, forward or backward. */
typedef struct job {
    const sp_run *run;
    const float *from;
    float *to;
    float beta, scale;
    uint32_t limit; /* a word below it drops its element */
    uint64_t layer;
    size_t count; /* elements of a row */
    int n;
} job;

/* Elements [j, j + m), m at most 4, of a row, by one call for random words. */
static void four(const job *j, const uint32_t word[4], size_t at, size_t m)
{
    for (size_t k = 0; k < m; k++) {
        float v = word[k] < j->limit ? 0.0f : j->from[at + k] * j->scale;
        j->to[at + k] = j->beta != 0.0f ? j->to[at + k] + v : v;
    }
}

static void drop_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    size_t quads = (j->count + 3) / 4;

    for (size_t i = begin; i < end; i++) {
        uint64_t t = i / (size_t)j->n;
        uint64_t row = (uint64_t)j->run->row + i % (size_t)j->n;
        uint64_t a = (uint64_t)j->run->step + (t << 40);
        for (size_t q = 0; q < quads; q++) {
            uint32_t word[4];
            size_t rest = j->count - 4 * q;
            sp_random(j->run->seed, SP_FOR_DROPOUT, a,
                      j->layer + row * quads + q, word);
            four(j, word, i * j->count + 4 * q, rest < 4 ? rest : 4);
        }
    }
}

static void drop(const sp_node *n, const sp_run *r, const float *from,
                 float *to, float beta)
{
    const dropout_attr *a = n->attr;
    sp_shape s = n->x[0]->shape;
    size_t count = (size_t)s.h * (size_t)s.w * (size_t)s.c;
    job j = {
        .run = r,
        .from = from,
        .to = to,
        .beta = beta,
        .scale = 1.0f / (1.0f - a->p),
        .limit = (uint32_t)((double)a->p * 0x1p32),
        .layer = sp_name_hash(n->name) << 8,
        .count = count,
        .n = s.n < r->n ? s.n : r->n,
    };

    if (r->train && a->p > 0.0f)
        sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r),
                        count < 4096 ? 4096 / count : 1, drop_rows, &j);
    else
        sp_accumulate(r, sp_elements(n->x[0], r), from, to, beta);
}

static void dropout_forward(const sp_node *n, const sp_run *r)
{
    drop(n, r, n->x[0]->data, n->y[0]->data, 0.0f);
}

static void dropout_backward(const sp_node *n, const sp_run *r)
{
    if (n->x[0]->grad)
        drop(n, r, n->y[0]->grad, n->x[0]->grad, sp_beta(n, 0));
}

static sp_tensor *dropout_example(sp_graph *g, int i)
{
    static const sp_shape shapes[] = {
        { .n = 2, .h = 3, .w = 5, .c = 7 },
        { .n = 1 },
        { .t = 3, .n = 2, .c = 9 },
    };
    static const float p[] = { 0.5f, 0.0f, 0.2f };

    if (i >= (int)(sizeof shapes / sizeof *shapes))
        return NULL;
    return sp_dropout(g, "dropout", sp_input(g, "x", shapes[i], SP_F32), p[i]);
}

const sp_op sp_op_dropout = {
    .name = "dropout",
    .help = "y = x * m / (1 - p), m = 0 with probability p, else 1",
    .shape = dropout_shape,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .example = dropout_example,
};

sp_tensor *sp_dropout(sp_graph *g, const char *name, sp_tensor *x, float p)
{
    dropout_attr a = { .p = p };

    return sp_record(g, &sp_op_dropout, name, &a, sizeof a,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
