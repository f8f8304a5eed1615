/* Eight words at a time. */
#include "base/fingerprint.h"

#include <string.h>

enum { LANES = 8 };

static const uint64_t prime1 = 0x9E3779B185EBCA87u;
static const uint64_t prime2 = 0xC2B2AE3D27D4EB4Fu;

static uint64_t finish(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void add(uint64_t lane[LANES], const uint64_t word[LANES])
{
    for (int i = 0; i < LANES; i++) {
        uint64_t x = lane[i] + word[i] * prime2;
        lane[i] = (x << 31 | x >> 33) * prime1;
    }
}

uint64_t sp_fingerprint(uint64_t start, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint64_t lane[LANES], word[LANES];
    size_t left = n;
    uint64_t sum;

    for (uint64_t i = 0; i < LANES; i++)
        lane[i] = (i + 1) * prime1;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        add(lane, word);
    }
    if (left > 0) {
        memset(word, 0, sizeof word);
        memcpy(word, at, left);
        add(lane, word);
    }
    sum = finish(start + n + 1);
    for (int i = 0; i < LANES; i++)
        sum = finish(sum ^ lane[i]);
    return sum;
}
