/* Which convolutions go by Winograd's tiles: a rule that depends on shape and
 * vector length alone, so that the same program takes the same way on every
 * machine with the same instruction set, whatever its clock or cache.
 *
 * It counts, for one image, multiply-adds of whole vectors. Transforms count as
 * so many of them; the numbers are fitted to what tools/bench measures, with
 * all three algorithms side by side, on AVX-512 and AVX2. */
#include "kernels/table.h"

enum {
    /* Multiply-adds that a transform costs as much as: of a vector of channels
     * to or from all points, and of finding a tile's pixels. */
    TRANSFORM_2 = 90,
    TRANSFORM_4 = 240,
    TILE_2 = 60,
    TILE_4 = 200,
    /* A direct tile of one vector runs at 2/3 of the speed of one of two. */
    NARROW = 3,
    WIDE = 2,
    /* Winograd's rounding is coarser: it must be faster by 1/8 at least. */
    GAIN = 8
};

bool sp_conv_has_tiles(const sp_conv_shape *s)
{
    return s->kh == 3 && s->kw == 3 && s->stride == 1 && s->groups == 1 &&
           s->pad <= 2 && (s->h > 3 || s->w > 3 || s->pad > 0);
}

/* Pairs of a read and a written pixel along one axis. */
static double pairs(int size, int written, int pad)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        int first = pad - i > 0 ? pad - i : 0;
        int last = size + pad - i < written ? size + pad - i : written;
        sum += last > first ? last - first : 0;
    }
    return sum;
}

/* Multiply-adds of vectors; `read` channels for `write` vectors of channels. */
static double direct_cost(const sp_conv_shape *s, double read, double write)
{
    double cost =
        pairs(s->h, s->oh, s->pad) * pairs(s->w, s->ow, s->pad) * read * write;

    return write < 2 ? cost * NARROW / 2 : cost * WIDE / 2;
}

static double tiles_cost(int m, int h, int w, double read, double write,
                         double transforms)
{
    double tiles = (double)((h + m - 1) / m) * ((w + m - 1) / m);
    double points = (m + 2) * (m + 2);

    return tiles * (points * read * write +
                    (m == 2 ? TRANSFORM_2 : TRANSFORM_4) * transforms +
                    (m == 2 ? TILE_2 : TILE_4));
}

int sp_conv_best_tile(const sp_kernels *k, const sp_conv_shape *s, sp_pass pass)
{
    bool back = pass == SP_BACKWARD_INPUT;
    int vl = k->tiles->vl, best = 0;
    int read = back ? s->cout : s->cin, write = back ? s->cin : s->cout;
    int h = back ? s->h : s->oh, w = back ? s->w : s->ow;
    double vectors = (write + vl - 1) / vl;
    double all = vectors + (read + vl - 1) / vl;
    double least = direct_cost(s, read, vectors);

    if (!sp_conv_has_tiles(s))
        return 0;
    for (int m = 2; m <= 4; m += 2) {
        double cost = tiles_cost(m, h, w, read, vectors, all);
        if (cost * (GAIN + 1) > least * GAIN)
            continue;
        least = cost;
        best = m;
    }
    return best;
}
