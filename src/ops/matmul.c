/* Matrix product with bias: a fully connected layer.
 *
 *   y[n,o] = b[o] + sum_k x[n,k] w[o,k]
 *   dx = dy w,  dw = dy^T x,  db = sum_n dy[n]
 *
 * An image is taken channel by channel, k = (c*H + y)*W + x, as PyTorch
 * flattens it; to the kernels that is the convolution whose kernel covers the
 * image.
 *
 * Shapes: x {t,n,h,w,c}, w {out,c*h*w}, b {out} -> y {t,n,1,1,out}.
 * Errors: SP_ESHAPE when the weights are for another number of inputs, or an
 *         image has more than 2^31 - 1 numbers.
 */
#include "ops/product.h"
#include "sprat/nn.h"

static sp_conv_shape geometry(const sp_node *n)
{
    sp_shape x = n->x[0]->shape;

    return (sp_conv_shape){
        .h = x.h,
        .w = x.w,
        .cin = x.c,
        .oh = 1,
        .ow = 1,
        .cout = n->p[0]->dims[0],
        .kh = x.h,
        .kw = x.w,
        .stride = 1,
        .groups = 1,
    };
}

static sp_err matmul_shape(sp_node *n)
{
    sp_shape x = n->x[0]->shape;
    const sp_param *w = n->p[0];

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (matmul): the input must be floats",
                       n->name);
    if (w->ndim != 2 ||
        (size_t)w->dims[1] != (size_t)x.h * (size_t)x.w * (size_t)x.c)
        return sp_fail(SP_ESHAPE,
                       "%s: weights for %d inputs meet %d x %d pixels of %d "
                       "channels",
                       n->name, w->dims[1], x.h, x.w, x.c);
    if (n->p_count > 1 && n->p[1]->count != (size_t)w->dims[0])
        return sp_fail(SP_ESHAPE, "%s: bias of %zu for %d outputs", n->name,
                       n->p[1]->count, w->dims[0]);

    sp_conv_shape s = geometry(n);
    return sp_product_infer(n, &s);
}

static void matmul_forward(const sp_node *n, const sp_run *r)
{
    sp_conv_shape s = geometry(n);

    sp_product_forward(n, r, &s);
}

static void matmul_backward(const sp_node *n, const sp_run *r)
{
    sp_conv_shape s = geometry(n);

    sp_product_backward(n, r, &s);
}

static sp_tensor *matmul_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape x;
        int out;
    } at[] = {
        { { .n = 1, .c = 1 }, 1 },
        { { .n = 5, .c = 7 }, 3 },
        { { .t = 3, .n = 2, .c = 9 }, 17 },
        { { .n = 3, .h = 2, .w = 3, .c = 5 }, 4 },
        { { .n = 9, .h = 3, .w = 1, .c = 33 }, 40 },
    };
    static const sp_init some = { SP_UNIFORM, 0.5f };

    if (i >= (int)(sizeof at / sizeof *at))
        return NULL;
    sp_tensor *x = sp_input(g, "x", at[i].x, SP_F32);
    sp_shape s = x->shape;
    int dims[] = { at[i].out, s.h * s.w * s.c, 0 };
    sp_param *w = sp_weight(g, "w", dims, some);
    sp_param *b = i % 2 ? NULL : sp_weight(g, "b", (int[]){ dims[0], 0 }, some);

    return sp_matmul(g, "matmul", x, w, b);
}

const sp_op sp_op_matmul = {
    .name = "matmul",
    .help = "y = x w^T + b, a fully connected layer",
    .shape = matmul_shape,
    .forward = matmul_forward,
    .backward = matmul_backward,
    .parts = true,
    .algorithm = sp_product_algorithm,
    .example = matmul_example,
};

sp_tensor *sp_matmul(sp_graph *g, const char *name, sp_tensor *x, sp_param *w,
                     sp_param *b)
{
    return sp_record(g, &sp_op_matmul, name, NULL, 0,
                     (sp_tensor *[]){ x, NULL }, (sp_param *[]){ w, b, NULL });
}
