/* Fields as tag and value, in the order of the calls. */
#include "base/protobuf.h"

#include <assert.h>
#include <string.h>

#include "base/little.h"

/* Wire types, the low three bits of a tag. */
enum { VARINT = 0, EIGHT_BYTES = 1, COUNTED = 2, FOUR_BYTES = 5 };

enum { VARINT_ROOM = 10 }; /* 64 bits by sevens */

/* Seven bits a byte, the lowest first; the high bit says that more follow. */
static void put_varint(sp_text *t, uint64_t value)
{
    uint8_t bytes[VARINT_ROOM];
    size_t n = 0;

    for (; value > 127; value >>= 7)
        bytes[n++] = (uint8_t)(value | 128);
    bytes[n++] = (uint8_t)value;
    sp_text_put(t, bytes, n);
}

static void put_tag(sp_text *t, int field, int type)
{
    assert(field >= 1 && field <= SP_PB_FIELDS);
    put_varint(t, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_fixed(sp_text *t, uint64_t bits, size_t n)
{
    uint8_t bytes[8];

    sp_little_put(bytes, n, bits);
    sp_text_put(t, bytes, n);
}

void sp_pb_int(sp_text *t, int field, int64_t value)
{
    put_tag(t, field, VARINT);
    put_varint(t, (uint64_t)value);
}

void sp_pb_float(sp_text *t, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_tag(t, field, FOUR_BYTES);
    put_fixed(t, bits, 4);
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
