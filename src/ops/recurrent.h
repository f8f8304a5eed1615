/* What the LSTM and the GRU share: G gates over all time steps. Their part from
 * the inputs is one product over all rows, that from the state one for each
 * step, over a step's few rows.
 *
 * Inputs are x[0] = x, x[1] = h, further states; parameters w_ih or u_ih and
 * v_ih, w_hh or u_hh and v_hh, then the biases there are; outputs y[0] = y,
 * then the states. */
#ifndef SP_RECURRENT_H
#define SP_RECURRENT_H

#include "ops/recurrent_matrix.h"
#include "sprat/nn.h"

typedef struct sp_recurrent_attr {
    bool reverse;                /* from the last step on */
    bool factors_ih, factors_hh; /* which matrices are of low rank */
    bool b_ih, b_hh;             /* which biases there are */
} sp_recurrent_attr;

/* A node at the sizes of a run. */
typedef struct sp_recurrence {
    const sp_node *node;
    sp_conv_how how;
    int t, n, rows;       /* valid steps, rows of a step, rows of all */
    int in, hidden, wide; /* of a row: inputs, a state, all gates */
    bool reverse;
    sp_recurrent_matrix ih, hh;
    const sp_param *b_ih, *b_hh; /* biases: or NULL */
    int biases;                  /* the first is the node's p[biases] */
} sp_recurrence;

/* Record. `x` ends with NULL; there are as many outputs, into y. */
void sp_recurrent_record(sp_graph *g, const sp_op *op, const char *name,
                         sp_tensor *const *x, const sp_recurrent_params *p,
                         bool reverse, sp_tensor **y);

/* The part of shape() that does not depend on the kind: checks all inputs, sets
 * all outputs, what is kept, macs. */
SP_MUST sp_err sp_recurrent_shape(sp_node *n, int gates);

/* At the sizes of a run; NULL: at the capacity. */
sp_recurrence sp_recurrent_open(const sp_node *n, const sp_run *r);

/* The time of the i-th step. */
static inline int sp_recurrent_time(const sp_recurrence *s, int i)
{
    return s->reverse ? s->t - 1 - i : i;
}

/* The rows of one step in an array of all, c floats a row. */
static inline float *sp_recurrent_rows(const sp_recurrence *s, float *all,
                                       int step, int c)
{
    return all + (size_t)sp_recurrent_time(s, step) * (size_t)s->n * (size_t)c;
}

/* What a state is before the i-th step: `first`, or what the step before left
 * in the array of all. */
const float *sp_recurrent_before(const sp_recurrence *s, const float *first,
                                 float *all, int step);

/* Floats of a state. */
static inline size_t sp_recurrent_state(const sp_recurrence *s)
{
    return (size_t)s->n * (size_t)s->hidden;
}

/* Call body(arg, begin, end) for parts of the rows of one step, as
 * sp_parallel_for() does. */
void sp_recurrent_for_rows(const sp_recurrence *s, sp_body body, void *arg);

/* Memory of the products, all by packed weights: over wide matrices, these
 * take half to three quarters of the time of a convolution's passes. Packed are
 * w_ih and w_hh or their factors and, for gradients, the rows of what these are
 * multiplied by.
 *
 * What stands between factors, z, is left from forward to backward: G rank
 * floats a row and matrix (or rank), where the gates are G k. To compute it
 * again in backward would be a product more for every six: at the usual rank of
 * k / 4, time is dearer than these two fifths of what is left anyway. */
typedef struct sp_recurrent_work {
    float *z_ih, *z_hh;   /* of factors: {rows, blocks rank}; in evaluation
                             z_hh is of a step */
    float *dz_ih, *dz_hh; /* their gradients */
    float *packed;        /* w_ih or w_hh, or their factors */
    float *turned;        /* gradients of the gates, {wide, rows} */
    float *narrow;        /* z or dz, turned */
    float *before;        /* h before each step, {rows, hidden} */
    float *rows;          /* packed rows */
} sp_recurrent_work;

/* Place what forward leaves for backward, and return its bytes; base NULL: only
 * that. */
size_t sp_recurrent_lay_saved(const sp_recurrence *s, void *base,
                              sp_recurrent_work *w);

/* The same for the work space. */
size_t sp_recurrent_lay(const sp_recurrence *s, bool backward, void *base,
                        sp_recurrent_work *w);

/* Pack w_hh, or its factors, for the products of single steps,
 * y = beta * y + x w_hh^T or, going back, y = beta * y + x w_hh. No other
 * product may come between them. */
typedef struct sp_recurrent_steps {
    sp_recurrent_packed w_hh;
    float *z;  /* or dz */
    int width; /* of it, where it is of all rows */
} sp_recurrent_steps;

sp_recurrent_steps sp_recurrent_pack(const sp_recurrence *s,
                                     const sp_recurrent_work *w, bool back,
                                     float beta);
void sp_recurrent_product(const sp_recurrence *s, const sp_recurrent_steps *w,
                          int step, const float *x, float *y);

/* gates = x w_ih^T + bias over all rows; bias may be NULL. */
void sp_recurrent_input(const sp_recurrence *s, const sp_recurrent_work *w,
                        const float *bias, float *gates);

/* A state's gradient behind the last step: that of output k, or zeros. */
void sp_recurrent_last_grad(const sp_recurrence *s, int k, float *grad);

/* The state's before the first step, to input k where it is wanted. */
void sp_recurrent_first_grad(const sp_recurrence *s, const sp_run *r, int k,
                             const float *grad);

/* The gradient of x, where it is wanted, from those of the gates of all rows;
 * and dz_ih, where w_ih has factors. */
void sp_recurrent_grad_input(const sp_recurrence *s, const sp_recurrent_work *w,
                             const float *gates);

/* Turn the gates' gradients, which the two matrices' gradients are computed
 * from. From here on there are no packed matrices. */
void sp_recurrent_turn(const sp_recurrence *s, const sp_recurrent_work *w,
                       const float *gates);
void sp_recurrent_grad_w_ih(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w);
void sp_recurrent_grad_w_hh(const sp_recurrence *s, const sp_run *r,
                            const sp_recurrent_work *w);

/* Inputs and parameters of an example: x, then `states` states, ended by NULL;
 * false past the last example. */
typedef struct sp_recurrent_example {
    sp_tensor *x[4];
    sp_recurrent_params p;
    bool reverse;
    bool last;  /* the result is the last states, not y */
    bool twice; /* a second run goes on over y, with the same parameters */
} sp_recurrent_example;

bool sp_recurrent_example_at(sp_graph *g, int i, int gates, int states,
                             sp_recurrent_example *e);

#endif
