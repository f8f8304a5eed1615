/* What max and average pooling have in common: their geometry. */
#ifndef SP_OPS_POOL_SHAPE_H
#define SP_OPS_POOL_SHAPE_H

#include "kernels/pool.h"
#include "sprat/nn.h"

/* The output of a pooling operator whose attr is an sp_pool_opt. Errors:
 * SP_EARG for a kernel, stride or padding out of range, SP_ESHAPE for a window
 * larger than the padded image. */
SP_MUST sp_err sp_pool_infer(sp_node *n);

sp_pool_how sp_pool_run(const sp_node *n, const sp_run *r);

/* Record example number i: odd sizes, overlap, padding, gaps. */
sp_tensor *sp_pool_example(sp_graph *g, int i,
                           sp_tensor *(*pool)(sp_graph *g, sp_tensor *x,
                                              sp_pool_opt o));

#endif
