/* Convolution layer: parameters NAME.weight and, if asked for, NAME.bias.
 *
 * Of low rank it is two convolutions, whose weights as matrices are u
 * {rank, in kernel^2} and v {out, rank}:
 *   NAME_u        in -> rank, with the kernel, its padding and its stride
 *   NAME_u_norm   a batch norm, if the graph's rule has extra_norm
 *   NAME_v        rank -> out, 1 x 1, with the bias
 * The stride of a 1 x 1 convolution is in NAME_v: so the published counts of
 * products have it.
 *
 * Source: Wang, Agarwal, Papailiopoulos 2021, "Pufferfish", section 2.2 and
 *         the code that was published with it.
 * Differs: the factors' start, see sp_factor_init().
 */
#include <math.h>

#include "nn/lowrank.h"
#include "sprat/nn.h"

/* One convolution; all its options are said. w and b are set when it is
 * recorded. */
typedef struct part {
    const char *name;
    int out, kernel, stride, pad, groups;
    bool bias;
    sp_init start;
    sp_param *w, *b;
} part;

static int or_default(int value, int fallback)
{
    return value ? value : fallback;
}

static int pad_of(sp_conv_opt o, int kernel)
{
    if (o.pad == SP_NO_PAD)
        return 0;
    return or_default(o.pad, kernel / 2);
}

/* He et al. 2015, "Delving Deep into Rectifiers": the variance 2 / fan-out
 * keeps the size of gradients under ReLU. */
static float deviation(int kernel, int out)
{
    return sqrtf(2.0f / (float)(kernel * kernel * out));
}

static sp_tensor *record(sp_graph *g, part *p, sp_tensor *x)
{
    sp_push(g, p->name);
    p->w = sp_weight(
        g, "weight",
        (int[]){ p->out, x->shape.c / p->groups, p->kernel, p->kernel },
        p->start);
    if (p->bias)
        p->b = sp_weight(g, "bias", (int[]){ p->out, 0 },
                         (sp_init){ SP_CONSTANT, 0.0f });
    sp_pop(g);
    return sp_convolve(g, p->name, x, p->w, p->b,
                       (sp_conv_geometry){ .stride = p->stride,
                                           .pad = p->pad,
                                           .groups = p->groups });
}

/* The rank that it is to have; 0: full. */
static int rank_of(sp_graph *g, const part *p, int in, int asked)
{
    double inputs = (double)in * p->kernel * p->kernel;

    if (p->groups == 1 && inputs <= INT32_MAX)
        return sp_layer_rank(g, p->name, asked, p->out, (int)inputs);
    if (asked != 0)
        sp_graph_fail(g, SP_EARG,
                      "%s (conv): rank %d with %d groups and %.0f inputs to an "
                      "output: only a convolution in one group, of at most "
                      "2^31 - 1 inputs, can be of low rank",
                      p->name, asked, p->groups, inputs / p->groups);
    return 0;
}

static sp_tensor *record_low(sp_graph *g, const part *p, sp_tensor *x, int rank)
{
    char u_name[SP_PART_NAME], v_name[SP_PART_NAME], text[SP_PART_NAME];
    bool point = p->kernel == 1;
    part u = *p, v = *p;

    u.start = v.start = sp_factor_init(p->start, rank);
    u.name = sp_name_with(g, p->name, "_u", u_name);
    u.out = rank;
    u.bias = false;
    u.stride = point ? 1 : p->stride;
    v.name = sp_name_with(g, p->name, "_v", v_name);
    v.kernel = 1;
    v.pad = 0;
    v.stride = point ? p->stride : 1;

    x = record(g, &u, x);
    if (sp_graph_ranks(g).extra_norm)
        x = sp_norm(g, sp_name_with(g, p->name, "_u_norm", text), x,
                    (sp_norm_opt){ 0 });
    x = record(g, &v, x);
    sp_factors_of(g, sp_name_with(g, p->name, ".weight", text), u.w, v.w);
    if (v.b)
        sp_stands_for(g, sp_name_with(g, p->name, ".bias", text), v.b);
    return x;
}

sp_tensor *sp_conv(sp_graph *g, const char *name, sp_tensor *x, sp_conv_opt o)
{
    int kernel = or_default(o.kernel, 3), groups = or_default(o.groups, 1);
    int pad = pad_of(o, kernel), rank;

    if (o.out < 1 || kernel < 1 || o.stride < 0 || pad < 0 || groups < 1 ||
        o.out % groups != 0 || x->shape.c % groups != 0) {
        sp_graph_fail(g, SP_EARG,
                      "%s (conv): %d channels to %d, kernel %d, stride %d, pad "
                      "%d, groups %d: all must be positive, and both channels "
                      "multiples of the groups",
                      name, x->shape.c, o.out, kernel, o.stride, pad, groups);
        return x;
    }
    part p = { .name = name,
               .out = o.out,
               .kernel = kernel,
               .stride = or_default(o.stride, 1),
               .pad = pad,
               .groups = groups,
               .bias = o.bias,
               .start = { SP_NORMAL, deviation(kernel, o.out) } };
    rank = rank_of(g, &p, x->shape.c, o.rank);
    if (rank > 0)
        return record_low(g, &p, x, rank);
    return record(g, &p, x);
}
