/* SHA-256, and a checksum against accidents: CRC-32C.
 *
 *   sp_hash h;
 *   sp_hash_start(&h);
 *   sp_hash_add(&h, bytes, n);    any number of times
 *   sp_hash_end(&h, hex);
 *
 * Source: NIST 2015, FIPS 180-4, "Secure Hash Standard"; RFC 3720, appendix
 *         B.4 (the Castagnoli polynomial's CRC).
 */
#ifndef SPRAT_BASE_HASH_H
#define SPRAT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { SP_HASH_HEX = 65 }; /* 64 hexadecimal digits and the closing 0 */

/* A hash under way; a value, to be copied freely. */
typedef struct sp_hash {
    uint32_t state[8];
    uint64_t size; /* bytes added */
    uint8_t block[64];
} sp_hash;

void sp_hash_start(sp_hash *h);
void sp_hash_add(sp_hash *h, const void *bytes, size_t n);

/* The digest of everything added, in lower-case hexadecimal. */
void sp_hash_end(sp_hash *h, char hex[SP_HASH_HEX]);

/* The CRC-32C of n bytes: 0xe3069283 for "123456789". */
uint32_t sp_crc32c(const void *bytes, size_t n);

#endif
