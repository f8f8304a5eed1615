/* Decay of products of factors. */
#include "train/frobenius.h"

#include <stdlib.h>

#include "nn/factorize.h"

/* The factors of a layer, v u, and the pull on both. */
typedef struct pair {
    const sp_param *u;
    sp_factors_shape as;
    float *pull_u, *pull_v;
} pair;

struct sp_frobenius {
    pair *pairs;
    size_t count;
    sp_conv_how how;
    float *pulls;  /* of all pairs */
    float *gram;   /* v' v, or u u': of the largest rank */
    void *scratch; /* of the kernels */
};

/* ---- Products ------------------------------------------------------------ */

/* One product of the four as a pass of a linear layer. */
typedef struct product {
    sp_conv_shape s;
    int n;
    sp_pass pass;
} product;

enum { GRAM_V, PULL_U, GRAM_U, PULL_V, PRODUCTS };

static void products_of(const pair *p, product out[PRODUCTS])
{
    int rank = p->as.rank, rows = p->as.rows;
    sp_conv_shape square = sp_linear_shape(rank, rank);
    sp_conv_shape wide = sp_linear_shape(p->as.columns, rank);

    out[GRAM_V] = (product){ square, rows, SP_BACKWARD_WEIGHT };
    out[PULL_U] = (product){ wide, rank, SP_BACKWARD_INPUT };
    out[GRAM_U] = (product){ wide, rank, SP_FORWARD };
    out[PULL_V] = (product){ square, rows, SP_FORWARD };
}

static void fill_block(const sp_frobenius *f, const pair *p, int block)
{
    size_t at_u = (size_t)block * (size_t)p->as.rank * (size_t)p->as.columns;
    size_t at_v = (size_t)block * (size_t)p->as.rank * (size_t)p->as.rows;
    const float *u = p->u->value + at_u, *v = p->u->other->value + at_v;
    const sp_conv_how *how = &f->how;
    product m[PRODUCTS];

    products_of(p, m);
    sp_conv_backward_weight(how, &m[GRAM_V].s, m[GRAM_V].n, v, v, f->gram, 0,
                            f->scratch);
    sp_conv_backward_input(how, &m[PULL_U].s, m[PULL_U].n, f->gram, u,
                           p->pull_u + at_u, 0, f->scratch);
    sp_conv_forward(how, &m[GRAM_U].s, m[GRAM_U].n, u, u, NULL, f->gram,
                    f->scratch);
    sp_conv_forward(how, &m[PULL_V].s, m[PULL_V].n, v, f->gram, NULL,
                    p->pull_v + at_v, f->scratch);
}

void sp_frobenius_fill(sp_frobenius *f)
{
    for (size_t i = 0; f && i < f->count; i++)
        for (int b = 0; b < f->pairs[i].as.blocks; b++)
            fill_block(f, &f->pairs[i], b);
}

/* ---- Making -------------------------------------------------------------- */

static size_t list_pairs(sp_frobenius *f, const sp_params *params)
{
    const sp_param *p;
    size_t floats = 0;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        if (sp_is_right_factor(p)) {
            f->pairs[f->count++] =
                (pair){ .u = p, .as = sp_factors_shape_of(p) };
            floats += p->count + p->other->count;
        }
    return floats;
}

static size_t scratch_for(const sp_frobenius *f)
{
    product m[PRODUCTS];
    size_t most = 1;

    for (size_t i = 0; i < f->count; i++) {
        products_of(&f->pairs[i], m);
        for (int k = 0; k < PRODUCTS; k++) {
            size_t bytes = sp_conv_scratch(&f->how, &m[k].s, m[k].n, m[k].pass);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static sp_err allocate(sp_frobenius *f, const sp_params *params)
{
    size_t floats, rank = 1;

    f->pairs = calloc((size_t)sp_params_size(params) + 1, sizeof *f->pairs);
    if (!f->pairs)
        return sp_fail(SP_ENOMEM, "frobenius_decay: out of memory");
    floats = list_pairs(f, params);
    for (size_t i = 0; i < f->count; i++)
        if ((size_t)f->pairs[i].as.rank > rank)
            rank = (size_t)f->pairs[i].as.rank;
    f->pulls = sp_block_alloc(floats * sizeof *f->pulls + 1);
    f->gram = sp_block_alloc(rank * rank * sizeof *f->gram);
    f->scratch = sp_block_alloc(scratch_for(f));
    if (!f->pulls || !f->gram || !f->scratch)
        return sp_fail(SP_ENOMEM,
                       "frobenius_decay: no memory for the pull on %zu "
                       "factors' elements",
                       floats);
    return SP_OK;
}

static void register_pulls(sp_frobenius *f, sp_optim *o)
{
    float *at = f->pulls;

    for (size_t i = 0; i < f->count; i++) {
        pair *p = &f->pairs[i];
        const sp_param *u = p->u, *v = u->other;

        p->pull_u = at;
        p->pull_v = at + u->count;
        at += u->count + v->count;
        sp_optim_pull(o, u, p->pull_u);
        sp_optim_pull(o, v, p->pull_v);
    }
}

sp_err sp_frobenius_new(sp_frobenius **out, const sp_params *p, sp_optim *o,
                        sp_conv_how how)
{
    sp_frobenius *f = calloc(1, sizeof *f);
    sp_err e;

    if (!f)
        return sp_fail(SP_ENOMEM, "frobenius_decay: out of memory");
    f->how = how;
    e = allocate(f, p);
    if (e != SP_OK) {
        sp_frobenius_free(f);
        return e;
    }
    register_pulls(f, o);
    *out = f;
    return SP_OK;
}

void sp_frobenius_free(sp_frobenius *f)
{
    if (!f)
        return;
    free(f->pairs);
    free(f->pulls);
    free(f->gram);
    free(f->scratch);
    free(f);
}
