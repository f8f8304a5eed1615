/* Sum of two tensors.
 *
 *   y  = a + b
 *   da = dy, db = dy
 *
 * Shapes: a and b of one shape -> y of that shape.
 * Errors: SP_ESHAPE when the shapes differ.
 */
#include "kernels/elements.h"
#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err add_shape(sp_node *n)
{
    sp_shape a = n->x[0]->shape, b = n->x[1]->shape;

    if (n->x[0]->dtype != SP_F32 || n->x[1]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (add): both inputs must be floats",
                       n->name);
    if (a.t != b.t || a.n != b.n || a.h != b.h || a.w != b.w || a.c != b.c)
        return sp_fail(SP_ESHAPE,
                       "%s (add): %s has %d x %d pixels of %d channels, but %s "
                       "has %d x %d of %d",
                       n->name, n->x[0]->name, a.h, a.w, a.c, n->x[1]->name,
                       b.h, b.w, b.c);
    n->y[0]->shape = a;
    n->inplace = true;
    return SP_OK;
}

static void add_forward(const sp_node *n, const sp_run *r)
{
    sp_add_forward(r, sp_elements(n->y[0], r), n->x[0]->data, n->x[1]->data,
                   n->y[0]->data);
}

static void add_backward(const sp_node *n, const sp_run *r)
{
    for (int i = 0; i < 2; i++)
        if (n->x[i]->grad)
            sp_accumulate(r, sp_elements(n->y[0], r), n->y[0]->grad,
                          n->x[i]->grad, sp_beta(n, i));
}

static sp_tensor *add_example(sp_graph *g, int i)
{
    static const sp_shape shapes[] = {
        { .n = 2, .h = 3, .w = 5, .c = 7 },
        { .n = 1 },
        { .t = 3, .n = 2, .c = 17 },
    };
    sp_tensor *a, *b;

    if (i > (int)(sizeof shapes / sizeof *shapes))
        return NULL;
    if (i == (int)(sizeof shapes / sizeof *shapes)) { /* a + a */
        a = sp_input(g, "a", shapes[0], SP_F32);
        return sp_add(g, a, a);
    }
    a = sp_input(g, "a", shapes[i], SP_F32);
    b = sp_input(g, "b", shapes[i], SP_F32);
    return sp_add(g, a, b);
}

const sp_op sp_op_add = {
    .name = "add",
    .help = "y = a + b",
    .shape = add_shape,
    .forward = add_forward,
    .backward = add_backward,
    .example = add_example,
};

sp_tensor *sp_add(sp_graph *g, sp_tensor *a, sp_tensor *b)
{
    return sp_record(g, &sp_op_add, "add", NULL, 0,
                     (sp_tensor *[]){ a, b, NULL }, NULL);
}
