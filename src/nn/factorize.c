/* From a layer of full rank to one of low rank. */
#include "nn/factorize.h"

#include <math.h>
#include <string.h>

#include "kernels/elements.h"
#include "kernels/split.h"

/* A product of factors: `count` blocks of rows, each with its own. */
typedef struct product {
    int count;
    sp_factored first;
} product;

static int columns_of(const sp_param *p)
{
    return (int)(p->count / (size_t)p->dims[0]);
}

/* That they fit was seen when they were recorded. */
sp_factors_shape sp_factors_shape_of(const sp_param *u)
{
    const sp_param *v = u->other;
    int rank = columns_of(v), blocks = u->dims[0] / rank;

    return (sp_factors_shape){ .blocks = blocks,
                               .rows = v->dims[0] / blocks,
                               .columns = columns_of(u),
                               .rank = rank };
}

static product product_of(const sp_param *u)
{
    sp_factors_shape s = sp_factors_shape_of(u);

    return (product){ .count = s.blocks,
                      .first = { .rows = s.rows,
                                 .columns = s.columns,
                                 .rank = s.rank,
                                 .v = u->other->value,
                                 .u = u->value } };
}

/* Floats in a block of the product, and of each factor. */
static size_t whole_step(const sp_factored *f)
{
    return (size_t)f->rows * (size_t)f->columns;
}

static size_t u_step(const sp_factored *f)
{
    return (size_t)f->rank * (size_t)f->columns;
}

static size_t v_step(const sp_factored *f)
{
    return (size_t)f->rows * (size_t)f->rank;
}

static sp_factored block_at(const product *b, int i)
{
    sp_factored f = b->first;

    f.u += (size_t)i * u_step(&f);
    f.v += (size_t)i * v_step(&f);
    return f;
}

sp_err sp_factors_check(const sp_param *whole, const sp_param *u)
{
    const sp_param *v = u->other;

    if (!sp_is_right_factor(u) || strcmp(u->whole, whole->name) != 0)
        return sp_fail(SP_ESHAPE, "%s is not the right factor of %s", u->name,
                       whole->name);
    if (whole->ndim < 2 || whole->dims[0] != v->dims[0] ||
        columns_of(whole) != columns_of(u))
        return sp_fail(
            SP_ESHAPE, "%s is %d x %d, but the product of %s and %s is %d x %d",
            whole->name, whole->dims[0], whole->ndim ? columns_of(whole) : 1,
            v->name, u->name, v->dims[0], columns_of(u));
    return SP_OK;
}

sp_err sp_factorize(const sp_param *whole, sp_param *u, double *lost)
{
    double all = 0, without = 0;
    product b;

    SP_TRY(sp_factors_check(whole, u));
    b = product_of(u);
    for (int i = 0; i < b.count; i++) {
        sp_factored f = block_at(&b, i);
        const float *w = whole->value + (size_t)i * whole_step(&f);
        double squares = sp_sum_squares(w, whole_step(&f)), share;

        SP_TRY(sp_matrix_split(w, &f, &share));
        all += squares;
        without += share * squares;
    }
    *lost = all > 0 ? without / all : 0;
    return SP_OK;
}

void sp_factors_project(const sp_param *u, const float *g, float *gu, float *gv)
{
    product b = product_of(u);

    for (int i = 0; i < b.count; i++) {
        sp_factored f = block_at(&b, i);
        size_t at = (size_t)i;
        sp_matrix_project(&f, g + at * whole_step(&f), gu + at * u_step(&f),
                          gv + at * v_step(&f));
    }
}

sp_err sp_factors_lost(const sp_param *u, const float *g, double *lost)
{
    product b = product_of(u);
    double all = 0, without = 0;

    for (int i = 0; i < b.count; i++) {
        sp_factored f = block_at(&b, i);
        double outside, squares;

        SP_TRY(sp_matrix_outside(&f, g + (size_t)i * whole_step(&f), &outside,
                                 &squares));
        all += squares;
        without += outside;
    }
    *lost = all > 0 ? fmin(without / all, 1) : 0;
    return SP_OK;
}

void sp_factors_product(const sp_param *u, float *whole)
{
    product b = product_of(u);

    for (int i = 0; i < b.count; i++) {
        sp_factored f = block_at(&b, i);
        sp_matrix_product(&f, whole + (size_t)i * whole_step(&f));
    }
}

sp_err sp_stable_rank(const sp_param *whole, int blocks, double *rank)
{
    int rows = whole->ndim ? whole->dims[0] : 0;

    if (whole->ndim < 2 || blocks < 1 || rows % blocks != 0)
        return sp_fail(SP_ESHAPE,
                       "%s: %d rows are no matrix of %d equal blocks",
                       whole->name, rows, blocks);
    *rank = 0;
    for (int i = 0; i < blocks; i++) {
        size_t step = whole->count / (size_t)blocks;
        double squares, largest;

        SP_TRY(sp_matrix_norms(whole->value + (size_t)i * step, rows / blocks,
                               columns_of(whole), &squares, &largest));
        if (largest > 0)
            *rank = fmax(*rank, squares / largest);
    }
    return SP_OK;
}
