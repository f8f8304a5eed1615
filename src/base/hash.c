#include "base/hash.h"

#include <string.h>

/* Fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t table[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* The message schedule W of one block (6.2.2, step 1). */
static void schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
               (uint32_t)block[2] << 8 | block[3];
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10) + w[t - 7] +
               (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[t - 16];
    }
}

/* Round t of 6.2.2, step 3. Instead of moving a..h along by one word, the
 * round reads them from places that move: a is s[-t mod 8]. */
static inline void round_of(uint32_t s[8], int t, uint32_t added)
{
    uint32_t a = s[(8 - t) & 7], b = s[(9 - t) & 7], c = s[(10 - t) & 7];
    uint32_t e = s[(12 - t) & 7], f = s[(13 - t) & 7], g = s[(14 - t) & 7];
    uint32_t choice = g ^ (e & (f ^ g));
    uint32_t majority = (a & b) | (c & (a | b));
    uint32_t t1 = s[(15 - t) & 7] + choice + added +
                  (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25));

    s[(11 - t) & 7] += t1;
    s[(15 - t) & 7] =
        t1 + majority + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22));
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];

    schedule(w, block);
    memcpy(s, state, sizeof s);
    /* Eight rounds at a time, so that every place is a constant: twice as
     * fast as moving the words. */
    for (int t = 0; t < 64; t += 8) {
        round_of(s, 0, table[t] + w[t]);
        round_of(s, 1, table[t + 1] + w[t + 1]);
        round_of(s, 2, table[t + 2] + w[t + 2]);
        round_of(s, 3, table[t + 3] + w[t + 3]);
        round_of(s, 4, table[t + 4] + w[t + 4]);
        round_of(s, 5, table[t + 5] + w[t + 5]);
        round_of(s, 6, table[t + 6] + w[t + 6]);
        round_of(s, 7, table[t + 7] + w[t + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void sp_hash_start(sp_hash *h)
{
    /* Fractional parts of the square roots of the first 8 primes (5.3.3). */
    *h = (sp_hash){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab,
                               0x5be0cd19 } };
}

void sp_hash_add(sp_hash *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = h->size % 64;

    h->size += n;
    if (held > 0) {
        size_t part = n < 64 - held ? n : 64 - held;
        memcpy(h->block + held, p, part);
        p += part;
        n -= part;
        if (held + part < 64)
            return;
        add_block(h->state, h->block);
    }
    for (; n >= 64; p += 64, n -= 64)
        add_block(h->state, p);
    if (n > 0)
        memcpy(h->block, p, n);
}

void sp_hash_end(sp_hash *h, char hex[SP_HASH_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = h->size * 8;
    uint8_t padding[72] = { 0x80 };
    size_t n = 64 - (h->size + 8) % 64; /* 1 to 64, then the length */

    for (int i = 0; i < 8; i++)
        padding[n + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    sp_hash_add(h, padding, n + 8);
    for (int i = 0; i < 64; i++)
        hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = '\0';
}

/* The remainder for each value of four bits, by the reflected polynomial
 * 0x82f63b78: half a byte at a time is fast enough for records of metrics. */
static const uint32_t crc_table[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
    0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
    0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t sp_crc32c(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t crc = ~0u;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ crc_table[crc & 15];
        crc = crc >> 4 ^ crc_table[crc & 15];
    }
    return ~crc;
}
