/* Residual networks for small images: depth 6n+2 with stages of 16, 32 and 64
 * channels, and depths 18 and 34 with stages of 64 to 512.
 *
 * Source: He et al. 2015, "Deep Residual Learning for Image Recognition",
 *         sections 3.3 and 4.2, table 1.
 * Differs: depths 18 and 34 start with one 3x3 convolution without pooling, as
 *         is usual for 32x32 images. With stem_norm off, a ReLU follows that
 *         convolution directly.
 */
#include <math.h>
#include <stdio.h>

#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct resnet_cfg {
    int depth, shortcut;
    bool stem_norm;
    double width;
} resnet_cfg;

enum { AUTO, OPTION_A, OPTION_B };

#define AT(field) offsetof(resnet_cfg, field)

static const sp_key keys[] = {
    { "depth", SP_INT, AT(depth), "20", 8, 2000,
      "layers with weights: 18, 34 or 6n+2", NULL },
    { "shortcut", SP_CHOICE, AT(shortcut), "auto", 0, 0,
      "where shapes change: A, pixels left out and zero channels; B, 1x1 "
      "convolution; auto: A for 6n+2, B for 18 and 34",
      "auto|A|B" },
    { "stem_norm", SP_BOOL, AT(stem_norm), "true", 0, 0,
      "batch norm after the first convolution", NULL },
    { "width", SP_FLOAT, AT(width), "1", 1e-3, 16,
      "factor on the channels of every stage", NULL },
};

/* A family of networks: blocks and channels of its stages. */
typedef struct plan {
    int stages, blocks[4], channels[4];
    bool option_a;
} plan;

/* False: there is no network of that depth. */
static bool make_plan(const resnet_cfg *cfg, plan *p)
{
    int n = (cfg->depth - 2) / 6;

    if (cfg->depth == 18)
        *p = (plan){ 4, { 2, 2, 2, 2 }, { 64, 128, 256, 512 }, false };
    else if (cfg->depth == 34)
        *p = (plan){ 4, { 3, 4, 6, 3 }, { 64, 128, 256, 512 }, false };
    else if (n >= 1 && cfg->depth == 6 * n + 2)
        *p = (plan){ 3, { n, n, n }, { 16, 32, 64 }, true };
    else
        return false;
    if (cfg->shortcut != AUTO)
        p->option_a = cfg->shortcut == OPTION_A;
    for (int i = 0; i < p->stages; i++)
        p->channels[i] = (int)fmax(1, round(cfg->width * p->channels[i]));
    return true;
}

/* The way around a block, where it changes the shape. */
static sp_tensor *shortcut(sp_graph *g, sp_tensor *x, int out, int stride,
                           bool option_a)
{
    sp_tensor *y;

    if (stride == 1 && x->shape.c == out)
        return x;
    if (option_a)
        return sp_subsample(g, x, stride, out);
    sp_push(g, "downsample");
    y = sp_conv(g, "0", x,
                (sp_conv_opt){ .out = out, .kernel = 1, .stride = stride });
    y = sp_norm(g, "1", y, (sp_norm_opt){ 0 });
    sp_pop(g);
    return y;
}

static sp_tensor *block(sp_graph *g, sp_tensor *x, int out, int stride,
                        bool option_a)
{
    sp_tensor *y, *skip;

    y = sp_conv(g, "conv1", x, (sp_conv_opt){ .out = out, .stride = stride });
    y = sp_norm(g, "bn1", y, (sp_norm_opt){ .relu = true });
    y = sp_conv(g, "conv2", y, (sp_conv_opt){ .out = out });
    skip = shortcut(g, x, out, stride, option_a);
    return sp_norm(g, "bn2", y, (sp_norm_opt){ .add = skip, .relu = true });
}

static sp_tensor *stage(sp_graph *g, sp_tensor *x, const plan *p, int i)
{
    char name[24];

    snprintf(name, sizeof name, "layer%d", i + 1);
    sp_push(g, name);
    for (int j = 0; j < p->blocks[i]; j++) {
        snprintf(name, sizeof name, "%d", j);
        sp_push(g, name);
        x = block(g, x, p->channels[i], i > 0 && j == 0 ? 2 : 1, p->option_a);
        sp_pop(g);
    }
    sp_pop(g);
    return x;
}

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    const resnet_cfg *cfg = a->own;
    plan p;

    if (!make_plan(cfg, &p)) {
        sp_graph_fail(g, SP_EARG,
                      "model.depth: no resnet has %d layers; there are 18, 34 "
                      "and 6n+2: 8, 14, 20, 26, 32, 38, 44, 50, 56, ... 110, "
                      "...",
                      cfg->depth);
        return x;
    }
    x = sp_conv(g, "conv1", x, (sp_conv_opt){ .out = p.channels[0] });
    if (cfg->stem_norm)
        x = sp_norm(g, "bn1", x, (sp_norm_opt){ .relu = true });
    else
        x = sp_relu(g, x);
    for (int i = 0; i < p.stages; i++)
        x = stage(g, x, &p, i);
    x = sp_global_pool(g, x);
    return sp_linear(g, "fc", x, (sp_linear_opt){ .out = a->classes });
}

const sp_model sp_model_resnet = {
    .entry = { "resnet", "residual networks for small images",
               sizeof(resnet_cfg), keys, sizeof keys / sizeof *keys },
    .build = build,
};
