#include "base/yaml_events.h"

#include <string.h>

enum {
    MOST_KEYS = 4096, /* in a file */
    DEEPEST = 64      /* nesting that is skipped to find more mistakes */
};

/* "path:line:column", counted from 1. */
static const char *place(const sp_yaml *y, size_t line, size_t column)
{
    return y->path ? sp_pool_print(y->l->pool, "%s:%zu:%zu", y->path, line + 1,
                                   column + 1)
                   : y->place;
}

const char *sp_yaml_here(const sp_yaml *y)
{
    return place(y, y->event.start_mark.line, y->event.start_mark.column);
}

/* libyaml tells only the byte where it found bad encoding. */
static const char *place_of_byte(const sp_yaml *y, size_t offset)
{
    size_t line = 0, column = 0;

    for (size_t i = 0; i < offset; i++) {
        if (y->bytes[i] == '\n') {
            line++;
            column = 0;
        } else if ((y->bytes[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    return place(y, line, column);
}

void sp_yaml_give_up(sp_yaml *y)
{
    y->broken = true;
    y->l->partial = y->l->partial || y->path;
}

static void complain_syntax(sp_yaml *y)
{
    const yaml_parser_t *p = &y->parser;
    const char *problem = p->problem ? p->problem : "syntax error";

    sp_yaml_give_up(y);
    if (p->error == YAML_MEMORY_ERROR) {
        y->l->pool->failed = true;
    } else if (p->error == YAML_READER_ERROR) {
        sp_complain(y->l, place_of_byte(y, p->problem_offset),
                    "%s; the text must be UTF-8 without control characters",
                    problem);
    } else {
        bool tab = strstr(problem, "cannot start any token") != NULL;
        sp_complain(y->l,
                    place(y, p->problem_mark.line, p->problem_mark.column),
                    "not valid YAML: %s%s%s%s", problem, p->context ? " " : "",
                    p->context ? p->context : "",
                    tab ? " (indent with spaces, not tabs; quote strings that "
                          "begin with a special character)"
                        : "");
    }
}

bool sp_yaml_next(sp_yaml *y)
{
    if (y->broken)
        return false;
    yaml_event_delete(&y->event);
    if (!yaml_parser_parse(&y->parser, &y->event)) {
        memset(&y->event, 0, sizeof y->event);
        complain_syntax(y);
        return false;
    }
    return true;
}

void sp_yaml_skip(sp_yaml *y)
{
    int depth = 0;

    do {
        yaml_event_type_t type = y->event.type;

        depth += type == YAML_MAPPING_START_EVENT ||
                 type == YAML_SEQUENCE_START_EVENT;
        depth -=
            type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (depth > DEEPEST) {
            sp_complain(y->l, sp_yaml_here(y), "nested more than %d deep",
                        DEEPEST);
            sp_yaml_give_up(y);
        }
    } while (depth > 0 && sp_yaml_next(y));
}

bool sp_yaml_scalar(sp_yaml *y, const char *what)
{
    const yaml_event_t *e = &y->event;

    if (e->type == YAML_ALIAS_EVENT) {
        sp_complain(y->l, sp_yaml_here(y),
                    "aliases are not supported; write the value "
                    "out");
    } else if (e->type != YAML_SCALAR_EVENT) {
        sp_complain(y->l, sp_yaml_here(y), "%s", what);
    } else if (e->data.scalar.anchor) {
        sp_complain(y->l, sp_yaml_here(y),
                    "anchors are not supported; leave \"&%s\" "
                    "out",
                    (const char *)e->data.scalar.anchor);
    } else if (e->data.scalar.tag) {
        sp_complain(y->l, sp_yaml_here(y),
                    "tags are not supported; leave \"%s\" out",
                    (const char *)e->data.scalar.tag);
    } else if (memchr(e->data.scalar.value, 0, e->data.scalar.length)) {
        sp_complain(y->l, sp_yaml_here(y),
                    "a string must not contain a 0 byte");
    } else {
        return true;
    }
    return false;
}

const char *sp_yaml_text(const sp_yaml *y)
{
    return sp_pool_text(y->l->pool, (const char *)y->event.data.scalar.value,
                        y->event.data.scalar.length);
}

bool sp_yaml_plain(sp_yaml *y)
{
    const yaml_event_t *e = &y->event;
    bool list = e->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *anchor =
        list ? e->data.sequence_start.anchor : e->data.mapping_start.anchor;
    const yaml_char_t *tag =
        list ? e->data.sequence_start.tag : e->data.mapping_start.tag;

    if (anchor || tag)
        sp_complain(y->l, sp_yaml_here(y),
                    "anchors and tags are not supported; leave "
                    "\"%s\" out",
                    (const char *)(anchor ? anchor : tag));
    return !anchor && !tag;
}

void sp_yaml_count(sp_yaml *y)
{
    if (++y->keys <= MOST_KEYS)
        return;
    sp_complain(y->l, sp_yaml_here(y),
                "more than %d keys; this is not a configuration", MOST_KEYS);
    sp_yaml_give_up(y);
}

/* The items of a list, up to its end. */
static bool read_list(sp_yaml *y, sp_setting *s)
{
    const char *items[SP_LIST_MAX];
    bool good = sp_yaml_plain(y);
    bool full = false;

    s->is_list = true;
    while (sp_yaml_next(y) && y->event.type != YAML_SEQUENCE_END_EVENT) {
        if (!sp_yaml_scalar(y, "a list holds numbers, not lists or mappings")) {
            good = false;
            sp_yaml_skip(y);
        } else if (s->count < SP_LIST_MAX) {
            items[s->count++] = sp_yaml_text(y);
        } else {
            full = true;
        }
    }
    if (full)
        sp_complain(y->l, s->value_at, "a list holds at most %d numbers",
                    SP_LIST_MAX);
    s->items = sp_pool_take(y->l->pool, sizeof items);
    if (s->items)
        memcpy(s->items, items, s->count * sizeof *items);
    return good && !full && !y->broken && s->items;
}

bool sp_yaml_value(sp_yaml *y, sp_setting *s)
{
    s->value_at = sp_yaml_here(y);
    if (y->event.type == YAML_SEQUENCE_START_EVENT)
        return read_list(y, s);
    if (!sp_yaml_scalar(y, "the value must be a single value or a list of "
                           "numbers")) {
        sp_yaml_skip(y);
        return false;
    }
    s->count = 1;
    s->items = sp_pool_take(y->l->pool, sizeof *s->items);
    if (s->items)
        s->items[0] = sp_yaml_text(y);
    return s->items && s->items[0];
}

bool sp_yaml_root(sp_yaml *y)
{
    return sp_yaml_next(y) && sp_yaml_next(y) &&
           y->event.type != YAML_STREAM_END_EVENT && sp_yaml_next(y);
}

void sp_yaml_end(sp_yaml *y)
{
    if (sp_yaml_next(y) && sp_yaml_next(y) &&
        y->event.type != YAML_STREAM_END_EVENT)
        sp_complain(y->l, sp_yaml_here(y),
                    "a second document begins; a configuration "
                    "is one document");
}

bool sp_yaml_start(sp_yaml *y, const void *bytes, size_t size)
{
    if (!yaml_parser_initialize(&y->parser)) {
        y->l->pool->failed = true;
        return false;
    }
    y->bytes = bytes;
    memset(&y->event, 0, sizeof y->event);
    yaml_parser_set_input_string(&y->parser, bytes, size);
    return true;
}

void sp_yaml_stop(sp_yaml *y)
{
    yaml_event_delete(&y->event);
    yaml_parser_delete(&y->parser);
}
