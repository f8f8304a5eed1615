#include "sprat/random.h"

#include <assert.h>
#include <math.h>

/* One round: two 32 x 32 -> 64 bit products, halves exchanged and mixed with
 * the key. */
static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t c1 = c[1], c3 = c[3];

    c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)p0;
}

void sp_random(uint64_t seed, sp_purpose purpose, uint64_t a, uint64_t b,
               uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    assert(a >> 56 == 0);
    out[0] = (uint32_t)b;
    out[1] = (uint32_t)(b >> 32);
    out[2] = (uint32_t)a;
    out[3] = (uint32_t)purpose << 24 | (uint32_t)(a >> 32);
    for (int i = 0; i < 10; i++) {
        philox_round(out, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

float sp_normal(uint32_t u, uint32_t v)
{
    /* u in (0, 1], so that its logarithm is finite. */
    double radius = sqrt(-2.0 * log((u + 1.0) * 0x1p-32));
    double angle = 6.283185307179586 * (v * 0x1p-32);

    return (float)(radius * cos(angle));
}

/* A number below m, each equally likely: a draw from the last, incomplete
 * run of m values is thrown away and drawn again. */
static size_t below(uint64_t seed, sp_purpose purpose, uint64_t a, uint64_t m)
{
    uint64_t incomplete = (UINT64_MAX % m + 1) % m;

    for (uint64_t attempt = 0;; attempt++) {
        uint32_t r[4];
        /* m is below 2^48 (it counts elements in memory). */
        sp_random(seed, purpose, a, attempt << 48 | m, r);
        for (int i = 0; i < 4; i += 2) {
            uint64_t x = (uint64_t)r[i] << 32 | r[i + 1];
            if (x <= UINT64_MAX - incomplete)
                return (size_t)(x % m);
        }
    }
}

void sp_permute(uint64_t seed, sp_purpose purpose, uint64_t a, size_t *order,
                size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = below(seed, purpose, a, i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

/* FNV-1a with 64 bits, the upper 8 folded into the rest. */
uint64_t sp_name_hash(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return (h >> 56) ^ (h & 0xFFFFFFFFFFFFFFu);
}
