/* Batch norm layer: parameters NAME.weight (gamma) and NAME.bias (beta),
 * buffers NAME.running_mean and NAME.running_var. */
#include "sprat/nn.h"

sp_tensor *sp_norm(sp_graph *g, const char *name, sp_tensor *x, sp_norm_opt o)
{
    const sp_init zero = { SP_CONSTANT, 0.0f }, one = { SP_CONSTANT, 1.0f };
    const int dims[] = { x->shape.c, 0 };
    sp_normalize_params p;

    sp_push(g, name);
    p.gamma = sp_weight(g, "weight", dims, one);
    p.beta = sp_weight(g, "bias", dims, zero);
    p.mean = sp_buffer(g, "running_mean", dims, zero);
    p.var = sp_buffer(g, "running_var", dims, one);
    sp_pop(g);
    return sp_normalize(g, name, x, p,
                        (sp_normalize_opt){ .add = o.add, .relu = o.relu });
}
