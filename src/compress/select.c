#include "compress/select.h"

#include <math.h>

#include "compress/bytes.h"

enum {
    BLOCK = SP_SELECT_BLOCK,
    AHEAD = 24, /* blocks, of which some are looked at */
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
    sp_select p = { .n = n,
                    .take = n ? share(n, ratio) : 0,
                    .blocks = n / BLOCK + (n % BLOCK > 0) };
    double least = ceil(2 / ratio);

    /* Room for what a lowered threshold lets in, which may be 8 times as much
     * (a normal distribution, at a density of 0.001), and for a block that is
     * looked at before it is known whether there is room. */
    p.room = p.take < n / 56 ? 8 * p.take : p.take + n / 8;
    p.room += 1024;
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

/* The largest of the bits of |x|: whole numbers, since of floats compilers make
 * no vector instructions here. */
uint32_t sp_select_peak(const float *x, size_t n)
{
    int32_t peak = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t mag = (int32_t)(sp_float_bits(x[i]) & MAG_MASK);
        peak = mag > peak ? mag : peak;
    }
    return (uint32_t)peak;
}

bool sp_select_finite(const sp_select *p, const uint32_t *peak)
{
    uint32_t top = 0;

    for (size_t b = 0; b < p->blocks; b++)
        top = peak[b] > top ? peak[b] : top;
    return top < INFINITE;
}

/* ---- Sample and candidates ----------------------------------------------- */

/* Of a sample, the number k above the wanted threshold varies by sqrt(k): by
 * twice as much it is lowered, so that one look at the tensor is enough. */
static uint32_t sample_threshold(const sp_select *p, const float *x,
                                 uint32_t draw, float *value)
{
    size_t at = draw % p->stride, k = p->sample_take;

    k += (size_t)ceil(2 * sqrt((double)k));
    k = k < p->samples ? k : p->samples;
    for (size_t i = 0; i < p->samples; i++, at += p->stride)
        value[i] = x[at];
    return kth_largest(value, p->samples, k).key;
}

/* Indices, from `first` on, of the elements that reach the threshold. */
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

/* Bring a block into the cache, while others are looked at. */
static void fetch(const float *x)
{
    for (size_t i = 0; i < BLOCK; i += 16)
        __builtin_prefetch(x + i);
}

/* Indices of the elements that reach the threshold (above 0); more than p->room
 * - BLOCK: there are too many, and not all were found. */
static size_t candidates(const sp_select *p, const float *x,
                         const uint32_t *peak, uint32_t threshold,
                         uint32_t *index)
{
    size_t count = 0;

    for (size_t b = 0; b < p->blocks && count + BLOCK <= p->room; b++) {
        size_t first = b * BLOCK, rest = p->n - first;
        if (b + AHEAD < p->blocks && peak[b + AHEAD] >= threshold)
            fetch(x + first + AHEAD * BLOCK);
        if (peak[b] >= threshold)
            count += append(x + first, first, rest < BLOCK ? rest : BLOCK,
                            threshold, index + count);
    }
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

size_t sp_select_largest(const sp_select *p, const float *x,
                         const sp_select_work *w, uint32_t *index)
{
    size_t room = p->room - BLOCK, count;
    uint32_t threshold;

    if (p->samples > 0) {
        threshold = sample_threshold(p, x, w->draw, w->value);
        threshold = threshold > 0 ? threshold : 1;
        for (int i = 0; i <= LOWERINGS; i++) {
            count = candidates(p, x, w->peak, threshold, index);
            if (count > room)
                break; /* as many have one value, or the sample missed them */
            if (count > p->take)
                return narrow(p, x, count, index, w->value);
            if ((double)count >= (double)LOWER * (double)p->take ||
                threshold == 1)
                return count;
            threshold = lower(threshold);
        }
    }
    return keep(x, p->n, kth_largest(x, p->n, p->take), NULL, index);
}
