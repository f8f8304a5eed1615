#include "report/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

sp_err sp_line_fail(const sp_line *line, const char *what, const char *key)
{
    return sp_fail(
        SP_EFORMAT, "%s:%zu: %s%s%s: the file is damaged, or not one of a run",
        line->path, line->number, key ? key : "", key ? " " : "", what);
}

static sp_err take(const char *path, size_t number, const char *text, size_t n,
                   sp_err (*each)(void *arg, const sp_line *line), void *arg)
{
    sp_line line = { .path = path, .number = number };
    sp_json_doc *doc = NULL;
    sp_err e = sp_json_parse(&doc, path, text, n);

    if (e == SP_EFORMAT)
        return sp_line_fail(&line, "this line is not JSON", NULL);
    if (e != SP_OK)
        return e;
    line.root = sp_json_root(doc);
    e = line.root->kind == SP_JSON_OBJECT
            ? each(arg, &line)
            : sp_line_fail(&line, "this line is not a JSON object", NULL);
    sp_json_doc_free(doc);
    return e;
}

/* Whether these bytes, which no line end follows, are part of a line only. */
static sp_err check_torn(const char *path, const char *text, size_t n,
                         bool *torn)
{
    sp_json_doc *doc = NULL;
    sp_err e = sp_json_parse(&doc, path, text, n);

    sp_json_doc_free(doc);
    *torn = e == SP_EFORMAT;
    return *torn ? SP_OK : e;
}

sp_err sp_run_lines(const char *path,
                    sp_err (*each)(void *arg, const sp_line *line), void *arg,
                    bool *torn)
{
    uint8_t *bytes = NULL;
    size_t size, number = 0;
    const char *text, *end;
    sp_err e;

    *torn = false;
    if (!sp_is_file(path))
        return SP_OK;
    SP_TRY(sp_file_read(path, SP_RUN_LINES_LIMIT, &bytes, &size));
    text = (const char *)bytes;
    e = SP_OK;
    for (size_t at = 0; at < size && e == SP_OK; at += (size_t)(end - text)) {
        text = (const char *)bytes + at;
        end = memchr(text, '\n', size - at);
        if (!end)
            e = check_torn(path, text, size - at, torn);
        if (e != SP_OK || *torn)
            break;
        e = take(path, ++number, text, end ? (size_t)(end - text) : size - at,
                 each, arg);
        end = end ? end + 1 : text + (size - at);
    }
    free(bytes);
    return e;
}

sp_err sp_line_number(const sp_line *line, const char *key, double *out)
{
    const sp_json_value *v = sp_json_find(line->root, key);

    *out = NAN;
    if (!v || v->kind == SP_JSON_NULL)
        return SP_OK;
    if (v->kind != SP_JSON_NUMBER)
        return sp_line_fail(line, "is not a number", key);
    *out = v->number;
    return SP_OK;
}

sp_err sp_line_text(const sp_line *line, const char *key, const char **out)
{
    const sp_json_value *v = sp_json_find(line->root, key);

    *out = NULL;
    if (!v)
        return SP_OK;
    if (v->kind != SP_JSON_TEXT)
        return sp_line_fail(line, "is not a text", key);
    *out = v->text;
    return SP_OK;
}

sp_err sp_line_list(const sp_line *line, const char *key,
                    const sp_json_value **out)
{
    const sp_json_value *v = sp_json_find(line->root, key);

    *out = v;
    if (v && v->kind != SP_JSON_LIST)
        return sp_line_fail(line, "is not a list", key);
    return SP_OK;
}
