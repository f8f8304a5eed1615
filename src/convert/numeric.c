#include "convert/numeric.h"

#include <string.h>

#include "base/half.h"
#include "base/little.h"

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static float get_float(const uint8_t *b)
{
    return float_of((uint32_t)sp_little_get(b, 4));
}

static float get_half(const uint8_t *b)
{
    return sp_half_float((uint16_t)sp_little_get(b, 2));
}

/* The upper half of a float. */
static float get_bfloat16(const uint8_t *b)
{
    return float_of((uint32_t)sp_little_get(b, 2) << 16);
}

static float get_double(const uint8_t *b)
{
    uint64_t bits = sp_little_get(b, 8);
    double x;

    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

static float get_int64(const uint8_t *b)
{
    return (float)(int64_t)sp_little_get(b, 8);
}

static float get_int32(const uint8_t *b)
{
    return (float)(int32_t)(uint32_t)sp_little_get(b, 4);
}

static float get_byte(const uint8_t *b) { return (float)b[0]; }

static const sp_numeric kinds[] = {
    { "<f4", "FloatStorage", 4, get_float },
    { "<f2", "HalfStorage", 2, get_half },
    { NULL, "BFloat16Storage", 2, get_bfloat16 },
    { "<f8", "DoubleStorage", 8, get_double },
    { "<i8", "LongStorage", 8, get_int64 },
    { "<i4", "IntStorage", 4, get_int32 },
    { "|u1", "ByteStorage", 1, get_byte },
    { "|b1", "BoolStorage", 1, get_byte },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const sp_numeric *sp_numeric_numpy(const char *descr)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].numpy && strcmp(kinds[i].numpy, descr) == 0)
            return &kinds[i];
    return NULL;
}

const sp_numeric *sp_numeric_storage(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].storage, name) == 0)
            return &kinds[i];
    return NULL;
}
