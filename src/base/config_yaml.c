#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/config_internal.h"
#include "base/files.h"

enum {
    MOST_BYTES = 1 << 20, /* of a file */
    MOST_KEYS = 4096,     /* in a file */
    DEEPEST = 64          /* nesting that is skipped to find more mistakes */
};

/* One file or argument under reading. `event` is the present event. */
typedef struct reader {
    sp_loading *l;
    yaml_parser_t parser;
    yaml_event_t event;
    const char *path;  /* NULL: an argument or a default */
    const char *place; /* how messages begin then */
    const unsigned char *bytes;
    int keys;
    bool broken; /* not YAML any further; already complained about */
} reader;

/* "path:line:column", counted from 1. */
static const char *place(const reader *r, size_t line, size_t column)
{
    return r->path ? sp_pool_print(r->l->pool, "%s:%zu:%zu", r->path, line + 1,
                                   column + 1)
                   : r->place;
}

static const char *here(const reader *r)
{
    return place(r, r->event.start_mark.line, r->event.start_mark.column);
}

/* libyaml tells only the byte where it found bad encoding. */
static const char *place_of_byte(const reader *r, size_t offset)
{
    size_t line = 0, column = 0;

    for (size_t i = 0; i < offset; i++) {
        if (r->bytes[i] == '\n') {
            line++;
            column = 0;
        } else if ((r->bytes[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    return place(r, line, column);
}

/* The rest is not read: what it holds is not known. */
static void give_up(reader *r)
{
    r->broken = true;
    r->l->partial = r->l->partial || r->path;
}

static void complain_syntax(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "syntax error";

    give_up(r);
    if (p->error == YAML_MEMORY_ERROR) {
        r->l->pool->failed = true;
    } else if (p->error == YAML_READER_ERROR) {
        sp_complain(r->l, place_of_byte(r, p->problem_offset),
                    "%s; the text must be UTF-8 without control characters",
                    problem);
    } else {
        bool tab = strstr(problem, "cannot start any token") != NULL;
        sp_complain(r->l,
                    place(r, p->problem_mark.line, p->problem_mark.column),
                    "not valid YAML: %s%s%s%s", problem, p->context ? " " : "",
                    p->context ? p->context : "",
                    tab ? " (indent with spaces, not tabs; quote strings that "
                          "begin with a special character)"
                        : "");
    }
}

/* Step to the next event; false when the text is broken. */
static bool advance(reader *r)
{
    if (r->broken)
        return false;
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event)) {
        memset(&r->event, 0, sizeof r->event);
        complain_syntax(r);
        return false;
    }
    return true;
}

/* Pass over the node that the present event begins. */
static void skip(reader *r)
{
    int depth = 0;

    do {
        yaml_event_type_t type = r->event.type;

        depth += type == YAML_MAPPING_START_EVENT ||
                 type == YAML_SEQUENCE_START_EVENT;
        depth -=
            type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (depth > DEEPEST) {
            sp_complain(r->l, here(r), "nested more than %d deep", DEEPEST);
            give_up(r);
        }
    } while (depth > 0 && advance(r));
}

/* Is the present event a scalar (with `what` it is for the message) without
 * YAML's extras? Otherwise complain. */
static bool is_scalar(reader *r, const char *what)
{
    const yaml_event_t *e = &r->event;

    if (e->type == YAML_ALIAS_EVENT) {
        sp_complain(r->l, here(r),
                    "aliases are not supported; write the value "
                    "out");
    } else if (e->type != YAML_SCALAR_EVENT) {
        sp_complain(r->l, here(r), "%s", what);
    } else if (e->data.scalar.anchor) {
        sp_complain(r->l, here(r),
                    "anchors are not supported; leave \"&%s\" "
                    "out",
                    (const char *)e->data.scalar.anchor);
    } else if (e->data.scalar.tag) {
        sp_complain(r->l, here(r), "tags are not supported; leave \"%s\" out",
                    (const char *)e->data.scalar.tag);
    } else if (memchr(e->data.scalar.value, 0, e->data.scalar.length)) {
        sp_complain(r->l, here(r), "a string must not contain a 0 byte");
    } else {
        return true;
    }
    return false;
}

/* The text of a scalar event. */
static const char *text_of(const reader *r)
{
    return sp_pool_text(r->l->pool, (const char *)r->event.data.scalar.value,
                        r->event.data.scalar.length);
}

/* Is the list or mapping of the present event free of YAML's extras? */
static bool is_plain(reader *r, const yaml_char_t *anchor,
                     const yaml_char_t *tag)
{
    if (anchor || tag)
        sp_complain(r->l, here(r),
                    "anchors and tags are not supported; leave "
                    "\"%s\" out",
                    (const char *)(anchor ? anchor : tag));
    return !anchor && !tag;
}

/* The items of a list, up to its end. */
static bool read_list(reader *r, sp_setting *s)
{
    const char *items[SP_LIST_MAX];
    bool good = is_plain(r, r->event.data.sequence_start.anchor,
                         r->event.data.sequence_start.tag);
    bool full = false;

    s->is_list = true;
    while (advance(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
        if (!is_scalar(r, "a list holds numbers, not lists or mappings")) {
            good = false;
            skip(r);
        } else if (s->count < SP_LIST_MAX) {
            items[s->count++] = text_of(r);
        } else {
            full = true;
        }
    }
    if (full)
        sp_complain(r->l, s->value_at, "a list holds at most %d numbers",
                    SP_LIST_MAX);
    s->items = sp_pool_take(r->l->pool, sizeof items);
    if (s->items)
        memcpy(s->items, items, s->count * sizeof *items);
    return good && !full && !r->broken && s->items;
}

/* The value of a setting: a scalar or list that the present event begins. */
static bool read_value(reader *r, sp_setting *s)
{
    s->value_at = here(r);
    if (r->event.type == YAML_SEQUENCE_START_EVENT)
        return read_list(r, s);
    if (!is_scalar(r, "the value must be a single value or a list of "
                      "numbers")) {
        skip(r);
        return false;
    }
    s->count = 1;
    s->items = sp_pool_take(r->l->pool, sizeof *s->items);
    if (s->items)
        s->items[0] = text_of(r);
    return s->items && s->items[0];
}

static void append(sp_loading *l, sp_setting s)
{
    sp_setting *copy = sp_pool_take(l->pool, sizeof *copy);

    if (!copy)
        return;
    *copy = s;
    copy->next = NULL;
    copy->layer = l->layer;
    *l->last = copy;
    l->last = &copy->next;
}

/* A file of another kind must not be read to its end. */
static void count_key(reader *r)
{
    if (++r->keys <= MOST_KEYS)
        return;
    sp_complain(r->l, here(r), "more than %d keys; this is not a configuration",
                MOST_KEYS);
    give_up(r);
}

/* "key: value" in a section whose earlier keys begin at `*begin`. */
static void read_setting(reader *r, const sp_section *section,
                         sp_setting *const *begin)
{
    sp_setting s = { .section = section, .key_at = here(r) };
    char shown[SP_SHOWN_ROOM];

    if (!is_scalar(r, "a key must be a word, not a list or mapping")) {
        skip(r);
        if (advance(r))
            skip(r);
        return;
    }
    s.key = text_of(r);
    s.source = s.key_at;
    count_key(r);
    if (!advance(r) || !s.key || !read_value(r, &s))
        return;
    for (const sp_setting *t = *begin; t; t = t->next)
        if (strcmp(t->key, s.key) == 0) {
            sp_complain(r->l, s.key_at,
                        "%s is set twice, first at %s; remove "
                        "one",
                        sp_shown(shown, s.key), t->key_at);
            return;
        }
    append(r->l, s);
}

/* The keys of a section, up to the mapping's end. */
static void read_section(reader *r, const sp_section *section)
{
    sp_setting *const *begin = r->l->last;

    if (r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == 0)
        return; /* "optim:" with nothing below it */
    if (r->event.type != YAML_MAPPING_START_EVENT) {
        if (is_scalar(r, "a section holds \"key: value\" lines, not a list"))
            sp_complain(r->l, here(r),
                        "%s is a section: write its keys as "
                        "indented \"key: value\" lines",
                        section->name);
        skip(r);
        return;
    }
    is_plain(r, r->event.data.mapping_start.anchor,
             r->event.data.mapping_start.tag);
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT)
        read_setting(r, section, begin);
}

/* The sections of a file; `seen[i]` is where the i-th stood before. */
static void read_sections(reader *r, const char **seen)
{
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        const char *at = here(r), *name = NULL;
        const sp_section *section = NULL, *other;
        size_t i = 0;

        count_key(r);
        if (is_scalar(r, "a section's name must be a word"))
            name = text_of(r);
        else
            skip(r);
        while (name && (other = sp_registry_section(r->l->registry, i)) &&
               !section) {
            if (strcmp(other->name, name) == 0)
                section = other;
            else
                i++;
        }
        if (name && !section)
            sp_complain_section(r->l, at, name);
        if (section && seen[i])
            sp_complain(r->l, at,
                        "section %s stands twice, first at %s; put "
                        "its keys together",
                        name, seen[i]);
        if (!advance(r))
            return;
        if (section && !seen[i])
            read_section(r, section);
        else
            skip(r);
        if (section)
            seen[i] = at;
    }
}

/* A whole file: nothing, or one document that is a mapping. */
static void read_root(reader *r)
{
    size_t count = 0;
    const char **seen;

    if (!advance(r) || !advance(r) || r->event.type == YAML_STREAM_END_EVENT ||
        !advance(r))
        return;
    while (sp_registry_section(r->l->registry, count))
        count++;
    seen = sp_pool_take(r->l->pool, (count + 1) * sizeof *seen);
    if (!seen)
        return;
    if (r->event.type == YAML_MAPPING_START_EVENT) {
        is_plain(r, r->event.data.mapping_start.anchor,
                 r->event.data.mapping_start.tag);
        read_sections(r, seen);
    } else if (r->event.type != YAML_SCALAR_EVENT ||
               r->event.data.scalar.length > 0) {
        sp_complain(r->l, here(r),
                    "a configuration holds sections, each with "
                    "indented \"key: value\" lines");
        skip(r);
    }
    if (advance(r) && advance(r) && r->event.type != YAML_STREAM_END_EVENT)
        sp_complain(r->l, here(r),
                    "a second document begins; a configuration "
                    "is one document");
}

static bool start(reader *r, const void *bytes, size_t size)
{
    if (!yaml_parser_initialize(&r->parser)) {
        r->l->pool->failed = true;
        return false;
    }
    r->bytes = bytes;
    memset(&r->event, 0, sizeof r->event);
    yaml_parser_set_input_string(&r->parser, bytes, size);
    return true;
}

static void stop(reader *r)
{
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
}

void sp_settings_file(sp_loading *l, const char *path)
{
    reader r = { .l = l, .path = path };
    sp_setting **added = l->last;
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e = sp_file_read(path, MOST_BYTES, &bytes, &size);

    if (e == SP_ENOMEM) {
        l->pool->failed = true;
    } else if (e != SP_OK) {
        l->unreadable = l->partial = true;
        sp_complain(l, "configuration", "%s", sp_last_error());
    } else if (start(&r, bytes, size)) {
        read_root(&r);
        stop(&r);
        if (l->printed)
            sp_sources_restore(l, *added, (const char *)bytes);
    }
    free(bytes);
}

/* The text of an argument's or default's value into `s`. */
static bool read_text(sp_loading *l, const char *text, const char *at,
                      sp_setting *s)
{
    reader r = { .l = l, .place = at };
    bool good = false;

    s->key_at = s->value_at = at;
    if (!start(&r, text, strlen(text)))
        return false;
    if (!advance(&r) || !advance(&r))
        goto done;
    if (r.event.type == YAML_STREAM_END_EVENT) { /* an empty value */
        s->count = 1;
        s->items = sp_pool_take(l->pool, sizeof *s->items);
        good = s->items && (s->items[0] = sp_pool_text(l->pool, "", 0));
        goto done;
    }
    good = advance(&r) && read_value(&r, s);
    if (!advance(&r) || !advance(&r)) {
        good = false;
    } else if (r.event.type != YAML_STREAM_END_EVENT) {
        sp_complain(l, at, "more than one value");
        good = false;
    }
done:
    stop(&r);
    return good;
}

void sp_settings_argument(sp_loading *l, const char *text, const char *source)
{
    sp_setting s = { .source = source ? source : "argument" };
    const char *equals = strchr(text, '='), *dot = strchr(text, '.'), *at,
               *name;
    char shown[SP_SHOWN_ROOM];

    at = sp_pool_print(l->pool, "argument %s", sp_shown(shown, text));
    if (!equals || !dot || dot > equals || dot == text || dot + 1 == equals) {
        sp_complain(l, at,
                    "must be section.key=value, as in "
                    "train.epochs=30");
        return;
    }
    name = sp_pool_text(l->pool, text, (size_t)(dot - text));
    s.key = sp_pool_text(l->pool, dot + 1, (size_t)(equals - dot) - 1);
    if (!at || !name || !s.key)
        return;
    s.section = sp_registry_section_find(l->registry, name);
    if (!s.section)
        sp_complain_section(l, at, name);
    else if (read_text(l, equals + 1, at, &s))
        append(l, s);
}

const sp_setting *sp_settings_default(sp_loading *l, const sp_section *section,
                                      const sp_key *key)
{
    sp_setting *s = sp_pool_take(l->pool, sizeof *s);
    const char *at =
        sp_pool_print(l->pool, "default of %s.%s", section->name, key->name);

    if (!s || !at)
        return NULL;
    s->section = section;
    s->key = key->name;
    s->source = "default";
    return read_text(l, key->fallback ? key->fallback : "", at, s) ? s : NULL;
}
