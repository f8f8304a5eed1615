/* Whole files, plain or gzip. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sprat/data.h"

/* gzread() takes an unsigned and gives an int. */
enum { PIECE = 1 << 24 };

/* What is being read. One byte more than `limit` is asked for, to see that
 * there is more. */
struct reader {
    const char *path;
    gzFile file;
    uint8_t *bytes;
    size_t size, capacity, limit;
};

static sp_err grow(struct reader *r)
{
    size_t want = r->capacity ? 2 * r->capacity : PIECE;
    uint8_t *bytes;

    if (want > r->limit + 1)
        want = r->limit + 1;
    bytes = realloc(r->bytes, want);
    if (!bytes)
        return sp_fail(SP_ENOMEM, "%s: no memory for %zu bytes", r->path, want);
    r->bytes = bytes;
    r->capacity = want;
    return SP_OK;
}

static sp_err too_big(const struct reader *r)
{
    return sp_fail(SP_EFORMAT, "%s: holds more than the %zu bytes allowed",
                   r->path, r->limit);
}

static sp_err read_error(const struct reader *r)
{
    int code;
    const char *text = gzerror(r->file, &code);

    if (code == Z_ERRNO)
        return sp_fail(SP_EIO, "%s: cannot be read (%s)", r->path,
                       strerror(errno));
    if (code == Z_BUF_ERROR)
        text = "it ends too early";
    return sp_fail(SP_EFORMAT, "%s: damaged gzip file (%s); fetch it again",
                   r->path, text);
}

static sp_err read_all(struct reader *r)
{
    for (;;) {
        size_t room = r->capacity - r->size;
        int n;

        if (room == 0) {
            if (r->size > r->limit)
                return too_big(r);
            SP_TRY(grow(r));
            room = r->capacity - r->size;
        }
        n = gzread(r->file, r->bytes + r->size,
                   room < PIECE ? (unsigned)room : PIECE);
        if (n < 0)
            return read_error(r);
        if (n == 0)
            break;
        r->size += (size_t)n;
    }
    if (r->size > r->limit)
        return too_big(r);
    /* A gzip file cut short gives its bytes first and the error at the end. */
    int code;
    gzerror(r->file, &code);
    return code == Z_OK || code == Z_STREAM_END ? SP_OK : read_error(r);
}

sp_err sp_read_file(const char *path, size_t limit, uint8_t **bytes,
                    size_t *size)
{
    struct reader r = { .path = path, .limit = limit };
    struct stat st;
    sp_err err;

    if (limit == SIZE_MAX)
        r.limit--;
    if (stat(path, &st) != 0)
        return sp_fail(SP_EIO, "%s: cannot be opened (%s)", path,
                       strerror(errno));
    /* Opening a pipe would wait for its writer. */
    if (!S_ISREG(st.st_mode))
        return sp_fail(SP_EIO, "%s: is not a file", path);
    r.file = gzopen(path, "rb");
    if (!r.file)
        return sp_fail(SP_EIO, "%s: cannot be opened (%s)", path,
                       strerror(errno));
    /* A plain file then needs no second allocation. */
    r.capacity =
        (size_t)st.st_size < r.limit ? (size_t)st.st_size + 1 : r.limit + 1;
    r.bytes = malloc(r.capacity);
    err = r.bytes ? read_all(&r)
                  : sp_fail(SP_ENOMEM, "%s: no memory for %zu bytes", path,
                            r.capacity);
    gzclose_r(r.file);
    if (err) {
        free(r.bytes);
        return err;
    }
    *bytes = r.bytes;
    *size = r.size;
    return SP_OK;
}
