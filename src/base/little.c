#include "base/little.h"

uint64_t sp_little_get(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

void sp_little_put(uint8_t *bytes, size_t n, uint64_t value)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}
