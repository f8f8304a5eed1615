/* Writing an operator: fill in one sp_op and one function that records it.
 * See docs/add-a-layer.md. */
#ifndef SPRAT_OP_H
#define SPRAT_OP_H

#include "sprat/graph.h"

typedef struct sp_node sp_node;

/* A pass over an operation, or a part of one. */
typedef enum sp_pass {
    SP_FORWARD,
    SP_BACKWARD_INPUT, /* the gradient of x[0] */
    SP_BACKWARD_WEIGHT,
    SP_BACKWARD_BIAS,
    SP_BACKWARD, /* all of it */
    SP_RECOMPUTE
} sp_pass;

/* One differentiable operation. Stateless: one `static const` (or, for those
 * that `sprat list ops` shows, one `const sp_op_NAME`) per kind. */
typedef struct sp_op {
    const char *name;
    const char *help; /* one line: the formula */

    /* Check the inputs' shapes and set: the outputs' shapes and dtypes; what
     * backward reads (keep_x, keep_y); saved, scratch, macs; inplace. */
    sp_err (*shape)(sp_node *n);
    void (*forward)(const sp_node *n, const sp_run *r);

    /* Add to or store the gradients of x[i] (where grad is not NULL) as
     * sp_beta() says, and those of p[i] as sp_param_beta() says.
     * NULL: no gradient flows through. */
    void (*backward)(const sp_node *n, const sp_run *r);
    bool parts; /* backward calls sp_lap() itself, after each of its parts */

    /* For reports: how a pass is computed, where there are several ways. NULL:
     * there is one. */
    const char *(*algorithm)(const sp_node *n, sp_pass pass);

    /* Write y[0], the only output, once more: the bits that forward wrote, from
     * the inputs in recompute_x, from what forward saved, and from parameters;
     * nothing else may change. Runs within backward, with the same run.
     * NULL: the output has to be kept for those that read it in backward. */
    void (*recompute)(const sp_node *n, const sp_run *r);

    /* Record the op at an odd shape number i on inputs of its own, and return
     * its output (float, any shape), or NULL when there are no more. Gradient
     * checks run over these. */
    sp_tensor *(*example)(sp_graph *g, int i);
} sp_op;

enum { SP_MAX_OUT = 4 };

enum { SP_TILED_PASSES = 3 }; /* SP_FORWARD to SP_BACKWARD_WEIGHT */

/* One recorded operation. Arrays are counted; all belong to the graph. */
struct sp_node {
    sp_graph *graph; /* that it is recorded in */
    const sp_op *op;
    const char *name; /* scope and name, "layer1.0.conv1" */
    sp_tensor **x;
    int x_count;
    sp_tensor *y[SP_MAX_OUT];
    int y_count; /* 1 unless recorded otherwise */
    sp_param **p;
    int p_count;
    const void *attr;          /* the op's settings, copied when recorded */
    bool train;                /* recorded for training */
    bool reference;            /* sp_graph_opt.reference */
    const sp_kernels *kernels; /* of the instruction set in use */
    int threads;

    /* Set by shape(). */
    unsigned keep_x, keep_y; /* bit i: backward reads x[i]->data, y[i]->data */
    unsigned recompute_x;    /* bit i: recompute reads x[i]->data */
    bool inplace; /* y[0] may take the memory of x[0]: element by element */
    bool grad_inplace; /* the gradient of x[0] may take the memory of x[0] in
                          backward: every element is read before its own is
                          written, and none after */
    size_t saved;      /* bytes that forward leaves for backward */
    size_t scratch;    /* bytes of work space within one call */
    double macs;       /* per row, see sp_graph_macs() */
    bool tiled; /* a convolution for Winograd's tiles: those of each pass, 2, 4
                   or 0 for none, are */
    int tile[SP_TILED_PASSES];
    /* Training sums over the batch first: forward reads x[0] once more,
     * backward all that it reads. */
    bool statistics;

    /* Set by sp_compile(). */
    void *saved_data, *scratch_data;
    unsigned x_add; /* bit i: a gradient for x[i] is there already: add to it */
    unsigned p_add; /* the same for p[i] */
};

/* Record an operation. `x` and `p` end with NULL; `p` may be NULL. `attr` is
 * copied. Gives the first output. */
sp_tensor *sp_record(sp_graph *g, const sp_op *op, const char *name,
                     const void *attr, size_t attr_size, sp_tensor *const *x,
                     sp_param *const *p);

/* The same with several outputs; y[0..y_count) are set. */
void sp_record_many(sp_graph *g, const sp_op *op, const char *name,
                    const void *attr, size_t attr_size, sp_tensor *const *x,
                    sp_param *const *p, sp_tensor **y, int y_count);

/* The memory plan gives every buffer this alignment and this much readable
 * space behind its last element, so that kernels may load whole vectors. */
enum { SP_ALIGN = 64 };

/* Valid rows of a tensor: valid steps times valid rows times pixels. */
static inline size_t sp_rows(const sp_tensor *x, const sp_run *r)
{
    sp_shape s = x->shape;

    return (size_t)(s.t < r->t ? s.t : r->t) *
           (size_t)(s.n < r->n ? s.n : r->n) * (size_t)s.h * (size_t)s.w;
}

/* Valid elements of a tensor: its valid rows' channels. */
static inline size_t sp_elements(const sp_tensor *x, const sp_run *r)
{
    return sp_rows(x, r) * (size_t)x->shape.c;
}

/* Valid images of a tensor: valid steps times valid rows. */
static inline int sp_images(const sp_tensor *x, const sp_run *r)
{
    sp_shape s = x->shape;

    return (s.t < r->t ? s.t : r->t) * (s.n < r->n ? s.n : r->n);
}

/* BLAS's beta for the gradient of input i: 1 to add, 0 to store. With 0 the
 * memory may hold anything, NaN included. */
static inline float sp_beta(const sp_node *n, int i)
{
    return (n->x_add >> i & 1) ? 1.0f : 0.0f;
}

/* The same for the gradient of parameter i. */
static inline float sp_param_beta(const sp_node *n, int i, const sp_run *r)
{
    return r->add || (n->p_add >> i & 1) ? 1.0f : 0.0f;
}

/* The runs on shares of one batch, one on each rank, as an operator sees them
 * whose result depends on all rows (sp_run.across). `sum` adds x over all of
 * them; they all call it equally often and in the same order, also with no
 * rows. It cannot fail: who gives it looks after that. */
typedef struct sp_across {
    void (*sum)(void *arg, double *x, size_t n);
    void *arg;
} sp_across;

/* Who follows a run (sp_run.watch). `lap` is called by the thread that runs it:
 * before each operation, with n NULL, and when a pass over one has ended, or,
 * where the operation tells them apart, each part of it. */
typedef struct sp_watch {
    void (*lap)(void *arg, const sp_run *r, const sp_node *n, sp_pass pass);
    void *arg;
} sp_watch;

static inline void sp_lap(const sp_run *r, const sp_node *n, sp_pass pass)
{
    if (r->watch)
        r->watch->lap(r->watch->arg, r, n, pass);
}

/* Call body(arg, begin, end) for parts of [0, count) that are at most `grain`
 * long and start at its multiples, on up to r->threads threads. The cut does
 * not depend on the number of threads. */
typedef void (*sp_body)(void *arg, size_t begin, size_t end);
void sp_parallel_for(int threads, size_t count, size_t grain, sp_body body,
                     void *arg);

#endif
