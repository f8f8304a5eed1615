/* Operators as ONNX has them: a row and a function each. All compute what the
 * operator does when not training. */
#include <string.h>

#include "convert/onnx.h"
#include "ops/attr.h"
#include "sprat/nn.h"

static int64_t or_one(int value) { return value ? value : 1; }

static void convolve(sp_onnx *o, const sp_node *n)
{
    const sp_conv_geometry *g = n->attr;
    const int *dims = n->p[0]->dims;
    int64_t stride = or_one(g->stride), pad = g->pad;
    sp_onnx_node node = {
        "Conv",
        { sp_onnx_image(o, n->x[0]), sp_onnx_weight(o, n->p[0]),
          n->p_count > 1 ? sp_onnx_weight(o, n->p[1]) : NULL },
        { { "kernel_shape", { dims[2], dims[3] }, 2, 0 },
          { "strides", { stride, stride }, 2, 0 },
          { "pads", { pad, pad, pad, pad }, 4, 0 },
          { "group", { or_one(g->groups) }, 0, 0 } },
    };

    sp_onnx_set(o, n->y[0], sp_onnx_add(o, &node), false);
}

/* Flattening goes channel by channel, as matmul reads images. */
static void matmul(sp_onnx *o, const sp_node *n)
{
    sp_onnx_node node = {
        "Gemm",
        { sp_onnx_flat(o, n->x[0]), sp_onnx_weight(o, n->p[0]),
          n->p_count > 1 ? sp_onnx_weight(o, n->p[1]) : NULL },
        { { "transB", { 1 }, 0, 0 } },
    };

    sp_onnx_set(o, n->y[0], sp_onnx_add(o, &node), true);
}

/* An operator without attributes on one value of either shape. */
static const char *on_any(sp_onnx *o, const char *type, const char *x)
{
    return sp_onnx_add(o, &(sp_onnx_node){ type, { x }, { { 0 } } });
}

/* The value as it is, of either shape. */
static const char *any(sp_onnx *o, const sp_tensor *x)
{
    return sp_onnx_is_flat(o, x) ? sp_onnx_flat(o, x) : sp_onnx_image(o, x);
}

static const char *sum(sp_onnx *o, const char *a, const char *b)
{
    return sp_onnx_add(o, &(sp_onnx_node){ "Add", { a, b }, { { 0 } } });
}

static void normalize(sp_onnx *o, const sp_node *n)
{
    const sp_normalize_attr *a = n->attr;
    bool flat = sp_onnx_is_flat(o, n->x[0]);
    sp_onnx_node node = {
        "BatchNormalization",
        { any(o, n->x[0]), sp_onnx_weight(o, n->p[0]),
          sp_onnx_weight(o, n->p[1]), sp_onnx_weight(o, n->p[2]),
          sp_onnx_weight(o, n->p[3]) },
        { { "epsilon", { 0 }, -1, a->eps } },
    };
    const char *y = sp_onnx_add(o, &node);

    if (n->x_count > 1)
        y = sum(o, y,
                flat ? sp_onnx_flat(o, n->x[1]) : sp_onnx_image(o, n->x[1]));
    if (a->relu)
        y = on_any(o, "Relu", y);
    sp_onnx_set(o, n->y[0], y, flat);
}

static void relu(sp_onnx *o, const sp_node *n)
{
    sp_onnx_set(o, n->y[0], on_any(o, "Relu", any(o, n->x[0])),
                sp_onnx_is_flat(o, n->x[0]));
}

static void dropout(sp_onnx *o, const sp_node *n)
{
    sp_onnx_set(o, n->y[0], any(o, n->x[0]), sp_onnx_is_flat(o, n->x[0]));
}

static void add(sp_onnx *o, const sp_node *n)
{
    bool flat = sp_onnx_is_flat(o, n->x[0]) || sp_onnx_is_flat(o, n->x[1]);
    const char *(*as)(sp_onnx *, const sp_tensor *) =
        flat ? sp_onnx_flat : sp_onnx_image;

    sp_onnx_set(o, n->y[0], sum(o, as(o, n->x[0]), as(o, n->x[1])), flat);
}

static void concat(sp_onnx *o, const sp_node *n)
{
    bool flat = sp_onnx_is_flat(o, n->x[0]) || sp_onnx_is_flat(o, n->x[1]);
    const char *(*as)(sp_onnx *, const sp_tensor *) =
        flat ? sp_onnx_flat : sp_onnx_image;
    sp_onnx_node node = { "Concat",
                          { as(o, n->x[0]), as(o, n->x[1]) },
                          { { "axis", { 1 }, 0, 0 } } };

    sp_onnx_set(o, n->y[0], sp_onnx_add(o, &node), flat);
}

static void pool(sp_onnx *o, const sp_node *n, const char *type,
                 sp_onnx_attr more)
{
    const sp_pool_opt *p = n->attr;
    int64_t kernel = p->kernel, pad = p->pad;
    int64_t stride = p->stride ? p->stride : p->kernel;
    sp_onnx_node node = {
        type,
        { sp_onnx_image(o, n->x[0]) },
        { { "kernel_shape", { kernel, kernel }, 2, 0 },
          { "strides", { stride, stride }, 2, 0 },
          { "pads", { pad, pad, pad, pad }, 4, 0 },
          more },
    };

    sp_onnx_set(o, n->y[0], sp_onnx_add(o, &node), false);
}

static void max_pool(sp_onnx *o, const sp_node *n)
{
    pool(o, n, "MaxPool", (sp_onnx_attr){ 0 });
}

static void avg_pool(sp_onnx *o, const sp_node *n)
{
    pool(o, n, "AveragePool",
         (sp_onnx_attr){ "count_include_pad", { 1 }, 0, 0 });
}

static void global_pool(sp_onnx *o, const sp_node *n)
{
    sp_onnx_set(o, n->y[0],
                on_any(o, "GlobalAveragePool", sp_onnx_image(o, n->x[0])),
                false);
}

/* Every stride-th pixel, then channels of zeros behind. */
static void subsample(sp_onnx *o, const sp_node *n)
{
    const sp_subsample_attr *a = n->attr;
    int more = a->channels - n->x[0]->shape.c;
    int64_t axes[] = { 2, 3 }, starts[] = { 0, 0 };
    int64_t ends[] = { INT64_MAX, INT64_MAX };
    int64_t steps[] = { a->stride, a->stride };
    int64_t pads[] = { 0, 0, 0, 0, 0, more, 0, 0 };
    const char *y = sp_onnx_image(o, n->x[0]);

    if (a->stride > 1)
        y = sp_onnx_add(o, &(sp_onnx_node){ "Slice",
                                            { y, sp_onnx_ints(o, starts, 2),
                                              sp_onnx_ints(o, ends, 2),
                                              sp_onnx_ints(o, axes, 2),
                                              sp_onnx_ints(o, steps, 2) },
                                            { { 0 } } });
    if (more > 0)
        y = sp_onnx_add(o, &(sp_onnx_node){ "Pad",
                                            { y, sp_onnx_ints(o, pads, 8) },
                                            { { 0 } } });
    sp_onnx_set(o, n->y[0], y, false);
}

static const sp_onnx_row rows[] = {
    { "add", add },
    { "avg_pool", avg_pool },
    { "concat", concat },
    { "convolve", convolve },
    { "dropout", dropout },
    { "global_pool", global_pool },
    { "matmul", matmul },
    { "max_pool", max_pool },
    { "normalize", normalize },
    { "relu", relu },
    { "subsample", subsample },
};

const sp_onnx_row *sp_onnx_find(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}
