#include "ops/product.h"

#include <limits.h>
#include <math.h>

#include "graph/program.h"

static sp_conv_how how_of(const sp_node *n, sp_pass pass)
{
    return (sp_conv_how){ .kernels = n->kernels,
                          .threads = n->threads,
                          .reference = n->reference,
                          .tile = n->tile[pass] };
}

static sp_err choose_tiles(sp_node *n, const sp_conv_shape *s)
{
    n->tiled = !n->reference && sp_conv_has_tiles(s);
    if (!n->tiled)
        return SP_OK;
    for (sp_pass p = SP_FORWARD; p <= SP_BACKWARD_WEIGHT; p++)
        n->tile[p] = sp_conv_best_tile(n->kernels, s, p);
    return sp_tiles_choose(n, n->tile);
}

sp_err sp_product_infer(sp_node *n, const sp_conv_shape *s)
{
    sp_shape x = n->x[0]->shape;
    sp_pass last = n->train ? SP_BACKWARD_WEIGHT : SP_FORWARD;
    double filter = (double)s->kh * s->kw * (s->cin / s->groups);
    double most = fmax(fmax((double)s->h * s->w * s->cin, filter),
                       (double)s->oh * s->ow * s->cout);

    /* Kernels find a pixel in its image by an int. */
    if (most > INT_MAX || (double)x.t * x.n > INT_MAX)
        return sp_fail(SP_ESHAPE,
                       "%s: %d x %d images of %d x %d x %d numbers, %d x %d x "
                       "%d behind it, are too large: 2^31 - 1 images and "
                       "numbers an image is the limit",
                       n->name, x.t, x.n, s->h, s->w, s->cin, s->oh, s->ow,
                       s->cout);

    n->y[0]->shape = (sp_shape){ x.t, x.n, s->oh, s->ow, s->cout };
    n->keep_x = 1;
    n->macs = (double)s->oh * s->ow * s->cout * filter;
    SP_TRY(choose_tiles(n, s));
    for (sp_pass p = SP_FORWARD; p <= last; p++) {
        sp_conv_how how = how_of(n, p);
        size_t bytes = sp_conv_scratch(&how, s, x.t * x.n, p);
        if (bytes > n->scratch)
            n->scratch = bytes;
    }
    return SP_OK;
}

const char *sp_product_algorithm(const sp_node *n, sp_pass pass)
{
    if (pass > SP_BACKWARD_WEIGHT)
        return NULL;
    if (n->reference)
        return "im2col";
    return n->tile[pass] == 4   ? "F(4x4)"
           : n->tile[pass] == 2 ? "F(2x2)"
                                : "direct";
}

void sp_product_forward(const sp_node *n, const sp_run *r,
                        const sp_conv_shape *s)
{
    sp_conv_how how = how_of(n, SP_FORWARD);

    sp_conv_forward(&how, s, sp_images(n->x[0], r), n->x[0]->data,
                    n->p[0]->value, n->p_count > 1 ? n->p[1]->value : NULL,
                    n->y[0]->data, n->scratch_data);
}

void sp_product_backward(const sp_node *n, const sp_run *r,
                         const sp_conv_shape *s)
{
    sp_conv_how how = how_of(n, SP_BACKWARD_WEIGHT);
    int images = sp_images(n->x[0], r);
    const float *dy = n->y[0]->grad;

    sp_conv_backward_weight(&how, s, images, n->x[0]->data, dy, n->p[0]->grad,
                            sp_param_beta(n, 0, r), n->scratch_data);
    sp_lap(r, n, SP_BACKWARD_WEIGHT);
    if (n->p_count > 1) {
        sp_bias_backward(&how, sp_rows(n->y[0], r), s->cout, dy, n->p[1]->grad,
                         sp_param_beta(n, 1, r));
        sp_lap(r, n, SP_BACKWARD_BIAS);
    }
    if (n->x[0]->grad) {
        how = how_of(n, SP_BACKWARD_INPUT);
        sp_conv_backward_input(&how, s, images, dy, n->p[0]->value,
                               n->x[0]->grad, sp_beta(n, 0), n->scratch_data);
        sp_lap(r, n, SP_BACKWARD_INPUT);
    }
}
