#include "plain_ops.h"

#include <math.h>
#include <string.h>

static float *data(const sp_tensor *t) { return t->data; }

/* Add to a gradient, or store it, as the program says. */
static void give(const sp_node *n, int i, size_t at, float g)
{
    float *dx = n->x[i]->grad;

    if (dx)
        dx[at] = (sp_beta(n, i) != 0 ? dx[at] : 0) + g;
}

static sp_err same_shape(sp_node *n)
{
    n->y[0]->shape = n->x[0]->shape;
    return SP_OK;
}

static sp_err scale_shape(sp_node *n)
{
    n->keep_x = 1;
    return same_shape(n);
}

static void scale_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = n->p[0]->value[0] * data(n->x[0])[i];
}

static void scale_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;
    float dw = sp_param_beta(n, 0, r) != 0 ? n->p[0]->grad[0] : 0;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        dw += data(n->x[0])[i] * dy[i];
        give(n, 0, i, n->p[0]->value[0] * dy[i]);
    }
    n->p[0]->grad[0] = dw;
}

const sp_op plain_scale = { .name = "scale",
                            .shape = scale_shape,
                            .forward = scale_forward,
                            .backward = scale_backward };

static sp_err bend_shape(sp_node *n)
{
    n->keep_x = 1;
    n->recompute_x = n->x_count > 1 ? 3 : 1;
    return same_shape(n);
}

static void bend_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] =
            sinf(data(n->x[0])[i]) + (n->x_count > 1 ? data(n->x[1])[i] : 0);
}

static void bend_recompute(const sp_node *n, const sp_run *r)
{
    char *log = ((const plain_attr *)n->attr)->log;

    if (log)
        strcat(strcat(log, n->name), " ");
    bend_forward(n, r);
}

static void bend_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        give(n, 0, i, cosf(data(n->x[0])[i]) * dy[i]);
        if (n->x_count > 1)
            give(n, 1, i, dy[i]);
    }
}

const sp_op plain_bend = { .name = "bend",
                           .shape = bend_shape,
                           .forward = bend_forward,
                           .backward = bend_backward,
                           .recompute = bend_recompute };

static sp_err mul_shape(sp_node *n)
{
    n->keep_x = 3;
    return same_shape(n);
}

static void mul_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = data(n->x[0])[i] * data(n->x[1])[i];
}

static void mul_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        give(n, 0, i, data(n->x[1])[i] * dy[i]);
        give(n, 1, i, data(n->x[0])[i] * dy[i]);
    }
}

const sp_op plain_mul = { .name = "mul",
                          .shape = mul_shape,
                          .forward = mul_forward,
                          .backward = mul_backward };

static sp_err take_shape(sp_node *n)
{
    same_shape(n);
    n->y[0]->shape.c = 1 + n->x[0]->shape.c * 5 / 7;
    return SP_OK;
}

static void take_forward(const sp_node *n, const sp_run *r)
{
    size_t from = (size_t)n->x[0]->shape.c, to = (size_t)n->y[0]->shape.c;

    for (size_t i = 0; i < sp_elements(n->y[0], r); i++)
        data(n->y[0])[i] = data(n->x[0])[i / to * from + i % to];
}

static void take_backward(const sp_node *n, const sp_run *r)
{
    size_t from = (size_t)n->x[0]->shape.c, to = (size_t)n->y[0]->shape.c;
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        give(n, 0, i, i % from < to ? dy[i / from * to + i % from] : 0);
}

const sp_op plain_take = { .name = "take",
                           .shape = take_shape,
                           .forward = take_forward,
                           .backward = take_backward };

static sp_err twice_shape(sp_node *n)
{
    n->inplace = true;
    return same_shape(n);
}

static void twice_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = 2 * data(n->x[0])[i];
}

static void twice_backward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        give(n, 0, i, 2 * ((float *)n->y[0]->grad)[i]);
}

const sp_op plain_twice = { .name = "twice",
                            .shape = twice_shape,
                            .forward = twice_forward,
                            .backward = twice_backward };

static sp_err sum_shape(sp_node *n)
{
    n->y[0]->shape = (sp_shape){ .n = n->x[0]->shape.n };
    return SP_OK;
}

static void sum_forward(const sp_node *n, const sp_run *r)
{
    for (int i = 0; i < r->n; i++)
        data(n->y[0])[i] = 0;
    for (int k = 0; k < n->x_count; k++)
        for (size_t i = 0; i < sp_elements(n->x[k], r); i++)
            data(n->y[0])[i / (size_t)n->x[k]->shape.c] += data(n->x[k])[i];
}

static void sum_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (int k = 0; k < n->x_count; k++)
        for (size_t i = 0; i < sp_elements(n->x[k], r); i++)
            give(n, k, i, dy[i / (size_t)n->x[k]->shape.c]);
}

const sp_op plain_sum = { .name = "sum",
                          .shape = sum_shape,
                          .forward = sum_forward,
                          .backward = sum_backward };
