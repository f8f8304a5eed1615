/* Reading ZIP archives, which anybody may have made. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/little.h"
#include "convert/zip.h"

enum {
    LOCAL = 30,   /* bytes of a local header, */
    ENTRY = 46,   /* of an entry of the directory, */
    END = 22,     /* of its end, */
    LOCATOR = 20, /* of what tells where the end of ZIP64 is, */
    END64 = 56,   /* and of that; all without what may follow them */
    COMMENT = 65535,
    ENCRYPTED = 1,
    STORED = 0,
    DEFLATED = 8,
    EXTRA64 = 1,
    /* Of deflate: no byte unpacks to more. */
    MOST_RATIO = 1032
};

/* An archive being read. */
typedef struct reader {
    sp_zip *z;
    const uint8_t *bytes;
    size_t size;
} reader;

static bool is_mark(const uint8_t *p, char a, char b)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

bool sp_zip_is(const uint8_t *bytes, size_t size)
{
    return size >= 4 && (is_mark(bytes, 3, 4) || is_mark(bytes, 5, 6));
}

static sp_err damaged(const sp_zip *z, const char *entry, const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: %s%.100s%s", z->path, entry ? entry : "",
                   entry ? ": " : "", what);
}

/* Whether n bytes at `at` lie within the archive. */
static bool within(const reader *r, uint64_t at, uint64_t n)
{
    return at <= r->size && n <= r->size - at;
}

/* Where the directory is, and of how many entries. */
typedef struct directory {
    uint64_t at, bytes, count;
} directory;

/* The end of the directory: the last mark of it whose comment fits. */
static const uint8_t *find_end(const reader *r)
{
    for (size_t back = END; back <= r->size && back <= END + COMMENT; back++) {
        const uint8_t *p = r->bytes + (r->size - back);
        if (is_mark(p, 5, 6) && sp_little_get(p + 20, 2) == back - END)
            return p;
    }
    return NULL;
}

static sp_err find_directory(const reader *r, directory *d)
{
    const uint8_t *end = find_end(r), *far;
    size_t at;
    uint64_t where;

    if (!end)
        return damaged(r->z, NULL,
                       "the archive's directory is missing: it is truncated");
    d->count = sp_little_get(end + 10, 2);
    d->bytes = sp_little_get(end + 12, 4);
    d->at = sp_little_get(end + 16, 4);
    at = (size_t)(end - r->bytes);
    if (at < LOCATOR || !is_mark(end - LOCATOR, 6, 7))
        return SP_OK;
    where = sp_little_get(end - LOCATOR + 8, 8);
    if (!within(r, where, END64) || !is_mark(r->bytes + where, 6, 6))
        return damaged(r->z, NULL, "the archive's directory is damaged");
    far = r->bytes + where;
    d->count = sp_little_get(far + 32, 8);
    d->bytes = sp_little_get(far + 40, 8);
    d->at = sp_little_get(far + 48, 8);
    return SP_OK;
}

/* Sizes and place of an entry that do not fit 32 bits stand in its extra
 * field, in this order. False: they are missing. */
static bool read_extra(const uint8_t *extra, size_t size, uint64_t *wide[3])
{
    while (size >= 4) {
        size_t kind = (size_t)sp_little_get(extra, 2),
               n = (size_t)sp_little_get(extra + 2, 2);
        extra += 4;
        size -= 4;
        if (n > size)
            return false;
        if (kind == EXTRA64) {
            for (int i = 0; i < 3; i++) {
                if (*wide[i] != UINT32_MAX)
                    continue;
                if (n < 8)
                    return false;
                *wide[i] = sp_little_get(extra, 8);
                extra += 8;
                n -= 8;
            }
            return true;
        }
        extra += n;
        size -= n;
    }
    return *wide[0] != UINT32_MAX && *wide[1] != UINT32_MAX &&
           *wide[2] != UINT32_MAX;
}

/* Where an entry's data are: behind its local header. */
static sp_err place(const reader *r, sp_zip_entry *e, uint64_t at)
{
    uint64_t names;

    if (!within(r, at, LOCAL) || !is_mark(r->bytes + at, 3, 4))
        return damaged(r->z, e->name, "its header is not where it should be");
    names = sp_little_get(r->bytes + at + 26, 2) +
            sp_little_get(r->bytes + at + 28, 2);
    at += LOCAL + names;
    if (!within(r, at, e->packed))
        return damaged(r->z, e->name,
                       "its data do not lie within the archive: it is "
                       "truncated");
    e->data = r->bytes + at;
    if (e->deflated ? e->size > (e->packed + 1) * MOST_RATIO
                    : e->size != e->packed)
        return damaged(r->z, e->name,
                       "its size is none that its data can unpack to");
    return SP_OK;
}

/* One entry of the directory, at p with `left` bytes; *used: how many it is. */
static sp_err read_entry(const reader *r, const uint8_t *p, uint64_t left,
                         uint64_t *used)
{
    sp_zip_entry *e = &r->z->entries[r->z->count];
    size_t name, extra, comment, flags, method;
    uint64_t at, *wide[] = { &e->size, &e->packed, &at };
    char *text;

    if (left < ENTRY || !is_mark(p, 1, 2))
        return damaged(r->z, NULL, "the archive's directory is damaged");
    flags = (size_t)sp_little_get(p + 8, 2);
    method = (size_t)sp_little_get(p + 10, 2);
    name = (size_t)sp_little_get(p + 28, 2);
    extra = (size_t)sp_little_get(p + 30, 2);
    comment = (size_t)sp_little_get(p + 32, 2);
    *used = ENTRY + name + extra + comment;
    if (left < *used || name == 0 || memchr(p + ENTRY, 0, name))
        return damaged(r->z, NULL, "the archive's directory is damaged");
    text = sp_arena_alloc(&r->z->arena, name + 1);
    if (!text)
        return sp_fail(SP_ENOMEM, "%s: out of memory", r->z->path);
    memcpy(text, p + ENTRY, name);
    *e = (sp_zip_entry){ .name = text,
                         .crc = (uint32_t)sp_little_get(p + 16, 4),
                         .packed = sp_little_get(p + 20, 4),
                         .size = sp_little_get(p + 24, 4),
                         .deflated = method == DEFLATED };
    at = sp_little_get(p + 42, 4);
    if (flags & ENCRYPTED)
        return damaged(r->z, text, "is encrypted; unpack it first");
    if (method != STORED && method != DEFLATED)
        return damaged(r->z, text,
                       "is packed by another method than deflate; pack it "
                       "again");
    if (!read_extra(p + ENTRY + name, extra, wide))
        return damaged(r->z, text, "its sizes are missing");
    SP_TRY(place(r, e, at));
    r->z->count++;
    return SP_OK;
}

static int by_name(const void *a, const void *b)
{
    const sp_zip_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static sp_err sort(sp_zip *z)
{
    qsort(z->entries, z->count, sizeof *z->entries, by_name);
    for (size_t i = 1; i < z->count; i++)
        if (by_name(&z->entries[i - 1], &z->entries[i]) == 0)
            return damaged(z, z->entries[i].name, "stands twice");
    return SP_OK;
}

static sp_err read_directory(const reader *r)
{
    directory d = { 0 };
    uint64_t used = 0;

    SP_TRY(find_directory(r, &d));
    if (!within(r, d.at, d.bytes) || d.count > d.bytes / ENTRY)
        return damaged(r->z, NULL,
                       "the archive's directory does not lie within it");
    r->z->entries = sp_arena_alloc(&r->z->arena, ((size_t)d.count + 1) *
                                                     sizeof *r->z->entries);
    if (!r->z->entries)
        return sp_fail(SP_ENOMEM, "%s: out of memory", r->z->path);
    for (uint64_t i = 0; i < d.count; i++) {
        SP_TRY(read_entry(r, r->bytes + d.at, d.bytes, &used));
        d.at += used;
        d.bytes -= used;
    }
    return sort(r->z);
}

sp_err sp_zip_open(sp_zip *z, const char *path, const uint8_t *bytes,
                   size_t size)
{
    reader r = { z, bytes, size };
    sp_err e;

    *z = (sp_zip){ .path = path };
    e = read_directory(&r);
    if (e != SP_OK)
        sp_zip_close(z);
    return e;
}

void sp_zip_close(sp_zip *z)
{
    sp_arena_free(&z->arena);
    *z = (sp_zip){ 0 };
}

const sp_zip_entry *sp_zip_find(const sp_zip *z, const char *name)
{
    sp_zip_entry wanted = { .name = name };

    return z->count ? bsearch(&wanted, z->entries, z->count, sizeof *z->entries,
                              by_name)
                    : NULL;
}

/* zlib counts in unsigned ints: hand it what it can take. */
static unsigned piece(uint64_t left)
{
    return left < 1 << 30 ? (unsigned)left : 1 << 30;
}

/* Unpack n bytes; false if there are fewer, or more where n is all. */
static bool unpack(z_stream *s, const sp_zip_entry *e, uint8_t *out, size_t n)
{
    uint64_t in = e->packed, left = n;
    uint8_t beyond;
    int code = Z_OK;

    s->next_in = (Bytef *)e->data;
    while (left > 0 && code == Z_OK) {
        unsigned want = piece(left), have = piece(in);
        s->next_out = out + (n - left);
        s->avail_out = want;
        s->avail_in = have;
        code = inflate(s, Z_NO_FLUSH);
        in -= have - s->avail_in;
        left -= want - s->avail_out;
    }
    if (left > 0 || (code != Z_OK && code != Z_STREAM_END))
        return false;
    if (n < e->size || code == Z_STREAM_END)
        return true;
    s->next_out = &beyond;
    s->avail_out = 1;
    s->avail_in = piece(in);
    return inflate(s, Z_NO_FLUSH) == Z_STREAM_END && s->avail_out == 1;
}

sp_err sp_zip_read(const sp_zip *z, const sp_zip_entry *e, void *out, size_t n)
{
    z_stream s = { 0 };
    bool good = true;

    if (!e->deflated) {
        memcpy(out, e->data, n);
    } else {
        /* Raw deflate, without zlib's own header. */
        if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
            return sp_fail(SP_ENOMEM, "%s: out of memory", z->path);
        good = unpack(&s, e, out, n);
        inflateEnd(&s);
    }
    if (!good || (n == e->size && crc32_z(0, out, n) != e->crc))
        return damaged(z, e->name, "its data are damaged: fetch it again");
    return SP_OK;
}
