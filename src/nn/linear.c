/* Fully connected layer: parameters NAME.weight, unless it is tied to another,
 * and NAME.bias. Of low rank it is two: NAME_u, in -> rank, without bias, and
 * NAME_v, rank -> out.
 *
 * Source: of low rank, Wang, Agarwal, Papailiopoulos 2021, "Pufferfish",
 *         section 2.1.
 * Differs: the factors' start, see sp_factor_init(). */
#include <math.h>

#include "nn/lowrank.h"
#include "sprat/nn.h"

/* Its sizes, and how it starts. */
typedef struct layer {
    const char *name;
    int in, out;
    sp_init weight, bias;
    bool no_bias;
} layer;

/* The parameter `tied`, whose shape must fit. */
static sp_param *find_tied(sp_graph *g, const layer *l, const char *tied)
{
    sp_param *w = sp_weight_named(g, tied);

    if (w->ndim != 2 || w->dims[0] != l->out || w->dims[1] != l->in)
        sp_graph_fail(g, SP_ESHAPE,
                      "%s (linear): %s cannot be tied to a layer of %d inputs "
                      "and %d outputs: it must be %d x %d",
                      l->name, tied, l->in, l->out, l->out, l->in);
    return w;
}

static sp_param *weight(sp_graph *g, int out, int in, sp_init start)
{
    return sp_weight(g, "weight", (int[]){ out, in, 0 }, start);
}

/* NULL: it has none. */
static sp_param *bias(sp_graph *g, const layer *l)
{
    if (l->no_bias)
        return NULL;
    return sp_weight(g, "bias", (int[]){ l->out, 0 }, l->bias);
}

static sp_tensor *record(sp_graph *g, const layer *l, sp_tensor *x,
                         const char *tied)
{
    sp_param *w, *b;

    sp_push(g, l->name);
    w = tied ? find_tied(g, l, tied) : weight(g, l->out, l->in, l->weight);
    b = bias(g, l);
    sp_pop(g);
    return sp_matmul(g, l->name, x, w, b);
}

static sp_tensor *record_low(sp_graph *g, const layer *l, sp_tensor *x,
                             int rank)
{
    sp_init start = sp_factor_init(l->weight, rank);
    char u_name[SP_PART_NAME], v_name[SP_PART_NAME], text[SP_PART_NAME];
    sp_param *u, *v, *b;

    sp_push(g, sp_name_with(g, l->name, "_u", u_name));
    u = weight(g, rank, l->in, start);
    sp_pop(g);
    sp_push(g, sp_name_with(g, l->name, "_v", v_name));
    v = weight(g, l->out, rank, start);
    b = bias(g, l);
    sp_pop(g);
    sp_factors_of(g, sp_name_with(g, l->name, ".weight", text), u, v);
    if (b)
        sp_stands_for(g, sp_name_with(g, l->name, ".bias", text), b);
    x = sp_matmul(g, u_name, x, u, NULL);
    return sp_matmul(g, v_name, x, v, b);
}

/* False: the options do not go together, which is said. */
static bool check(sp_graph *g, const char *name, size_t in, sp_linear_opt o)
{
    if (o.out < 1 || in > INT32_MAX) {
        sp_graph_fail(g, SP_EARG,
                      "%s (linear): %zu inputs to %d outputs: both must be "
                      "from 1 to 2^31 - 1",
                      name, in, o.out);
        return false;
    }
    if (o.normal && o.tied) {
        sp_graph_fail(g, SP_EARG,
                      "%s (linear): is tied to %s, which starts as its own "
                      "layer says; leave out either tied or normal",
                      name, o.tied);
        return false;
    }
    if (o.rank != 0 && o.tied) {
        sp_graph_fail(g, SP_EARG,
                      "%s (linear): is tied to %s, whose rank is full; leave "
                      "out either tied or rank",
                      name, o.tied);
        return false;
    }
    return true;
}

sp_tensor *sp_linear(sp_graph *g, const char *name, sp_tensor *x,
                     sp_linear_opt o)
{
    size_t in = (size_t)x->shape.h * (size_t)x->shape.w * (size_t)x->shape.c;
    float bound = o.bound > 0.0f ? o.bound : 1.0f / sqrtf((float)in);
    sp_init spread = { SP_UNIFORM, bound }, zero = { SP_CONSTANT, 0.0f };
    int rank = 0;

    if (!check(g, name, in, o))
        return x;
    if (o.normal)
        spread = (sp_init){ SP_NORMAL, sqrtf(2.0f / (float)in) };
    layer l = { .name = name,
                .in = (int)in,
                .out = o.out,
                .weight = spread,
                .bias = o.normal || o.zero_bias ? zero : spread,
                .no_bias = o.no_bias };
    if (!o.tied)
        rank = sp_layer_rank(g, name, o.rank, l.out, l.in);
    if (rank > 0)
        return record_low(g, &l, x, rank);
    return record(g, &l, x, o.tied);
}
