/* Settings of recorded operators, sp_node.attr, for those who translate them;
 * of convolutions and poolings these are sp_conv_geometry and sp_pool_opt. */
#ifndef SP_OPS_ATTR_H
#define SP_OPS_ATTR_H

#include <stdbool.h>

/* Of normalize; its x[1], if there is one, is added before the ReLU. */
typedef struct sp_normalize_attr {
    bool relu;
    float eps, momentum;
} sp_normalize_attr;

/* Of subsample. */
typedef struct sp_subsample_attr {
    int stride, channels;
} sp_subsample_attr;

#endif
