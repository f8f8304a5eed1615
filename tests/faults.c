/* Calls of the C library that fail when they are told to, for a program linked
 * with -Wl,--wrap=NAME of each: then only what the program and the library
 * themselves call comes here, and nothing that their own libraries call.
 *
 *   SPRAT_FAULT=memory:K   the K-th request for memory, or for a thread, fails
 *   SPRAT_FAULT=files:K    the K-th call that opens, reads, writes, syncs,
 *                          renames, links, locks or removes a file fails
 *   SPRAT_FAULT=full:K     that one and all later ones that need space fail
 *   SPRAT_FAULT=die:K      the process ends in place of it, as by SIGKILL
 *   SPRAT_FAULT_LOG=FILE   gets the lines "fault NAME ADDRESS" and, at the end
 *                          of the process, "files COUNT" and "memory COUNT"
 *
 * A write that fails has written half of its bytes; a stream's has lost all
 * that it held. A close() that fails has closed.
 */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char __executable_start[];

enum { FAULT_DIED = 137 /* as a shell tells SIGKILL */ };

typedef enum how { NEVER, ONCE, FULL, DIE } how;

/* What is asked for; set before main(). */
static struct {
    how how;
    bool memory;
    unsigned at;
} plan;

static atomic_uint files, memory;

/* Append to the log by what cannot fail here. */
static void tell(const char *fmt, ...)
{
    const char *path = getenv("SPRAT_FAULT_LOG");
    char line[128];
    va_list args;
    int fd, n;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fd = path ? __real_open64(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd >= 0 && __real_write(fd, line, (size_t)n) != n)
        abort();
    if (fd >= 0)
        __real_close(fd);
}

static void tell_counts(void) { tell("files %u\nmemory %u\n", files, memory); }

__attribute__((constructor)) static void begin(void)
{
    static const struct {
        const char *name;
        how how;
        bool memory;
    } kinds[] = {
        { "memory", ONCE, true },
        { "files", ONCE, false },
        { "full", FULL, false },
        { "die", DIE, false },
    };
    const char *text = getenv("SPRAT_FAULT");
    const char *colon = text ? strchr(text, ':') : NULL;

    for (size_t i = 0; colon && i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].name);
        if (n != (size_t)(colon - text) || strncmp(text, kinds[i].name, n) != 0)
            continue;
        plan.how = kinds[i].how;
        plan.memory = kinds[i].memory;
        plan.at = (unsigned)strtoul(colon + 1, NULL, 10);
    }
    atexit(tell_counts);
}

static void tell_fault(const char *name, const void *caller)
{
    tell("fault %s %#lx\n", name,
         (unsigned long)((uintptr_t)caller - (uintptr_t)__executable_start));
}

bool fault_memory(const char *name, const void *caller)
{
    unsigned k = atomic_fetch_add(&memory, 1) + 1;

    if (!plan.memory || k != plan.at)
        return false;
    tell_fault(name, caller);
    errno = ENOMEM;
    return true;
}

bool fault_file(const char *name, int error, const void *caller)
{
    unsigned k = atomic_fetch_add(&files, 1) + 1;

    if (plan.memory || plan.how == NEVER || k < plan.at)
        return false;
    if (k > plan.at && (plan.how != FULL || error != ENOSPC))
        return false;
    tell_fault(name, caller);
    if (plan.how == DIE)
        _exit(FAULT_DIED);
    errno = error;
    return true;
}

void fault_stream(FILE *f)
{
    int fd = fileno(f), kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int full = __real_open64("/dev/full", O_WRONLY | O_CLOEXEC);

    if (kept < 0 || full < 0 || dup2(full, fd) < 0)
        abort();
    putc_unlocked(0, f);
    __real_fflush(f);
    if (dup2(kept, fd) < 0)
        abort();
    __real_close(kept);
    __real_close(full);
    errno = ENOSPC;
}
