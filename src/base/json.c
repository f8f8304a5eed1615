/* The writer of json.h. */
#include "base/json.h"

#include <math.h>
#include <string.h>

static void put(sp_json *j, const char *text)
{
    sp_text_put(&j->text, text, strlen(text));
}

/* A string in quotes, with what JSON does not let stand escaped. */
static void put_string(sp_json *j, const char *s)
{
    size_t n = strlen(s), length;

    put(j, "\"");
    for (size_t i = 0; i < n; i += length) {
        unsigned char c = (unsigned char)s[i];

        length = sp_utf8(s + i, n - i);
        if (c == '"' || c == '\\')
            sp_text_add(&j->text, "\\%c", c);
        else if (c == '\n')
            put(j, "\\n");
        else if (c < ' ')
            sp_text_add(&j->text, "\\u%04x", c);
        else if (length == 0)
            put(j, "\xEF\xBF\xBD");
        else
            sp_text_put(&j->text, s + i, length);
        length = length ? length : 1;
    }
    put(j, "\"");
}

static void new_line(sp_json *j)
{
    if (j->pretty)
        sp_text_add(&j->text, "\n%*s", 2 * j->depth, "");
}

/* What stands before a value: comma, line, key. False: wrong use. `opens` is
 * set for objects, which begin a line within lists too. */
static bool begin(sp_json *j, const char *key, bool opens)
{
    bool in_object = j->depth > 0 && j->closer[j->depth - 1] == '}';

    if (in_object != (key != NULL) || (j->depth == 0 && j->text.size > 0))
        j->misused = true;
    if (j->misused)
        return false;
    if (j->filled)
        put(j, j->pretty && !in_object && !opens ? ", " : ",");
    if (j->depth > 0 && (in_object || opens))
        new_line(j);
    if (key) {
        put_string(j, key);
        put(j, j->pretty ? ": " : ":");
    }
    j->filled = true;
    return true;
}

static void open_level(sp_json *j, const char *key, bool object)
{
    if (!begin(j, key, object))
        return;
    if (j->depth == SP_JSON_DEPTH) {
        j->misused = true;
        return;
    }
    put(j, object ? "{" : "[");
    j->closer[j->depth++] = object ? '}' : ']';
    j->filled = false;
}

void sp_json_open(sp_json *j, const char *key) { open_level(j, key, true); }

void sp_json_list(sp_json *j, const char *key) { open_level(j, key, false); }

void sp_json_close(sp_json *j)
{
    if (j->depth == 0)
        j->misused = true;
    if (j->misused)
        return;
    j->depth--;
    if (j->filled && j->closer[j->depth] == '}')
        new_line(j);
    sp_text_put(&j->text, &j->closer[j->depth], 1);
    j->filled = true;
}

void sp_json_number(sp_json *j, const char *key, double value)
{
    if (!begin(j, key, false))
        return;
    if (isfinite(value))
        sp_text_number(&j->text, value);
    else
        put(j, "null");
}

void sp_json_int(sp_json *j, const char *key, int64_t value)
{
    if (begin(j, key, false))
        sp_text_add(&j->text, "%lld", (long long)value);
}

void sp_json_bool(sp_json *j, const char *key, bool value)
{
    if (begin(j, key, false))
        put(j, value ? "true" : "false");
}

void sp_json_null(sp_json *j, const char *key)
{
    if (begin(j, key, false))
        put(j, "null");
}

void sp_json_text(sp_json *j, const char *key, const char *value)
{
    if (!value)
        sp_json_null(j, key);
    else if (begin(j, key, false))
        put_string(j, value);
}

sp_err sp_json_finish(const sp_json *j, const char **text)
{
    SP_TRY(sp_text_check(&j->text));
    if (j->misused || j->depth > 0 || j->text.size == 0)
        return sp_fail(SP_EARG,
                       "not one complete JSON value (%d levels open): %.200s",
                       j->depth, sp_text_string(&j->text));
    *text = sp_text_string(&j->text);
    return SP_OK;
}

void sp_json_free(sp_json *j)
{
    bool pretty = j->pretty;

    sp_text_free(&j->text);
    *j = (sp_json){ .pretty = pretty };
}
