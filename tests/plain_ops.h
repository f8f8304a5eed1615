/* Operators so plain that values and memory can be told by hand:
 *   scale: y = w x                 dx = w dy, dw = sum x dy
 *   bend:  y = sin x + other       dx = cos x dy, dother = dy; can compute y
 *                                  again, and notes when it does
 *   mul:   y = a b                 da = b dy, db = a dy
 *   take:  the first five sevenths of the channels, and one
 *   twice: y = 2 x, in place
 *   sum:   a row's loss, over all channels of all inputs
 */
#ifndef SPRAT_TESTS_PLAIN_OPS_H
#define SPRAT_TESTS_PLAIN_OPS_H

#include "sprat/op.h"

extern const sp_op plain_scale, plain_bend, plain_mul, plain_take, plain_twice,
    plain_sum;

/* What all are recorded with. */
typedef struct plain_attr {
    char *log; /* where a bend that is computed again appends "NAME " */
} plain_attr;

#endif
