#include "event_reader.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

/* Bit by bit, from the polynomial x^32 + x^28 + ... of RFC 3720. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;

    while (n-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return crc ^ 0xffffffff;
}

static uint64_t little(const uint8_t *p, int n)
{
    uint64_t x = 0;

    for (int i = n - 1; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

static void check_crc(const uint8_t *p, size_t n)
{
    uint32_t crc = crc_of(p, n);
    uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8;

    ck_assert_uint_eq(little(p + n, 4), masked);
}

/* A field: its number, its number or its bytes. */
typedef struct field {
    int number, type;
    uint64_t value;
    const uint8_t *bytes;
} field;

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t x = 0;

    for (int shift = 0; shift < 64; shift += 7) {
        ck_assert(*p < end);
        x |= (uint64_t)(**p & 127) << shift;
        if (*(*p)++ < 128)
            return x;
    }
    ck_abort_msg("a varint of more than ten bytes");
    return 0;
}

static bool next(const uint8_t **p, const uint8_t *end, field *f)
{
    uint64_t tag;

    if (*p == end)
        return false;
    tag = varint(p, end);
    *f = (field){ .number = (int)(tag >> 3), .type = (int)(tag & 7) };
    if (f->type == 0) {
        f->value = varint(p, end);
        return true;
    }
    ck_assert(f->type == 1 || f->type == 2 || f->type == 5);
    f->value = f->type == 1 ? 8 : f->type == 5 ? 4 : varint(p, end);
    ck_assert_uint_le(f->value, (uint64_t)(end - *p));
    f->bytes = *p;
    *p += f->value;
    if (f->type != 2)
        f->value = little(f->bytes, (int)f->value);
    return true;
}

static void read_value(events *e, scalar base, const field *in)
{
    const uint8_t *p = in->bytes, *end = p + in->value;
    scalar *s = &e->all[e->count++];
    field f;

    ck_assert_int_le(e->count, EVENTS_MOST);
    *s = base;
    while (next(&p, end, &f)) {
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1)
            snprintf(s->tag, sizeof s->tag, "%.*s", (int)f.value,
                     (const char *)f.bytes);
        else if (f.number == 2)
            memcpy(&s->value, &bits, sizeof bits);
        else
            ck_abort_msg("Summary.Value has a field %d", f.number);
    }
    ck_assert_uint_gt(strlen(s->tag), 0);
}

static void read_event(events *e, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    scalar base = { 0 };
    field f, summary = { 0 };

    while (next(&p, end, &f)) {
        if (f.number == 1)
            memcpy(&base.time, &f.value, sizeof base.time);
        else if (f.number == 2)
            base.step = (int64_t)f.value;
        else if (f.number == 3)
            snprintf(e->version, sizeof e->version, "%.*s", (int)f.value,
                     (const char *)f.bytes);
        else if (f.number == 5)
            summary = f;
        else if (f.number == 7)
            e->starts++;
        else
            ck_abort_msg("Event has a field %d", f.number);
    }
    for (p = summary.bytes; p && next(&p, summary.bytes + summary.value, &f);) {
        ck_assert_int_eq(f.number, 1);
        read_value(e, base, &f);
    }
}

events *events_read(const char *path)
{
    events *e = calloc(1, sizeof *e);
    uint8_t *bytes;
    size_t size;

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(sp_file_read(path, 1 << 24, &bytes, &size), SP_OK);
    for (size_t at = 0; at < size; e->records++) {
        size_t n;

        ck_assert_uint_le(at + 16, size);
        check_crc(bytes + at, 8);
        n = (size_t)little(bytes + at, 8);
        ck_assert_uint_le(at + 16 + n, size);
        check_crc(bytes + at + 12, n);
        read_event(e, bytes + at + 12, n);
        at += 16 + n;
    }
    free(bytes);
    ck_assert_str_eq(e->version, "brain.Event:2");
    ck_assert_int_eq(e->starts, 1);
    return e;
}

const scalar *events_find(const events *e, int64_t step, const char *tag)
{
    const scalar *found = NULL;

    for (int i = 0; i < e->count; i++)
        if (e->all[i].step == step && strcmp(e->all[i].tag, tag) == 0) {
            ck_assert_msg(!found, "%s twice at step %lld", tag,
                          (long long)step);
            found = &e->all[i];
        }
    return found;
}

void events_check_single(const events *e)
{
    for (int i = 0; i < e->count; i++)
        ck_assert_ptr_nonnull(events_find(e, e->all[i].step, e->all[i].tag));
}
