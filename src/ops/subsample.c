/* The shortcut without parameters (option A) of residual networks.
 *
 *   y[n,i,j,k]            = x[n,i*stride,j*stride,k] for k < c, else 0
 *   dx[n,i*stride,j*stride,k] = dy[n,i,j,k] for k < c; 0 at all other pixels
 *
 * Shapes: x {t,n,h,w,c} -> y {t,n,ceil(h/stride),ceil(w/stride),channels}.
 * Errors: SP_ESHAPE when channels < c; SP_EARG when stride < 1.
 * Source: He et al. 2015, "Deep Residual Learning for Image Recognition",
 *         section 3.3.
 */
#include <string.h>

#include "ops/attr.h"
#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err subsample_shape(sp_node *n)
{
    const sp_subsample_attr *a = n->attr;
    sp_shape s = n->x[0]->shape;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (subsample): the input must be floats",
                       n->name);
    if (a->stride < 1)
        return sp_fail(SP_EARG, "%s (subsample): stride %d, must be at least 1",
                       n->name, a->stride);
    if (a->channels < s.c)
        return sp_fail(SP_ESHAPE,
                       "%s (subsample): %d channels, but %s has %d already",
                       n->name, a->channels, n->x[0]->name, s.c);
    n->y[0]->shape = (sp_shape){ .t = s.t,
                                 .n = s.n,
                                 .h = (s.h - 1) / a->stride + 1,
                                 .w = (s.w - 1) / a->stride + 1,
                                 .c = a->channels };
    return SP_OK;
}

/* Where pixel p of an image of y comes from: its first channel in x. */
static size_t source(const sp_node *n, size_t p)
{
    const sp_subsample_attr *a = n->attr;
    sp_shape in = n->x[0]->shape, out = n->y[0]->shape;
    size_t i = p / (size_t)out.w, j = p % (size_t)out.w;
    size_t stride = (size_t)a->stride;

    return (i * stride * (size_t)in.w + j * stride) * (size_t)in.c;
}

static size_t image_floats(sp_shape s)
{
    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

static void forward_images(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    sp_shape in = n->x[0]->shape, out = n->y[0]->shape;
    size_t pixels = (size_t)out.h * (size_t)out.w;
    size_t have = (size_t)in.c, want = (size_t)out.c;

    for (size_t i = begin; i < end; i++) {
        const float *x = (const float *)n->x[0]->data + i * image_floats(in);
        float *y = (float *)n->y[0]->data + i * image_floats(out);
        for (size_t p = 0; p < pixels; p++, y += want) {
            memcpy(y, x + source(n, p), have * sizeof *y);
            memset(y + have, 0, (want - have) * sizeof *y);
        }
    }
}

static void subsample_forward(const sp_node *n, const sp_run *r)
{
    sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1,
                    forward_images, (void *)n);
}

static void backward_images(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    sp_shape in = n->x[0]->shape, out = n->y[0]->shape;
    size_t pixels = (size_t)out.h * (size_t)out.w;
    size_t have = (size_t)in.c, want = (size_t)out.c;

    for (size_t i = begin; i < end; i++) {
        const float *dy = (const float *)n->y[0]->grad + i * image_floats(out);
        float *dx = (float *)n->x[0]->grad + i * image_floats(in);
        if (sp_beta(n, 0) == 0.0f)
            memset(dx, 0, image_floats(in) * sizeof *dx);
        for (size_t p = 0; p < pixels; p++, dy += want) {
            float *to = dx + source(n, p);
            for (size_t k = 0; k < have; k++)
                to[k] += dy[k];
        }
    }
}

static void subsample_backward(const sp_node *n, const sp_run *r)
{
    if (n->x[0]->grad)
        sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1,
                        backward_images, (void *)n);
}

static sp_tensor *subsample_example(sp_graph *g, int i)
{
    static const struct {
        sp_shape shape;
        int stride, channels;
    } cases[] = {
        { { .n = 2, .h = 5, .w = 4, .c = 3 }, 2, 6 },
        { { .n = 1 }, 2, 1 },
        { { .n = 3, .h = 7, .w = 3, .c = 1 }, 3, 5 },
        { { .t = 2, .n = 2, .h = 2, .w = 3, .c = 4 }, 1, 9 },
    };

    if (i >= (int)(sizeof cases / sizeof *cases))
        return NULL;
    return sp_subsample(g, sp_input(g, "x", cases[i].shape, SP_F32),
                        cases[i].stride, cases[i].channels);
}

const sp_op sp_op_subsample = {
    .name = "subsample",
    .help = "every stride-th pixel, new channels zero",
    .shape = subsample_shape,
    .forward = subsample_forward,
    .backward = subsample_backward,
    .example = subsample_example,
};

sp_tensor *sp_subsample(sp_graph *g, sp_tensor *x, int stride, int channels)
{
    sp_subsample_attr a = { .stride = stride, .channels = channels };

    return sp_record(g, &sp_op_subsample, "subsample", &a, sizeof a,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
