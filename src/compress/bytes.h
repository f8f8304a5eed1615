/* Numbers at any address, in little-endian order. */
#ifndef SP_COMPRESS_BYTES_H
#define SP_COMPRESS_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void sp_put16(uint8_t *at, uint16_t x)
{
    at[0] = (uint8_t)x;
    at[1] = (uint8_t)(x >> 8);
}

static inline uint16_t sp_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline void sp_put32(uint8_t *at, uint32_t x)
{
    sp_put16(at, (uint16_t)x);
    sp_put16(at + 2, (uint16_t)(x >> 16));
}

static inline uint32_t sp_get32(const uint8_t *at)
{
    return sp_get16(at) | (uint32_t)sp_get16(at + 2) << 16;
}

static inline uint32_t sp_float_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float sp_bits_float(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
