/* Mutates an archive so that what leads to its directory, and the checksums of
 * stored files, stay right, most of the time. */
#include <string.h>
#include <zlib.h>

#include "mutate.h"

enum {
    LOCAL = 30,   /* bytes of a file's header, ... */
    CENTRAL = 46, /* ... of its entry in the directory, ... */
    END = 22,     /* ... and of what closes an archive */
    MOST_FILES = 64
};

static uint32_t number(const uint8_t *b, int n)
{
    uint32_t x = 0;

    while (n-- > 0)
        x = x << 8 | b[n];
    return x;
}

static void put(uint8_t *b, int n, size_t x)
{
    for (int i = 0; i < n; i++)
        b[i] = (uint8_t)(x >> (8 * i));
}

/* Let the entry at `c` agree with the file that begins at `at`. */
static void agree(uint8_t *bytes, uint8_t *c, size_t at, size_t directory)
{
    uint8_t *l = bytes + at;
    size_t data = at + LOCAL + number(l + 26, 2) + number(l + 28, 2);
    size_t n = number(c + 20, 4);

    put(c + 42, 4, at);
    if (data > directory || number(c + 10, 2) != 0)
        return;
    if (n > directory - data)
        n = directory - data;
    put(c + 20, 4, n);
    put(c + 24, 4, n);
    put(c + 16, 4, crc32(0, bytes + data, (unsigned)n));
    memcpy(l + 14, c + 16, 12);
}

/* The next place of a signature from `from` on; `size`: there is none. */
static size_t find(const uint8_t *bytes, size_t from, size_t size,
                   const char *signature)
{
    for (; from + 4 <= size; from++)
        if (memcmp(bytes + from, signature, 4) == 0)
            return from;
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most,
                               unsigned seed)
{
    size_t directory, end, at = 0, files = 0;

    size = LLVMFuzzerMutate(bytes, size, most);
    directory = find(bytes, 0, size, "PK\1\2");
    end = find(bytes, directory, size, "PK\5\6");
    if (seed % 16 == 0 || end + END > size)
        return size;
    for (size_t c = directory; c + CENTRAL <= end && files < MOST_FILES;
         c = find(bytes, c + CENTRAL, end, "PK\1\2")) {
        at = find(bytes, at, directory, "PK\3\4");
        if (at + LOCAL <= directory)
            agree(bytes, bytes + c, at, directory);
        at += LOCAL;
        files++;
    }
    put(bytes + end + 8, 2, files);
    put(bytes + end + 10, 2, files);
    put(bytes + end + 12, 4, end - directory);
    put(bytes + end + 16, 4, directory);
    return size;
}
