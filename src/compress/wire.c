#include "compress/wire.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "compress/bytes.h"

enum {
    COUNT_BYTES = 4,
    EXPONENT_BYTES = 2,
    SKIP = 65535, /* the run that stands for no entry */
    /* The largest half of a packet is between 2^14 and 2^15: far from infinity,
     * and what lies 2^38 below it is not yet 0. */
    TOP = 15
};

/* The count that stands for entries that are not finite. */
#define NOT_FINITE UINT32_MAX

bool sp_wire_fits(size_t n) { return n < NOT_FINITE; }

static size_t header_bytes(const sp_wire *w)
{
    return COUNT_BYTES + (w->values == SP_HALFS ? EXPONENT_BYTES : 0);
}

static size_t value_bytes(const sp_wire *w)
{
    return w->values == SP_HALFS ? 2 : 4;
}

static size_t place_bytes(const sp_wire *w)
{
    return w->places == SP_RUN16 ? 2 : 4;
}

size_t sp_wire_entry_bytes(const sp_wire *w)
{
    return value_bytes(w) + place_bytes(w);
}

size_t sp_wire_room(const sp_wire *w, size_t k)
{
    size_t skips = w->places == SP_RUN16 ? w->n / SKIP : 0;

    return header_bytes(w) + k * sp_wire_entry_bytes(w) +
           skips * place_bytes(w);
}

/* ---- Writing ------------------------------------------------------------- */

static float largest(const float *value, size_t k)
{
    float most = 0;

    for (size_t i = 0; i < k; i++)
        most = fmaxf(most, fabsf(value[i]));
    return most;
}

/* The streams of headers and values; returns the entries that stay. */
static size_t write_halfs(uint32_t *index, float *value, size_t k,
                          uint8_t *bytes)
{
    int exponent = sp_half_exponent(largest(value, k), TOP);
    float scale = ldexpf(1, exponent), unit = ldexpf(1, -exponent);
    uint8_t *values = bytes + COUNT_BYTES + EXPONENT_BYTES;
    size_t kept = 0;

    sp_put16(bytes + COUNT_BYTES, (uint16_t)exponent);
    for (size_t i = 0; i < k; i++) {
        uint16_t h = sp_half(scale * value[i]);
        if ((h & 0x7FFF) == 0)
            continue;
        /* Rounded up, the very largest floats would become infinite. */
        if (isinf(unit * sp_half_float(h)))
            h--;
        sp_put16(values + 2 * kept, h);
        index[kept] = index[i];
        value[kept++] = unit * sp_half_float(h);
    }
    return kept;
}

static void write_floats(const float *value, size_t k, uint8_t *values)
{
    for (size_t i = 0; i < k; i++)
        sp_put32(values + 4 * i, sp_float_bits(value[i]));
}

/* One run, after skips for what is too long; returns the bytes written. */
static size_t write_run(uint8_t *places, size_t run)
{
    size_t size = 0;

    for (; run >= SKIP; run -= SKIP, size += 2)
        sp_put16(places + size, SKIP);
    sp_put16(places + size, (uint16_t)run);
    return size + 2;
}

static size_t write_places(const sp_wire *w, const uint32_t *index, size_t k,
                           uint8_t *places)
{
    size_t size = 0, next = 0;

    for (size_t i = 0; i < k; i++) {
        if (w->places == SP_INDEX32) {
            sp_put32(places + 4 * i, index[i]);
            continue;
        }
        size += write_run(places + size, index[i] - next);
        next = (size_t)index[i] + 1;
    }
    return w->places == SP_INDEX32 ? 4 * k : size;
}

size_t sp_wire_write(const sp_wire *w, uint32_t *index, float *value, size_t k,
                     sp_packet *p)
{
    p->headers = header_bytes(w);
    if (w->values == SP_HALFS)
        k = write_halfs(index, value, k, p->bytes);
    else
        write_floats(value, k, p->bytes + p->headers);
    sp_put32(p->bytes, (uint32_t)k);
    p->values = k * value_bytes(w);
    p->places = write_places(w, index, k, p->bytes + p->headers + p->values);
    return k;
}

void sp_wire_write_not_finite(const sp_wire *w, sp_packet *p)
{
    memset(p->bytes, 0, header_bytes(w));
    sp_put32(p->bytes, NOT_FINITE);
    *p = (sp_packet){ .bytes = p->bytes, .headers = header_bytes(w) };
}

/* ---- Reading ------------------------------------------------------------- */

#define DAMAGED "; it is damaged, or from a rank with other settings"

static sp_err open_halfs(sp_wire_reader *r, const uint8_t *packet)
{
    int exponent = (int16_t)sp_get16(packet + COUNT_BYTES);

    if (exponent < -SP_HALF_EXPONENT || exponent > SP_HALF_EXPONENT)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: exponent %d, but only up to +-%d are "
                       "written" DAMAGED,
                       r->wire.name, exponent, SP_HALF_EXPONENT);
    r->unit = ldexpf(1, -exponent);
    return SP_OK;
}

sp_err sp_wire_open(sp_wire_reader *r, const sp_wire *w, const void *packet,
                    size_t bytes)
{
    const uint8_t *at = packet;
    size_t header = header_bytes(w), rest;

    *r = (sp_wire_reader){ .wire = *w, .unit = 1 };
    if (bytes < header)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes, but the header alone takes "
                       "%zu" DAMAGED,
                       w->name, bytes, header);
    r->count = sp_get32(at);
    r->not_finite = r->count == NOT_FINITE && bytes == header;
    if (r->not_finite)
        r->count = 0;
    if (r->count > w->n)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu entries for %zu elements" DAMAGED,
                       w->name, r->count, w->n);
    rest = bytes - header;
    if (rest / (value_bytes(w) + place_bytes(w)) < r->count)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes cannot hold %zu "
                       "entries" DAMAGED,
                       w->name, bytes, r->count);
    r->values = at + header;
    r->places = r->values + r->count * value_bytes(w);
    rest -= r->count * value_bytes(w);
    r->place_count = rest / place_bytes(w);
    if (rest % place_bytes(w) != 0 ||
        (w->places == SP_INDEX32 && r->place_count != r->count))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes are left for the places of "
                       "%zu entries" DAMAGED,
                       w->name, rest, r->count);
    return w->values == SP_HALFS ? open_halfs(r, at) : SP_OK;
}

static sp_err outside(const sp_wire_reader *r, uint64_t index)
{
    return sp_fail(SP_EFORMAT,
                   "packet of %s: entry %zu lies at %llu, beyond its %zu "
                   "elements" DAMAGED,
                   r->wire.name, r->read, (unsigned long long)index, r->wire.n);
}

static sp_err next_index(sp_wire_reader *r, uint64_t *index)
{
    *index = sp_get32(r->places + 4 * r->place_at++);
    if (*index < r->next)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: entry %zu lies at %llu, not behind the "
                       "one before it" DAMAGED,
                       r->wire.name, r->read, (unsigned long long)*index);
    return *index >= r->wire.n ? outside(r, *index) : SP_OK;
}

static sp_err next_run(sp_wire_reader *r, uint64_t *index)
{
    uint16_t run = SKIP;

    *index = r->next;
    while (run == SKIP) {
        if (r->place_at == r->place_count)
            return sp_fail(SP_EFORMAT,
                           "packet of %s: %zu runs for %zu entries" DAMAGED,
                           r->wire.name, r->place_count, r->count);
        run = sp_get16(r->places + 2 * r->place_at++);
        *index += run;
        if (*index >= r->wire.n)
            return outside(r, *index);
    }
    return SP_OK;
}

static sp_err read_value(const sp_wire_reader *r, float *value)
{
    if (r->wire.values == SP_HALFS)
        *value = r->unit * sp_half_float(sp_get16(r->values + 2 * r->read));
    else
        *value = sp_bits_float(sp_get32(r->values + 4 * r->read));
    if (!(fabsf(*value) <= FLT_MAX))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: entry %zu is not a finite number" DAMAGED,
                       r->wire.name, r->read);
    return SP_OK;
}

sp_err sp_wire_next(sp_wire_reader *r, sp_wire_entry *e, bool *more)
{
    uint64_t index;

    *more = r->read < r->count;
    if (!*more && r->place_at < r->place_count)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu runs are left behind its last "
                       "entry" DAMAGED,
                       r->wire.name, r->place_count - r->place_at);
    if (!*more)
        return SP_OK;
    SP_TRY(r->wire.places == SP_INDEX32 ? next_index(r, &index)
                                        : next_run(r, &index));
    SP_TRY(read_value(r, &e->value));
    e->index = (uint32_t)index;
    r->next = index + 1;
    r->read++;
    return SP_OK;
}

/* ---- Merging ------------------------------------------------------------- */

/* The entries of two packets in one rising order. */
typedef struct pair {
    sp_wire_reader side[2];
    sp_wire_entry head[2];
    bool more[2];
    bool not_finite; /* one of them, or a sum so far */
} pair;

static sp_err advance(pair *p, int i)
{
    return sp_wire_next(&p->side[i], &p->head[i], &p->more[i]);
}

static sp_err begin(pair *p, const sp_wire *w, const void *const packet[2],
                    const size_t bytes[2])
{
    p->not_finite = false;
    for (int i = 0; i < 2; i++) {
        SP_TRY(sp_wire_open(&p->side[i], w, packet[i], bytes[i]));
        SP_TRY(advance(p, i));
        p->not_finite |= p->side[i].not_finite;
    }
    return SP_OK;
}

/* The next entry of the sum. */
static sp_err take(pair *p, sp_wire_entry *e)
{
    bool first =
        p->more[0] && (!p->more[1] || p->head[0].index <= p->head[1].index);
    bool second =
        p->more[1] && (!p->more[0] || p->head[1].index <= p->head[0].index);

    e->index = first ? p->head[0].index : p->head[1].index;
    e->value = first && second ? p->head[0].value + p->head[1].value
               : first         ? p->head[0].value
                               : p->head[1].value;
    p->not_finite |= !(fabsf(e->value) <= FLT_MAX);
    if (first)
        SP_TRY(advance(p, 0));
    return second ? advance(p, 1) : SP_OK;
}

/* Values and places of the sum, each stream with room for those of both;
 * without streams (NULL), entries are only counted. */
static sp_err write_sum(pair *p, size_t *count, uint8_t *values,
                        uint8_t *places, size_t *place_size)
{
    const sp_wire *w = &p->side[0].wire;
    size_t next = 0;
    sp_wire_entry e;

    for (*count = 0; p->more[0] || p->more[1]; ++*count) {
        SP_TRY(take(p, &e));
        if (!values)
            continue;
        sp_put32(values + 4 * *count, sp_float_bits(e.value));
        if (w->places == SP_INDEX32) {
            sp_put32(places + *place_size, e.index);
            *place_size += 4;
        } else {
            *place_size += write_run(places + *place_size, e.index - next);
        }
        next = (size_t)e.index + 1;
    }
    return SP_OK;
}

sp_err sp_wire_merge(const sp_wire *w, const void *a, size_t a_bytes,
                     const void *b, size_t b_bytes, sp_packet *out)
{
    const void *const packet[] = { a, b };
    const size_t bytes[] = { a_bytes, b_bytes };
    size_t count, place_size = 0;
    pair p;

    /* Where the places begin depends on the number of entries. */
    SP_TRY(begin(&p, w, packet, bytes));
    SP_TRY(write_sum(&p, &count, NULL, NULL, NULL));
    if (p.not_finite) {
        sp_wire_write_not_finite(w, out);
        return SP_OK;
    }
    out->headers = header_bytes(w);
    out->values = count * value_bytes(w);
    SP_TRY(begin(&p, w, packet, bytes));
    SP_TRY(write_sum(&p, &count, out->bytes + out->headers,
                     out->bytes + out->headers + out->values, &place_size));
    sp_put32(out->bytes, (uint32_t)count);
    out->places = place_size;
    return SP_OK;
}
