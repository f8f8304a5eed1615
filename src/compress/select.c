#include "compress/select.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "compress/bytes.h"
#include "sprat/op.h"

enum {
    BLOCK = SP_SELECT_BLOCK,
    AHEAD = 24, /* blocks, of which some are looked at */
    LOWERINGS = 10,
    DIGIT_MAX = 11, /* bits */
    DIGITS = 3,
    COUNTED = 1 << 16,  /* elements that a thread takes at one time to count, */
    GATHERED = 1 << 12, /* to gather, */
    SEARCHED = 1 << 12  /* blocks to search */
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

/* How many elements have each digit, of those that agree with `key` above it.
 */
typedef struct tally {
    const float *x;
    uint32_t key, mask;
    int shift, above;
    atomic_uint count[1 << DIGIT_MAX];
} tally;

static void count_digits(void *arg, size_t begin, size_t end)
{
    tally *t = arg;
    uint32_t count[1 << DIGIT_MAX] = { 0 };

    for (size_t i = begin; i < end; i++) {
        uint32_t key = key_of(t->x[i]);
        /* A digit is cheaper to count than to pass over. */
        count[key >> t->shift & t->mask] += (key ^ t->key) >> t->above == 0;
    }
    for (uint32_t d = 0; d <= t->mask; d++)
        if (count[d])
            atomic_fetch_add_explicit(&t->count[d], count[d],
                                      memory_order_relaxed);
}

/* 0 for all of them. Keys digit by digit, the highest first: counting the
 * elements of each digit, among those that agree with the k-th largest in the
 * digits before. */
static cut kth_largest(const float *x, size_t n, size_t k, int threads)
{
    static const int bits[DIGITS] = { DIGIT_MAX, 10, 10 };
    cut c = { 0, k };
    int shift = 31;

    for (int d = 0; k < n && d < DIGITS; d++) {
        tally t = { .x = x, .key = c.key, .above = shift };
        uint32_t digit = t.mask = (1u << bits[d]) - 1;

        shift -= bits[d];
        t.shift = shift;
        sp_parallel_for(threads, n, COUNTED, count_digits, &t);
        for (; digit > 0 && t.count[digit] < c.ties; digit--)
            c.ties -= t.count[digit];
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

/* value[i] = x[at of i]: every `stride`-th one, or those of `index`. */
typedef struct gathering {
    const float *x;
    size_t first, stride;
    const uint32_t *index; /* NULL: by the stride */
    float *value;
} gathering;

static void gather(void *arg, size_t begin, size_t end)
{
    const gathering *g = arg;

    for (size_t i = begin; i < end; i++)
        g->value[i] = g->x[g->index ? g->index[i] : g->first + i * g->stride];
}

/* Of a sample, the number k above the wanted threshold varies by sqrt(k): by
 * twice as much it is lowered, so that one look at the tensor is enough. */
static uint32_t sample_threshold(const sp_select *p, const float *x,
                                 const sp_select_work *w)
{
    gathering g = { .x = x,
                    .first = w->draw % p->stride,
                    .stride = p->stride,
                    .value = w->value };
    size_t k = p->sample_take;

    k += (size_t)ceil(2 * sqrt((double)k));
    k = k < p->samples ? k : p->samples;
    sp_parallel_for(w->threads, p->samples, GATHERED, gather, &g);
    return kth_largest(w->value, p->samples, k, w->threads).key;
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

/* A search for the elements that reach a threshold above 0. */
typedef struct search {
    const sp_select *p;
    const float *x;
    const uint32_t *peak;
    uint32_t threshold;
    uint32_t *index;
    size_t share; /* of a part, in index: how many it has found, then which */
} search;

/* Indices of those in blocks [begin, end); more than room - BLOCK: there are
 * too many, and not all were found. */
static size_t look(const search *s, size_t begin, size_t end, size_t room,
                   uint32_t *index)
{
    const sp_select *p = s->p;
    size_t count = 0;

    for (size_t b = begin; b < end && count + BLOCK <= room; b++) {
        size_t first = b * BLOCK, rest = p->n - first;
        if (b + AHEAD < p->blocks && s->peak[b + AHEAD] >= s->threshold)
            fetch(s->x + first + AHEAD * BLOCK);
        if (s->peak[b] >= s->threshold)
            count += append(s->x + first, first, rest < BLOCK ? rest : BLOCK,
                            s->threshold, index + count);
    }
    return count;
}

static void look_part(void *arg, size_t begin, size_t end)
{
    const search *s = arg;
    uint32_t *part = s->index + begin / SEARCHED * s->share;

    part[0] = (uint32_t)look(s, begin, end, s->share - 1, part + 1);
}

/* Close the gaps between what the parts have found; 0: one found more than its
 * share holds. */
static size_t join(const search *s, size_t parts)
{
    size_t count = 0;

    for (size_t i = 0; i < parts; i++)
        if (s->index[i * s->share] > s->share - 1 - BLOCK)
            return 0;
    for (size_t i = 0; i < parts; i++) {
        const uint32_t *part = s->index + i * s->share;
        size_t found = part[0];

        memmove(s->index + count, part + 1, found * sizeof *part);
        count += found;
    }
    return count;
}

/* In index[0..p->room), in rising order, whoever looks; as look() for all
 * blocks. */
static size_t candidates(search *s, int threads)
{
    const sp_select *p = s->p;
    size_t parts = (p->blocks + SEARCHED - 1) / SEARCHED, count = 0;

    s->share = p->room / parts;
    if (threads > 1 && parts > 1 && s->share > 2 * BLOCK) {
        sp_parallel_for(threads, p->blocks, SEARCHED, look_part, s);
        count = join(s, parts);
    }
    return count > 0 ? count : look(s, 0, p->blocks, p->room, s->index);
}

static uint32_t lower(uint32_t threshold)
{
    uint32_t key = sp_float_bits(LOWER * sp_bits_float(threshold));

    return key > 0 ? key : 1;
}

/* The largest p->take of the candidates. */
static size_t narrow(const sp_select *p, const float *x, size_t count,
                     const sp_select_work *w, uint32_t *index)
{
    gathering g = { .x = x, .index = index, .value = w->value };
    cut c;

    sp_parallel_for(w->threads, count, GATHERED, gather, &g);
    c = kth_largest(w->value, count, p->take, w->threads);
    return keep(w->value, count, c, index, index);
}

size_t sp_select_largest(const sp_select *p, const float *x,
                         const sp_select_work *w, uint32_t *index)
{
    search s = { .p = p, .x = x, .peak = w->peak, .index = index };
    size_t room = p->room - BLOCK, count;

    if (p->samples > 0) {
        s.threshold = sample_threshold(p, x, w);
        s.threshold = s.threshold > 0 ? s.threshold : 1;
        for (int i = 0; i <= LOWERINGS; i++) {
            count = candidates(&s, w->threads);
            if (count > room)
                break; /* as many have one value, or the sample missed them */
            if (count > p->take)
                return narrow(p, x, count, w, index);
            if ((double)count >= (double)LOWER * (double)p->take ||
                s.threshold == 1)
                return count;
            s.threshold = lower(s.threshold);
        }
    }
    return keep(x, p->n, kth_largest(x, p->n, p->take, w->threads), NULL,
                index);
}
