/* From the bytes of an image to the network's input: pad, cut, mirror,
 * normalise.
 *
 * Source: He et al. 2015, "Deep Residual Learning for Image Recognition", 4.2
 *         (pad 4, random cut of the original size, random mirror image).
 */
#ifndef SPRAT_DATA_AUGMENT_H
#define SPRAT_DATA_AUGMENT_H

#include "data/normalize.h"

/* The choices of `data.augment` and `data.pad_mode`. */
enum { SP_AUGMENT_NONE, SP_AUGMENT_CROP, SP_AUGMENT_FLIP, SP_AUGMENT_BOTH };
enum { SP_PAD_ZERO, SP_PAD_REFLECT };

#define SP_AUGMENT_CHOICES "none|crop|flip|crop_flip"
#define SP_PAD_CHOICES "zero|reflect"

typedef struct sp_augment {
    int h, w, c;
    int pad;      /* 0: no cutting */
    bool reflect; /* padding mirrors the image without repeating its edge */
    bool pad_raw; /* zeros are bytes, to be normalised, instead of 0.0f */
    bool flip;
    sp_pixels pixels;
} sp_augment;

/* Where to cut and whether to mirror: output pixel (y, x) is pixel
 * (y + dy, x + dx) of the image, dy and dx in [-pad, pad]; x counts from the
 * right when flipped. All zero: the image as it is. */
typedef struct sp_cut {
    int dy, dx;
    bool flip;
} sp_cut;

/* What the settings ask for on h x w x c images. Errors: SP_EDATA when
 * normalisation does not fit the channels, or reflecting needs more pixels
 * than the image has. */
SP_MUST sp_err sp_augment_init(sp_augment *a, const sp_data_cfg *cfg, int h,
                               int w, int c);

/* The choice for a sample in an epoch: a pure function of its arguments. */
sp_cut sp_augment_draw(const sp_augment *a, uint64_t seed, int epoch,
                       size_t sample);

/* Fill out[0..h*w*c). */
void sp_augment_apply(const sp_augment *a, sp_cut cut, const uint8_t *image,
                      float *out);

#endif
