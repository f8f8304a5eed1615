/* The simplest equal form of a convolution, and how work space and columns are
 * cut. */
#include "kernels/conv.h"

sp_conv_form sp_conv_simplify(const sp_conv_shape *shape, int n)
{
    sp_conv_form f = { .s = *shape, .images = n > 0 ? (size_t)n : 0 };
    sp_conv_shape *s = &f.s;

    f.stored_taps = s->kh * s->kw;
    f.stored_cin = s->cin / s->groups;
    if (s->groups == 1 && s->pad == 0 && s->kh == s->h && s->kw == s->w) {
        s->cin *= s->h * s->w;
        s->h = s->w = s->kh = s->kw = s->stride = 1;
    }
    if (s->kh == 1 && s->kw == 1 && s->stride == 1 && s->pad == 0) {
        f.images *= (size_t)s->h * (size_t)s->w;
        s->h = s->w = s->oh = s->ow = 1;
    }
    f.taps = s->kh * s->kw;
    f.cin = s->cin / s->groups;
    f.cout = s->cout / s->groups;
    return f;
}

void *sp_carve(sp_carver *c, size_t bytes)
{
    char *part = c->base ? c->base + c->used : NULL;

    c->used += (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN;
    return part;
}

sp_blocks sp_blocks_of(int columns, int vl)
{
    return (sp_blocks){ .vl = vl,
                        .columns = columns,
                        .count = (columns + 2 * vl - 1) / (2 * vl) };
}

sp_block sp_block_at(const sp_blocks *b, int i)
{
    sp_block k = { .first = i * 2 * b->vl };
    int left = b->columns - k.first;

    k.valid = left < 2 * b->vl ? left : 2 * b->vl;
    k.vectors = k.valid > b->vl ? 2 : 1;
    k.width = k.vectors * b->vl;
    return k;
}

int sp_blocks_width(const sp_blocks *b)
{
    sp_block last = sp_block_at(b, b->count - 1);

    return last.first + last.width;
}
