#include "data/augment.h"

#include "sprat/random.h"

sp_err sp_augment_init(sp_augment *a, const sp_data_cfg *cfg, int h, int w,
                       int c)
{
    bool crop =
        cfg->augment == SP_AUGMENT_CROP || cfg->augment == SP_AUGMENT_BOTH;

    *a = (sp_augment){ .h = h, .w = w, .c = c, .pad_raw = cfg->pad_raw };
    a->pad = crop ? cfg->pad : 0;
    a->reflect = cfg->pad_mode == SP_PAD_REFLECT;
    a->flip =
        cfg->augment == SP_AUGMENT_FLIP || cfg->augment == SP_AUGMENT_BOTH;
    if (a->reflect && (a->pad >= h || a->pad >= w))
        return sp_fail(SP_EDATA,
                       "data.pad: %d reflected pixels need an image of more "
                       "than %d x %d; it has %d x %d",
                       a->pad, a->pad, a->pad, h, w);
    return sp_normalize_table(cfg->normalize, c, &a->pixels);
}

/* A random word as a whole number in [-pad, pad]. */
static int offset(uint32_t word, int pad)
{
    uint64_t range = 2 * (uint64_t)pad + 1;

    return (int)(word * range >> 32) - pad;
}

sp_cut sp_augment_draw(const sp_augment *a, uint64_t seed, int epoch,
                       size_t sample)
{
    uint32_t r[4];

    sp_random(seed, SP_FOR_AUGMENT, (uint64_t)epoch, sample, r);
    return (sp_cut){ .dy = offset(r[0], a->pad),
                     .dx = offset(r[1], a->pad),
                     .flip = a->flip && r[2] >> 31 };
}

/* The row or column that position i shows; -1 for zero padding. */
static int source(int i, int side, bool reflect)
{
    if (i >= 0 && i < side)
        return i;
    if (!reflect)
        return -1;
    return i < 0 ? -i : 2 * (side - 1) - i;
}

static void pixel(const sp_augment *a, const uint8_t *from, float *out)
{
    const sp_pixels *p = &a->pixels;

    for (int k = 0; k < a->c; k++)
        out[k] = p->value[p->step * k][from[k]];
}

static void padding(const sp_augment *a, float *out)
{
    const sp_pixels *p = &a->pixels;

    for (int k = 0; k < a->c; k++)
        out[k] = a->pad_raw ? p->value[p->step * k][0] : 0.0f;
}

void sp_augment_apply(const sp_augment *a, sp_cut cut, const uint8_t *image,
                      float *out)
{
    for (int y = 0; y < a->h; y++) {
        int sy = source(y + cut.dy, a->h, a->reflect);

        for (int x = 0; x < a->w; x++, out += a->c) {
            int at = cut.flip ? a->w - 1 - x : x;
            int sx = source(at + cut.dx, a->w, a->reflect);

            if (sy < 0 || sx < 0)
                padding(a, out);
            else
                pixel(a,
                      image + ((size_t)sy * (size_t)a->w + (size_t)sx) *
                                  (size_t)a->c,
                      out);
        }
    }
}
