#include "data/normalize.h"

enum { ANY = 0 };

/* value = (byte / scale - mean) / std, in float and in this order, as the
 * sources compute it. */
struct constants {
    const char *name;
    int channels; /* 1, 3 or ANY */
    float scale;
    float mean[3], std[3];
};

static const struct constants table[] = {
    { "none", ANY, 255, { 0 }, { 1 } },
    { "half", ANY, 255, { 0.5f }, { 0.5f } },
    /* fb.resnet.torch, used by the DGC paper. */
    { "fb", 3, 1, { 125.3f, 123.0f, 113.9f }, { 63.0f, 62.1f, 66.7f } },
    /* Pufferfish's distributed training. */
    { "pufferfish",
      3,
      255,
      { 0.4914f, 0.4822f, 0.4465f },
      { 0.2023f, 0.1994f, 0.2010f } },
    /* The DGC authors' code; the same numbers. */
    { "torchpack",
      3,
      255,
      { 0.4914f, 0.4822f, 0.4465f },
      { 0.2023f, 0.1994f, 0.2010f } },
    { "imagenet",
      3,
      255,
      { 0.485f, 0.456f, 0.406f },
      { 0.229f, 0.224f, 0.225f } },
    { "mnist", 1, 255, { 0.1307f }, { 0.3081f } },
    { "fashion", 1, 255, { 0.2860f }, { 0.3530f } },
};

enum { COUNT = sizeof table / sizeof *table };

const char *sp_normalize_name(int choice)
{
    return choice >= 0 && choice < COUNT ? table[choice].name : NULL;
}

sp_err sp_normalize_table(int choice, int c, sp_pixels *out)
{
    const struct constants *k;

    if (choice < 0 || choice >= COUNT)
        return sp_fail(SP_EARG, "data.normalize: there is no choice %d",
                       choice);
    k = &table[choice];
    if (k->channels != ANY && k->channels != c)
        return sp_fail(SP_EDATA,
                       "data.normalize: '%s' has constants for %d channel%s, "
                       "but the images have %d; use 'half', 'none' or "
                       "another",
                       k->name, k->channels, k->channels == 1 ? "" : "s", c);
    out->step = k->channels == 3;
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < 256; b++) {
            int row = out->step * i;

            out->value[i][b] =
                ((float)b / k->scale - k->mean[row]) / k->std[row];
        }
    return SP_OK;
}
