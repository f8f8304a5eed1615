/* Convolution.
 *
 *   y[n,i,j,o] = b[o] + sum over a, b, c of
 *                x[n, i*stride - pad + a, j*stride - pad + b, c] * w[o,c,a,b]
 *   dx, dw, db: its transposes
 *
 * With groups, output o sees only the inputs of its own group. Pixels outside
 * the image count as zeros.
 *
 * Shapes: x {t,n,h,w,c}, w {out,c/groups,kh,kw}, b {out} ->
 *         y {t,n,(h+2*pad-kh)/stride+1,(w+2*pad-kw)/stride+1,out}, rounded
 *         down.
 * Errors: SP_ESHAPE when channels and groups do not fit, the kernel is larger
 *         than the padded image, or an image has more than 2^31 - 1 numbers;
 *         SP_EARG for a negative stride, pad or number of groups.
 */
#include "ops/product.h"
#include "sprat/nn.h"

enum { MOST = 1 << 20 }; /* of stride, pad, groups: sizes stay in an int */

static sp_conv_shape geometry(const sp_node *n)
{
    const sp_conv_geometry *o = n->attr;
    sp_shape x = n->x[0]->shape;
    const int *w = n->p[0]->dims;
    int stride = o->stride ? o->stride : 1;

    return (sp_conv_shape){
        .h = x.h,
        .w = x.w,
        .cin = x.c,
        .oh = (x.h + 2 * o->pad - w[2]) / stride + 1,
        .ow = (x.w + 2 * o->pad - w[3]) / stride + 1,
        .cout = w[0],
        .kh = w[2],
        .kw = w[3],
        .stride = stride,
        .pad = o->pad,
        .groups = o->groups ? o->groups : 1,
    };
}

static sp_err convolve_shape(sp_node *n)
{
    const sp_conv_geometry *o = n->attr;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (convolve): the input must be floats",
                       n->name);
    if (o->stride < 0 || o->pad < 0 || o->groups < 0 || o->stride > MOST ||
        o->pad > MOST || o->groups > MOST)
        return sp_fail(SP_EARG,
                       "%s: stride %d, pad %d, groups %d: none may be negative "
                       "or above %d",
                       n->name, o->stride, o->pad, o->groups, MOST);
    if (n->x[0]->shape.h > MOST || n->x[0]->shape.w > MOST)
        return sp_fail(SP_ESHAPE, "%s: an image of %d x %d pixels is too large",
                       n->name, n->x[0]->shape.h, n->x[0]->shape.w);
    if (n->p[0]->ndim != 4)
        return sp_fail(SP_ESHAPE, "%s: weights need out, in, kh, kw", n->name);

    sp_conv_shape s = geometry(n);
    if (s.cin % s.groups != 0 || s.cout % s.groups != 0 ||
        n->p[0]->dims[1] != s.cin / s.groups)
        return sp_fail(SP_ESHAPE,
                       "%s: %d inputs, %d outputs, %d groups and weights for "
                       "%d inputs a group do not fit",
                       n->name, s.cin, s.cout, s.groups, n->p[0]->dims[1]);
    if (s.h + 2 * s.pad < s.kh || s.w + 2 * s.pad < s.kw)
        return sp_fail(SP_ESHAPE,
                       "%s: a %d x %d kernel does not fit into %d x %d pixels "
                       "with padding %d; the image is too small for this net",
                       n->name, s.kh, s.kw, s.h, s.w, s.pad);
    if (n->p_count > 1 && n->p[1]->count != (size_t)s.cout)
        return sp_fail(SP_ESHAPE, "%s: bias of %zu for %d outputs", n->name,
                       n->p[1]->count, s.cout);
    return sp_product_infer(n, &s);
}

static void convolve_forward(const sp_node *n, const sp_run *r)
{
    sp_conv_shape s = geometry(n);

    sp_product_forward(n, r, &s);
}

static void convolve_backward(const sp_node *n, const sp_run *r)
{
    sp_conv_shape s = geometry(n);

    sp_product_backward(n, r, &s);
}

static sp_tensor *convolve_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape x;
        int out, kernel;
        sp_conv_geometry o;
    } at[] = {
        { { .n = 1, .h = 1, .w = 1, .c = 1 }, 1, 1, { 0 } },
        { { .n = 2, .h = 5, .w = 4, .c = 3 }, 5, 3, { .pad = 1 } },
        { { .n = 1, .h = 7, .w = 5, .c = 1 }, 3, 3, { .stride = 2, .pad = 1 } },
        { { .n = 3, .h = 3, .w = 3, .c = 17 }, 18, 1, { .stride = 2 } },
        { { .n = 2, .h = 4, .w = 5, .c = 6 }, 4, 3, { .pad = 1, .groups = 2 } },
        { { .n = 1, .h = 6, .w = 3, .c = 4 }, 4, 3, { .pad = 1, .groups = 4 } },
        { { .n = 2, .h = 9, .w = 8, .c = 2 }, 3, 5, { .stride = 2, .pad = 2 } },
        { { .n = 1, .h = 9, .w = 9, .c = 3 }, 2, 7, { .stride = 2, .pad = 3 } },
        { { .n = 2, .h = 4, .w = 4, .c = 5 }, 33, 4, { 0 } },
    };
    static const sp_init some = { SP_UNIFORM, 0.5f };

    if (i >= (int)(sizeof at / sizeof *at))
        return NULL;
    sp_tensor *x = sp_input(g, "x", at[i].x, SP_F32);
    int groups = at[i].o.groups ? at[i].o.groups : 1;
    int dims[] = { at[i].out, at[i].x.c / groups, at[i].kernel, at[i].kernel };
    sp_param *w = sp_weight(g, "w", dims, some);
    sp_param *b = i % 2 ? sp_weight(g, "b", (int[]){ dims[0], 0 }, some) : NULL;

    return sp_convolve(g, "convolve", x, w, b, at[i].o);
}

const sp_op sp_op_convolve = {
    .name = "convolve",
    .help = "y = x * w + b over windows of pixels",
    .shape = convolve_shape,
    .forward = convolve_forward,
    .backward = convolve_backward,
    .parts = true,
    .algorithm = sp_product_algorithm,
    .example = convolve_example,
};

sp_tensor *sp_convolve(sp_graph *g, const char *name, sp_tensor *x, sp_param *w,
                       sp_param *b, sp_conv_geometry o)
{
    return sp_record(g, &sp_op_convolve, name, &o, sizeof o,
                     (sp_tensor *[]){ x, NULL }, (sp_param *[]){ w, b, NULL });
}
