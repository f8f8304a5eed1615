#include "compress/select.h"

#include <math.h>
#include <stdbool.h>

#include "compress/bytes.h"

enum {
    BLOCK = 128, /* elements that are looked at together */
    LOWERINGS = 10,
    DIGIT_MAX = 11 /* bits */
};

#define LOWER 0.8f

/* The bits of |x| rise with it. */
#define MAG_MASK 0x7FFFFFFFu
#define INFINITE 0x7F800000u

/* The key of an element: 0 for what can never be selected. */
static uint32_t key_of(float x)
{
    uint32_t mag = sp_float_bits(x) & MAG_MASK;

    return mag < INFINITE ? mag : 0;
}

static size_t share(size_t n, double ratio)
{
    double k = ceil((double)n * ratio);

    return k < 1 ? 1 : k < (double)n ? (size_t)k : n;
}

sp_select sp_select_plan(size_t n, double ratio, double sample)
{
    sp_select p = { .n = n, .take = n ? share(n, ratio) : 0 };
    double least = ceil(2 / ratio);

    /* Room for an estimate that is somewhat low, and a block that is looked at
     * before it is known whether there is room. */
    p.room = p.take + p.take / 2 + 1024;
    if (p.room > n)
        p.room = n;
    p.room += BLOCK;
    if ((double)n <= least || p.take == n)
        return p;
    least = fmax(least, ceil((double)n * sample));
    p.stride = (size_t)ceil((double)n / least / 32) * 32 + 1;
    while (p.stride > 1 && (double)(n / p.stride) < least)
        p.stride -= 8;
    p.samples = n / p.stride;
    p.sample_take = share(p.samples, ratio);
    if (p.room < p.samples)
        p.room = p.samples;
    return p;
}

/* ---- The k-th largest ---------------------------------------------------- */

/* A key, and how many elements of just this key are among the k largest. */
typedef struct cut {
    uint32_t key;
    size_t ties;
} cut;

/* 0 for all of them. Keys digit by digit, the highest first: counting the
 * elements of each digit, among those that agree with the k-th largest in the
 * digits before. */
static cut kth_largest(const float *x, size_t n, size_t k)
{
    static const int bits[] = { DIGIT_MAX, 10, 10 };
    cut c = { 0, k };
    int shift = 31;

    for (int d = 0; k < n && d < 3; d++) {
        uint32_t count[1 << DIGIT_MAX] = { 0 };
        uint32_t mask = (1u << bits[d]) - 1, digit = mask;
        int above = shift;

        shift -= bits[d];
        for (size_t i = 0; i < n; i++) {
            uint32_t key = key_of(x[i]);
            /* A digit is cheaper to count than to pass over. */
            count[key >> shift & mask] += (key ^ c.key) >> above == 0;
        }
        for (; digit > 0 && count[digit] < c.ties; digit--)
            c.ties -= count[digit];
        c.key |= digit << shift;
    }
    return c;
}

/* Of elements x[0..n), whose indices are `from` (NULL: their positions), those
 * above the cut and its ties, in order. `to` may be `from`. */
static size_t keep(const float *x, size_t n, cut c, const uint32_t *from,
                   uint32_t *to)
{
    size_t count = 0;

    if (c.key == 0) /* all that can be selected is among the k largest */
        c.ties = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(x[i]);
        bool tie = key == c.key && c.ties > 0;

        c.ties -= tie;
        if (key > c.key || tie)
            to[count++] = from ? from[i] : (uint32_t)i;
    }
    return count;
}

/* ---- Sample and candidates ----------------------------------------------- */

static uint32_t sample_threshold(const sp_select *p, const float *x,
                                 uint32_t draw, float *value)
{
    size_t at = draw % p->stride;

    for (size_t i = 0; i < p->samples; i++, at += p->stride)
        value[i] = x[at];
    return kth_largest(value, p->samples, p->sample_take).key;
}

/* Whether one of the block reaches the threshold: without branches, for the
 * sake of vector instructions. */
static bool reached(const float *x, int32_t threshold)
{
    int32_t any = 0;

    for (int i = 0; i < BLOCK; i++) {
        int32_t mag = (int32_t)(sp_float_bits(x[i]) & MAG_MASK);
        any |= (mag >= threshold) & (mag < (int32_t)INFINITE);
    }
    return any != 0;
}

static size_t append(const float *x, size_t first, size_t n, uint32_t threshold,
                     uint32_t *index)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        index[count] = (uint32_t)(first + i);
        count += key_of(x[i]) >= threshold;
    }
    return count;
}

/* Indices of the elements that reach the threshold (above 0); more than p->room
 * - BLOCK: there are too many, and not all were found. */
static size_t candidates(const sp_select *p, const float *x, uint32_t threshold,
                         uint32_t *index)
{
    size_t count = 0, i = 0;

    for (; i + BLOCK <= p->n && count + BLOCK <= p->room; i += BLOCK)
        if (reached(x + i, (int32_t)threshold))
            count += append(x + i, i, BLOCK, threshold, index + count);
    if (i + BLOCK > p->n && count + BLOCK <= p->room)
        count += append(x + i, i, p->n - i, threshold, index + count);
    return count;
}

static uint32_t lower(uint32_t threshold)
{
    uint32_t key = sp_float_bits(LOWER * sp_bits_float(threshold));

    return key > 0 ? key : 1;
}

/* The largest p->take of the candidates. */
static size_t narrow(const sp_select *p, const float *x, size_t count,
                     uint32_t *index, float *value)
{
    for (size_t i = 0; i < count; i++)
        value[i] = x[index[i]];
    return keep(value, count, kth_largest(value, count, p->take), index, index);
}

size_t sp_select_largest(const sp_select *p, const float *x, uint32_t draw,
                         uint32_t *index, float *value)
{
    size_t room = p->room - BLOCK, count;
    uint32_t threshold;

    if (p->samples > 0) {
        threshold = sample_threshold(p, x, draw, value);
        threshold = threshold > 0 ? threshold : 1;
        for (int i = 0; i <= LOWERINGS; i++) {
            count = candidates(p, x, threshold, index);
            if (count > room)
                break; /* as many have one value, or the sample missed them */
            if (count > p->take)
                return narrow(p, x, count, index, value);
            if ((double)count >= (double)LOWER * (double)p->take ||
                threshold == 1)
                return count;
            threshold = lower(threshold);
        }
    }
    return keep(x, p->n, kth_largest(x, p->n, p->take), NULL, index);
}
