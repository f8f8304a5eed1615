/* A fast 64-bit fingerprint, by which bytes that ought to be equal are
 * compared. Nothing to rely on against someone who wants two to be equal:
 * that is what hash.h is for.
 *
 * Source: the round is that of Collet 2012, "xxHash" (64 bits), here in eight
 *         lanes side by side, so that none waits for another; the end is the
 *         finalizer of Steele, Lea, Flood 2014, "Fast splittable pseudorandom
 *         number generators".
 */
#ifndef SPRAT_BASE_FINGERPRINT_H
#define SPRAT_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* The fingerprint of n bytes that follow what has the fingerprint `start`; 0:
 * they are the first. It depends on how the bytes are cut into calls. */
uint64_t sp_fingerprint(uint64_t start, const void *bytes, size_t n);

#endif
