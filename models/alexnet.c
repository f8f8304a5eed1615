/* AlexNet for images of about 227x227 pixels, with the two groups of channels
 * that its authors split over two GPUs.
 *
 * Layers are named as torchvision numbers them: features.N counts
 * convolutions, ReLUs and poolings; classifier.N counts dropouts, linear layers
 * and ReLUs.
 *
 * Source: Krizhevsky, Sutskever, Hinton 2012, "ImageNet Classification with
 *         Deep Convolutional Neural Networks", section 3. With 1,000 classes
 *         60,965,224 parameters: 232.56 MiB, as Lin et al. 2018, "Deep Gradient
 *         Compression", table 3, has it.
 * Differs: without local response normalisation, which has no parameters and
 *         which later networks dropped. The weights start as He et al. 2015
 *         say, the last layer's as PyTorch's, all biases at 0: weights of
 *         N(0, 0.01^2) and biases of 1 relied on that normalisation. The
 *         second and third convolution are not one network's: the third sees
 *         both groups, as in the original.
 */
#include <math.h>

#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct alexnet_cfg {
    int groups;
    double width, dropout;
} alexnet_cfg;

#define AT(field) offsetof(alexnet_cfg, field)

static const sp_key keys[] = {
    { "groups", SP_INT, AT(groups), "2", 1, 2,
      "of the second, fourth and fifth convolution: 2, the original, or 1",
      NULL },
    { "width", SP_FLOAT, AT(width), "1", 1e-3, 16,
      "factor on the channels of every layer", NULL },
    { "dropout", SP_FLOAT, AT(dropout), "0.5", 0, 0.99,
      "probability before each hidden fully connected layer", NULL },
};

/* The last pooling needs 3 pixels: 3 <- 7 <- 15 through the poolings before
 * it, and 4 * 14 + 11 through the first convolution. */
enum { LEAST = 67 };

/* A multiple of the groups. */
static int scaled(const alexnet_cfg *cfg, int channels)
{
    double each = round(cfg->width * channels / cfg->groups);

    return cfg->groups * (int)fmax(1, each);
}

static sp_tensor *conv(sp_graph *g, const char *name, sp_tensor *x,
                       sp_conv_opt o)
{
    o.bias = true;
    return sp_relu(g, sp_conv(g, name, x, o));
}

static sp_tensor *features(sp_graph *g, sp_tensor *x, const alexnet_cfg *cfg)
{
    const sp_pool_opt pool = { .kernel = 3, .stride = 2 };
    const int groups = cfg->groups;

    sp_push(g, "features");
    x = conv(g, "0", x,
             (sp_conv_opt){ .out = scaled(cfg, 96),
                            .kernel = 11,
                            .stride = 4,
                            .pad = SP_NO_PAD });
    x = sp_max_pool(g, x, pool);
    x = conv(g, "3", x,
             (sp_conv_opt){
                 .out = scaled(cfg, 256), .kernel = 5, .groups = groups });
    x = sp_max_pool(g, x, pool);
    x = conv(g, "6", x, (sp_conv_opt){ .out = scaled(cfg, 384) });
    x = conv(g, "8", x,
             (sp_conv_opt){ .out = scaled(cfg, 384), .groups = groups });
    x = conv(g, "10", x,
             (sp_conv_opt){ .out = scaled(cfg, 256), .groups = groups });
    x = sp_max_pool(g, x, pool);
    sp_pop(g);
    return x;
}

static sp_tensor *classifier(sp_graph *g, sp_tensor *x, const alexnet_cfg *cfg,
                             int classes)
{
    const sp_linear_opt hidden = { .out = scaled(cfg, 4096), .normal = true };
    const float p = (float)cfg->dropout;

    sp_push(g, "classifier");
    x = sp_dropout(g, "0", x, p);
    x = sp_relu(g, sp_linear(g, "1", x, hidden));
    x = sp_dropout(g, "3", x, p);
    x = sp_relu(g, sp_linear(g, "4", x, hidden));
    x = sp_linear(g, "6", x,
                  (sp_linear_opt){ .out = classes, .zero_bias = true });
    sp_pop(g);
    return x;
}

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    const alexnet_cfg *cfg = a->own;

    if (x->shape.h < LEAST || x->shape.w < LEAST) {
        sp_graph_fail(g, SP_ESHAPE,
                      "alexnet halves images five times, so they must have at "
                      "least %dx%d pixels; these have %dx%d",
                      LEAST, LEAST, x->shape.h, x->shape.w);
        return x;
    }
    return classifier(g, features(g, x, cfg), cfg, a->classes);
}

/* Its first and its last layer. */
static const char *full(const void *own)
{
    (void)own;
    return "features.0 classifier.6";
}

const sp_model sp_model_alexnet = {
    .entry = { "alexnet", "AlexNet in one or two groups, for large images",
               sizeof(alexnet_cfg), keys, sizeof keys / sizeof *keys },
    .build = build,
    .full = full,
};
