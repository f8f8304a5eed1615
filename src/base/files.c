#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static const char *remedy(int error)
{
    switch (error) {
    case ENOSPC:
        return " (free some space, or choose another disk)";
    case EDQUOT:
        return " (your quota is used up: remove files, or ask for more)";
    case EACCES:
    case EPERM:
        return " (check the permissions of it and of its folder)";
    case EROFS:
        return " (choose a folder that can be written)";
    case EMFILE:
        return " (raise the limit of open files: ulimit -n)";
    default:
        return "";
    }
}

sp_err sp_io_fail(const char *operation, const char *path)
{
    int error = errno;
    char reason[128];

    if (strerror_r(error, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", error);
    return sp_fail(SP_EIO, "cannot %s %s: %s%s", operation, path, reason,
                   remedy(error));
}

char *sp_path(const char *folder, const char *fmt, ...)
{
    sp_text t = { 0 };
    size_t n = strlen(folder);
    va_list args;

    sp_text_put(&t, folder, n);
    if (n > 0 && folder[n - 1] != '/')
        sp_text_put(&t, "/", 1);
    va_start(args, fmt);
    sp_text_addv(&t, fmt, args);
    va_end(args);
    if (t.failed)
        sp_text_free(&t);
    return t.bytes;
}

bool sp_is_dir(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

bool sp_is_file(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* ---- Reading ----------------------------------------------------------- */

/* Open a regular file; not blocking, so that a pipe is refused, not awaited. */
static sp_err open_regular(const char *path, int flags, int *out,
                           struct stat *s)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
    sp_err e = SP_OK;

    /* ENXIO: a pipe without a reader. */
    if (fd < 0 && errno == ENXIO)
        return sp_fail(SP_EIO, "cannot open %s: it is not a regular file",
                       path);
    if (fd < 0)
        return sp_io_fail("open", path);
    if (fstat(fd, s) != 0)
        e = sp_io_fail("examine", path);
    else if (S_ISDIR(s->st_mode))
        e = sp_fail(SP_EIO, "cannot read %s: it is a folder, not a file", path);
    else if (!S_ISREG(s->st_mode))
        e = sp_fail(SP_EIO, "cannot open %s: it is not a regular file", path);
    if (e != SP_OK)
        close(fd);
    else
        *out = fd;
    return e;
}

sp_err sp_file_open(const char *path, int *out, uint64_t *size)
{
    struct stat s;

    SP_TRY(open_regular(path, O_RDONLY, out, &s));
    *size = (uint64_t)s.st_size;
    return SP_OK;
}

sp_err sp_file_append(const char *path, FILE **out)
{
    struct stat s;
    sp_err e;
    int fd = -1;

    SP_TRY(open_regular(path, O_WRONLY | O_APPEND | O_CREAT, &fd, &s));
    *out = fdopen(fd, "a");
    if (*out)
        return SP_OK;
    e = sp_io_fail("open", path);
    close(fd);
    return e;
}

/* Read up to n bytes, fewer only at the file's end; -1 and errno on errors. */
static ssize_t read_part(int fd, uint64_t offset, void *bytes, size_t n)
{
    size_t done = 0;

    while (done < n) {
        size_t part = n - done < (1 << 30) ? n - done : 1 << 30;
        ssize_t got =
            pread(fd, (char *)bytes + done, part, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

sp_err sp_file_read_at(int fd, const char *path, uint64_t offset, void *bytes,
                       size_t n)
{
    ssize_t got = read_part(fd, offset, bytes, n);

    if (got < 0)
        return sp_io_fail("read", path);
    if ((size_t)got < n)
        return sp_fail(SP_EFORMAT, "%s is truncated: it ends at byte %llu",
                       path, (unsigned long long)(offset + (size_t)got));
    return SP_OK;
}

sp_err sp_file_read(const char *path, size_t limit, uint8_t **bytes,
                    size_t *size)
{
    int fd;
    uint64_t length;
    ssize_t got;
    uint8_t *p = NULL;
    sp_err e = sp_file_open(path, &fd, &length);

    if (e != SP_OK)
        return e;
    if (length > limit) {
        e = sp_fail(SP_EFORMAT,
                    "%s has %llu bytes; at most %zu are expected here", path,
                    (unsigned long long)length, limit);
        goto done;
    }
    p = malloc((size_t)length + 1);
    if (!p) {
        e = sp_fail(SP_ENOMEM, "out of memory for the %llu bytes of %s",
                    (unsigned long long)length, path);
        goto done;
    }
    got = read_part(fd, 0, p, (size_t)length);
    if (got < 0) {
        e = sp_io_fail("read", path);
        goto done;
    }
    p[got] = 0;
    *bytes = p;
    *size = (size_t)got;
    p = NULL;
done:
    free(p);
    close(fd);
    return e;
}

sp_err sp_file_hash(const char *path, char hex[SP_HASH_HEX], uint64_t *size)
{
    enum { PART = 1 << 16 };
    int fd;
    uint64_t length;
    ssize_t got;
    uint8_t *part;
    sp_hash h;
    sp_err e = sp_file_open(path, &fd, &length);

    if (e != SP_OK)
        return e;
    part = malloc(PART);
    if (!part) {
        e = sp_fail(SP_ENOMEM, "out of memory for reading %s", path);
        goto done;
    }
    sp_hash_start(&h);
    while ((got = read_part(fd, h.size, part, PART)) > 0)
        sp_hash_add(&h, part, (size_t)got);
    if (got < 0) {
        e = sp_io_fail("read", path);
        goto done;
    }
    *size = h.size;
    sp_hash_end(&h, hex);
done:
    free(part);
    close(fd);
    return e;
}

/* ---- Writing ----------------------------------------------------------- */

struct sp_file_out {
    int fd;
    char *path, *temporary;
};

static void out_free(sp_file_out *f)
{
    free(f->path);
    free(f->temporary);
    free(f);
}

/* A file is replaced by renaming: what else stands in its place, as /dev/null
 * or a link to it, would be gone for all. */
static sp_err check_replaced(const char *path)
{
    struct stat s;

    if (lstat(path, &s) != 0 || S_ISREG(s.st_mode))
        return SP_OK;
    if (S_ISDIR(s.st_mode))
        return sp_fail(SP_EIO, "cannot write %s: it is a folder", path);
    if (S_ISLNK(s.st_mode))
        return sp_fail(SP_EIO,
                       "cannot write %s: it is a symbolic link, which would be "
                       "replaced; name the file that it leads to",
                       path);
    return sp_fail(SP_EIO,
                   "cannot write %s: it is a device or pipe, which would be "
                   "replaced; name a file",
                   path);
}

sp_err sp_file_begin(sp_file_out **out, const char *path)
{
    sp_file_out *f = calloc(1, sizeof *f);
    sp_err e;

    if (f) {
        f->path = sp_path("", "%s", path);
        /* Always the same name: what a crash leaves, the next try replaces. */
        f->temporary = sp_path("", "%s.tmp", path);
    }
    if (!f || !f->path || !f->temporary) {
        e = sp_fail(SP_ENOMEM, "out of memory for writing %s", path);
        goto fail;
    }
    e = check_replaced(path);
    if (e == SP_OK)
        e = check_replaced(f->temporary);
    if (e != SP_OK)
        goto fail;
    f->fd = open(f->temporary,
                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        e = sp_io_fail("create", f->temporary);
        goto fail;
    }
    *out = f;
    return SP_OK;
fail:
    if (f)
        out_free(f);
    return e;
}

sp_err sp_file_put(sp_file_out *f, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n > 0) {
        size_t part = n < (1 << 30) ? n : 1 << 30;
        ssize_t put = write(f->fd, p, part);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return sp_io_fail("write", f->temporary);
        p += put;
        n -= (size_t)put;
    }
    return SP_OK;
}

sp_err sp_file_commit(sp_file_out *f)
{
    int fd = f->fd;
    sp_err e = SP_OK;

    if (fsync(fd) != 0) {
        e = sp_io_fail("write", f->temporary);
        goto fail;
    }
    f->fd = -1;
    if (close(fd) != 0) {
        e = sp_io_fail("write", f->temporary);
        goto fail;
    }
    e = sp_rename_synced(f->temporary, f->path);
    if (e != SP_OK)
        goto fail;
    out_free(f);
    return SP_OK;
fail:
    sp_file_cancel(f);
    return e;
}

void sp_file_cancel(sp_file_out *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    unlink(f->temporary);
    out_free(f);
}

sp_err sp_file_write_synced(const char *path, const void *bytes, size_t size)
{
    sp_file_out *f;
    sp_err e;

    SP_TRY(sp_file_begin(&f, path));
    e = sp_file_put(f, bytes, size);
    if (e != SP_OK) {
        sp_file_cancel(f);
        return e;
    }
    return sp_file_commit(f);
}
