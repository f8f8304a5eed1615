/* The reader of json.h: recursive descent, one function a rule. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/json.h"

struct sp_json_doc {
    sp_arena arena; /* the values and their strings */
    const char *name;
    sp_json_value root;
};

typedef struct parser {
    sp_json_doc *doc;
    const char *begin, *at, *end;
} parser;

static sp_err no_memory(const parser *p)
{
    return sp_fail(SP_ENOMEM, "out of memory for reading %s", p->doc->name);
}

/* A mistake at p->at. */
static sp_err mistake(const parser *p, const char *what)
{
    size_t line = 1, column = 1;

    for (const char *c = p->begin; c < p->at; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            column++;
        }
    }
    return sp_fail(SP_EFORMAT, "%s:%zu:%zu: not valid JSON: %s%s", p->doc->name,
                   line, column, what,
                   p->at == p->end ? " (the text ends here)" : "");
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' ||
                              *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Pass the character `c`, if it comes next. */
static bool pass(parser *p, char c)
{
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* Four hexadecimal digits. */
static bool read_hex(parser *p, uint32_t *out)
{
    uint32_t value = 0;

    if (p->end - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = p->at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit > 15)
            return false;
        value = value << 4 | digit;
    }
    p->at += 4;
    *out = value;
    return true;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* What follows "\u": one code unit, or a surrogate pair. */
static sp_err read_unicode(parser *p, char **to)
{
    uint32_t c, low;

    if (!read_hex(p, &c))
        return mistake(p, "\\u needs four hexadecimal digits");
    if (c == 0)
        return mistake(p, "a string must not contain \\u0000");
    if (c >= 0xDC00 && c <= 0xDFFF)
        return mistake(p, "second half of a surrogate pair without the first");
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (!pass(p, '\\') || !pass(p, 'u') || !read_hex(p, &low) ||
            low < 0xDC00 || low > 0xDFFF)
            return mistake(p, "first half of a surrogate pair without the "
                              "second");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(*to, c);
    return SP_OK;
}

static sp_err read_escape(parser *p, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (p->at == p->end)
        return mistake(p, "unfinished string");
    if (pass(p, 'u'))
        return read_unicode(p, to);
    found = *p->at ? strchr(from, *p->at) : NULL;
    if (!found)
        return mistake(p, "unknown escape");
    p->at++;
    *(*to)++ = into[found - from];
    return SP_OK;
}

/* A string, from its opening quote. */
static sp_err read_string(parser *p, const char **out)
{
    const char *close = p->at + 1;
    char *text, *to;

    while (close < p->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= p->end) {
        p->at = p->end;
        return mistake(p, "unfinished string");
    }
    /* Escapes are never shorter than what they stand for. */
    text = to = sp_arena_alloc(&p->doc->arena, (size_t)(close - p->at));
    if (!text)
        return no_memory(p);
    for (p->at++; !pass(p, '"');) {
        size_t length = sp_utf8(p->at, (size_t)(p->end - p->at));

        if (length == 0)
            return mistake(p, "malformed UTF-8");
        if ((unsigned char)*p->at < ' ')
            return mistake(p, "control character in a string");
        if (pass(p, '\\')) {
            SP_TRY(read_escape(p, &to));
            continue;
        }
        memcpy(to, p->at, length);
        to += length;
        p->at += length;
    }
    *out = text; /* the arena's memory is zero: the text is closed */
    return SP_OK;
}

static bool read_digits(parser *p)
{
    const char *first = p->at;

    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > first;
}

static sp_err read_number(parser *p, sp_json_value *v)
{
    const char *first = p->at;
    bool whole = true;
    char *text;

    pass(p, '-');
    if (!pass(p, '0') && !read_digits(p))
        return mistake(p, "unexpected character");
    if (pass(p, '.')) {
        whole = false;
        if (!read_digits(p))
            return mistake(p, "digits must follow the point");
    }
    if (pass(p, 'e') || pass(p, 'E')) {
        whole = false;
        if (!pass(p, '+'))
            pass(p, '-');
        if (!read_digits(p))
            return mistake(p, "digits must follow the e");
    }
    text = sp_copy(first, (size_t)(p->at - first));
    if (!text)
        return no_memory(p);
    v->kind = SP_JSON_NUMBER;
    errno = 0;
    v->integer = whole ? strtoll(text, NULL, 10) : 0;
    v->whole = whole && errno == 0;
    whole = sp_number_read(text, &v->number);
    free(text);
    return whole ? SP_OK : mistake(p, "number too large");
}

static int by_key(const void *a, const void *b)
{
    const sp_json_value *const *x = a, *const *y = b;

    return strcmp((*x)->key, (*y)->key);
}

static sp_err check_repeats(const parser *p, const sp_json_value *object)
{
    const sp_json_value **all;
    sp_err e = SP_OK;
    size_t n = 0;

    if (object->count < 2)
        return SP_OK;
    all = malloc(object->count * sizeof *all);
    if (!all)
        return no_memory(p);
    for (const sp_json_value *v = object->first; v; v = v->next)
        all[n++] = v;
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 1; i < n && e == SP_OK; i++)
        if (strcmp(all[i - 1]->key, all[i]->key) == 0)
            e = sp_fail(SP_EFORMAT,
                        "%s: not valid JSON: the key \"%.100s\" "
                        "stands twice in one object",
                        p->doc->name, all[i]->key);
    free(all);
    return e;
}

static sp_err read_value(parser *p, sp_json_value *v, int depth);

static sp_err read_key(parser *p, const char **key)
{
    if (p->at == p->end || *p->at != '"')
        return mistake(p, "a key in quotes is expected");
    SP_TRY(read_string(p, key));
    skip_space(p);
    return pass(p, ':') ? SP_OK : mistake(p, "\":\" is expected");
}

/* The members of a list or object, after its opening bracket. */
static sp_err read_members(parser *p, sp_json_value *v, int depth)
{
    bool object = v->kind == SP_JSON_OBJECT;
    const sp_json_value **link = &v->first;
    char close = object ? '}' : ']';

    if (depth == SP_JSON_DEPTH)
        return mistake(p, "nested too deep");
    skip_space(p);
    if (pass(p, close))
        return SP_OK;
    do {
        sp_json_value *member = sp_arena_alloc(&p->doc->arena, sizeof *member);
        if (!member)
            return no_memory(p);
        skip_space(p);
        if (object)
            SP_TRY(read_key(p, &member->key));
        SP_TRY(read_value(p, member, depth + 1));
        *link = member;
        link = &member->next;
        v->count++;
        skip_space(p);
    } while (pass(p, ','));
    if (!pass(p, close))
        return mistake(p, object ? "\",\" or \"}\" is expected"
                                 : "\",\" or \"]\" is expected");
    return object ? check_repeats(p, v) : SP_OK;
}

static bool pass_word(parser *p, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static sp_err read_value(parser *p, sp_json_value *v, int depth)
{
    skip_space(p);
    v->where = p->doc->name;
    if (pass(p, '{') || pass(p, '[')) {
        v->kind = p->at[-1] == '{' ? SP_JSON_OBJECT : SP_JSON_LIST;
        return read_members(p, v, depth);
    }
    if (p->at < p->end && *p->at == '"') {
        v->kind = SP_JSON_TEXT;
        return read_string(p, &v->text);
    }
    if (pass_word(p, "null")) {
        v->kind = SP_JSON_NULL;
        return SP_OK;
    }
    if (pass_word(p, "true") || pass_word(p, "false")) {
        v->kind = SP_JSON_BOOL;
        v->truth = p->at[-2] == 'u';
        return SP_OK;
    }
    return read_number(p, v);
}

sp_err sp_json_parse(sp_json_doc **out, const char *name, const void *bytes,
                     size_t size)
{
    sp_json_doc *doc = calloc(1, sizeof *doc);
    parser p = { doc, bytes, bytes, (const char *)bytes + size };
    sp_err e;

    if (doc)
        doc->name = sp_arena_text(&doc->arena, name);
    if (!doc || !doc->name) {
        sp_json_doc_free(doc);
        return sp_fail(SP_ENOMEM, "out of memory for reading %s", name);
    }
    e = read_value(&p, &doc->root, 0);
    skip_space(&p);
    if (e == SP_OK && p.at < p.end)
        e = mistake(&p, "something follows the value");
    if (e != SP_OK)
        sp_json_doc_free(doc);
    else
        *out = doc;
    return e;
}

sp_err sp_json_read(sp_json_doc **doc, const char *path, size_t limit)
{
    uint8_t *bytes;
    size_t size;
    sp_err e;

    SP_TRY(sp_file_read(path, limit, &bytes, &size));
    e = sp_json_parse(doc, path, bytes, size);
    free(bytes);
    return e;
}

void sp_json_doc_free(sp_json_doc *doc)
{
    if (!doc)
        return;
    sp_arena_free(&doc->arena);
    free(doc);
}

const sp_json_value *sp_json_root(const sp_json_doc *doc) { return &doc->root; }

/* ---- Looking up -------------------------------------------------------- */

const sp_json_value *sp_json_find(const sp_json_value *object, const char *key)
{
    if (!object || object->kind != SP_JSON_OBJECT)
        return NULL;
    for (const sp_json_value *v = object->first; v; v = v->next)
        if (strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

static sp_err wrong(const sp_json_value *object, const char *key,
                    const char *what)
{
    return sp_fail(SP_EFORMAT, "%s: \"%s\" is missing or is not %s",
                   object ? object->where : "JSON", key, what);
}

sp_err sp_json_get(const sp_json_value *object, const char *key,
                   sp_json_kind kind, const sp_json_value **out)
{
    static const char *const kinds[] = { "null",     "true or false",
                                         "a number", "a string",
                                         "a list",   "an object" };
    const sp_json_value *v = sp_json_find(object, key);

    if (!v || v->kind != kind)
        return wrong(object, key, kinds[kind]);
    *out = v;
    return SP_OK;
}

sp_err sp_json_get_int(const sp_json_value *object, const char *key,
                       int64_t *out)
{
    const sp_json_value *v = sp_json_find(object, key);

    if (!v || v->kind != SP_JSON_NUMBER || !v->whole)
        return wrong(object, key, "a whole number");
    *out = v->integer;
    return SP_OK;
}

sp_err sp_json_get_number(const sp_json_value *object, const char *key,
                          double *out)
{
    const sp_json_value *v = NULL;

    SP_TRY(sp_json_get(object, key, SP_JSON_NUMBER, &v));
    *out = v->number;
    return SP_OK;
}

sp_err sp_json_get_bool(const sp_json_value *object, const char *key, bool *out)
{
    const sp_json_value *v = NULL;

    SP_TRY(sp_json_get(object, key, SP_JSON_BOOL, &v));
    *out = v->truth;
    return SP_OK;
}

sp_err sp_json_get_text(const sp_json_value *object, const char *key,
                        const char **out)
{
    const sp_json_value *v = NULL;

    SP_TRY(sp_json_get(object, key, SP_JSON_TEXT, &v));
    *out = v->text;
    return SP_OK;
}
