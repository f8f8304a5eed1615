/* Files and arguments, read into settings. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/yaml_events.h"

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

/* "key: value" in a section whose earlier keys begin at `*begin`. */
static void read_setting(sp_yaml *y, const sp_section *section,
                         sp_setting *const *begin)
{
    sp_setting s = { .section = section, .key_at = sp_yaml_here(y) };
    char shown[SP_SHOWN_ROOM];

    if (!sp_yaml_scalar(y, "a key must be a word, not a list or mapping")) {
        sp_yaml_skip(y);
        if (sp_yaml_next(y))
            sp_yaml_skip(y);
        return;
    }
    s.key = sp_yaml_text(y);
    s.source = s.key_at;
    sp_yaml_count(y);
    if (!sp_yaml_next(y) || !s.key || !sp_yaml_value(y, &s))
        return;
    for (const sp_setting *t = *begin; t; t = t->next)
        if (strcmp(t->key, s.key) == 0) {
            sp_complain(y->l, s.key_at,
                        "%s is set twice, first at %s; remove "
                        "one",
                        sp_shown(shown, s.key), t->key_at);
            return;
        }
    append(y->l, s);
}

/* The keys of a section, up to the mapping's end. */
static void read_section(sp_yaml *y, const sp_section *section)
{
    sp_setting *const *begin = y->l->last;

    if (y->event.type == YAML_SCALAR_EVENT && y->event.data.scalar.length == 0)
        return; /* "optim:" with nothing below it */
    if (y->event.type != YAML_MAPPING_START_EVENT) {
        if (sp_yaml_scalar(y,
                           "a section holds \"key: value\" lines, not a list"))
            sp_complain(y->l, sp_yaml_here(y),
                        "%s is a section: write its keys as "
                        "indented \"key: value\" lines",
                        section->name);
        sp_yaml_skip(y);
        return;
    }
    sp_yaml_plain(y);
    while (sp_yaml_next(y) && y->event.type != YAML_MAPPING_END_EVENT)
        read_setting(y, section, begin);
}

/* The sections of a file; `seen[i]` is where the i-th stood before. */
static void read_sections(sp_yaml *y, const char **seen)
{
    while (sp_yaml_next(y) && y->event.type != YAML_MAPPING_END_EVENT) {
        const char *at = sp_yaml_here(y), *name = NULL;
        const sp_section *section = NULL, *other;
        size_t i = 0;

        sp_yaml_count(y);
        if (sp_yaml_scalar(y, "a section's name must be a word"))
            name = sp_yaml_text(y);
        else
            sp_yaml_skip(y);
        while (name && (other = sp_registry_section(y->l->registry, i)) &&
               !section) {
            if (strcmp(other->name, name) == 0)
                section = other;
            else
                i++;
        }
        if (name && !section)
            sp_complain_section(y->l, at, name);
        if (section && seen[i])
            sp_complain(y->l, at,
                        "section %s stands twice, first at %s; put "
                        "its keys together",
                        name, seen[i]);
        if (!sp_yaml_next(y))
            return;
        if (section && !seen[i])
            read_section(y, section);
        else
            sp_yaml_skip(y);
        if (section)
            seen[i] = at;
    }
}

/* A whole file: nothing, or one document that is a mapping. */
static void read_root(sp_yaml *y)
{
    size_t count = 0;
    const char **seen;

    if (!sp_yaml_root(y))
        return;
    while (sp_registry_section(y->l->registry, count))
        count++;
    seen = sp_pool_take(y->l->pool, (count + 1) * sizeof *seen);
    if (!seen)
        return;
    if (y->event.type == YAML_MAPPING_START_EVENT) {
        sp_yaml_plain(y);
        read_sections(y, seen);
    } else if (y->event.type != YAML_SCALAR_EVENT ||
               y->event.data.scalar.length > 0) {
        sp_complain(y->l, sp_yaml_here(y),
                    "a configuration holds sections, each with "
                    "indented \"key: value\" lines");
        sp_yaml_skip(y);
    }
    sp_yaml_end(y);
}

void sp_settings_file(sp_loading *l, const char *path)
{
    sp_yaml y = { .l = l, .path = path };
    sp_setting **added = l->last;
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e = sp_file_read(path, SP_YAML_BYTES, &bytes, &size);

    if (e == SP_ENOMEM) {
        l->pool->failed = true;
    } else if (e != SP_OK) {
        l->unreadable = l->partial = true;
        sp_complain(l, "configuration", "%s", sp_last_error());
    } else if (sp_yaml_start(&y, bytes, size)) {
        read_root(&y);
        sp_yaml_stop(&y);
        if (l->printed && !l->pool->failed)
            sp_sources_restore(l, *added, (const char *)bytes);
    }
    free(bytes);
}

/* The text of an argument's or default's value into `s`. */
static bool read_text(sp_loading *l, const char *text, const char *at,
                      sp_setting *s)
{
    sp_yaml y = { .l = l, .place = at };
    bool good = false;

    s->key_at = s->value_at = at;
    if (!sp_yaml_start(&y, text, strlen(text)))
        return false;
    if (!sp_yaml_next(&y) || !sp_yaml_next(&y))
        goto done;
    if (y.event.type == YAML_STREAM_END_EVENT) { /* an empty value */
        s->count = 1;
        s->items = sp_pool_take(l->pool, sizeof *s->items);
        good = s->items && (s->items[0] = sp_pool_text(l->pool, "", 0));
        goto done;
    }
    good = sp_yaml_next(&y) && sp_yaml_value(&y, s);
    if (!sp_yaml_next(&y) || !sp_yaml_next(&y)) {
        good = false;
    } else if (y.event.type != YAML_STREAM_END_EVENT) {
        sp_complain(l, at, "more than one value");
        good = false;
    }
done:
    sp_yaml_stop(&y);
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
