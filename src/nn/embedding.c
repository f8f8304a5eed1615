/* Embedding layer: parameter NAME.weight. */
#include "sprat/nn.h"

sp_tensor *sp_embedding(sp_graph *g, const char *name, sp_tensor *x,
                        sp_embedding_opt o)
{
    float bound = o.bound > 0.0f ? o.bound : 0.1f;
    sp_param *w;

    if (o.rows < 1 || o.out < 1) {
        sp_graph_fail(g, SP_EARG,
                      "%s (embedding): %d rows of %d: both must be positive",
                      name, o.rows, o.out);
        return x;
    }
    sp_push(g, name);
    w = sp_weight(g, "weight", (int[]){ o.rows, o.out, 0 },
                  (sp_init){ SP_UNIFORM, bound });
    sp_pop(g);
    return sp_lookup(g, name, x, w);
}
