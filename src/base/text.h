/* A growing string, and numbers as text whatever the locale. */
#ifndef SPRAT_BASE_TEXT_H
#define SPRAT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "sprat/base.h"

/* Starts as { 0 }. Running out of memory sticks: later calls do nothing, and
 * sp_text_check() tells. */
typedef struct sp_text {
    char *bytes; /* ends with a 0 byte that `size` does not count; or NULL */
    size_t size, room;
    bool failed;
} sp_text;

/* Append n bytes. */
void sp_text_put(sp_text *t, const void *bytes, size_t n);

/* Append as printf() would. */
void sp_text_add(sp_text *t, const char *fmt, ...) SP_PRINTF(2, 3);
void sp_text_addv(sp_text *t, const char *fmt, va_list args) SP_PRINTF(2, 0);

/* Append a finite number in the fewest digits that give it back exactly. */
void sp_text_number(sp_text *t, double x);

/* Errors: SP_ENOMEM if any append failed. */
SP_MUST sp_err sp_text_check(const sp_text *t);

/* The text as a C string, never NULL. Valid until the next append. */
const char *sp_text_string(const sp_text *t);

/* Free the memory; the text is empty and usable again. */
void sp_text_free(sp_text *t);

enum { SP_NUMBER_ROOM = 32 };

/* Write a finite number in the fewest digits that give it back exactly (whole
 * ones below 1e15 in full):
 * "0.1", "1e-07", "3". */
void sp_number_print(char out[SP_NUMBER_ROOM], double x);

/* Read a decimal number that fills the whole string: "3", "-0.5", "1e-4".
 * False for anything else, such as hexadecimal, "nan", "inf", leading or
 * trailing space, and numbers too large for a double. */
bool sp_number_read(const char *text, double *out);

/* Bytes of the well-formed UTF-8 sequence at `bytes` (n are left), 0 if it is
 * malformed: overlong, a surrogate, beyond U+10FFFF or cut off. */
size_t sp_utf8(const void *bytes, size_t n);

/* Whether a string ends with another, or is the other. */
bool sp_ends_with(const char *text, const char *end);

/* A copy of the first n bytes of a string. NULL: out of memory. */
char *sp_copy(const char *text, size_t n);

/* A copy of sp_last_error(), which what follows may replace; NULL: out of
 * memory. */
char *sp_error_keep(void);

/* Make it the last error again, and free it; with NULL nothing can be done.
 * Returns `e`. */
sp_err sp_error_restore(sp_err e, char *kept);

#endif
