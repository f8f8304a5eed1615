/* What convolution and matrix product share: both are one geometry to the
 * kernels. Inputs x[0]; parameters p[0] = w, p[1] = b (may be absent). */
#ifndef SP_PRODUCT_H
#define SP_PRODUCT_H

#include "kernels/kernels.h"

/* The rest of an op's shape function: sets y, keep_x, scratch, macs. */
sp_err sp_product_infer(sp_node *n, const sp_conv_shape *s);

/* The op's `algorithm`. */
const char *sp_product_algorithm(const sp_node *n, sp_pass pass);

void sp_product_forward(const sp_node *n, const sp_run *r,
                        const sp_conv_shape *s);
void sp_product_backward(const sp_node *n, const sp_run *r,
                         const sp_conv_shape *s);

#endif
