/* Sixteen words at a time. */
#include "base/fingerprint.h"

#include <string.h>

enum { LANES = 16 };

static const uint32_t prime1 = 0x9E3779B1u, prime2 = 0x85EBCA77u;

static uint64_t finish(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void add(uint32_t lane[LANES], const uint32_t word[LANES])
{
    for (int i = 0; i < LANES; i++) {
        uint32_t x = lane[i] + word[i] * prime2;
        lane[i] = (x << 13 | x >> 19) * prime1;
    }
}

uint64_t sp_fingerprint(uint64_t start, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint32_t lane[LANES], word[LANES];
    size_t left = n;
    uint64_t sum;

    for (uint32_t i = 0; i < LANES; i++)
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
    for (int i = 0; i < LANES; i += 2)
        sum = finish(sum ^ (lane[i] | (uint64_t)lane[i + 1] << 32));
    return sum;
}
