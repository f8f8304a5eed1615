/* Mutates a safetensors file so that the length before its header still leads
 * to the header's end, most of the time. */
#include <string.h>

#include "mutate.h"

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most,
                               unsigned seed)
{
    uint64_t n = 0;

    size = LLVMFuzzerMutate(bytes, size, most);
    if (size < 8 || seed % 16 == 0)
        return size;
    for (size_t i = 8; i < size; i++)
        if (bytes[i] == '}')
            n = i - 7;
    memcpy(bytes, &n, sizeof n);
    return size;
}
