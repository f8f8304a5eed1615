/* Made-up images of any shape: a fixed pattern for each class under noise, so
 * that a network can learn them. Every pixel is a function of the sample's
 * number; nothing is stored.
 *
 *   label = number mod classes
 *   pixel = pattern(label) in [64, 192) + noise(number) in [-64, 64)
 */
#include <stdlib.h>

#include "sprat/data.h"
#include "sprat/random.h"

enum { WORD_BYTES = 4, BLOCK = 16, MAX_SIDE = 16384, MAX_CHANNELS = 4096 };

/* What the random numbers are for: patterns below, noise above. */
static const uint64_t noise_base = (uint64_t)1 << 48;

struct settings {
    sp_list shape;
    int classes, train, test;
};

struct synthetic {
    size_t pixels;
    int classes;
};

#define AT(field) offsetof(struct settings, field)

static const sp_key keys[] = {
    { "shape", SP_LIST, AT(shape), "[32, 32, 3]", 1, MAX_SIDE,
      "height, width and channels", NULL },
    { "classes", SP_INT, AT(classes), "10", 1, 1e6, "labels", NULL },
    { "train", SP_INT, AT(train), "1024", 1, 1e9, "training images", NULL },
    { "test", SP_INT, AT(test), "256", 1, 1e9, "test images", NULL },
};

static sp_err describe(const void *own, sp_data_info *info)
{
    const struct settings *s = own;
    const double *side = s->shape.value;

    if (s->shape.count != 3)
        return sp_fail(SP_EDATA,
                       "data.shape: has %d numbers; give height, width and "
                       "channels, as [32, 32, 3]",
                       s->shape.count);
    for (int i = 0; i < 3; i++) {
        int most = i < 2 ? MAX_SIDE : MAX_CHANNELS;

        if (!(side[i] >= 1 && side[i] <= most) || side[i] != (int)side[i])
            return sp_fail(SP_EDATA,
                           "data.shape: %g is not a whole number from 1 to "
                           "%d",
                           side[i], most);
    }
    *info = (sp_data_info){ .h = (int)side[0],
                            .w = (int)side[1],
                            .c = (int)side[2],
                            .classes = s->classes };
    info->count[SP_TRAIN] = (size_t)s->train;
    info->count[SP_TEST] = (size_t)s->test;
    return SP_OK;
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    struct synthetic *s;

    (void)root;
    SP_TRY(describe(own, info));
    s = malloc(sizeof *s);
    if (!s)
        return sp_fail(SP_ENOMEM, "synthetic: out of memory");
    s->pixels = (size_t)info->h * (size_t)info->w * (size_t)info->c;
    s->classes = info->classes;
    *state = s;
    return SP_OK;
}

static int byte_of(const uint32_t words[4], size_t i)
{
    return (int)(words[i / WORD_BYTES] >> 8 * (i % WORD_BYTES) & 0xff);
}

static sp_err read_sample(const void *state, sp_split split, size_t i,
                          uint8_t *image, int *label)
{
    const struct synthetic *s = state;
    uint64_t sample = noise_base + 2 * (uint64_t)i + (uint64_t)split;

    *label = (int)(i % (size_t)s->classes);
    for (size_t start = 0; start < s->pixels; start += BLOCK) {
        size_t n = s->pixels - start < BLOCK ? s->pixels - start : BLOCK;
        uint32_t pattern[4], noise[4];

        sp_random(0, SP_FOR_DATA, (uint64_t)*label, start / BLOCK, pattern);
        sp_random(0, SP_FOR_DATA, sample, start / BLOCK, noise);
        for (size_t k = 0; k < n; k++)
            image[start + k] = (uint8_t)(64 + byte_of(pattern, k) / 2 +
                                         byte_of(noise, k) / 2 - 64);
    }
    return SP_OK;
}

static void close_set(void *state) { free(state); }

const sp_data_set sp_data_set_synthetic = {
    .entry = { .name = "synthetic",
               .help = "made-up images of any shape that can be learned",
               .cfg_size = sizeof(struct settings),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .folder = NULL,
    .describe = describe,
    .open = open_set,
    .read = read_sample,
    .close = close_set,
};
