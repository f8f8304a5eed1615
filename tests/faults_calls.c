/* The replaced calls of faults.c, one after the other. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults.h"

/* A call and what stands in its place: returns `failed` if it is to fail. */
#define MEMORY(type, name, failed, params, args)              \
    type __real_##name params;                                \
    type __wrap_##name params;                                \
    type __wrap_##name params                                 \
    {                                                         \
        if (fault_memory(#name, __builtin_return_address(0))) \
            return failed;                                    \
        return __real_##name args;                            \
    }
#define FILES(type, name, error, failed, params, args)             \
    type __real_##name params;                                     \
    type __wrap_##name params;                                     \
    type __wrap_##name params                                      \
    {                                                              \
        if (fault_file(#name, error, __builtin_return_address(0))) \
            return failed;                                         \
        return __real_##name args;                                 \
    }

MEMORY(void *, malloc, NULL, (size_t n), (n))
MEMORY(void *, calloc, NULL, (size_t k, size_t n), (k, n))
MEMORY(void *, realloc, NULL, (void *p, size_t n), (p, n))
MEMORY(void *, aligned_alloc, NULL, (size_t a, size_t n), (a, n))
MEMORY(int, posix_memalign, ENOMEM, (void **p, size_t a, size_t n), (p, a, n))
MEMORY(char *, strdup, NULL, (const char *s), (s))
MEMORY(FILE *, open_memstream, NULL, (char **p, size_t *n), (p, n))
MEMORY(int, pthread_create, EAGAIN,
       (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *x),
       (t, a, f, x))

FILES(FILE *, fopen64, EMFILE, NULL, (const char *p, const char *m), (p, m))
FILES(FILE *, fdopen, ENOMEM, NULL, (int fd, const char *m), (fd, m))
FILES(DIR *, opendir, EMFILE, NULL, (const char *p), (p))
FILES(DIR *, fdopendir, ENOMEM, NULL, (int fd), (fd))
FILES(ssize_t, pread64, EIO, -1, (int fd, void *b, size_t n, off_t o),
      (fd, b, n, o))
FILES(int, fsync, EIO, -1, (int fd), (fd))
FILES(int, ftruncate64, EIO, -1, (int fd, off_t n), (fd, n))
FILES(int, rename, ENOSPC, -1, (const char *a, const char *b), (a, b))
FILES(int, mkdir, ENOSPC, -1, (const char *p, mode_t m), (p, m))
FILES(int, unlink, EIO, -1, (const char *p), (p))
FILES(int, unlinkat, EIO, -1, (int fd, const char *p, int f), (fd, p, f))
FILES(int, symlink, ENOSPC, -1, (const char *a, const char *b), (a, b))
FILES(ssize_t, readlink, EIO, -1, (const char *p, char *b, size_t n), (p, b, n))
FILES(int, scandir64, ENOMEM, -1,
      (const char *p, struct dirent ***n, int (*f)(const struct dirent *),
       int (*c)(const struct dirent **, const struct dirent **)),
      (p, n, f, c))
FILES(int, flock, ENOLCK, -1, (int fd, int how), (fd, how))
FILES(int, mkstemp64, EMFILE, -1, (char *p), (p))

/* Of a variable number of arguments: the last is the mode. */
int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...);

static mode_t mode_of(va_list args, int flags)
{
    return flags & O_CREAT ? va_arg(args, mode_t) : 0;
}

/* Making a file needs space; opening one needs a descriptor. */
static int open_error(int flags) { return flags & O_CREAT ? ENOSPC : EMFILE; }

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(args, flags);
    va_end(args);
    if (fault_file("open", open_error(flags), __builtin_return_address(0)))
        return -1;
    return __real_open64(path, flags, mode);
}

int __wrap_openat64(int fd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(args, flags);
    va_end(args);
    if (fault_file("openat", open_error(flags), __builtin_return_address(0)))
        return -1;
    return __real_openat64(fd, path, flags, mode);
}

int __wrap_close(int fd);

int __wrap_close(int fd)
{
    bool fails = fault_file("close", EIO, __builtin_return_address(0));
    int status = __real_close(fd);

    if (!fails)
        return status;
    errno = EIO;
    return -1;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n);

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    if (!fault_file("write", ENOSPC, __builtin_return_address(0)))
        return __real_write(fd, bytes, n);
    if (__real_write(fd, bytes, n / 2) < 0)
        abort();
    errno = ENOSPC;
    return -1;
}

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at);

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    if (!fault_file("pwrite", ENOSPC, __builtin_return_address(0)))
        return __real_pwrite64(fd, bytes, n, at);
    if (__real_pwrite64(fd, bytes, n / 2, at) < 0)
        abort();
    errno = ENOSPC;
    return -1;
}

/* Streams on files; what is said on standard error, and memory, pass. */
static bool stream_fails(const char *name, FILE *f, const void *caller)
{
    if (f == stderr || fileno(f) < 0 || !fault_file(name, ENOSPC, caller))
        return false;
    fault_stream(f);
    return true;
}

#define STREAM(type, name, failed, params, args)                 \
    type __real_##name params;                                   \
    type __wrap_##name params;                                   \
    type __wrap_##name params                                    \
    {                                                            \
        if (stream_fails(#name, f, __builtin_return_address(0))) \
            return failed;                                       \
        return __real_##name args;                               \
    }

STREAM(size_t, fwrite, 0, (const void *b, size_t s, size_t n, FILE *f),
       (b, s, n, f))
STREAM(int, fputs, EOF, (const char *s, FILE *f), (s, f))

int __wrap_fprintf(FILE *f, const char *fmt, ...);
int __wrap_fflush(FILE *f);
int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);
size_t __real_fread(void *b, size_t s, size_t n, FILE *f);
size_t __wrap_fread(void *b, size_t s, size_t n, FILE *f);

int __wrap_fprintf(FILE *f, const char *fmt, ...)
{
    va_list args;
    int n;

    if (stream_fails("fprintf", f, __builtin_return_address(0)))
        return -1;
    va_start(args, fmt);
    n = vfprintf(f, fmt, args);
    va_end(args);
    return n;
}

int __wrap_fflush(FILE *f)
{
    /* With nothing to write it cannot fail. */
    if (f && __fpending(f) > 0 &&
        stream_fails("fflush", f, __builtin_return_address(0)))
        return EOF;
    return __real_fflush(f);
}

int __wrap_fclose(FILE *f)
{
    bool fails = stream_fails("fclose", f, __builtin_return_address(0));
    int status = __real_fclose(f);

    if (!fails)
        return status;
    errno = ENOSPC;
    return EOF;
}

/* As at the end of the file: the caller sees fewer bytes than it asked for. */
size_t __wrap_fread(void *b, size_t s, size_t n, FILE *f)
{
    if (fault_file("fread", EIO, __builtin_return_address(0)))
        return 0;
    return __real_fread(b, s, n, f);
}
