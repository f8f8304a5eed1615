/* Made-up images of any shape: a fixed pattern for each class under noise, so
 * that a network can learn them. Every pixel is a function of the sample's
 * number; nothing is stored.
 *
 *   label = number mod classes
 *   pixel = pattern(label) in [64, 192) + noise(number) in [-64, 64)
 *
 * Or, with `vocab`, made-up text of V tokens, a chain of second order with two
 * fixed permutations p and q, so that there is something to learn and, beyond
 * a table of successors, to remember:
 *
 *   x[i] = p(x[i-1])  with probability 1/2
 *          q(x[i-2])  with probability 1/4
 *          any token  with probability 1/4
 *
 * For V = 50 the perplexity is at best 7.1, and 10.3 for one who knows only
 * x[i-1] = b: all tokens are equally frequent, so that x[i-2] is then a with
 * probability P(b|a), and
 *
 *   P(c|b) = [c = p(b)] / 2 + P(b|q^-1(c)) / 4 + 1 / (4 V)
 *
 * There are as many validation tokens as test tokens.
 */
#include <stdlib.h>

#include "sprat/data.h"
#include "sprat/random.h"

enum { WORD_BYTES = 4, BLOCK = 16, MAX_SIDE = 16384, MAX_CHANNELS = 4096 };

/* What the random numbers are for: patterns below, noise above; then of text
 * the two permutations and the splits. */
static const uint64_t noise_base = (uint64_t)1 << 48;
static const uint64_t order_base = (uint64_t)1 << 50;
static const uint64_t text_base = ((uint64_t)1 << 50) + 2;

struct settings {
    sp_list shape;
    int classes, vocab, train, test;
};

struct synthetic {
    size_t pixels;
    int classes;
    int32_t *tokens[SP_SPLITS]; /* of text */
};

#define AT(field) offsetof(struct settings, field)

static const sp_key keys[] = {
    { "shape", SP_LIST, AT(shape), "[32, 32, 3]", 1, MAX_SIDE,
      "height, width and channels", NULL },
    { "classes", SP_INT, AT(classes), "10", 1, 1e6, "labels", NULL },
    { "vocab", SP_INT, AT(vocab), "0", 0, 1e6,
      "0: images; else text of so many tokens, whatever shape and classes",
      NULL },
    { "train", SP_INT, AT(train), "1024", 1, 1e9,
      "training images, or tokens of text", NULL },
    { "test", SP_INT, AT(test), "256", 1, 1e9,
      "test images, or tokens of text, and as many for validation", NULL },
};

static sp_err describe_text(const struct settings *s, sp_data_info *info)
{
    if (s->train < 2 || s->test < 2)
        return sp_fail(SP_EDATA,
                       "data.%s: 1 token leaves nothing to predict; at least "
                       "2 are needed",
                       s->train < 2 ? "train" : "test");
    *info = (sp_data_info){ .text = true, .classes = s->vocab };
    info->count[SP_TRAIN] = (size_t)s->train;
    info->count[SP_VALID] = info->count[SP_TEST] = (size_t)s->test;
    return SP_OK;
}

static sp_err describe(const void *own, sp_data_info *info)
{
    const struct settings *s = own;
    const double *side = s->shape.value;

    if (s->vocab > 0)
        return describe_text(s, info);
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

/* Tokens of a split: p is next[0..vocab), q follows. */
static void write_tokens(int32_t *x, size_t count, sp_split split,
                         const size_t *next, size_t vocab)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word[4], choice;

        sp_random(0, SP_FOR_DATA, text_base + (uint64_t)split, i, word);
        choice = word[0] >> 30;
        if (choice < 2 && i > 0)
            x[i] = (int32_t)next[x[i - 1]];
        else if (choice == 2 && i > 1)
            x[i] = (int32_t)next[vocab + (size_t)x[i - 2]];
        else
            x[i] = (int32_t)((uint64_t)word[1] * vocab >> 32);
    }
}

static sp_err make_text(struct synthetic *s, const sp_data_info *info)
{
    size_t vocab = (size_t)info->classes;
    size_t *next = malloc(2 * vocab * sizeof *next);
    sp_err err = next ? SP_OK
                      : sp_fail(SP_ENOMEM,
                                "synthetic: no memory for %zu "
                                "tokens",
                                vocab);

    for (int k = 0; k < 2 && err == SP_OK; k++)
        sp_permute(0, SP_FOR_DATA, order_base + (uint64_t)k,
                   next + (size_t)k * vocab, vocab);
    for (int k = 0; k < SP_SPLITS && err == SP_OK; k++) {
        s->tokens[k] = malloc(info->count[k] * sizeof *s->tokens[k]);
        if (s->tokens[k])
            write_tokens(s->tokens[k], info->count[k], (sp_split)k, next,
                         vocab);
        else
            err = sp_fail(SP_ENOMEM, "synthetic: no memory for %zu tokens",
                          info->count[k]);
    }
    free(next);
    return err;
}

static void close_set(void *state)
{
    struct synthetic *s = state;

    for (int k = 0; k < SP_SPLITS; k++)
        free(s->tokens[k]);
    free(s);
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    struct synthetic *s;
    sp_err err = SP_OK;

    (void)root;
    SP_TRY(describe(own, info));
    s = calloc(1, sizeof *s);
    if (!s)
        return sp_fail(SP_ENOMEM, "synthetic: out of memory");
    s->pixels = (size_t)info->h * (size_t)info->w * (size_t)info->c;
    s->classes = info->classes;
    if (info->text)
        err = make_text(s, info);
    if (err) {
        close_set(s);
        return err;
    }
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

static const int32_t *tokens_of(const void *state, sp_split split)
{
    const struct synthetic *s = state;

    return s->tokens[split];
}

const sp_data_set sp_data_set_synthetic = {
    .entry = { .name = "synthetic",
               .help =
                   "made-up images of any shape, or text, that can be learned",
               .cfg_size = sizeof(struct settings),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .folder = NULL,
    .describe = describe,
    .open = open_set,
    .read = read_sample,
    .tokens = tokens_of,
    .close = close_set,
};
