/* TernGrad: each gradient is sent as -1, 0 or 1 times one number for all of the
 * parameter, chosen by chance so that the mean is right.
 *
 *   g = gradient, clipped to sigma standard deviations
 *   s = max |g|
 *   send s * sign(g) with probability |g| / s, else 0
 *
 * Packet: s as a 32-bit float, then 2 bits an element, four of them in a byte,
 *         the first lowest: 0: 0, 1: s, 2: -s. Bits of the last byte that stand
 *         for no element are 0. That is a 16th of dense gradients; the 8x in
 *         the table of Lin, Han, Mao, Wang, Dally 2018 counts 4 bits.
 * Source: Wen, Xu, Yan, Wu, Wang, Chen, Li 2017, "TernGrad", equations 1 to 3
 *         and section 3.3 (clipping).
 * Differs: the standard deviation is about zero: the mean of a gradient is
 *         small against it, and one whose elements are all alike is not clipped
 *         away.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compress/bytes.h"
#include "compress/draw.h"

typedef struct terngrad_cfg {
    double sigma;
} terngrad_cfg;

static const sp_key keys[] = {
    { "sigma", SP_FLOAT, offsetof(terngrad_cfg, sigma), "2.5", 0, 1e6,
      "clip gradients at so many standard deviations; 0: do not", NULL },
};

enum { HEADER = 4, LANES = 8 };

static size_t packet_room(const sp_slot *s, int round)
{
    (void)round;
    return HEADER + s->n / 4 + (s->n % 4 > 0);
}

/* What is not finite is sent as 0: such a step is not taken. */
static float finite_or_0(float x) { return fabsf(x) <= FLT_MAX ? x : 0; }

static double deviation(const float *grad, size_t n)
{
    double sums[LANES] = { 0 }, sum = 0;

    for (size_t i = 0; i < n; i++) {
        double x = (double)finite_or_0(grad[i]);
        sums[i % LANES] += x * x;
    }
    for (int i = 0; i < LANES; i++)
        sum += sums[i];
    return sqrt(sum / (double)n);
}

static float largest(const float *grad, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(finite_or_0(grad[i])));
    return most;
}

/* The largest |g| after clipping. */
static float limit(const sp_slot *s, const float *grad)
{
    const terngrad_cfg *c = s->cfg;
    float most = largest(grad, s->n);

    if (c->sigma > 0 && s->n > 0)
        most = fminf(most, (float)(c->sigma * deviation(grad, s->n)));
    return most;
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    float most = limit(s, grad);

    (void)round;
    sp_put32(p->bytes, sp_float_bits((float)s->scale * most));
    for (size_t i = 0; i < s->n; i += 4) {
        uint32_t draw[4], byte = 0;

        sp_draw(s, i / 4, draw);
        for (size_t k = 0; k < 4 && i + k < s->n; k++) {
            float g = finite_or_0(grad[i + k]);
            if (sp_unit(draw[k]) * most < fabsf(g))
                byte |= (g > 0 ? 1u : 2u) << 2 * k;
        }
        p->bytes[HEADER + i / 4] = (uint8_t)byte;
    }
    p->headers = HEADER;
    p->values = packet_room(s, round) - HEADER;
}

static sp_err bad_code(const sp_slot *s, size_t i)
{
    return sp_fail(SP_EFORMAT,
                   "packet of %s: byte %zu holds a code that is not written; "
                   "it is damaged",
                   s->name, i / 4 + HEADER);
}

static sp_err decode(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad)
{
    const uint8_t *code = (const uint8_t *)packet + HEADER;
    float worth[3] = { 0 };

    if (bytes != packet_room(s, round))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes instead of %zu; it is damaged, "
                       "or from a rank with other settings",
                       s->name, bytes, packet_room(s, round));
    worth[1] = sp_bits_float(sp_get32(packet));
    worth[2] = -worth[1];
    if (!(worth[1] >= 0 && worth[1] <= FLT_MAX))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: its scale is not a finite number of at "
                       "least 0; it is damaged",
                       s->name);
    for (size_t i = 0; i < s->n; i++) {
        int c = code[i / 4] >> i % 4 * 2 & 3;
        if (c == 3)
            return bad_code(s, i);
        grad[i] += worth[c];
    }
    if (s->n % 4 > 0 && code[s->n / 4] >> s->n % 4 * 2 != 0)
        return bad_code(s, s->n);
    return SP_OK;
}

const sp_compressor sp_compressor_terngrad = {
    .entry = { .name = "terngrad",
               .help = "-1, 0 or 1 times one number a parameter, by chance",
               .cfg_size = sizeof(terngrad_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .rounds = 1,
    .combine = { SP_GATHER },
    .packet_room = packet_room,
    .encode = encode,
    .decode = decode,
};
