#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and the closing 0. */
static bool reserve(sp_text *t, size_t n)
{
    size_t room = t->room > 0 ? t->room : 64;
    char *bytes;

    if (t->failed || n >= SIZE_MAX / 2 - t->size) {
        t->failed = true;
        return false;
    }
    while (room <= t->size + n)
        room *= 2;
    if (room == t->room)
        return true;
    bytes = realloc(t->bytes, room);
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->room = room;
    return true;
}

void sp_text_put(sp_text *t, const void *bytes, size_t n)
{
    if (!reserve(t, n))
        return;
    if (n > 0)
        memcpy(t->bytes + t->size, bytes, n);
    t->size += n;
    t->bytes[t->size] = '\0';
}

void sp_text_add(sp_text *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    sp_text_addv(t, fmt, args);
    va_end(args);
}

void sp_text_addv(sp_text *t, const char *fmt, va_list args)
{
    va_list again;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        t->failed = true;
        return;
    }
    if (!reserve(t, (size_t)n))
        return;
    vsnprintf(t->bytes + t->size, (size_t)n + 1, fmt, args);
    t->size += (size_t)n;
}

void sp_text_number(sp_text *t, double x)
{
    char number[SP_NUMBER_ROOM];

    sp_number_print(number, x);
    sp_text_put(t, number, strlen(number));
}

sp_err sp_text_check(const sp_text *t)
{
    return t->failed ? sp_fail(SP_ENOMEM, "out of memory for %zu bytes of text",
                               t->size)
                     : SP_OK;
}

const char *sp_text_string(const sp_text *t)
{
    return t->bytes ? t->bytes : "";
}

void sp_text_free(sp_text *t)
{
    free(t->bytes);
    *t = (sp_text){ 0 };
}

/* A program around the library may have set a locale with a decimal comma;
 * for "C", newlocale() gives a constant that needs no freeing. */
static locale_t use_c_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void sp_number_print(char out[SP_NUMBER_ROOM], double x)
{
    locale_t before = use_c_locale();

    /* Whole numbers in full, not as 1e+03. */
    if (x == floor(x) && fabs(x) < 1e15) {
        snprintf(out, SP_NUMBER_ROOM, "%.0f", x);
        uselocale(before);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, SP_NUMBER_ROOM, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            break;
    }
    uselocale(before);
}

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Sign, digits with at most one point among or around them, exponent. */
static bool is_decimal(const char *p)
{
    const char *digits, *end;

    if (*p == '+' || *p == '-')
        p++;
    digits = p;
    end = skip_digits(p);
    if (*end == '.')
        end = skip_digits(end + 1);
    if (end - digits - (memchr(digits, '.', (size_t)(end - digits)) != NULL) <
        1)
        return false;
    if (*end == 'e' || *end == 'E') {
        p = end + 1;
        if (*p == '+' || *p == '-')
            p++;
        end = skip_digits(p);
        if (end == p)
            return false;
    }
    return *end == '\0';
}

bool sp_number_read(const char *text, double *out)
{
    locale_t before;
    double x;

    if (!is_decimal(text))
        return false;
    before = use_c_locale();
    x = strtod(text, NULL);
    uselocale(before);
    if (!isfinite(x))
        return false;
    *out = x;
    return true;
}

/* The ranges of Unicode's table 3-7: the first byte fixes the length and the
 * range of the second byte; those after it are 80..BF. */
static size_t utf8_length(unsigned char first, unsigned char *low,
                          unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

size_t sp_utf8(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    unsigned char low, high;
    size_t length = n > 0 ? utf8_length(p[0], &low, &high) : 0;

    if (length == 0 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (p[i] < low || p[i] > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

bool sp_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

char *sp_copy(const char *text, size_t n)
{
    char *copy = malloc(n + 1);

    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

char *sp_error_keep(void)
{
    return sp_copy(sp_last_error(), strlen(sp_last_error()));
}

sp_err sp_error_restore(sp_err e, char *kept)
{
    if (kept)
        sp_fail(e, "%s", kept);
    free(kept);
    return e;
}
