/* Fields as tag and value, in the order of the calls. */
#include "base/protobuf.h"

#include <assert.h>
#include <string.h>

/* Wire types, the low three bits of a tag. */
enum { VARINT = 0, EIGHT_BYTES = 1, COUNTED = 2, FOUR_BYTES = 5 };

enum { VARINT_ROOM = 10 }; /* 64 bits by sevens */

/* Seven bits a byte, the lowest first; the high bit says that more follow.
 * Returns how many bytes. */
static size_t make_varint(uint8_t out[VARINT_ROOM], uint64_t value)
{
    size_t n = 0;

    for (; value > 127; value >>= 7)
        out[n++] = (uint8_t)(value | 128);
    out[n++] = (uint8_t)value;
    return n;
}

static void put_varint(sp_text *t, uint64_t value)
{
    uint8_t bytes[VARINT_ROOM];

    sp_text_put(t, bytes, make_varint(bytes, value));
}

static void put_tag(sp_text *t, int field, int type)
{
    assert(field >= 1 && field <= SP_PB_FIELDS);
    put_varint(t, (uint64_t)field << 3 | (uint64_t)type);
}

/* The lowest `n` bytes, the lowest first, whatever the machine's order. */
static void put_fixed(sp_text *t, uint64_t bits, int n)
{
    uint8_t bytes[8];

    for (int i = 0; i < n; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    sp_text_put(t, bytes, (size_t)n);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void sp_pb_uint(sp_text *t, int field, uint64_t value)
{
    put_tag(t, field, VARINT);
    put_varint(t, value);
}

void sp_pb_int(sp_text *t, int field, int64_t value)
{
    sp_pb_uint(t, field, (uint64_t)value);
}

void sp_pb_float(sp_text *t, int field, float value)
{
    put_tag(t, field, FOUR_BYTES);
    put_fixed(t, float_bits(value), 4);
}

void sp_pb_double(sp_text *t, int field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_tag(t, field, EIGHT_BYTES);
    put_fixed(t, bits, 8);
}

void sp_pb_bytes(sp_text *t, int field, const void *bytes, size_t n)
{
    put_tag(t, field, COUNTED);
    put_varint(t, n);
    sp_text_put(t, bytes, n);
}

void sp_pb_string(sp_text *t, int field, const char *value)
{
    sp_pb_bytes(t, field, value, strlen(value));
}

void sp_pb_message(sp_text *t, int field, const sp_text *inner)
{
    sp_pb_bytes(t, field, inner->bytes, inner->size);
    t->failed |= inner->failed;
}

void sp_pb_ints(sp_text *t, int field, const int64_t *values, size_t n)
{
    uint8_t scratch[VARINT_ROOM];
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += make_varint(scratch, (uint64_t)values[i]);
    put_tag(t, field, COUNTED);
    put_varint(t, bytes);
    for (size_t i = 0; i < n; i++)
        put_varint(t, (uint64_t)values[i]);
}

void sp_pb_floats(sp_text *t, int field, const float *values, size_t n)
{
    put_tag(t, field, COUNTED);
    put_varint(t, 4 * (uint64_t)n);
    for (size_t i = 0; i < n; i++)
        put_fixed(t, float_bits(values[i]), 4);
}
