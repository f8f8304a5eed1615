/* Words and their numbers, in the order in which they were added.
 *
 * A hash table with open addressing, at most half full.
 * Source: Knuth 1998, "The art of computer programming" 3, 6.4, algorithm L;
 *         hash: Fowler, Noll, Vo, FNV-1a.
 */
#ifndef SPRAT_DATA_VOCAB_H
#define SPRAT_DATA_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "sprat/base.h"

/* All zero: empty. */
typedef struct sp_vocab {
    size_t count;
    const char **words; /* count */

    /* Private. */
    size_t room; /* of words */
    struct sp_vocab_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    sp_arena text;
} sp_vocab;

/* The number of a word, given without a closing 0 and with none within; a new
 * one if it is not there yet. Errors: SP_ENOMEM, SP_EDATA beyond INT32_MAX. */
SP_MUST sp_err sp_vocab_add(sp_vocab *v, const void *word, size_t size,
                            int32_t *token);

/* The number of a word; -1: it is not there. */
int32_t sp_vocab_find(const sp_vocab *v, const void *word, size_t size);

void sp_vocab_free(sp_vocab *v);

#endif
