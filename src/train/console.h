/* What a run tells: to the terminal as it goes, and to log.txt. */
#ifndef SP_TRAIN_CONSOLE_H
#define SP_TRAIN_CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "sprat/base.h"

typedef struct sp_console {
    FILE *terminal; /* NULL: none; not closed */
    FILE *log;      /* NULL: none */
    bool live;      /* the terminal is one: lines may be rewritten */
    int shown;      /* columns of the rewritten line that stands there */
    double next;    /* when it may be rewritten */
} sp_console;

/* Report to `terminal` (may be NULL) only, so far. */
sp_console sp_console_to(FILE *terminal);

/* Also append to RUN/log.txt. Errors: SP_EIO. */
SP_MUST sp_err sp_console_log(sp_console *r, const char *run);
void sp_console_close(sp_console *r);

/* One line, without its end, to terminal and log. */
void sp_console_line(sp_console *r, const char *fmt, ...) SP_PRINTF(2, 3);

/* Every line of a text, which is changed for it. */
void sp_console_text(sp_console *r, sp_text *text);

/* One line to the log alone. */
void sp_console_note(sp_console *r, const char *fmt, ...) SP_PRINTF(2, 3);

/* One line to the log, and to a terminal on which sp_console_live() does
 * nothing: progress, where it cannot be rewritten. */
void sp_console_progress(sp_console *r, const char *fmt, ...) SP_PRINTF(2, 3);

/* One line that replaces the one before: on a terminal only, a few times a
 * second at most. */
void sp_console_live(sp_console *r, const char *fmt, ...) SP_PRINTF(2, 3);

/* A duration for people: "42 s", "3 min 05 s", "2 h 10 min". */
enum { SP_SPAN_ROOM = 32 };
const char *sp_span(char out[SP_SPAN_ROOM], double seconds);

/* The most memory this process ever had, in MiB. */
double sp_peak_rss(void);

#endif
