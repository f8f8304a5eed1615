/* Mistakes in the names that stand in a configuration, and what was meant. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config_internal.h"

enum { MOST_MISTAKES = 40 }; /* shown; more are only counted */

void sp_complain(sp_loading *l, const char *at, const char *fmt, ...)
{
    va_list args;

    if (++l->mistake_count > MOST_MISTAKES)
        return;
    if (l->mistakes.size > 0)
        sp_text_put(&l->mistakes, "\n", 1);
    if (!at)
        at = l->place ? l->place : "configuration";
    sp_text_add(&l->mistakes, "%s: ", at);
    va_start(args, fmt);
    sp_text_addv(&l->mistakes, fmt, args);
    va_end(args);
}

const char *sp_shown(char out[SP_SHOWN_ROOM], const char *word)
{
    size_t n = strlen(word), used = 0, length;

    out[used++] = '"';
    for (size_t i = 0; i < n && used < SP_SHOWN_ROOM - 9; i += length) {
        length = sp_utf8(word + i, n - i);
        if (length == 0 || (unsigned char)word[i] < ' ' || word[i] == 127) {
            length = 1;
            out[used++] = '?';
        } else {
            memcpy(out + used, word + i, length);
            used += length;
        }
        if (i + length < n && used >= SP_SHOWN_ROOM - 9) {
            memcpy(out + used, "...", 3);
            used += 3;
        }
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}

const sp_key *sp_key_find(const sp_key *keys, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* ---- What a misspelt word may have meant ------------------------------- */

static const char *next_section(const void *registry, size_t i)
{
    const sp_section *s = sp_registry_section(registry, i);

    return s ? s->name : NULL;
}

typedef struct place {
    const sp_registry *registry;
    const sp_section *section;
    const sp_entry *entry; /* or NULL */
} place;

static const char *next_thing(const void *arg, size_t i)
{
    const place *p = arg;
    const sp_entry *e = sp_registry_at(p->registry, p->section->name, i);

    return e ? e->name : NULL;
}

/* `name`, the common keys, those of the selected thing. */
static const char *next_key(const void *arg, size_t i)
{
    const place *p = arg;

    if (p->section->fallback && i-- == 0)
        return "name";
    if (i < p->section->key_count)
        return p->section->keys[i].name;
    i -= p->section->key_count;
    return p->entry && i < p->entry->key_count ? p->entry->keys[i].name : NULL;
}

/* "a, b, c" of all candidates. */
static void put_all(sp_text *out, const char *(*next)(const void *, size_t),
                    const void *arg)
{
    const char *word;

    for (size_t i = 0; (word = next(arg, i)); i++)
        sp_text_add(out, "%s%s", i ? ", " : "", word);
    if (out->size == 0)
        sp_text_add(out, "none");
}

/* "; did you mean X?", else "; the WHAT are a, b, c". */
static void put_hint(sp_text *out, const char *word, const char *what,
                     const char *(*next)(const void *, size_t), const void *arg)
{
    const char *near = sp_nearest(word, next, arg);
    sp_text all = { 0 };

    if (near) {
        sp_text_add(out, "; did you mean %s?", near);
        return;
    }
    put_all(&all, next, arg);
    sp_text_add(out, "; the %s are: %s", what, sp_text_string(&all));
    sp_text_free(&all);
}

/* The things of a section that have this key: "momentum belongs to
 * optim.name: sgd, nag". False if there is none. */
static bool put_owners(sp_text *out, const sp_registry *r,
                       const sp_section *section, const char *key)
{
    const sp_entry *e;
    bool any = false;

    for (size_t i = 0; (e = sp_registry_at(r, section->name, i)); i++)
        if (sp_key_find(e->keys, e->key_count, key)) {
            if (any)
                sp_text_add(out, ", %s", e->name);
            else
                sp_text_add(out, "; %s belongs to %s.name: %s", key,
                            section->name, e->name);
            any = true;
        }
    return any;
}

/* Where else a key of exactly this name is. */
static bool put_elsewhere(sp_text *out, const sp_registry *r,
                          const sp_section *here, const char *key)
{
    const sp_section *s;

    for (size_t i = 0; (s = sp_registry_section(r, i)); i++) {
        if (s == here)
            continue;
        if (sp_key_find(s->keys, s->key_count, key)) {
            sp_text_add(out, "; %s is a key of section %s", key, s->name);
            return true;
        }
        if (put_owners(out, r, s, key))
            return true;
    }
    return false;
}

void sp_complain_section(sp_loading *l, const char *at, const char *name)
{
    sp_text hint = { 0 };
    char shown[SP_SHOWN_ROOM];

    if (l->mistake_count < MOST_MISTAKES &&
        !put_elsewhere(&hint, l->registry, NULL, name))
        put_hint(&hint, name, "sections", next_section, l->registry);
    sp_complain(l, at, "there is no section %s%s", sp_shown(shown, name),
                sp_text_string(&hint));
    sp_text_free(&hint);
}

static void complain_key(sp_loading *l, const sp_setting *s,
                         const sp_entry *entry)
{
    place p = { l->registry, s->section, entry };
    sp_text hint = { 0 };
    char shown[SP_SHOWN_ROOM];

    if (l->mistake_count < MOST_MISTAKES &&
        !put_owners(&hint, l->registry, s->section, s->key) &&
        !put_elsewhere(&hint, l->registry, s->section, s->key))
        put_hint(&hint, s->key, "keys", next_key, &p);
    sp_complain(l, s->key_at, "%s%s%s has no key %s%s", s->section->name,
                entry ? " with name: " : "", entry ? entry->name : "",
                sp_shown(shown, s->key), sp_text_string(&hint));
    sp_text_free(&hint);
}

/* ---- Names and keys ---------------------------------------------------- */

const sp_entry *sp_selected(const sp_loading *l, const sp_section *section,
                            int layer, const sp_setting **by)
{
    const char *name = section->fallback;

    *by = NULL;
    for (const sp_setting *s = l->first; s; s = s->next)
        if (s->section == section && s->layer <= layer &&
            strcmp(s->key, "name") == 0) {
            *by = s;
            name = s->is_list ? NULL : s->items[0];
        }
    return name ? sp_registry_find(l->registry, section->name, name) : NULL;
}

static void check_name(sp_loading *l, const sp_setting *s)
{
    place p = { l->registry, s->section, NULL };
    const char *section = s->section->name;
    sp_text hint = { 0 };
    char shown[SP_SHOWN_ROOM];

    if (s->is_list) {
        sp_complain(l, s->value_at, "%s.name must be one name, not a list",
                    section);
        return;
    }
    if (sp_registry_find(l->registry, section, s->items[0]))
        return;
    put_hint(&hint, s->items[0], "names", next_thing, &p);
    sp_complain(l, s->value_at, "%s.name: there is no %s%s", section,
                sp_shown(shown, s->items[0]), sp_text_string(&hint));
    sp_text_free(&hint);
}

/* Does any thing of the section have this key? */
static bool is_some_key(const sp_registry *r, const sp_section *section,
                        const char *key)
{
    sp_text unused = { 0 };
    bool some = put_owners(&unused, r, section, key);

    sp_text_free(&unused);
    return some;
}

/* A key must be the section's or the selected thing's. One that an earlier
 * file set for another thing is passed over: the later file selects what it
 * lays over the earlier one's choice, whose keys it need not know. */
static void check_key(sp_loading *l, const sp_setting *s)
{
    const sp_section *section = s->section;
    const sp_setting *by, *by_then;
    const sp_entry *entry = sp_selected(l, section, INT_MAX, &by), *then;

    if (sp_key_find(section->keys, section->key_count, s->key))
        return;
    if (entry && sp_key_find(entry->keys, entry->key_count, s->key))
        return;
    if (section->fallback && !entry &&
        is_some_key(l->registry, section, s->key))
        return; /* the name is the mistake, or missing */
    if (by && by->layer > s->layer) {
        then = sp_selected(l, section, s->layer, &by_then);
        if (then && sp_key_find(then->keys, then->key_count, s->key))
            return;
    }
    complain_key(l, s, entry);
}

static void check_given(sp_loading *l, const sp_section *section)
{
    place p = { l->registry, section, NULL };
    const sp_setting *by;
    sp_text all = { 0 };

    if (!section->fallback || sp_selected(l, section, INT_MAX, &by) || by)
        return;
    put_all(&all, next_thing, &p);
    if (section->fallback[0])
        sp_complain(l, NULL,
                    "%s.name: its default \"%s\" is not there; the "
                    "names are: %s",
                    section->name, section->fallback, sp_text_string(&all));
    else
        sp_complain(l, NULL, "%s.name must be given; the names are: %s",
                    section->name, sp_text_string(&all));
    sp_text_free(&all);
}

void sp_check_names(sp_loading *l)
{
    const sp_section *section;

    for (const sp_setting *s = l->first; s; s = s->next) {
        if (s->section->fallback && strcmp(s->key, "name") == 0)
            check_name(l, s);
        else
            check_key(l, s);
    }
    /* What seems missing may stand where nothing was read. */
    for (size_t i = 0;
         !l->partial && (section = sp_registry_section(l->registry, i)); i++)
        check_given(l, section);
}
