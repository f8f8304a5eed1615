/* Rectified linear unit.
 *
 *   y  = max(x, 0); what is not a number stays so
 *   dx = dy where y > 0, else 0
 *
 * Shapes: any x -> y of the same shape.
 * Saved:  nothing; backward reads y.
 */
#include "kernels/elements.h"
#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err relu_shape(sp_node *n)
{
    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (relu): the input must be floats",
                       n->name);
    n->y[0]->shape = n->x[0]->shape;
    n->keep_y = 1;
    n->inplace = true;
    return SP_OK;
}

static void relu_forward(const sp_node *n, const sp_run *r)
{
    sp_relu_forward(r, sp_elements(n->x[0], r), n->x[0]->data, n->y[0]->data);
}

static void relu_backward(const sp_node *n, const sp_run *r)
{
    if (n->x[0]->grad)
        sp_relu_backward(r, sp_elements(n->x[0], r), n->y[0]->data,
                         n->y[0]->grad, n->x[0]->grad, sp_beta(n, 0));
}

static sp_tensor *relu_example(sp_graph *g, int i)
{
    static const sp_shape shapes[] = {
        { .n = 2, .h = 3, .w = 5, .c = 7 },
        { .n = 1 },
        { .t = 2, .n = 3, .c = 33 },
    };

    if (i >= (int)(sizeof shapes / sizeof *shapes))
        return NULL;
    return sp_relu(g, sp_input(g, "x", shapes[i], SP_F32));
}

const sp_op sp_op_relu = {
    .name = "relu",
    .help = "y = max(x, 0)",
    .shape = relu_shape,
    .forward = relu_forward,
    .backward = relu_backward,
    .example = relu_example,
};

sp_tensor *sp_relu(sp_graph *g, sp_tensor *x)
{
    return sp_record(g, &sp_op_relu, "relu", NULL, 0,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
