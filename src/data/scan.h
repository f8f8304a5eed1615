/* From the bytes of a text to its tokens, one after the other.
 *
 *   words       what stands between ASCII white space (blank, tab, line feed,
 *               vertical tab, form feed, carriage return), and `<eos>` at
 *               every line end; other spaces of Unicode belong to words
 *   characters  the code points; a carriage return before a line feed is left
 *               out
 *
 * Source: The Unicode Consortium 2022, "The Unicode Standard" 15.0, table 3-7
 *         (well-formed UTF-8).
 */
#ifndef SPRAT_DATA_SCAN_H
#define SPRAT_DATA_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/base.h"

/* A text under way. Before the first token: bytes, end and line = 1. */
typedef struct sp_scan {
    const uint8_t *bytes; /* the next one */
    const uint8_t *end;
    size_t line; /* that the next token is in, from 1 */
    bool chars;
    bool open; /* a last line without line feed gives no <eos> */
    /* Private. */
    bool begun; /* the line has bytes */
} sp_scan;

typedef struct sp_token {
    const uint8_t *bytes;
    size_t size, line;
} sp_token;

/* The next token of a text that sp_scan_check() has found sound; false: there
 * is none. */
bool sp_scan_next(sp_scan *s, sp_token *out);

/* Whether a text is UTF-8 and has no NUL. `name` is for messages. Errors:
 * SP_EDATA, naming line and column (in characters). */
SP_MUST sp_err sp_scan_check(const char *name, const uint8_t *bytes,
                             size_t size);

/* Characters of the line before `at`, and 1. `bytes` is where the text
 * starts. */
size_t sp_scan_column(const uint8_t *bytes, const uint8_t *at);

#endif
