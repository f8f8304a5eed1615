/* Convolution layer: parameters NAME.weight and, if asked for, NAME.bias. */
#include <math.h>

#include "sprat/nn.h"

static int or_default(int value, int fallback)
{
    return value ? value : fallback;
}

static int pad_of(sp_conv_opt o, int kernel)
{
    if (o.pad == SP_NO_PAD)
        return 0;
    return or_default(o.pad, kernel / 2);
}

/* He et al. 2015, "Delving Deep into Rectifiers": the variance 2 / fan-out
 * keeps the size of gradients under ReLU. */
static float deviation(int kernel, int out)
{
    return sqrtf(2.0f / (float)(kernel * kernel * out));
}

sp_tensor *sp_conv(sp_graph *g, const char *name, sp_tensor *x, sp_conv_opt o)
{
    int kernel = or_default(o.kernel, 3), groups = or_default(o.groups, 1);
    int pad = pad_of(o, kernel);
    sp_param *w, *b = NULL;

    if (o.out < 1 || kernel < 1 || o.stride < 0 || pad < 0 || groups < 1 ||
        o.out % groups != 0 || x->shape.c % groups != 0) {
        sp_graph_fail(g, SP_EARG,
                      "%s (conv): %d channels to %d, kernel %d, stride %d, pad "
                      "%d, groups %d: all must be positive, and both channels "
                      "multiples of the groups",
                      name, x->shape.c, o.out, kernel, o.stride, pad, groups);
        return x;
    }
    sp_push(g, name);
    w = sp_weight(g, "weight",
                  (int[]){ o.out, x->shape.c / groups, kernel, kernel },
                  (sp_init){ SP_NORMAL, deviation(kernel, o.out) });
    if (o.bias)
        b = sp_weight(g, "bias", (int[]){ o.out, 0 },
                      (sp_init){ SP_CONSTANT, 0.0f });
    sp_pop(g);
    return sp_convolve(g, name, x, w, b,
                       (sp_conv_geometry){ .stride = or_default(o.stride, 1),
                                           .pad = pad,
                                           .groups = groups });
}
