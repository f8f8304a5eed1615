/* The inner loops of products with packed weights, one table for each
 * instruction set. */
#ifndef SP_KERNELS_PRODUCT_H
#define SP_KERNELS_PRODUCT_H

#include <stddef.h>

/* Some rows against one block of columns:
 *
 *   y[p][:] = beta * y[p][:] + sum over k < depth of x[p][k] * w[k][:]
 *
 * With beta 0, y is only written. The bits of a row are the same however many
 * rows there are. Meanwhile, floats from `ahead` on, a vector for each of
 * the depth, are fetched into the second cache. */
typedef struct sp_product {
    const float *x, *w; /* w: depth x vectors x vl */
    float *y;
    size_t x_step, y_step; /* floats from row to row */
    int rows, depth;
    int vectors, columns; /* of the block: 1 or 2; those that y holds */
    float beta;
    const float *ahead;
} sp_product;

typedef struct sp_products {
    int vl;   /* floats in a vector */
    int rows; /* of one call, at most */
    void (*run)(const sp_product *a);
} sp_products;

/* Any number of rows; `ahead` is the next piece of w, as large as this one
 * (packed.c). */
void sp_product_rows(const sp_products *p, const sp_product *all);

#endif
