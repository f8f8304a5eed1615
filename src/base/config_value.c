/* One setting into one field, and back. */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/config_internal.h"

static void complain(sp_loading *l, const sp_setting *s, const char *must)
{
    char shown[SP_SHOWN_ROOM];

    sp_complain(l, s->value_at, "%s.%s must be %s, not %s", s->section->name,
                s->key, must,
                s->is_list ? "a list" : sp_shown(shown, s->items[0]));
}

/* No bounds are told by both being 0. */
static bool is_bounded(const sp_key *k) { return k->min != 0 || k->max != 0; }

/* "from 1 to 100", or the one side that is finite. */
static void put_bounds(sp_text *out, double min, double max)
{
    if (isfinite(min))
        sp_text_add(out, isfinite(max) ? "from " : "at least ");
    if (isfinite(min))
        sp_text_number(out, min);
    if (isfinite(max))
        sp_text_add(out, isfinite(min) ? " to " : "at most ");
    if (isfinite(max))
        sp_text_number(out, max);
}

/* The bounds of a number's field; an int also has those of its type. */
static bool in_range(sp_loading *l, const sp_key *k, const sp_setting *s,
                     double x)
{
    double min = is_bounded(k) ? k->min : -INFINITY;
    double max = is_bounded(k) ? k->max : INFINITY;
    sp_text bounds = { 0 };

    if (k->kind == SP_INT) {
        min = fmax(min, INT_MIN);
        max = fmin(max, INT_MAX);
    }
    if (x >= min && x <= max)
        return true;
    put_bounds(&bounds, min, max);
    sp_complain(l, s->value_at, "%s.%s must be %s, not %.12g", s->section->name,
                s->key, sp_text_string(&bounds), x);
    sp_text_free(&bounds);
    return false;
}

static void store_int(sp_loading *l, const sp_key *k, const sp_setting *s,
                      int *field)
{
    double x;

    if (!sp_number_read(s->items[0], &x) || x != floor(x))
        complain(l, s, "a whole number");
    else if (in_range(l, k, s, x))
        *field = (int)x;
}

static void store_float(sp_loading *l, const sp_key *k, const sp_setting *s,
                        double *field)
{
    double x;

    if (!sp_number_read(s->items[0], &x))
        complain(l, s, "a finite number");
    else if (in_range(l, k, s, x))
        *field = x;
}

static void store_bool(sp_loading *l, const sp_setting *s, bool *field)
{
    static const char *const words[] = { "false", "true", "no",
                                         "yes",   "off",  "on" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(s->items[0], words[i]) == 0) {
            *field = i % 2 == 1;
            return;
        }
    complain(l, s, "true or false");
}

/* The i-th of "a|b|c": its start and length; NULL past the last. */
static const char *choice(const char *choices, int i, size_t *length)
{
    while (i-- > 0) {
        choices = strchr(choices, '|');
        if (!choices)
            return NULL;
        choices++;
    }
    *length = strcspn(choices, "|");
    return choices;
}

static void store_choice(sp_loading *l, const sp_key *k, const sp_setting *s,
                         int *field)
{
    sp_text must = { 0 };
    const char *word;
    size_t n;

    for (int i = 0; (word = choice(k->choices, i, &n)); i++) {
        if (strlen(s->items[0]) == n && strncmp(s->items[0], word, n) == 0) {
            *field = i;
            sp_text_free(&must);
            return;
        }
        sp_text_add(&must, "%s%.*s", i == 0 ? "one of " : ", ", (int)n, word);
    }
    complain(l, s, sp_text_string(&must));
    sp_text_free(&must);
}

static void store_list(sp_loading *l, const sp_key *k, const sp_setting *s,
                       sp_list *field)
{
    sp_list list = { .count = (int)s->count };
    char shown[SP_SHOWN_ROOM];

    for (size_t i = 0; i < s->count; i++) {
        if (!sp_number_read(s->items[i], &list.value[i])) {
            sp_complain(l, s->value_at,
                        "%s.%s must hold finite numbers, not "
                        "%s",
                        s->section->name, s->key, sp_shown(shown, s->items[i]));
            return;
        }
        if (!in_range(l, k, s, list.value[i]))
            return;
    }
    *field = list;
}

void sp_value_store(sp_loading *l, const sp_key *k, const sp_setting *s,
                    void *base)
{
    void *field = (char *)base + k->offset;

    if (s->is_list != (k->kind == SP_LIST)) {
        complain(l, s,
                 s->is_list ? "a single value"
                            : "a list of numbers, as in [1, 2]");
        return;
    }
    switch (k->kind) {
    case SP_INT:
        store_int(l, k, s, field);
        break;
    case SP_FLOAT:
        store_float(l, k, s, field);
        break;
    case SP_BOOL:
        store_bool(l, s, field);
        break;
    case SP_TEXT:
        *(const char **)field = s->items[0];
        break;
    case SP_CHOICE:
        store_choice(l, k, s, field);
        break;
    case SP_LIST:
        store_list(l, k, s, field);
        break;
    }
}

/* ---- Back to YAML ------------------------------------------------------ */

/* YAML 1.1's numbers need a point: 1e-07 would be a string to others. */
static void put_number(sp_text *out, double x)
{
    char number[SP_NUMBER_ROOM];
    const char *e;

    sp_number_print(number, x);
    e = strchr(number, 'e');
    if (e && !strchr(number, '.'))
        sp_text_add(out, "%.*s.0%s", (int)(e - number), number, e);
    else
        sp_text_add(out, "%s", number);
}

/* May a string stand without quotes, and be a string to every reader? */
static bool is_plain(const char *text)
{
    static const char *const special[] = { "true", "false", "yes", "no", "on",
                                           "off",  "null",  "y",   "n" };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
    size_t n = strspn(text, letters);

    if (n == 0)
        return false;
    while (text[n] &&
           (strchr(letters, text[n]) || strchr("0123456789.-", text[n])))
        n++;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcasecmp(text, special[i]) == 0)
            return false;
    return text[n] == '\0';
}

/* The code point of a well-formed sequence of 2 to 4 bytes. */
static uint32_t decode(const unsigned char *p, size_t length)
{
    uint32_t c = p[0] & (0x7Fu >> length);

    for (size_t i = 1; i < length; i++)
        c = c << 6 | (p[i] & 0x3F);
    return c;
}

/* Line breaks, byte order marks and what YAML does not let stand in a file. */
static bool must_escape(uint32_t c)
{
    return c < 0xA0 || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
           c == 0xFFFE || c == 0xFFFF;
}

void sp_yaml_string(sp_text *out, const char *text)
{
    size_t n = strlen(text), length;
    const unsigned char *p = (const unsigned char *)text;

    if (is_plain(text)) {
        sp_text_put(out, text, n);
        return;
    }
    sp_text_put(out, "\"", 1);
    for (size_t i = 0; i < n; i += length) {
        length = sp_utf8(p + i, n - i);
        if (length == 0)
            length = 1;
        if (p[i] == '"' || p[i] == '\\')
            sp_text_add(out, "\\%c", p[i]);
        else if (p[i] < ' ' || p[i] == 0x7F)
            sp_text_add(out, "\\x%02X", p[i]);
        else if (length > 1 && must_escape(decode(p + i, length)))
            sp_text_add(out, "\\u%04X", (unsigned)decode(p + i, length));
        else
            sp_text_put(out, p + i, length);
    }
    sp_text_put(out, "\"", 1);
}

static void put_list(sp_text *out, const sp_list *list)
{
    sp_text_put(out, "[", 1);
    for (int i = 0; i < list->count; i++) {
        if (i > 0)
            sp_text_put(out, ", ", 2);
        put_number(out, list->value[i]);
    }
    sp_text_put(out, "]", 1);
}

void sp_value_print(sp_text *out, const sp_key *k, const void *base)
{
    const void *field = (const char *)base + k->offset;
    const char *word;
    size_t n = 0;

    switch (k->kind) {
    case SP_INT:
        sp_text_add(out, "%d", *(const int *)field);
        break;
    case SP_FLOAT:
        put_number(out, *(const double *)field);
        break;
    case SP_BOOL:
        sp_text_add(out, *(const bool *)field ? "true" : "false");
        break;
    case SP_TEXT:
        sp_yaml_string(out, *(const char *const *)field);
        break;
    case SP_CHOICE:
        word = choice(k->choices, *(const int *)field, &n);
        sp_text_put(out, word, n);
        break;
    case SP_LIST:
        put_list(out, field);
        break;
    }
}
