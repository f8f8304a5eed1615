/* Residual networks: depth 6n+2 with stages of 16, 32 and 64 channels, depths
 * 18 and 34 with stages of 64 to 512, and depths 50, 101 and 152 of bottleneck
 * blocks, with stages of 256 to 2048.
 *
 * Source: He et al. 2015, "Deep Residual Learning for Image Recognition",
 *         sections 3.3, 4.1 and 4.2, table 1; of wide bottlenecks, Zagoruyko,
 *         Komodakis 2016, "Wide Residual Networks".
 * Differs: unless `stem` asks for ImageNet's, networks start with one 3x3
 *         convolution without pooling, as is usual for 32x32 images. With
 *         stem_norm off, a ReLU follows the first convolution directly. A
 *         bottleneck's stride is in its 3x3 convolution, as in
 *         fb.resnet.torch and PyTorch, not in the 1x1 before it.
 */
#include <math.h>
#include <stdio.h>

#include "sprat/model.h"
#include "sprat/nn.h"

typedef struct resnet_cfg {
    int depth, shortcut, stem;
    bool stem_norm;
    double width, inner_width;
} resnet_cfg;

enum { AUTO, OPTION_A, OPTION_B };
enum { CIFAR, IMAGENET };
enum { EXPANSION = 4 }; /* of a bottleneck's channels, behind it */

#define AT(field) offsetof(resnet_cfg, field)

static const sp_key keys[] = {
    { "depth", SP_INT, AT(depth), "20", 8, 2000,
      "layers with weights: 18, 34, 50, 101, 152 or another 6n+2", NULL },
    { "shortcut", SP_CHOICE, AT(shortcut), "auto", 0, 0,
      "where shapes change: A, pixels left out and zero channels; B, 1x1 "
      "convolution; auto: A for 6n+2, B for the others",
      "auto|A|B" },
    { "stem", SP_CHOICE, AT(stem), "cifar", 0, 0,
      "the first layers: cifar, a 3x3 convolution; imagenet, 7x7 with stride 2 "
      "and a 3x3 max pooling with stride 2",
      "cifar|imagenet" },
    { "stem_norm", SP_BOOL, AT(stem_norm), "true", 0, 0,
      "batch norm after the first convolution", NULL },
    { "width", SP_FLOAT, AT(width), "1", 1e-3, 16,
      "factor on the channels of every stage", NULL },
    { "inner_width", SP_FLOAT, AT(inner_width), "1", 1e-3, 16,
      "factor on the channels within bottlenecks: 2 for a wide ResNet-50-2",
      NULL },
};

/* A family of networks: blocks and channels of its stages. */
typedef struct plan {
    int stages, blocks[4], channels[4];
    bool option_a;
    int inner[4]; /* channels within the bottlenecks; 0: there are none */
    int first;    /* channels of the first convolution */
} plan;

/* Stages of 64 to 512 channels by depth; `bottleneck`: of four times that. */
static const struct {
    int depth, blocks[4];
    bool bottleneck;
} large[] = {
    { 18, { 2, 2, 2, 2 }, false },  { 34, { 3, 4, 6, 3 }, false },
    { 50, { 3, 4, 6, 3 }, true },   { 101, { 3, 4, 23, 3 }, true },
    { 152, { 3, 8, 36, 3 }, true },
};

static int scaled(double factor, int channels)
{
    return (int)fmax(1, round(factor * channels));
}

/* False: none of them has that depth. */
static bool make_large(const resnet_cfg *cfg, plan *p)
{
    size_t at = 0;

    while (large[at].depth != cfg->depth)
        if (++at == sizeof large / sizeof *large)
            return false;
    *p = (plan){ .stages = 4, .first = 64 };
    for (int i = 0; i < p->stages; i++) {
        p->blocks[i] = large[at].blocks[i];
        p->channels[i] = 64 << i;
        if (!large[at].bottleneck)
            continue;
        p->inner[i] = scaled(cfg->width * cfg->inner_width, p->channels[i]);
        p->channels[i] *= EXPANSION;
    }
    return true;
}

/* False: there is no network of that depth. */
static bool make_plan(const resnet_cfg *cfg, plan *p)
{
    int n = (cfg->depth - 2) / 6;

    if (!make_large(cfg, p)) {
        if (n < 1 || cfg->depth != 6 * n + 2)
            return false;
        *p = (plan){ 3, { n, n, n }, { 16, 32, 64 }, true, { 0 }, 16 };
    }
    if (cfg->shortcut != AUTO)
        p->option_a = cfg->shortcut == OPTION_A;
    for (int i = 0; i < p->stages; i++)
        p->channels[i] = scaled(cfg->width, p->channels[i]);
    p->first = scaled(cfg->width, p->first);
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

/* Block of stage i. */
static sp_tensor *basic(sp_graph *g, sp_tensor *x, const plan *p, int i,
                        int stride)
{
    int out = p->channels[i];
    sp_tensor *y, *skip;

    y = sp_conv(g, "conv1", x, (sp_conv_opt){ .out = out, .stride = stride });
    y = sp_norm(g, "bn1", y, (sp_norm_opt){ .relu = true });
    y = sp_conv(g, "conv2", y, (sp_conv_opt){ .out = out });
    skip = shortcut(g, x, out, stride, p->option_a);
    return sp_norm(g, "bn2", y, (sp_norm_opt){ .add = skip, .relu = true });
}

static sp_tensor *bottleneck(sp_graph *g, sp_tensor *x, const plan *p, int i,
                             int stride)
{
    int inner = p->inner[i], out = p->channels[i];
    sp_tensor *y, *skip;

    y = sp_conv(g, "conv1", x, (sp_conv_opt){ .out = inner, .kernel = 1 });
    y = sp_norm(g, "bn1", y, (sp_norm_opt){ .relu = true });
    y = sp_conv(g, "conv2", y, (sp_conv_opt){ .out = inner, .stride = stride });
    y = sp_norm(g, "bn2", y, (sp_norm_opt){ .relu = true });
    y = sp_conv(g, "conv3", y, (sp_conv_opt){ .out = out, .kernel = 1 });
    skip = shortcut(g, x, out, stride, p->option_a);
    return sp_norm(g, "bn3", y, (sp_norm_opt){ .add = skip, .relu = true });
}

static sp_tensor *stage(sp_graph *g, sp_tensor *x, const plan *p, int i)
{
    char name[24];

    snprintf(name, sizeof name, "layer%d", i + 1);
    sp_push(g, name);
    for (int j = 0; j < p->blocks[i]; j++) {
        snprintf(name, sizeof name, "%d", j);
        sp_push(g, name);
        x = (p->inner[i] ? bottleneck : basic)(g, x, p, i,
                                               i > 0 && j == 0 ? 2 : 1);
        sp_pop(g);
    }
    sp_pop(g);
    return x;
}

static sp_tensor *stem(sp_graph *g, sp_tensor *x, const resnet_cfg *cfg,
                       int out)
{
    sp_conv_opt first = { .out = out };

    if (cfg->stem == IMAGENET) {
        first.kernel = 7;
        first.stride = 2;
    }
    x = sp_conv(g, "conv1", x, first);
    if (cfg->stem_norm)
        x = sp_norm(g, "bn1", x, (sp_norm_opt){ .relu = true });
    else
        x = sp_relu(g, x);
    if (cfg->stem == IMAGENET)
        x = sp_max_pool(g, x,
                        (sp_pool_opt){ .kernel = 3, .stride = 2, .pad = 1 });
    return x;
}

static sp_tensor *build(sp_graph *g, sp_tensor *x, const sp_model_args *a)
{
    const resnet_cfg *cfg = a->own;
    plan p;

    if (!make_plan(cfg, &p)) {
        sp_graph_fail(g, SP_EARG,
                      "model.depth: no resnet has %d layers; there are 18, "
                      "34, 50, 101, 152 and 6n+2: 8, 14, 20, 26, 32, 38, 44, "
                      "56, ... 110, ...",
                      cfg->depth);
        return x;
    }
    x = stem(g, x, cfg, p.first);
    for (int i = 0; i < p.stages; i++)
        x = stage(g, x, &p, i);
    x = sp_global_pool(g, x);
    return sp_linear(g, "fc", x, (sp_linear_opt){ .out = a->classes });
}

/* Wang et al. 2021, "Pufferfish": of basic blocks all but the first, without
 * their shortcuts; of bottlenecks those of the last stage, with it. */
static const char *full(const void *own)
{
    const resnet_cfg *cfg = own;
    plan p;

    if (make_large(cfg, &p) && p.inner[0])
        return "conv1 layer1 layer2 layer3 fc";
    return "conv1 layer1.0 .downsample fc";
}

const sp_model sp_model_resnet = {
    .entry = { "resnet", "residual networks", sizeof(resnet_cfg), keys,
               sizeof keys / sizeof *keys },
    .build = build,
    .full = full,
};
