/* Lines for people. */
#include "train/console.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

enum { WIDTH = 512 };
static const double live_interval = 0.2; /* seconds */

sp_console sp_console_to(FILE *terminal)
{
    return (sp_console){
        .terminal = terminal,
        .live = terminal && isatty(fileno(terminal)),
    };
}

sp_err sp_console_log(sp_console *r, const char *run)
{
    char *path = sp_path(run, "log.txt");
    sp_err e;

    if (!path)
        return sp_fail(SP_ENOMEM, "%s: out of memory", run);
    e = sp_file_append(path, &r->log);
    free(path);
    return e;
}

void sp_console_close(sp_console *r)
{
    if (r->shown) { /* what comes next starts on a line of its own */
        putc('\n', r->terminal);
        fflush(r->terminal);
    }
    r->shown = 0;
    if (r->log)
        fclose(r->log);
    r->log = NULL;
}

/* A log is read with any tool: no colours, no carriage returns. */
static void put_log(FILE *log, const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t')
            putc(*c, log);
    putc('\n', log);
    fflush(log);
}

static void put_terminal(sp_console *r, const char *text)
{
    if (r->shown)
        fprintf(r->terminal, "\r%*s\r", r->shown, "");
    r->shown = 0;
    fprintf(r->terminal, "%s\n", text);
    fflush(r->terminal);
}

static void put(sp_console *r, bool terminal, const char *fmt, va_list args)
{
    sp_text text = { 0 };

    sp_text_addv(&text, fmt, args);
    if (terminal && r->terminal)
        put_terminal(r, sp_text_string(&text));
    if (r->log)
        put_log(r->log, sp_text_string(&text));
    sp_text_free(&text);
}

void sp_console_line(sp_console *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(r, true, fmt, args);
    va_end(args);
}

void sp_console_text(sp_console *r, sp_text *text)
{
    for (char *line = text->bytes, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        sp_console_line(r, "%s", line);
    }
}

void sp_console_note(sp_console *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(r, false, fmt, args);
    va_end(args);
}

void sp_console_progress(sp_console *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(r, !r->live, fmt, args);
    va_end(args);
}

void sp_console_live(sp_console *r, const char *fmt, ...)
{
    double now = sp_now();
    char text[WIDTH];
    va_list args;
    int size;

    if (!r->live || now < r->next)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size = (int)strlen(text);
    fprintf(r->terminal, "\r%s%*s", text, r->shown > size ? r->shown - size : 0,
            "");
    fflush(r->terminal);
    r->shown = size;
    r->next = now + live_interval;
}

const char *sp_span(char out[SP_SPAN_ROOM], double seconds)
{
    long s = seconds > 0 ? (long)(seconds + 0.5) : 0;

    if (s < 60)
        snprintf(out, SP_SPAN_ROOM, "%ld s", s);
    else if (s < 3600)
        snprintf(out, SP_SPAN_ROOM, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, SP_SPAN_ROOM, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    return out;
}

double sp_peak_rss(void)
{
    struct rusage use;

    return getrusage(RUSAGE_SELF, &use) == 0 ? (double)use.ru_maxrss / 1024 : 0;
}
