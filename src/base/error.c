#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* Through a copy, for the text may quote the one before. */
sp_err sp_fail(sp_err e, const char *fmt, ...)
{
    char text[sizeof last];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(last, text, strlen(text) + 1);
    return e;
}

const char *sp_last_error(void) { return last; }
