/* The largest elements of a tensor, by absolute value.
 *
 *   take       at most ceil(n * ratio) of them
 *   threshold  the k-th largest of a strided sample, k = ceil(samples * ratio)
 *   candidates all elements of at least the threshold
 *     more than `take`    the largest `take` of them
 *     less than 0.8 take  the threshold is lowered to 0.8 of it, up to 10 times
 *
 * What is selected are always the largest elements, of equal ones those with
 * the lowest index; fewer than 0.8 take only if no others are selectable: 0 and
 * what is not finite never are. A tensor of up to 2 / ratio elements is not
 * sampled, nor is one of which all is taken.
 *
 * Source: Lin, Han, Mao, Wang, Dally 2018, "Deep gradient compression",
 *         section 5, and the steps of its authors' code.
 * Differs: the authors' code takes up to 1.3 take candidates in the order of
 *         their index and drops the rest, and settles for fewer than 0.8 take
 *         after the tenth threshold. Here the largest are found in both cases,
 *         by digits of their binary form, which is cheap among candidates; so
 *         the first threshold is set low enough for about k + 2 sqrt(k) of the
 *         sample, and one look is nearly always enough.
 */
#ifndef SP_COMPRESS_SELECT_H
#define SP_COMPRESS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SP_SELECT_BLOCK = 64 };

/* How to select from n elements, n below 2^32. */
typedef struct sp_select {
    size_t n, take;
    size_t blocks;          /* of SP_SELECT_BLOCK elements; the last: fewer */
    size_t room;            /* of `index` and `value` below */
    size_t samples, stride; /* 0 samples: the whole tensor is looked at */
    size_t sample_take;
} sp_select;

/* ratio in (0, 1]; sample: share of the elements in (0, 1]. */
sp_select sp_select_plan(size_t n, double ratio, double sample);

/* The peak of a block, which rises with the largest |x| in it. Whoever has just
 * written the block finds it in the cache; to look at all elements again would
 * take as long as writing them. */
uint32_t sp_select_peak(const float *x, size_t n);

/* Whether all elements are finite, by their blocks' peaks. */
bool sp_select_finite(const sp_select *p, const uint32_t *peak);

/* What sp_select_largest() works on. */
typedef struct sp_select_work {
    const uint32_t *peak; /* of each block */
    float *value;         /* p->room, scratch */
    uint32_t draw;        /* a random number */
    int threads;          /* that may work; the result is the same */
} sp_select_work;

/* Select from x. The elements' indices stand in index[0..result), of p->room,
 * in rising order. */
size_t sp_select_largest(const sp_select *p, const float *x,
                         const sp_select_work *w, uint32_t *index);

#endif
