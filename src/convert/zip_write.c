/* Writing ZIP archives of stored files. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/little.h"
#include "base/text.h"
#include "convert/zip.h"

enum {
    VERSION = 45,        /* of the format: with ZIP64 */
    UTF8 = 1 << 11,      /* of a name */
    DATE = 1 << 5 | 1,   /* 1 January 1980, the first that there is */
    MOST_ENTRIES = 65534 /* without ZIP64 */
};

struct sp_zip_out {
    sp_file_out *file;
    uint64_t at, count;
    sp_text directory;
};

static void add_number(sp_text *t, uint64_t x, size_t bytes)
{
    uint8_t b[8];

    sp_little_put(b, bytes, x);
    sp_text_put(t, b, bytes);
}

static sp_err put(sp_zip_out *z, const void *bytes, size_t n)
{
    z->at += n;
    return sp_file_put(z->file, bytes, n);
}

static sp_err put_text(sp_zip_out *z, sp_text *t)
{
    sp_err e = sp_text_check(t);

    if (e == SP_OK)
        e = put(z, t->bytes, t->size);
    sp_text_free(t);
    return e;
}

sp_err sp_zip_begin(sp_zip_out **out, const char *path)
{
    sp_zip_out *z = calloc(1, sizeof *z);
    sp_err e;

    if (!z)
        return sp_fail(SP_ENOMEM, "%s: out of memory", path);
    e = sp_file_begin(&z->file, path);
    if (e != SP_OK)
        free(z);
    else
        *out = z;
    return e;
}

/* What a local header and an entry of the directory have in common. */
typedef struct common {
    const char *name;
    uint64_t size, at;
    uint32_t crc;
} common;

static void add_common(sp_text *t, const common *c, size_t extra)
{
    uint32_t size = c->size < UINT32_MAX ? (uint32_t)c->size : UINT32_MAX;

    add_number(t, VERSION, 2);
    add_number(t, UTF8, 2);
    add_number(t, 0, 2); /* stored */
    add_number(t, 0, 2); /* midnight */
    add_number(t, DATE, 2);
    add_number(t, c->crc, 4);
    add_number(t, size, 4); /* packed, */
    add_number(t, size, 4); /* and unpacked */
    add_number(t, strlen(c->name), 2);
    add_number(t, extra, 2);
}

/* What does not fit 32 bits; in a local header both sizes stand together. */
static void add_extra(sp_text *t, const common *c, bool local)
{
    bool large = c->size >= UINT32_MAX, far = !local && c->at >= UINT32_MAX;

    if (!large && !far)
        return;
    add_number(t, 1, 2);
    add_number(t, (large ? 16 : 0) + (far ? 8 : 0), 2);
    if (large) {
        add_number(t, c->size, 8);
        add_number(t, c->size, 8);
    }
    if (far)
        add_number(t, c->at, 8);
}

static void add_local(sp_text *t, const common *c)
{
    sp_text extra = { 0 };

    add_extra(&extra, c, true);
    sp_text_put(t, "PK\3\4", 4);
    add_common(t, c, extra.size);
    sp_text_put(t, c->name, strlen(c->name));
    sp_text_put(t, sp_text_string(&extra), extra.size);
    t->failed = t->failed || extra.failed;
    sp_text_free(&extra);
}

static void add_entry(sp_text *t, const common *c)
{
    sp_text extra = { 0 };

    add_extra(&extra, c, false);
    sp_text_put(t, "PK\1\2", 4);
    add_number(t, VERSION, 2); /* made by */
    add_common(t, c, extra.size);
    add_number(t, 0, 2); /* comment, */
    add_number(t, 0, 2); /* disk, */
    add_number(t, 0, 2); /* attributes, */
    add_number(t, 0, 4); /* and of a file system */
    add_number(t, c->at < UINT32_MAX ? c->at : UINT32_MAX, 4);
    sp_text_put(t, c->name, strlen(c->name));
    sp_text_put(t, sp_text_string(&extra), extra.size);
    t->failed = t->failed || extra.failed;
    sp_text_free(&extra);
}

sp_err sp_zip_add(sp_zip_out *z, const char *name, const sp_zip_part *parts,
                  int count)
{
    common c = { .name = name, .at = z->at };
    sp_text head = { 0 };

    if (strlen(name) > UINT16_MAX)
        return sp_fail(SP_EARG, "%.60s...: a name of %zu bytes is too long",
                       name, strlen(name));
    for (int i = 0; i < count; i++) {
        const Bytef *bytes = parts[i].bytes;
        c.crc = (uint32_t)crc32_z(c.crc, bytes, parts[i].size);
        c.size += parts[i].size;
    }
    add_local(&head, &c);
    SP_TRY(put_text(z, &head));
    for (int i = 0; i < count; i++)
        SP_TRY(put(z, parts[i].bytes, parts[i].size));
    add_entry(&z->directory, &c);
    z->count++;
    return sp_text_check(&z->directory);
}

/* The end of ZIP64, and where it is. */
static void add_end64(sp_text *t, const sp_zip_out *z, uint64_t size)
{
    sp_text_put(t, "PK\6\6", 4);
    add_number(t, 44, 8); /* bytes of it that follow */
    add_number(t, VERSION, 2);
    add_number(t, VERSION, 2);
    add_number(t, 0, 4); /* this disk, */
    add_number(t, 0, 4); /* and the directory's */
    add_number(t, z->count, 8);
    add_number(t, z->count, 8);
    add_number(t, size, 8);
    add_number(t, z->at, 8);
    sp_text_put(t, "PK\6\7", 4);
    add_number(t, 0, 4);
    add_number(t, z->at + size, 8);
    add_number(t, 1, 4); /* disks */
}

static sp_err put_end(sp_zip_out *z)
{
    uint64_t size = z->directory.size, at = z->at;
    bool wide =
        z->count > MOST_ENTRIES || size >= UINT32_MAX || at >= UINT32_MAX;
    sp_text end = { 0 };

    if (wide)
        add_end64(&end, z, size);
    sp_text_put(&end, "PK\5\6", 4);
    add_number(&end, 0, 2);
    add_number(&end, 0, 2);
    add_number(&end, wide ? UINT16_MAX : z->count, 2);
    add_number(&end, wide ? UINT16_MAX : z->count, 2);
    add_number(&end, wide ? UINT32_MAX : size, 4);
    add_number(&end, wide ? UINT32_MAX : at, 4);
    add_number(&end, 0, 2); /* comment */
    SP_TRY(put(z, sp_text_string(&z->directory), z->directory.size));
    return put_text(z, &end);
}

static void forget(sp_zip_out *z)
{
    sp_text_free(&z->directory);
    free(z);
}

sp_err sp_zip_end(sp_zip_out *z)
{
    sp_err e = put_end(z);

    if (e == SP_OK)
        e = sp_file_commit(z->file);
    else
        sp_file_cancel(z->file);
    forget(z);
    return e;
}

void sp_zip_cancel(sp_zip_out *z)
{
    if (!z)
        return;
    sp_file_cancel(z->file);
    forget(z);
}
