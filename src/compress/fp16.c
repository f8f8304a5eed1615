/* Half precision: gradients are added as binary16 numbers, 2 bytes each.
 *
 *   round 0   S = sum over ranks of max |g|
 *   round 1   h = 2^e * g, with 2^13 <= 2^e * S < 2^14;   g = 2^-e * sum h
 *
 * No partial sum, in whatever order, exceeds S but for rounding, for which a
 * factor of 4 is left: it takes 2,800 additions that all round up to reach
 * infinity. A power of two changes no digit.
 *
 * S is kept from one round to the next in the work space.
 * Source: Micikevicius et al. 2018, "Mixed precision training", section 3.2
 *         (scaling).
 * Differs: the scale is that of each parameter in each step.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "sprat/compress.h"

enum {
    TOP = 14,  /* 2^e * S is below 2^TOP */
    PART = 256 /* numbers that are converted at one time */
};

static size_t work_bytes(const sp_slot *s)
{
    (void)s;
    return sizeof(float);
}

static size_t packet_room(const sp_slot *s, int round)
{
    return round == 0 ? sizeof(float) : s->n * sizeof(uint16_t);
}

static int exponent_of(const sp_slot *s)
{
    const float *work = s->work;
    float sum = *work;

    return sum > 0 ? sp_half_exponent(fminf(sum, FLT_MAX), TOP) : 0;
}

static float largest(const float *grad, size_t n)
{
    float most = 0;

    /* What is not a number is passed over, and reaches the sum by itself. */
    for (size_t i = 0; i < n; i++)
        most = fabsf(grad[i]) > most ? fabsf(grad[i]) : most;
    return most;
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    float scale = (float)s->scale;
    uint16_t part[PART];

    if (round == 0) {
        float most = fabsf(scale) * largest(grad, s->n);
        memcpy(p->bytes, &most, sizeof most);
        p->headers = sizeof most;
        return;
    }
    scale *= ldexpf(1, exponent_of(s));
    for (size_t i = 0; i < s->n; i += PART) {
        size_t count = s->n - i < PART ? s->n - i : PART;
        sp_half_from(count, grad + i, scale, part);
        memcpy(p->bytes + 2 * i, part, 2 * count);
    }
    p->values = s->n * sizeof(uint16_t);
}

static sp_err decode(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad)
{
    uint16_t part[PART];
    float unit;

    if (bytes != packet_room(s, round))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes instead of %zu; it is from a "
                       "rank with other settings",
                       s->name, bytes, packet_room(s, round));
    if (round == 0) {
        memcpy(s->work, packet, sizeof(float));
        return SP_OK;
    }
    unit = ldexpf(1, -exponent_of(s));
    for (size_t i = 0; i < s->n; i += PART) {
        size_t count = s->n - i < PART ? s->n - i : PART;
        memcpy(part, (const uint8_t *)packet + 2 * i, 2 * count);
        sp_half_to(count, part, unit, grad + i);
    }
    return SP_OK;
}

const sp_compressor sp_compressor_fp16 = {
    .entry = { .name = "fp16", .help = "half-precision sums" },
    .rounds = 2,
    .combine = { SP_SUM, SP_SUM_FP16 },
    .packet_room = packet_room,
    .work_bytes = work_bytes,
    .encode = encode,
    .decode = decode,
};
