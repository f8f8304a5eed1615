/* Matrices as products of two factors, w = v u: the best of a rank, and what
 * they cannot hold. All arrays are dense, row by row. The functions may be
 * called by several threads at once; each works alone. */
#ifndef SP_SPLIT_H
#define SP_SPLIT_H

#include <stddef.h>

#include "sprat/base.h"

/* v {rows, rank} times u {rank, columns}; `rank` from 1 to the smaller side. */
typedef struct sp_factored {
    int rows, columns, rank;
    float *v, *u;
} sp_factored;

/* Set the factors to the best approximation of w {rows, columns} of their rank,
 * with the root of each singular value on both sides:
 *
 *   w = U S V^T,  v = U_r S_r^(1/2),  u = S_r^(1/2) V_r^T
 *
 * *lost, if it is not NULL, becomes the share of w's squared Frobenius norm
 * that v u lacks, from 0 to 1; 0 for a matrix of zeros. Singular values below
 * 1e-6 of the largest are shared out as if they were that: v u is the same, and
 * none of the columns of v (of u, where w has more rows than columns) is zero,
 * so that all can be trained. Of a matrix of zeros one factor is zero.
 *
 * Cost: two products with the smaller side squared and the eigenvectors of a
 *       matrix of that side, in double.
 * Errors: SP_EARG for a rank out of range; SP_ENUMERIC when w is not finite;
 *         SP_ENOMEM.
 * Source: Eckart, Young 1936, "The approximation of one matrix by another of
 *         lower rank".
 */
SP_MUST sp_err sp_matrix_split(const float *w, const sp_factored *f,
                               double *lost);

/* *squares becomes the squared Frobenius norm of w {rows, columns}, *largest
 * the squared largest singular value. Errors: SP_ENUMERIC when w is not finite;
 * SP_ENOMEM. */
SP_MUST sp_err sp_matrix_norms(const float *w, int rows, int columns,
                               double *squares, double *largest);

/* w = v u. */
void sp_matrix_product(const sp_factored *f, float *w);

/* gu = v^T g and gv = g u^T: what g {rows, columns}, a gradient or a sum of
 * some, is for the factors. */
void sp_matrix_project(const sp_factored *f, const float *g, float *gu,
                       float *gv);

/* What of g no change of the factors can bring about, to first order: with P_v
 * and P_u the projections on the columns of v and the rows of u, *outside
 * becomes ||(1 - P_v) g (1 - P_u)||^2 and *squares ||g||^2. Directions in which
 * a factor has less than 1e-6 of its largest are none.
 * Errors: SP_ENUMERIC when something is not finite; SP_ENOMEM. */
SP_MUST sp_err sp_matrix_outside(const sp_factored *f, const float *g,
                                 double *outside, double *squares);

/* Write LAPACK's version into `out`, for reports; returns out. */
char *sp_lapack_version(char *out, size_t room);

#endif
