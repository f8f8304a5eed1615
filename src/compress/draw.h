/* Random numbers of compressors: pure functions of the seed, the parameter's
 * name, the step, the rank and a count. */
#ifndef SP_COMPRESS_DRAW_H
#define SP_COMPRESS_DRAW_H

#include "sprat/compress.h"
#include "sprat/random.h"

/* Four numbers; `count` is below 2^40. */
static inline void sp_draw(const sp_slot *s, uint64_t count, uint32_t out[4])
{
    const uint64_t mask = ((uint64_t)1 << 56) - 1;

    sp_random(s->seed, SP_FOR_SELECT,
              (sp_name_hash(s->name) ^ (uint64_t)s->step) & mask,
              (uint64_t)s->rank << 40 | count, out);
}

#endif
