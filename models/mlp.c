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

/* The first layer and the last. */
#define ENDS(last) "fc1 fc" #last

static const char *full(const void *own)
{
    static const char *const lists[] = {
        ENDS(1),  ENDS(2),  ENDS(3),  ENDS(4),  ENDS(5),  ENDS(6),  ENDS(7),
        ENDS(8),  ENDS(9),  ENDS(10), ENDS(11), ENDS(12), ENDS(13), ENDS(14),
        ENDS(15), ENDS(16), ENDS(17), ENDS(18), ENDS(19), ENDS(20), ENDS(21),
        ENDS(22), ENDS(23), ENDS(24), ENDS(25), ENDS(26), ENDS(27), ENDS(28),
        ENDS(29), ENDS(30), ENDS(31), ENDS(32), ENDS(33), ENDS(34), ENDS(35),
        ENDS(36), ENDS(37), ENDS(38), ENDS(39), ENDS(40), ENDS(41), ENDS(42),
        ENDS(43), ENDS(44), ENDS(45), ENDS(46), ENDS(47), ENDS(48), ENDS(49),
        ENDS(50), ENDS(51), ENDS(52), ENDS(53), ENDS(54), ENDS(55), ENDS(56),
        ENDS(57), ENDS(58), ENDS(59), ENDS(60), ENDS(61), ENDS(62), ENDS(63),
        ENDS(64), ENDS(65),
    };
    const mlp_cfg *cfg = own;

    _Static_assert(sizeof lists / sizeof *lists == SP_LIST_MAX + 1,
                   "a list for every number of hidden layers");
    return lists[cfg->hidden.count];
}

const sp_model sp_model_mlp = {
    .entry = { "mlp", "fully connected layers with ReLU between them",
               sizeof(mlp_cfg), keys, sizeof keys / sizeof *keys },
    .build = build,
    .full = full,
};
