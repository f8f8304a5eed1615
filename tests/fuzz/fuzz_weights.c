/* Weights for a small network, from a file that may be of another. */
#include "fuzz.h"
#include "sprat/nn.h"
#include "train/weights.h"

static sp_params *network(void)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
    sp_tensor *x = sp_input(g, "image", (sp_shape){ .n = 2, .c = 3 }, SP_F32);
    sp_tensor *t = sp_input(g, "label", (sp_shape){ .n = 2, .c = 1 }, SP_I32);

    x = sp_linear(g, "fc", x, (sp_linear_opt){ .out = 2 });
    sp_output(g, "loss", sp_cross_entropy(g, x, t, 0));
    fuzz_law(sp_compile(g) == SP_OK, "the network is sound");
    sp_graph_free(g);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static sp_params *p;
    const char *path = fuzz_file("input.safetensors", bytes, size);

    if (!p)
        p = network();
    if (sp_weights_load(path, p) == SP_OK) {
        path = fuzz_file("saved.safetensors", "", 0);
        fuzz_law(sp_weights_save(path, p, NULL) == SP_OK &&
                     sp_weights_load(path, p) == SP_OK,
                 "what was loaded can be saved and loaded");
    }
    return 0;
}
