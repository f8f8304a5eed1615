#include "base/registry.h"

#include <stdlib.h>
#include <string.h>

typedef struct item {
    const sp_section *section;
    const sp_entry *entry;
} item;

struct sp_registry {
    const sp_section *const *sections;
    size_t section_count;
    item *items; /* in the order they were added */
    size_t count, room;
};

sp_registry *sp_registry_create(const sp_section *const *sections, size_t count)
{
    sp_registry *r = calloc(1, sizeof *r);

    if (r) {
        r->sections = sections;
        r->section_count = count;
    }
    return r;
}

void sp_registry_free(sp_registry *r)
{
    if (!r)
        return;
    free(r->items);
    free(r);
}

const sp_section *sp_registry_section(const sp_registry *r, size_t i)
{
    return i < r->section_count ? r->sections[i] : NULL;
}

const sp_section *sp_registry_section_find(const sp_registry *r,
                                           const char *name)
{
    for (size_t i = 0; i < r->section_count; i++)
        if (strcmp(r->sections[i]->name, name) == 0)
            return r->sections[i];
    return NULL;
}

const sp_entry *sp_registry_at(const sp_registry *r, const char *section,
                               size_t i)
{
    for (size_t k = 0; k < r->count; k++)
        if (strcmp(r->items[k].section->name, section) == 0 && i-- == 0)
            return r->items[k].entry;
    return NULL;
}

const sp_entry *sp_registry_find(const sp_registry *r, const char *section,
                                 const char *name)
{
    const sp_entry *e;

    for (size_t i = 0; (e = sp_registry_at(r, section, i)); i++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

/* The keys of a thing stand beside the section's own in a file, so they must
 * have other names. */
static sp_err check_keys(const sp_section *s, const sp_entry *e)
{
    for (size_t i = 0; i < e->key_count; i++) {
        const char *key = e->keys[i].name;
        bool taken = strcmp(key, "name") == 0;

        for (size_t k = 0; k < s->key_count; k++)
            taken |= strcmp(key, s->keys[k].name) == 0;
        if (taken)
            return sp_fail(SP_EARG,
                           "%s %s: its key \"%s\" is already a key of every "
                           "%s; choose another name",
                           s->name, e->name, key, s->name);
    }
    return SP_OK;
}

sp_err sp_registry_add(sp_registry *r, const char *section,
                       const sp_entry *entry)
{
    const sp_section *s = sp_registry_section_find(r, section);

    if (!s || !s->fallback)
        return sp_fail(SP_EARG, "there is nothing to select in section \"%s\"",
                       section);
    if (sp_registry_find(r, section, entry->name))
        return sp_fail(SP_EARG, "section %s already has a thing named \"%s\"",
                       section, entry->name);
    SP_TRY(check_keys(s, entry));
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 32;
        item *items = realloc(r->items, room * sizeof *items);
        if (!items)
            return sp_fail(SP_ENOMEM, "out of memory for %zu registered things",
                           room);
        r->items = items;
        r->room = room;
    }
    r->items[r->count++] = (item){ s, entry };
    return SP_OK;
}
