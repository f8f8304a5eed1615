#include "data/resize.h"

#include <stddef.h>
#include <string.h>

/* The source pixels [first, end) that an output pixel covers along one axis.
 * Positions are counted in 1/target of a pixel, so that all is exact. */
struct cover {
    int first, end;
    int64_t low, high; /* the part covered, in those units */
    int64_t unit;      /* units a pixel */
};

static struct cover cover(int i, int source, int target)
{
    struct cover c = { .unit = target };

    if (source <= target) {
        c.first = (int)((2 * (int64_t)i + 1) * source / (2 * target));
        c.low = c.first * c.unit;
        c.high = c.low + c.unit;
    } else {
        c.low = (int64_t)i * source;
        c.high = c.low + source;
        c.first = (int)(c.low / c.unit);
    }
    c.end = (int)((c.high + c.unit - 1) / c.unit);
    return c;
}

static uint64_t weight(const struct cover *c, int pixel)
{
    int64_t low = pixel * c->unit, high = low + c->unit;

    if (low < c->low)
        low = c->low;
    if (high > c->high)
        high = c->high;
    return (uint64_t)(high - low);
}

/* At most 16384^2 * 255 < 2^36 is summed. */
static uint8_t mean(const uint8_t *from, sp_image_size s, const struct cover *y,
                    const struct cover *x)
{
    uint64_t total =
        (uint64_t)(y->high - y->low) * (uint64_t)(x->high - x->low);
    uint64_t sum = 0;

    for (int j = y->first; j < y->end; j++) {
        const uint8_t *row = from + (size_t)j * (size_t)s.w * (size_t)s.c;
        uint64_t line = 0;

        for (int i = x->first; i < x->end; i++)
            line += weight(x, i) * row[(size_t)i * (size_t)s.c];
        sum += weight(y, j) * line;
    }
    return (uint8_t)((sum + total / 2) / total);
}

void sp_image_resize(const uint8_t *from, sp_image_size source, uint8_t *to,
                     sp_image_size target)
{
    if (source.h == target.h && source.w == target.w) {
        memcpy(to, from,
               (size_t)source.h * (size_t)source.w * (size_t)source.c);
        return;
    }
    for (int y = 0; y < target.h; y++) {
        struct cover cy = cover(y, source.h, target.h);

        for (int x = 0; x < target.w; x++) {
            struct cover cx = cover(x, source.w, target.w);

            for (int k = 0; k < target.c; k++)
                *to++ = mean(from + k, source, &cy, &cx);
        }
    }
}
