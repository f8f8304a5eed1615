#include "ops/pool_shape.h"

static int stride_of(sp_pool_opt o) { return o.stride ? o.stride : o.kernel; }

/* Windows along a side; the last one ends within the padded image. */
static int windows(int size, sp_pool_opt o)
{
    return (size + 2 * o.pad - o.kernel) / stride_of(o) + 1;
}

sp_err sp_pool_infer(sp_node *n)
{
    sp_pool_opt o = *(const sp_pool_opt *)n->attr;
    sp_shape s = n->x[0]->shape;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (%s): the input must be floats", n->name,
                       n->op->name);
    if (o.kernel < 1 || o.kernel > SP_POOL_MAX_KERNEL || stride_of(o) < 1 ||
        o.pad < 0 || o.pad > o.kernel / 2)
        return sp_fail(SP_EARG,
                       "%s (%s): kernel %d, stride %d, pad %d: the kernel must "
                       "be 1 to %d, the stride at least 1, the padding at most "
                       "half the kernel",
                       n->name, n->op->name, o.kernel, stride_of(o), o.pad,
                       SP_POOL_MAX_KERNEL);
    if (s.h + 2 * o.pad < o.kernel || s.w + 2 * o.pad < o.kernel)
        return sp_fail(SP_ESHAPE,
                       "%s (%s): a window of %d x %d does not fit into %s, %d "
                       "x %d pixels with padding %d: use larger images or "
                       "fewer poolings",
                       n->name, n->op->name, o.kernel, o.kernel, n->x[0]->name,
                       s.h, s.w, o.pad);
    n->y[0]->shape = (sp_shape){
        .t = s.t, .n = s.n, .h = windows(s.h, o), .w = windows(s.w, o), .c = s.c
    };
    return SP_OK;
}

sp_pool_how sp_pool_run(const sp_node *n, const sp_run *r)
{
    sp_pool_opt o = *(const sp_pool_opt *)n->attr;
    sp_shape in = n->x[0]->shape, out = n->y[0]->shape;

    return (sp_pool_how){
        .kernels = r->kernels,
        .threads = r->threads,
        .images = sp_images(n->x[0], r),
        .shape = { .h = in.h,
                   .w = in.w,
                   .c = in.c,
                   .oh = out.h,
                   .ow = out.w,
                   .kernel = o.kernel,
                   .stride = stride_of(o),
                   .pad = o.pad },
    };
}

sp_tensor *sp_pool_example(sp_graph *g, int i,
                           sp_tensor *(*pool)(sp_graph *g, sp_tensor *x,
                                              sp_pool_opt o))
{
    static const struct {
        sp_shape shape;
        sp_pool_opt opt;
    } cases[] = {
        { { .n = 2, .h = 4, .w = 6, .c = 16 }, { 2, 0, 0 } },
        { { .n = 1, .h = 5, .w = 7, .c = 3 }, { 2, 0, 0 } },
        { { .n = 1, .h = 5, .w = 5, .c = 17 }, { 3, 2, 1 } },
        { { .n = 1 }, { 1, 1, 0 } },
        { { .t = 2, .n = 2, .h = 6, .w = 5, .c = 1 }, { 2, 3, 0 } },
        { { .n = 1, .h = 3, .w = 3, .c = 5 }, { 3, 1, 1 } },
    };

    if (i >= (int)(sizeof cases / sizeof *cases))
        return NULL;
    return pool(g, sp_input(g, "x", cases[i].shape, SP_F32), cases[i].opt);
}
