/* Mutates a PNG so that the lengths and checksums of its chunks stay right,
 * most of the time. */
#include <zlib.h>

#include "mutate.h"

enum { SIGNATURE = 8, FRAME = 12 /* length, kind, checksum */ };

static size_t number(const uint8_t *b)
{
    return (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
}

static void put(uint8_t *b, size_t x)
{
    for (int i = 0; i < 4; i++)
        b[i] = (uint8_t)(x >> (24 - 8 * i));
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most,
                               unsigned seed)
{
    size = LLVMFuzzerMutate(bytes, size, most);
    if (seed % 16 == 0)
        return size;
    for (size_t at = SIGNATURE, n; at + FRAME <= size; at += n + FRAME) {
        n = number(bytes + at);
        if (n > size - at - FRAME)
            n = size - at - FRAME;
        put(bytes + at, n);
        put(bytes + at + 8 + n, crc32(0, bytes + at + 4, (unsigned)n + 4));
    }
    return size;
}
