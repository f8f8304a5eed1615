/* Multilayer perceptron: fully connected layers fc1, fc2, ... with ReLU
 * between them. */
#include <stdio.h>

#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct mlp_cfg {
    sp_list hidden;
} mlp_cfg;

static const sp_key keys[] = {
    { "hidden", SP_LIST, offsetof(mlp_cfg, hidden), "[128]", 1, 1e6,
      "units of each hidden layer", NULL },
};

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    const mlp_cfg *cfg = a->own;
    char name[24];

    for (int i = 0; i < cfg->hidden.count; i++) {
        double units = cfg->hidden.value[i];
        if (units != (int)units) {
            sp_graph_fail(g, SP_EARG,
                          "model.hidden: %g units, must be a whole number",
                          units);
            return x;
        }
        snprintf(name, sizeof name, "fc%d", i + 1);
        x = sp_relu(
            g, sp_linear(g, name, x, (sp_linear_opt){ .out = (int)units }));
    }
    snprintf(name, sizeof name, "fc%d", cfg->hidden.count + 1);
    return sp_linear(g, name, x, (sp_linear_opt){ .out = a->classes });
}

const sp_model sp_model_mlp = {
    .entry = { "mlp", "fully connected layers with ReLU between them",
               sizeof(mlp_cfg), keys, sizeof keys / sizeof *keys },
    .build = build,
};
