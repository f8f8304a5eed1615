#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_internal.h"

enum { COMMENT_COLUMN = 30 };

/* End a line, with the source as a comment unless it is NULL. A path may hold
 * any bytes; those that a YAML comment cannot hold are shown as "?". */
static void put_source(sp_text *out, size_t line_start, const char *source)
{
    size_t n = source ? strlen(source) : 0, length;

    if (!source) {
        sp_text_put(out, "\n", 1);
        return;
    }
    do
        sp_text_put(out, " ", 1);
    while (!out->failed && out->size - line_start < COMMENT_COLUMN);
    sp_text_put(out, "# ", 2);
    for (size_t i = 0; i < n; i += length) {
        length = sp_utf8(source + i, n - i);
        /* C2 begins the C1 controls, E2 and EF the line separators and the
         * byte order mark, beside ordinary characters that few paths hold. */
        if (length == 0 || (unsigned char)source[i] < ' ' || source[i] == 127 ||
            strchr("\xC2\xE2\xEF", source[i])) {
            sp_text_put(out, "?", 1);
            length = length ? length : 1;
        } else {
            sp_text_put(out, source + i, length);
        }
    }
    sp_text_put(out, "\n", 1);
}

/* The line of "file:line:column"; 0 where there is none. */
static long line_of(const char *place)
{
    const char *column = strrchr(place, ':'), *line = column;

    while (line && line > place && line[-1] != ':')
        line--;
    return line ? strtol(line, NULL, 10) : 0;
}

void sp_sources_restore(sp_loading *l, sp_setting *s, const char *text)
{
    for (; s; s = s->next) {
        const char *line = text, *end, *comment = NULL;
        for (long i = line_of(s->key_at); line && i > 1; i--)
            line = (line = strchr(line, '\n')) ? line + 1 : NULL;
        end = line ? line + strcspn(line, "\n") : NULL;
        /* A value may hold a number sign; the source comes last. */
        for (const char *p = line; p && p < end; p++)
            if (strncmp(p, " # ", 3) == 0)
                comment = p + 3;
        if (comment)
            s->source = sp_pool_text(l->pool, comment, (size_t)(end - comment));
    }
}

static void put_keys(sp_text *out, const sp_key *keys, size_t count,
                     const void *base, const char *const *from, bool sources)
{
    for (size_t i = 0; i < count; i++) {
        size_t start = out->size;

        sp_text_add(out, "  %s: ", keys[i].name);
        sp_value_print(out, &keys[i], base);
        put_source(out, start, sources ? from[i] : NULL);
    }
}

static void put_section(sp_text *out, const sp_filled *f, bool sources)
{
    const sp_section *s = f->section;
    size_t start;

    if (!s->fallback && s->key_count == 0)
        return;
    sp_text_add(out, "%s%s:\n", out->size ? "\n" : "", s->name);
    if (s->fallback) {
        start = out->size;
        sp_text_add(out, "  name: ");
        sp_yaml_string(out, f->entry->name);
        put_source(out, start, sources ? f->name_from : NULL);
    }
    put_keys(out, s->keys, s->key_count, f->common, f->common_from, sources);
    if (f->own)
        put_keys(out, f->entry->keys, f->entry->key_count, f->own, f->own_from,
                 sources);
}

static sp_err print(const sp_config *c, bool sources, FILE *out)
{
    sp_text text = { 0 };
    sp_err e;

    for (size_t i = 0; i < c->count; i++)
        put_section(&text, &c->filled[i], sources);
    e = sp_text_check(&text);
    if (e == SP_OK &&
        (fwrite(sp_text_string(&text), 1, text.size, out) != text.size ||
         fflush(out) != 0))
        e = sp_fail(SP_EIO, "cannot write the configuration: %s",
                    strerror(errno));
    sp_text_free(&text);
    return e;
}

sp_err sp_config_print(const sp_config *c, FILE *out)
{
    return print(c, true, out);
}

sp_err sp_config_print_values(const sp_config *c, FILE *out)
{
    return print(c, false, out);
}
