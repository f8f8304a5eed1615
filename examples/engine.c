/* The engine by itself: records a linear classifier, and trains it by hand for
 * one step down the gradient. */
#include <sprat/nn.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, INPUTS = 6, CLASSES = 3 };

static sp_err record(sp_graph *g)
{
    sp_tensor *x =
        sp_input(g, "image", (sp_shape){ .n = ROWS, .c = INPUTS }, SP_F32);
    sp_tensor *t =
        sp_input(g, "label", (sp_shape){ .n = ROWS, .c = 1 }, SP_I32);
    sp_tensor *y = sp_linear(g, "fc", x, (sp_linear_opt){ .out = CLASSES });

    sp_output(g, "loss", sp_cross_entropy(g, y, t, 0));
    SP_TRY(sp_compile(g));
    for (int i = 0; i < ROWS * INPUTS; i++)
        ((float *)x->data)[i] = (float)(i % 5) - 2;
    for (int i = 0; i < ROWS; i++)
        ((int *)t->data)[i] = i % CLASSES;
    return SP_OK;
}

/* The loss before and after a small step. */
static void step(sp_graph *g, sp_params *p, double loss[2])
{
    sp_run run = { .n = ROWS, .t = 1, .train = true, .weight = 1.0 / ROWS };
    float *value = sp_params_values(p), *grad = sp_params_grads(p);

    sp_forward(g, &run);
    loss[0] = sp_loss(g, &run);
    sp_backward(g, &run, NULL, NULL);
    for (size_t i = 0; i < sp_params_count(p); i++)
        value[i] -= 0.01f * grad[i];
    sp_forward(g, &run);
    loss[1] = sp_loss(g, &run);
}

int main(void)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
    double loss[2] = { 0, 0 };

    if (!p || !g || record(g) != SP_OK) {
        fprintf(stderr, "engine: %s\n", sp_last_error());
        return EXIT_FAILURE;
    }
    sp_params_init(p, 1);
    step(g, p, loss);
    printf("loss %.6f, after a step %.6f\n", loss[0], loss[1]);
    sp_graph_free(g);
    sp_params_free(p);
    return loss[1] < loss[0] ? EXIT_SUCCESS : EXIT_FAILURE;
}
