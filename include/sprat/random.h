/* Random numbers as pure functions: nothing is drawn, so nothing has a state
 * that threads, ranks or a resumed run could disagree about.
 *
 * Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy
 *         as 1, 2, 3": Philox 4x32 with 10 rounds.
 */
#ifndef SPRAT_RANDOM_H
#define SPRAT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* What a number is for: two purposes never share a number. */
typedef enum sp_purpose {
    SP_FOR_INIT = 1, /* parameter values: a = hash of the name, b counts
                        elements */
    SP_FOR_SHUFFLE,  /* order of samples: a = epoch */
    SP_FOR_AUGMENT,  /* crops and flips: a = epoch, b = sample */
    SP_FOR_DROPOUT,  /* a = step and time step; b = layer, row and element */
    SP_FOR_DATA,     /* made-up samples, as their data set says */
    SP_FOR_SPLIT,    /* which samples are held out, whatever the seed */
    SP_FOR_SELECT,   /* threshold sampling of compressors */
    SP_FOR_TEST,
    SP_FOR_SAMPLE,    /* text that a model writes: b = number of the token */
    SP_FOR_USER = 128 /* first of a program's own, up to 255 */
} sp_purpose;

/* Four independent 32-bit numbers: a function of the arguments alone.
 * `a` is at most 2^56 - 1. */
void sp_random(uint64_t seed, sp_purpose purpose, uint64_t a, uint64_t b,
               uint32_t out[4]);

/* A random word as a float in [0, 1), a multiple of 2^-24. */
static inline float sp_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Two random words as one standard normal number (Box and Muller 1958). */
float sp_normal(uint32_t u, uint32_t v);

/* order[0..n) becomes a permutation of 0..n-1 (Fisher and Yates), a function
 * of (seed, purpose, a) alone. */
void sp_permute(uint64_t seed, sp_purpose purpose, uint64_t a, size_t *order,
                size_t n);

/* A 56-bit hash of a name, for use as `a`. */
uint64_t sp_name_hash(const char *name);

#endif
