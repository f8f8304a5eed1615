/* From a layer of full rank to one of low rank, parameter by parameter: what
 * its weights, and arrays that belong to them, are for the factors of them.
 *
 * `u` is the right factor of a low-rank layer (u->other the left one, v), see
 * sp_factors_of(); `whole` the parameter of that name, u->whole, in the store
 * of the program of full rank. Several threads may call these at once.
 */
#ifndef SP_FACTORIZE_H
#define SP_FACTORIZE_H

#include "sprat/graph.h"

/* Whether p is the right factor, u, of a layer of low rank. */
static inline bool sp_is_right_factor(const sp_param *p)
{
    return p->other && !p->left;
}

/* The factors as matrices: `blocks` products, each {rows, columns} of that
 * rank, see sp_factors_of(). */
typedef struct sp_factors_shape {
    int blocks, rows, columns, rank;
} sp_factors_shape;

sp_factors_shape sp_factors_shape_of(const sp_param *u);

/* Whether whole, a parameter of full rank, is what u and its other factor are
 * the factors of: by name and shape. Errors: SP_ESHAPE. */
SP_MUST sp_err sp_factors_check(const sp_param *whole, const sp_param *u);

/* Set the values of u and v to the best approximation of whole's, block by
 * block, see sp_matrix_split(); *lost becomes the share of the squared norm
 * that their product lacks, from 0 to 1.
 * Errors: SP_ESHAPE when u is no factor of that parameter; SP_ENUMERIC when not
 * all values are finite; SP_ENOMEM. */
SP_MUST sp_err sp_factorize(const sp_param *whole, sp_param *u, double *lost);

/* For an array g of whole's shape that adds up gradients, such as momentum or
 * what a compressor has not sent: what it is for both factors,
 *
 *   gu = v^T g,  gv = g u^T,
 *
 * of their shapes, as their gradients follow from whole's. */
void sp_factors_project(const sp_param *u, const float *g, float *gu,
                        float *gv);

/* The share of g's squared norm that no change of the factors can bring about,
 * to first order: that outside of v's columns and u's rows; from 0 to 1.
 * Errors: SP_ENUMERIC when not all values are finite; SP_ENOMEM. */
SP_MUST sp_err sp_factors_lost(const sp_param *u, const float *g, double *lost);

/* whole = v u, of whole's shape. */
void sp_factors_product(const sp_param *u, float *whole);

/* The stable rank of the weights as a matrix, or of each of `blocks` of its
 * rows the largest: the squared norm over the squared largest singular value. 0
 * for zeros alone. Errors: SP_ESHAPE when there are no such blocks;
 * SP_ENUMERIC; SP_ENOMEM.
 * Source: Wang et al. 2023, "Cuttlefish". */
SP_MUST sp_err sp_stable_rank(const sp_param *whole, int blocks, double *rank);

#endif
