/* Mappings of a table file. */
#include "table/read.h"

#include <string.h>

enum { MOST_WORDS = 64 };

/* The i-th name that the mapping knows: for the search of the nearest. */
static const char *known(const void *block, size_t i)
{
    const sp_mapping *b = block;
    size_t keys = b->section->key_count;

    if (i < keys)
        return b->section->keys[i].name;
    if (i < keys + b->list_count)
        return b->list_names[i - keys];
    return i == keys + b->list_count ? b->other : NULL;
}

const char *sp_mapping_at(const sp_mapping *b, const char *key)
{
    const char *name;

    for (size_t i = 0; i < SP_TABLE_KEYS && (name = known(b, i)); i++)
        if (name != b->other && strcmp(name, key) == 0)
            return b->at[i];
    return b->other && strcmp(key, b->other) == 0 ? b->other_at : NULL;
}

static void add_word(sp_yaml *y, sp_words *w)
{
    sp_pool *pool = y->l->pool;

    if (w->count == MOST_WORDS) {
        sp_complain(y->l, sp_yaml_here(y), "a list holds at most %d of these",
                    MOST_WORDS);
        sp_yaml_give_up(y);
        return;
    }
    if (!w->word) {
        w->word = sp_pool_take(pool, MOST_WORDS * sizeof *w->word);
        w->at = sp_pool_take(pool, MOST_WORDS * sizeof *w->at);
    }
    if (!w->word || !w->at)
        return;
    w->word[w->count] = sp_yaml_text(y);
    w->at[w->count] = sp_yaml_here(y);
    w->count += w->word[w->count] && w->at[w->count];
}

/* A list of strings, or one string. */
static void read_words(sp_yaml *y, sp_words *w)
{
    if (y->event.type != YAML_SEQUENCE_START_EVENT) {
        if (sp_yaml_scalar(y, "must be a list of strings"))
            add_word(y, w);
        else
            sp_yaml_skip(y);
        return;
    }
    sp_yaml_plain(y);
    while (sp_yaml_next(y) && y->event.type != YAML_SEQUENCE_END_EVENT) {
        if (sp_yaml_scalar(y, "must be a string: quote what has brackets or "
                              "braces"))
            add_word(y, w);
        else
            sp_yaml_skip(y);
    }
}

static void read_typed(sp_yaml *y, sp_mapping *b, const sp_key *key)
{
    sp_setting s = { .section = b->section, .key = key->name };

    if (sp_yaml_value(y, &s))
        sp_value_store(y->l, key, &s, b->base);
}

/* The value of the i-th name, which the present event begins. */
static void read_known(sp_yaml *y, sp_mapping *b, size_t i)
{
    size_t keys = b->section->key_count;

    if (i < keys)
        read_typed(y, b, &b->section->keys[i]);
    else if (i < keys + b->list_count)
        read_words(y, &b->lists[i - keys]);
    else
        b->read_other(y, b->arg);
}

static void complain_unknown(sp_yaml *y, const sp_mapping *b, const char *at,
                             const char *name)
{
    const char *near = sp_nearest(name, known, b);
    char shown[SP_SHOWN_ROOM];

    sp_shown(shown, name);
    if (near)
        sp_complain(y->l, at, "a %s has no key %s; did you mean %s?",
                    b->section->name, shown, near);
    else
        sp_complain(y->l, at, "a %s has no key %s", b->section->name, shown);
}

/* "key: value", of which the present event is the key. */
static void read_pair(sp_yaml *y, sp_mapping *b)
{
    const char *at = sp_yaml_here(y), *name = NULL, *candidate;
    const char **seen;
    size_t i = 0;

    sp_yaml_count(y);
    if (sp_yaml_scalar(y, "a key must be a word, not a list or mapping"))
        name = sp_yaml_text(y);
    else
        sp_yaml_skip(y);
    if (!sp_yaml_next(y))
        return;
    while (name && (candidate = known(b, i)) && strcmp(candidate, name) != 0)
        i++;
    if (!name || !known(b, i)) {
        if (name)
            complain_unknown(y, b, at, name);
        sp_yaml_skip(y);
        return;
    }
    seen = known(b, i) == b->other ? &b->other_at : &b->at[i];
    if (*seen) {
        sp_complain(y->l, at, "%s stands twice, first at %s; remove one", name,
                    *seen);
        sp_yaml_skip(y);
        return;
    }
    *seen = sp_yaml_here(y);
    read_known(y, b, i);
}

void sp_mapping_read(sp_yaml *y, sp_mapping *b)
{
    if (y->event.type == YAML_MAPPING_START_EVENT) {
        sp_yaml_plain(y);
        while (sp_yaml_next(y) && y->event.type != YAML_MAPPING_END_EVENT)
            read_pair(y, b);
    } else {
        if (sp_yaml_scalar(y, "must be \"key: value\" lines, not a list"))
            sp_complain(y->l, sp_yaml_here(y),
                        "a %s is a mapping: write \"key: value\" lines",
                        b->section->name);
        sp_yaml_skip(y);
    }
    for (size_t i = 0; i < b->section->key_count; i++) {
        const sp_key *key = &b->section->keys[i];
        const sp_setting *s =
            b->at[i] ? NULL : sp_settings_default(y->l, b->section, key);

        if (s)
            sp_value_store(y->l, key, s, b->base);
    }
}
