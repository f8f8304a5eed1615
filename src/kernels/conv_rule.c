/* Which convolutions go by Winograd's tiles. */
#include "kernels/conv.h"

bool sp_conv_has_tiles(const sp_conv_shape *s)
{
    return s->kh == 3 && s->kw == 3 && s->stride == 1 && s->groups == 1 &&
           s->pad <= 2 && (s->h > 3 || s->w > 3 || s->pad > 0);
}

int sp_conv_best_tile(const sp_kernels *k, const sp_conv_shape *s, sp_pass pass)
{
    (void)k;
    (void)s;
    (void)pass;
    return 0;
}
