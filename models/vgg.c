/* VGG networks with batch norm for images of 32x32 pixels and more.
 *
 * Layers are named as torchvision numbers them: features.N counts
 * convolutions, norms, ReLUs and poolings; classifier.N counts dropouts, linear
 * layers and ReLUs.
 *
 * Source: Simonyan, Zisserman 2014, "Very Deep Convolutional Networks for
 *         Large-Scale Image Recognition", table 1, columns A, B, D, E.
 * Differs: batch norm; three fully connected layers of 512 (fc: 3), or a single
 *         one after an average pooling (fc: 1).
 */
#include <math.h>
#include <stdio.h>

#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct vgg_cfg {
    int depth, fc;
    double width, dropout;
} vgg_cfg;

#define AT(field) offsetof(vgg_cfg, field)

static const sp_key keys[] = {
    { "depth", SP_INT, AT(depth), "19", 11, 19,
      "layers with weights in the original: 11, 13, 16 or 19", NULL },
    { "fc", SP_INT, AT(fc), "3", 1, 3, "fully connected layers: 3 or 1", NULL },
    { "width", SP_FLOAT, AT(width), "1", 1e-3, 16,
      "factor on the channels of every layer", NULL },
    { "dropout", SP_FLOAT, AT(dropout), "0.5", 0, 0.99,
      "probability before each hidden fully connected layer", NULL },
};

enum { STAGES = 5 };

/* A network. Wang et al. 2021, "Pufferfish", leave the first nine convolutions
 * of VGG-19 and its last layer at full rank; so does VGG-16 here, and the
 * shallower ones the first half of theirs. */
typedef struct plan {
    int depth, convs[STAGES]; /* convolutions in each stage */
    const char *full;         /* the layers of full rank */
    const char *full_single;  /* the same with one fully connected layer */
} plan;

#define HALF_11 "features.0 features.4 features.8 features.11 "
#define HALF_13 "features.0 features.3 features.7 features.10 features.14 "
#define NINE_16                                        \
    "features.0 features.3 features.7 features.10 "    \
    "features.14 features.17 features.20 features.24 " \
    "features.27 "
#define NINE_19                                        \
    "features.0 features.3 features.7 features.10 "    \
    "features.14 features.17 features.20 features.23 " \
    "features.27 "
#define LAST "classifier.6"
#define SINGLE "classifier"

static const plan plans[] = {
    { 11, { 1, 1, 2, 2, 2 }, HALF_11 LAST, HALF_11 SINGLE },
    { 13, { 2, 2, 2, 2, 2 }, HALF_13 LAST, HALF_13 SINGLE },
    { 16, { 2, 2, 3, 3, 3 }, NINE_16 LAST, NINE_16 SINGLE },
    { 19, { 2, 2, 4, 4, 4 }, NINE_19 LAST, NINE_19 SINGLE },
};

static const plan *find_plan(int depth)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (plans[i].depth == depth)
            return &plans[i];
    return NULL;
}

static int scaled(const vgg_cfg *cfg, int channels)
{
    return (int)fmax(1, round(cfg->width * channels));
}

static sp_tensor *conv(sp_graph *g, sp_tensor *x, int out, int *index)
{
    char name[24];

    snprintf(name, sizeof name, "%d", (*index)++);
    x = sp_conv(g, name, x, (sp_conv_opt){ .out = out });
    snprintf(name, sizeof name, "%d", (*index)++);
    x = sp_norm(g, name, x, (sp_norm_opt){ .relu = true });
    (*index)++; /* the ReLU */
    return x;
}

static sp_tensor *features(sp_graph *g, sp_tensor *x, const vgg_cfg *cfg,
                           const int *convs)
{
    static const int channels[STAGES] = { 64, 128, 256, 512, 512 };
    const sp_pool_opt half = { .kernel = 2 };
    int index = 0;

    sp_push(g, "features");
    for (int i = 0; i < STAGES; i++) {
        for (int j = 0; j < convs[i]; j++)
            x = conv(g, x, scaled(cfg, channels[i]), &index);
        index++; /* the pooling */
        if (i == STAGES - 1 && cfg->fc == 1)
            x = sp_avg_pool(g, x, half);
        else
            x = sp_max_pool(g, x, half);
    }
    sp_pop(g);
    return x;
}

static sp_tensor *classifier(sp_graph *g, sp_tensor *x, const vgg_cfg *cfg,
                             int classes)
{
    const sp_linear_opt hidden = { .out = scaled(cfg, 512) };
    const sp_linear_opt last = { .out = classes };
    const float p = (float)cfg->dropout;

    if (cfg->fc == 1)
        return sp_linear(g, "classifier", x, last);
    sp_push(g, "classifier");
    x = sp_dropout(g, "0", x, p);
    x = sp_relu(g, sp_linear(g, "1", x, hidden));
    x = sp_dropout(g, "3", x, p);
    x = sp_relu(g, sp_linear(g, "4", x, hidden));
    x = sp_linear(g, "6", x, last);
    sp_pop(g);
    return x;
}

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    const vgg_cfg *cfg = a->own;
    const plan *p = find_plan(cfg->depth);

    if (!p)
        sp_graph_fail(g, SP_EARG,
                      "model.depth: no vgg has %d layers; there are 11, 13, 16 "
                      "and 19",
                      cfg->depth);
    else if (cfg->fc == 2)
        sp_graph_fail(g, SP_EARG,
                      "model.fc: 2 fully connected layers; there are 3 and 1");
    else if (x->shape.h < 32 || x->shape.w < 32)
        sp_graph_fail(g, SP_ESHAPE,
                      "vgg halves images five times, so they must have at "
                      "least 32x32 pixels; these have %dx%d",
                      x->shape.h, x->shape.w);
    else
        return classifier(g, features(g, x, cfg, p->convs), cfg, a->classes);
    return x;
}

static const char *full(const void *own)
{
    const vgg_cfg *cfg = own;
    const plan *p = find_plan(cfg->depth);

    if (!p) /* build() says so */
        return "";
    return cfg->fc == 1 ? p->full_single : p->full;
}

const sp_model sp_model_vgg = {
    .entry = { "vgg", "VGG networks with batch norm", sizeof(vgg_cfg), keys,
               sizeof keys / sizeof *keys },
    .build = build,
    .full = full,
};
