/* Global average pooling.
 *
 *   y[n,c]      = 1/(h*w) * sum_{h,w} x[n,h,w,c], summed in double
 *   dx[n,h,w,c] = 1/(h*w) * dy[n,c]
 *
 * Shapes: x {t,n,h,w,c} -> y {t,n,1,1,c}.
 * Source: Lin, Chen, Yan 2013, "Network in Network", section 3.2.
 */
#include "sprat/nn.h"
#include "sprat/op.h"

static sp_err global_pool_shape(sp_node *n)
{
    sp_shape s = n->x[0]->shape;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (global_pool): the input must be floats",
                       n->name);
    n->y[0]->shape = (sp_shape){ .t = s.t, .n = s.n, .c = s.c };
    return SP_OK;
}

/* Channels whose sums are kept on the stack. */
enum { BLOCK = 64 };

static void mean(const float *x, size_t pixels, size_t c, float *y)
{
    for (size_t i = 0; i < c; i += BLOCK) {
        size_t m = c - i < BLOCK ? c - i : BLOCK;
        double sum[BLOCK] = { 0 };
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < m; k++)
                sum[k] += (double)x[p * c + i + k];
        for (size_t k = 0; k < m; k++)
            y[i + k] = (float)(sum[k] / (double)pixels);
    }
}

static void forward_images(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    sp_shape s = n->x[0]->shape;
    size_t c = (size_t)s.c, pixels = (size_t)s.h * (size_t)s.w;
    const float *x = n->x[0]->data;
    float *y = n->y[0]->data;

    for (size_t i = begin; i < end; i++)
        mean(x + i * pixels * c, pixels, c, y + i * c);
}

static void global_pool_forward(const sp_node *n, const sp_run *r)
{
    sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1,
                    forward_images, (void *)n);
}

static void backward_images(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    sp_shape s = n->x[0]->shape;
    size_t c = (size_t)s.c, pixels = (size_t)s.h * (size_t)s.w;
    bool add = sp_beta(n, 0) != 0.0f;
    float share = 1.0f / (float)pixels;

    for (size_t i = begin; i < end; i++) {
        const float *dy = (const float *)n->y[0]->grad + i * c;
        float *dx = (float *)n->x[0]->grad + i * pixels * c;
        for (size_t p = 0; p < pixels; p++, dx += c)
            for (size_t k = 0; k < c; k++)
                dx[k] = (add ? dx[k] : 0.0f) + share * dy[k];
    }
}

static void global_pool_backward(const sp_node *n, const sp_run *r)
{
    if (n->x[0]->grad)
        sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1,
                        backward_images, (void *)n);
}

static sp_tensor *global_pool_example(sp_graph *g, int i)
{
    static const sp_shape shapes[] = {
        { .n = 2, .h = 3, .w = 5, .c = 7 },
        { .n = 1 },
        { .t = 2, .n = 3, .h = 2, .w = 2, .c = 67 },
    };

    if (i >= (int)(sizeof shapes / sizeof *shapes))
        return NULL;
    return sp_global_pool(g, sp_input(g, "x", shapes[i], SP_F32));
}

const sp_op sp_op_global_pool = {
    .name = "global_pool",
    .help = "the mean over all pixels",
    .shape = global_pool_shape,
    .forward = global_pool_forward,
    .backward = global_pool_backward,
    .example = global_pool_example,
};

sp_tensor *sp_global_pool(sp_graph *g, sp_tensor *x)
{
    return sp_record(g, &sp_op_global_pool, "global_pool", NULL, 0,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
