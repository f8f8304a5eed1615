/* Magnitude pruning. */
#include "train/prune.h"

#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/op.h"
#include "train/keys.h"

#define AT(field) offsetof(sp_prune_cfg, field)

static const sp_key keys[] = {
    { "share", SP_FLOAT, AT(share), "0.2", 0, 1,
      "share of the weights left that each pruning removes, between 0 and 1; "
      "rounded down",
      NULL },
    { "rounds", SP_INT, AT(rounds), "5", 1, 1000,
      "prunings, each followed by a training", NULL },
    { "rewind_epoch", SP_INT, AT(rewind_epoch), "0", 0, 1e6,
      "weights go back to what they were after so many epochs; 0: to the first",
      NULL },
};

const sp_entry sp_prune_none = {
    .name = "none",
    .help = "all weights stay",
};

const sp_entry sp_prune_magnitude = {
    .name = "magnitude",
    .help = "train, remove the smallest weights, rewind, train again "
            "(Frankle, Carbin 2019)",
    .cfg_size = sizeof(sp_prune_cfg),
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
};

const sp_section sp_prune_section = {
    .name = "prune",
    .fallback = "none",
    .plural = "pruning methods",
};

static bool prunable(const sp_param *p) { return !p->buffer && p->ndim > 1; }

size_t sp_prunable(const sp_params *params)
{
    const sp_param *p;
    size_t n = 0;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        n += prunable(p) ? p->count : 0;
    return n;
}

size_t sp_prune_zeros(const sp_params *params)
{
    const sp_param *p;
    size_t n = 0;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        for (size_t k = 0; prunable(p) && k < p->count; k++)
            n += p->value[k] == 0;
    return n;
}

size_t sp_prune_count(const sp_prune_cfg *cfg, size_t left)
{
    return (size_t)(cfg->share * (double)left);
}

/* ---- The smallest -------------------------------------------------------- */

/* Magnitudes are in the order of their binary form without the sign. */
enum { LOW_BITS = 15, LOWS = 1 << LOW_BITS, HIGHS = 1 << 16 };

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

/* Count magnitudes by their upper bits; or, of those with upper bits `high`, by
 * the lower ones. */
static void count_by(const sp_params *params, int64_t high, size_t *counts)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++) {
        for (size_t k = 0; prunable(p) && k < p->count; k++) {
            uint32_t bits = bits_of(p->value[k]);
            if (high < 0)
                counts[bits >> LOW_BITS]++;
            else if (bits >> LOW_BITS == (uint32_t)high)
                counts[bits & (LOWS - 1)]++;
        }
    }
}

/* The number of the count in which the sum of all reaches `*left`, which is
 * less by those before it then. */
static uint32_t reach(const size_t *counts, size_t *left)
{
    uint32_t i = 0;

    while (counts[i] < *left)
        *left -= counts[i++];
    return i;
}

sp_err sp_prune_smallest(const sp_params *params, size_t count, bool *gone)
{
    size_t *counts = calloc(HIGHS, sizeof *counts);
    uint32_t high, limit;
    const sp_param *p;

    if (!counts)
        return sp_fail(SP_ENOMEM, "pruning: out of memory");
    count_by(params, -1, counts);
    high = reach(counts, &count);
    memset(counts, 0, LOWS * sizeof *counts);
    count_by(params, high, counts);
    limit = high << LOW_BITS | reach(counts, &count);
    free(counts);
    for (int i = 0; (p = sp_params_at(params, i)); i++) {
        for (size_t k = 0; prunable(p) && k < p->count; k++) {
            uint32_t bits = bits_of(p->value[k]);
            *gone = bits < limit || (bits == limit && count > 0);
            count -= bits == limit && count > 0;
            gone++;
        }
    }
    return SP_OK;
}

void sp_prune_apply(const sp_params *params, const bool *gone)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++) {
        for (size_t k = 0; prunable(p) && k < p->count; k++, gone++)
            if (*gone)
                p->value[k] = 0;
            else if (p->value[k] == 0)
                p->value[k] = FLT_MIN;
    }
}

/* ---- In a step ----------------------------------------------------------- */

enum { GRAIN = 1 << 14 }; /* weights that are worth a thread */

static void hold(void *arg, size_t begin, size_t end)
{
    const sp_param *p = arg;

    for (size_t k = begin; k < end; k++)
        if (p->value[k] == 0)
            p->grad[k] = 0;
}

static void keep(void *arg, size_t begin, size_t end)
{
    const sp_param *p = arg;

    for (size_t k = begin; k < end; k++)
        if (p->value[k] == 0 && p->grad[k] != 0)
            p->value[k] = FLT_MIN;
}

static void each(const sp_params *params, int threads, sp_body body)
{
    for (int i = 0; sp_params_at(params, i); i++) {
        sp_param *p = sp_params_at(params, i);
        if (prunable(p))
            sp_parallel_for(threads, p->count, GRAIN, body, p);
    }
}

void sp_prune_hold(const sp_params *params, int threads)
{
    each(params, threads, hold);
}

void sp_prune_keep(const sp_params *params, int threads)
{
    each(params, threads, keep);
}
