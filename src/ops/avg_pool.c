/* Average pooling.
 *
 *   y[n,i,j,c] = 1/kernel^2 * sum of x[n,i*s-p+a,j*s-p+b,c] over a, b
 *   dx         = 1/kernel^2 * sum of dy over the windows that hold the pixel
 *
 * Pixels of the padding count as zeros (PyTorch's count_include_pad).
 *
 * Shapes: x {t,n,h,w,c} -> y {t,n,(h+2p-k)/s+1,(w+2p-k)/s+1,c}, rounded down.
 * Errors: SP_EARG for a kernel above 16 or padding above half the kernel.
 */
#include "ops/pool_shape.h"
#include "sprat/op.h"

static void avg_pool_forward(const sp_node *n, const sp_run *r)
{
    sp_pool_how how = sp_pool_run(n, r);

    sp_avg_pool_forward(&how, n->x[0]->data, n->y[0]->data);
}

static void avg_pool_backward(const sp_node *n, const sp_run *r)
{
    sp_pool_how how = sp_pool_run(n, r);

    if (n->x[0]->grad)
        sp_avg_pool_backward(&how, n->y[0]->grad, n->x[0]->grad, sp_beta(n, 0));
}

static sp_tensor *avg_pool_example(sp_graph *g, int i)
{
    return sp_pool_example(g, i, sp_avg_pool);
}

const sp_op sp_op_avg_pool = {
    .name = "avg_pool",
    .help = "the mean of each window",
    .shape = sp_pool_infer,
    .forward = avg_pool_forward,
    .backward = avg_pool_backward,
    .example = avg_pool_example,
};

sp_tensor *sp_avg_pool(sp_graph *g, sp_tensor *x, sp_pool_opt o)
{
    return sp_record(g, &sp_op_avg_pool, "avg_pool", &o, sizeof o,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
