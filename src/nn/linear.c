/* Fully connected layer: parameters NAME.weight, unless it is tied to another,
 * and NAME.bias. */
#include <math.h>

#include "sprat/nn.h"

/* The parameter `tied`, whose shape must fit. */
static sp_param *find_tied(sp_graph *g, const char *name, const char *tied,
                           int out, size_t in)
{
    sp_param *w = sp_weight_named(g, tied);

    if (w->ndim != 2 || w->dims[0] != out || (size_t)w->dims[1] != in)
        sp_graph_fail(g, SP_ESHAPE,
                      "%s (linear): %s cannot be tied to a layer of %zu inputs "
                      "and %d outputs: it must be %d x %zu",
                      name, tied, in, out, out, in);
    return w;
}

sp_tensor *sp_linear(sp_graph *g, const char *name, sp_tensor *x,
                     sp_linear_opt o)
{
    size_t in = (size_t)x->shape.h * (size_t)x->shape.w * (size_t)x->shape.c;
    float bound = o.bound > 0.0f ? o.bound : 1.0f / sqrtf((float)in);
    sp_init spread = { SP_UNIFORM, bound }, zero = { SP_CONSTANT, 0.0f };
    sp_param *w, *b = NULL;

    if (o.out < 1 || in > INT32_MAX) {
        sp_graph_fail(g, SP_EARG,
                      "%s (linear): %zu inputs to %d outputs: both must be "
                      "from 1 to 2^31 - 1",
                      name, in, o.out);
        return x;
    }
    if (o.normal && o.tied) {
        sp_graph_fail(g, SP_EARG,
                      "%s (linear): is tied to %s, which starts as its own "
                      "layer says; leave out either tied or normal",
                      name, o.tied);
        return x;
    }
    if (o.normal)
        spread = (sp_init){ SP_NORMAL, sqrtf(2.0f / (float)in) };
    sp_push(g, name);
    w = o.tied ? find_tied(g, name, o.tied, o.out, in)
               : sp_weight(g, "weight", (int[]){ o.out, (int)in, 0 }, spread);
    if (!o.no_bias)
        b = sp_weight(g, "bias", (int[]){ o.out, 0 },
                      o.normal || o.zero_bias ? zero : spread);
    sp_pop(g);
    return sp_matmul(g, name, x, w, b);
}
