/* An operator of one's own, checked against finite differences, and a network
 * that is made with it and trained like those that Sprat brings. */
#include <math.h>
#include <sprat/model.h>
#include <sprat/nn.h>
#include <sprat/op.h>
#include <sprat/train.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The operator --------------------------------------------------------
 * Swish, for every element:
 *
 *   y  = x s(x),  s(x) = 1 / (1 + e^-x)
 *   dx = dy (s(x) + x s(x) (1 - s(x)))
 *
 * Source: Ramachandran, Zoph, Le 2017, "Searching for Activation Functions". */

static sp_err swish_shape(sp_node *n)
{
    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (swish): the input must be floats",
                       n->name);
    n->y[0]->shape = n->x[0]->shape;
    n->keep_x = 1; /* backward reads x */
    return SP_OK;
}

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static void swish_forward(const sp_node *n, const sp_run *r)
{
    const float *x = n->x[0]->data;
    float *y = n->y[0]->data;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        y[i] = x[i] * sigmoid(x[i]);
}

static void swish_backward(const sp_node *n, const sp_run *r)
{
    const float *x = n->x[0]->data, *dy = n->y[0]->grad;
    float *dx = n->x[0]->grad;
    int add = sp_beta(n, 0) != 0.0f; /* another has written to dx before */

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        float s = sigmoid(x[i]);
        dx[i] = (add ? dx[i] : 0.0f) + dy[i] * (s + x[i] * s * (1.0f - s));
    }
}

static const sp_op swish_op = {
    .name = "swish",
    .help = "y = x / (1 + e^-x)",
    .shape = swish_shape,
    .forward = swish_forward,
    .backward = swish_backward,
};

static sp_tensor *swish(sp_graph *g, const char *name, sp_tensor *x)
{
    return sp_record(g, &swish_op, name, NULL, 0, (sp_tensor *[]){ x, NULL },
                     NULL);
}

/* ---- The network --------------------------------------------------------- */

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    x = sp_linear(g, "fc1", x, (sp_linear_opt){ .out = 32 });
    x = swish(g, "swish", x);
    return sp_linear(g, "fc2", x, (sp_linear_opt){ .out = a->classes });
}

static const sp_model swish_net = {
    .entry = { .name = "swish_net", .help = "two layers with swish between" },
    .build = build,
};

/* The largest difference between the gradients of the network and differences
 * of its loss, relative to the largest gradient. */
static sp_err check(double *error)
{
    enum { ROWS = 3, INPUTS = 4, CLASSES = 5 };
    sp_graph_opt opt = { .train = true, .input_grads = true };
    sp_run run = { .n = ROWS, .t = 1, .train = true, .weight = 1.0 / ROWS };
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, opt);
    sp_tensor *x =
        sp_input(g, "x", (sp_shape){ .n = ROWS, .c = INPUTS }, SP_F32);
    sp_tensor *t =
        sp_input(g, "label", (sp_shape){ .n = ROWS, .c = 1 }, SP_I32);
    sp_tensor *y = build(g, x, &(sp_model_args){ .classes = CLASSES });
    sp_gradcheck_result worst;
    sp_err e;

    sp_output(g, "loss", sp_cross_entropy(g, y, t, 0));
    e = sp_compile(g);
    if (e == SP_OK) {
        sp_params_init(p, 1);
        for (int i = 0; i < ROWS * INPUTS; i++)
            ((float *)x->data)[i] = (float)(i % 7) - 3.0f;
        for (int i = 0; i < ROWS; i++)
            ((int *)t->data)[i] = i % CLASSES;
        sp_gradcheck(g, &run, 4e-3, 64, &worst);
        *error = worst.error;
    }
    sp_graph_free(g);
    sp_params_free(p);
    return e;
}

static sp_err train(sp_registry *r)
{
    static const char *const settings[] = {
        "model.name=swish_net", "data.name=synthetic", "data.shape=[6,6,1]",
        "data.classes=4",       "data.train=512",      "train.batch=32",
        "train.epochs=5",       "optim.lr=0.05",       "optim.momentum=0.9",
    };
    sp_job job = { .run = "runs/layer", .overwrite = true, .terminal = stdout };
    sp_config *c = NULL;
    sp_err e;

    SP_TRY(sp_registry_add(r, "model", &swish_net.entry));
    SP_TRY(sp_config_load(&c, r, NULL, 0, settings,
                          sizeof settings / sizeof *settings));
    e = sp_train(c, &job);
    sp_config_free(c);
    return e;
}

int main(void)
{
    sp_registry *r = sp_registry_new();
    double error = 1;
    sp_err e = check(&error);

    if (e == SP_OK) {
        printf("gradients are right to %.1e\n", error);
        e = r ? train(r) : sp_fail(SP_ENOMEM, "out of memory");
    }
    if (e != SP_OK)
        fprintf(stderr, "layer: %s\n", sp_last_error());
    sp_registry_free(r);
    return e == SP_OK && error < 2e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
