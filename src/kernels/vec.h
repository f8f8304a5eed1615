/* What loops do with vectors, for sources that are compiled once per
 * instruction set. */
#ifndef SP_KERNELS_VEC_H
#define SP_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/isa.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

/* The loops count on their helpers being part of them, so that what is
 * constant at the call is constant inside. */
#define SP_INLINE static inline __attribute__((always_inline))

/* A register of whole numbers, or of masks: all bits set for true. */
typedef int32_t sp_ivec
    __attribute__((vector_size(SP_VL * 4), aligned(4), may_alias));
typedef uint32_t sp_uvec
    __attribute__((vector_size(SP_VL * 4), aligned(4), may_alias));

SP_INLINE sp_vec sp_splat(float v) { return v - (sp_vec){ 0 }; }

/* The first m lanes from memory, those behind them from `fill`. */
SP_INLINE sp_vec sp_load(const float *p, int m, sp_vec fill)
{
    if (m == SP_VL)
        return *(const sp_vec *)p;
    memcpy(&fill, p, (size_t)m * sizeof *p);
    return fill;
}

/* The first m lanes to memory. */
SP_INLINE void sp_store(float *p, sp_vec v, int m)
{
    if (m == SP_VL)
        *(sp_vec *)p = v;
    else
        memcpy(p, &v, (size_t)m * sizeof *p);
}

/* All lanes to memory, p being a multiple of a register's size, past the
 * caches where the instruction set can: lines that are written whole are then
 * not read first. Other threads see it after sp_stream_end(). */
SP_INLINE void sp_stream(float *p, sp_vec v)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE__)
    _mm_stream_ps(p, (__m128)v);
#else
    *(sp_vec *)p = v;
#endif
}

SP_INLINE void sp_stream_end(void)
{
#if defined(__SSE__)
    _mm_sfence();
#endif
}

/* Lane by lane: yes where the mask is set, else no. */
SP_INLINE sp_vec sp_select(sp_ivec mask, sp_vec yes, sp_vec no)
{
    return (sp_vec)(((sp_ivec)yes & mask) | ((sp_ivec)no & ~mask));
}

/* max(v, 0) that lets what is not a number through. */
SP_INLINE sp_vec sp_positive(sp_vec v)
{
    return (sp_vec)((sp_ivec)v & ~(sp_ivec)(v < 0.0f));
}

/* v where the mask is set, else zero. */
SP_INLINE sp_vec sp_where(sp_ivec mask, sp_vec v)
{
    return (sp_vec)((sp_ivec)v & mask);
}

/* v = k ln 2 + r, |r| <= ln 2 / 2: gives e^r - 1, and k in the bits of a
 * float's exponent; |v| at most 87.3.
 *
 * ln 2 is in two parts, so that r is exact, and the Taylor polynomial of degree
 * 7 has a remainder below 6e-9. */
SP_INLINE sp_vec sp_exp_rest(sp_vec v, sp_uvec *bits)
{
    const float shift = 0x1.8p23f; /* adding it rounds to a whole number */
    sp_vec k = v * 0x1.715476p0f + shift;
    sp_vec r, p;

    *bits = (sp_uvec)k << 23;
    k -= shift;
    r = v - k * 0x1.62ep-1f;
    r = r - k * 0x1.0bfbe8p-15f;
    p = r * (1.0f / 5040.0f) + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    return p * (r * r) + r;
}

/* e^v = 2^k e^r to about 1e-7 relative for v <= 0; 0 below -87.3. */
SP_INLINE sp_vec sp_exp(sp_vec v)
{
    sp_ivec tiny = v < -87.3f;
    sp_uvec bits;
    sp_vec p = sp_exp_rest(v, &bits) + 1.0f;

    p = (sp_vec)((bits + (sp_uvec)p) & (sp_uvec)~tiny);
    return sp_select(v == v, p, v); /* not a number stays so */
}

/* |v|, and v with the sign of another. */
SP_INLINE sp_vec sp_abs(sp_vec v) { return (sp_vec)((sp_ivec)v & INT32_MAX); }

SP_INLINE sp_vec sp_signed_as(sp_vec v, sp_vec sign)
{
    return (sp_vec)((sp_ivec)v | ((sp_ivec)sign & INT32_MIN));
}

/* 1 / (1 + e^-v), from e^-|v|, which never overflows; about 2e-7 relative, 0
 * below -87.3. */
SP_INLINE sp_vec sp_sigmoid(sp_vec v)
{
    sp_vec e = sp_exp(-sp_abs(v)), one = sp_splat(1.0f);

    return sp_select(v < 0.0f, e, one) / (one + e);
}

/* -m / (2 + m) with m = e^-2|v| - 1 = 2^k (e^r - 1) + 2^k - 1, which near zero
 * is e^r - 1 itself: about 2e-7 relative there, too. From 10 on it is 1. */
SP_INLINE sp_vec sp_tanh(sp_vec v)
{
    sp_vec x = -2.0f * sp_abs(v), rest, scale, m;
    sp_uvec bits;

    x = sp_select(x < -20.0f, sp_splat(-20.0f), x);
    rest = sp_exp_rest(x, &bits);
    scale = (sp_vec)(bits + (sp_uvec)sp_splat(1.0f));
    m = scale * rest + (scale - 1.0f);
    return sp_signed_as(sp_abs(m) / (2.0f + m), v);
}

#endif
