/* A matrix of a recurrent layer, {wide, columns}, that gives all its gates from
 * the inputs, or from the state; in one piece or, of low rank, in two factors:
 *
 *   y = x w^T
 *   z = x u^T,  y_k = z_k v_k^T
 *
 * and, with dy,
 *
 *   dx = dy w,                  dw = dy^T x
 *   dz_k = dy_k v_k,  dx = dz u,  dv_k = dy_k^T z_k,  du = dz^T x
 *
 * where _k is the k-th of `blocks` parts, as large as each other, of the
 * columns of y and z and the rows of v and u: one for each gate, or one of all
 * gates. The product w = v u is never computed. */
#ifndef SP_RECURRENT_MATRIX_H
#define SP_RECURRENT_MATRIX_H

#include "kernels/kernels.h"

typedef struct sp_recurrent_matrix {
    const sp_param *u; /* {blocks rank, columns}; in one piece: w */
    const sp_param *v; /* {wide, rank}; NULL: in one piece */
    int index;         /* u is the node's p[index], v the next */
    int wide, columns;
    int blocks, rank; /* in one piece: 0 */
} sp_recurrent_matrix;

/* The one whose first parameter is p[index], with `factors` or without. */
sp_recurrent_matrix sp_recurrent_matrix_at(const sp_node *n, int index,
                                           bool factors);

/* Floats of a row of z: 0 in one piece. */
static inline size_t sp_recurrent_narrow(const sp_recurrent_matrix *m)
{
    return (size_t)m->blocks * (size_t)m->rank;
}

/* Packed for the products y = x w^T or, going `back`, x = y w: one, or two
 * after each other. */
typedef struct sp_recurrent_packed {
    sp_packed part[2];
    int parts;
    float beta; /* of the result */
} sp_recurrent_packed;

/* Bytes that it takes, and packing it there. */
size_t sp_recurrent_packed_size(const sp_conv_how *how,
                                const sp_recurrent_matrix *m, bool back);
sp_recurrent_packed sp_recurrent_matrix_pack(const sp_conv_how *how,
                                             const sp_recurrent_matrix *m,
                                             bool back, float *to);

/* What a product reads and writes: n rows. */
typedef struct sp_recurrent_operands {
    int n;
    const float *x;
    float *z; /* of factors: what the first gives to the second */
    float *y; /* beta * y + the product; of factors NULL: only z is wanted */
} sp_recurrent_operands;

void sp_recurrent_matrix_product(const sp_conv_how *how,
                                 const sp_recurrent_packed *p,
                                 const sp_recurrent_operands *r);

/* What the gradients are computed from. */
typedef struct sp_recurrent_sums {
    int rows;
    const float *x;      /* {rows, columns} */
    const float *turned; /* dy^T, {wide, rows} */
    const float *z, *dz; /* of factors: {rows, blocks rank} */
    float *narrow;       /* space for either of them, turned */
    float *packed;       /* sp_recurrent_sums_size() bytes of space */
} sp_recurrent_sums;

size_t sp_recurrent_sums_size(const sp_conv_how *how,
                              const sp_recurrent_matrix *m, int rows);

/* Add to or store the gradients of w, or of u and v, as sp_param_beta() says
 * for the node. */
void sp_recurrent_matrix_grad(const sp_conv_how *how,
                              const sp_recurrent_matrix *m, const sp_node *n,
                              const sp_run *r, const sp_recurrent_sums *s);

#endif
