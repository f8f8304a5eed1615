#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "sprat/base.h"

/* Thread-local, so that a loader thread's error does not replace another's. */
static _Thread_local char last[16384];

const char *sp_strerror(sp_err e)
{
    static const char *const texts[] = {
#define X(code, text) [code] = text,
        SP_ERRORS(X)
#undef X
    };

    return (size_t)e < sizeof texts / sizeof *texts ? texts[e] : "unknown";
}

sp_err sp_fail(sp_err e, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(last, sizeof last, fmt, args);
    va_end(args);
    return e;
}

const char *sp_last_error(void) { return last; }
