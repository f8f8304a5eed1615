/* Whole numbers in files, their lowest byte first, whatever the machine's
 * order. */
#ifndef SPRAT_BASE_LITTLE_H
#define SPRAT_BASE_LITTLE_H

#include <stddef.h>
#include <stdint.h>

/* The number without sign that `n` bytes hold, at most 8. */
uint64_t sp_little_get(const uint8_t *bytes, size_t n);

/* Write the lowest `n` bytes of a number, at most 8. */
void sp_little_put(uint8_t *bytes, size_t n, uint64_t value);

#endif
