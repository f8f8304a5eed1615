/* Fully connected layer: parameters NAME.weight and NAME.bias. */
#include <math.h>

#include "sprat/nn.h"

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
    if (o.normal)
        spread = (sp_init){ SP_NORMAL, sqrtf(2.0f / (float)in) };
    sp_push(g, name);
    w = sp_weight(g, "weight", (int[]){ o.out, (int)in, 0 }, spread);
    if (!o.no_bias)
        b = sp_weight(g, "bias", (int[]){ o.out, 0 },
                      o.normal || o.zero_bias ? zero : spread);
    sp_pop(g);
    return sp_matmul(g, name, x, w, b);
}
