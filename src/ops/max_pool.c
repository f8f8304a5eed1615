/* Max pooling.
 *
 *   y[n,i,j,c] = max of x[n,i*s-p+a,j*s-p+b,c] over a, b in [0, kernel)
 *   dx         = dy at the pixel that was the largest, the first of equal ones
 *                in order of rows; overlapping windows add up
 *
 * Pixels of the padding are never the largest. What is not a number is.
 *
 * Shapes: x {t,n,h,w,c} -> y {t,n,(h+2p-k)/s+1,(w+2p-k)/s+1,c}, rounded down.
 * Saved:  a byte per element of y: which pixel of the window, a*kernel + b.
 * Errors: SP_EARG for a kernel above 16 or padding above half the kernel.
 */
#include "ops/pool_shape.h"
#include "sprat/op.h"

static sp_err max_pool_shape(sp_node *n)
{
    SP_TRY(sp_pool_infer(n));
    n->saved = n->train ? sp_count(n->y[0]->shape) : 0;
    return SP_OK;
}

static void max_pool_forward(const sp_node *n, const sp_run *r)
{
    sp_pool_how how = sp_pool_run(n, r);

    sp_max_pool_forward(&how, n->x[0]->data, n->y[0]->data, n->saved_data);
}

static void max_pool_backward(const sp_node *n, const sp_run *r)
{
    sp_pool_how how = sp_pool_run(n, r);

    if (n->x[0]->grad)
        sp_max_pool_backward(&how, n->y[0]->grad, n->saved_data, n->x[0]->grad,
                             sp_beta(n, 0));
}

static sp_tensor *max_pool_example(sp_graph *g, int i)
{
    return sp_pool_example(g, i, sp_max_pool);
}

const sp_op sp_op_max_pool = {
    .name = "max_pool",
    .help = "the largest of each window",
    .shape = max_pool_shape,
    .forward = max_pool_forward,
    .backward = max_pool_backward,
    .example = max_pool_example,
};

sp_tensor *sp_max_pool(sp_graph *g, sp_tensor *x, sp_pool_opt o)
{
    return sp_record(g, &sp_op_max_pool, "max_pool", &o, sizeof o,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
