#include "base/half.h"

#include <math.h>
#include <string.h>

/* What is done for one number has no branches, so that loops over it become
 * vector instructions. */

static inline uint32_t bits_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* a where the condition holds, else b. (Of ?: with a sum of floats in one arm,
 * compilers make a branch.) */
static inline uint32_t choose(int condition, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - (uint32_t)condition;

    return (a & mask) | (b & ~mask);
}

/* Exponents are biased by 127 in floats and by 15 in halfs, significands have
 * 23 and 10 bits. */
enum { SHIFT = 23 - 10, BIAS = 127 - 15 };

static inline uint16_t to_half(float x)
{
    const uint32_t infinite = 255u << 23, half_infinite = 31u << 10;
    uint32_t sign = bits_of(x) & 0x80000000u, mag = bits_of(x) ^ sign;
    /* Round by adding just less than half of the last place that stays, and
     * the rest of it when that place is odd; a carry into the exponent is as
     * it should be. */
    uint32_t odd = mag >> SHIFT & 1;
    uint32_t normal = (mag - ((uint32_t)BIAS << 23) + 0xFFF + odd) >> SHIFT;
    /* The last place of 0.5 is 2^-24, and the addition rounds to it. */
    uint32_t small = bits_of(float_of(mag) + 0.5f) - bits_of(0.5f);
    uint32_t h = choose(mag < (uint32_t)(BIAS + 1) << 23, small, normal);

    h = choose(mag >= (uint32_t)(BIAS + 31) << 23, half_infinite, h);
    h = choose(mag > infinite, half_infinite | 0x200, h);
    return (uint16_t)(sign >> 16 | h);
}

static inline float to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7FFFu;
    uint32_t normal = (mag << SHIFT) + ((uint32_t)BIAS << 23);
    uint32_t small = bits_of(float_of(mag + bits_of(0.5f)) - 0.5f);
    uint32_t u = choose(mag < 1u << 10, small, normal);

    /* Infinite, or not a number: the largest exponent, in both. */
    u = choose(mag >= 31u << 10, normal + ((uint32_t)BIAS << 23), u);
    return float_of(sign | u);
}

uint16_t sp_half(float x) { return to_half(x); }

float sp_half_float(uint16_t h) { return to_float(h); }

int sp_half_exponent(float most, int top)
{
    int exponent;

    frexpf(most, &exponent);
    exponent = top - exponent;
    return exponent < -SP_HALF_EXPONENT  ? -SP_HALF_EXPONENT
           : exponent > SP_HALF_EXPONENT ? SP_HALF_EXPONENT
                                         : exponent;
}

void sp_half_from(size_t n, const float *x, float scale, uint16_t *h)
{
    for (size_t i = 0; i < n; i++)
        h[i] = to_half(scale * x[i]);
}

void sp_half_to(size_t n, const uint16_t *h, float scale, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * to_float(h[i]);
}

void sp_half_add(size_t n, const uint16_t *b, uint16_t *a)
{
    for (size_t i = 0; i < n; i++)
        a[i] = to_half(to_float(a[i]) + to_float(b[i]));
}
