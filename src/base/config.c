#include "sprat/config.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_internal.h"

void *sp_pool_take(sp_pool *p, size_t size)
{
    void *memory = sp_arena_alloc(&p->arena, size);

    if (!memory)
        p->failed = true;
    return memory;
}

const char *sp_pool_text(sp_pool *p, const char *text, size_t n)
{
    char *copy = sp_pool_take(p, n + 1);

    if (copy && n > 0)
        memcpy(copy, text, n);
    return copy;
}

const char *sp_pool_print(sp_pool *p, const char *fmt, ...)
{
    sp_text t = { 0 };
    const char *copy = NULL;
    va_list args;

    va_start(args, fmt);
    sp_text_addv(&t, fmt, args);
    va_end(args);
    if (t.failed)
        p->failed = true;
    else
        copy = sp_pool_text(p, sp_text_string(&t), t.size);
    sp_text_free(&t);
    return copy;
}

/* ---- From settings to structs ------------------------------------------ */

/* The last setting of a key; names were checked before. */
static const sp_setting *last_of(const sp_loading *l, const sp_section *section,
                                 const char *key)
{
    const sp_setting *last = NULL;

    for (const sp_setting *s = l->first; s; s = s->next)
        if (s->section == section && strcmp(s->key, key) == 0)
            last = s;
    return last;
}

/* Fill a struct of `size` bytes from its table of keys. */
static void *fill(sp_loading *l, const sp_section *section, const sp_key *keys,
                  size_t count, size_t size, const char ***from)
{
    void *base = sp_pool_take(l->pool, size);

    *from = sp_pool_take(l->pool, count * sizeof **from);
    for (size_t i = 0; base && *from && i < count; i++) {
        const sp_setting *s = last_of(l, section, keys[i].name);
        if (!s)
            s = sp_settings_default(l, section, &keys[i]);
        if (s) {
            sp_value_store(l, &keys[i], s, base);
            (*from)[i] = s->source;
        }
    }
    return base;
}

static void fill_section(sp_loading *l, sp_filled *f)
{
    const sp_section *section = f->section;
    const sp_setting *by = NULL;

    f->common = fill(l, section, section->keys, section->key_count,
                     section->size, &f->common_from);
    if (!section->fallback)
        return;
    f->entry = sp_selected(l, section, INT_MAX, &by);
    f->name_from = by ? by->source : "default";
    if (f->entry && f->entry->cfg_size > 0)
        f->own = fill(l, section, f->entry->keys, f->entry->key_count,
                      f->entry->cfg_size, &f->own_from);
}

/* All sections; NULL after mistakes (in l) or without memory. */
static sp_filled *fill_all(sp_loading *l, size_t *count)
{
    sp_filled *filled;

    sp_check_names(l);
    *count = 0;
    while (sp_registry_section(l->registry, *count))
        ++*count;
    filled = sp_pool_take(l->pool, *count * sizeof *filled);
    for (size_t i = 0; filled && i < *count; i++) {
        filled[i].section = sp_registry_section(l->registry, i);
        fill_section(l, &filled[i]);
    }
    return filled;
}

sp_err sp_conclude(sp_loading *l)
{
    const char *lines = sp_text_string(&l->mistakes);
    sp_err e = SP_OK;
    int shown = 1;

    for (const char *p = lines; (p = strchr(p, '\n')); p++)
        shown++;
    if (l->pool->failed || l->mistakes.failed)
        e = sp_fail(SP_ENOMEM, "out of memory for the configuration");
    else if (l->mistake_count > shown)
        e = sp_fail(SP_ECONFIG, "%s\nand %d more mistakes", lines,
                    l->mistake_count - shown);
    else if (l->mistake_count > 0)
        e = sp_fail(l->unreadable ? SP_EIO : SP_ECONFIG, "%s", lines);
    sp_text_free(&l->mistakes);
    return e;
}

/* What a configuration is read from. */
typedef struct inputs {
    const char *const *files, *const *overrides;
    size_t file_count, override_count;
    bool printed;
} inputs;

static sp_err load(sp_config **out, const sp_registry *registry,
                   const inputs *in)
{
    sp_config *c = calloc(1, sizeof *c);
    sp_loading l = { .registry = registry,
                     .printed = in->printed,
                     .place = in->printed ? in->files[0] : NULL };
    sp_err e;

    if (!c)
        return sp_fail(SP_ENOMEM, "out of memory for the configuration");
    c->registry = registry;
    l.pool = &c->pool;
    l.last = &l.first;
    for (size_t i = 0; i < in->file_count; i++, l.layer++)
        sp_settings_file(&l, in->files[i]);
    for (size_t i = 0; i < in->override_count; i++)
        sp_settings_argument(&l, in->overrides[i], NULL);
    c->filled = fill_all(&l, &c->count);
    c->settings = l.first;
    c->layers = l.layer + 1;
    e = sp_conclude(&l);
    if (e != SP_OK)
        sp_config_free(c);
    else
        *out = c;
    return e;
}

sp_err sp_config_load(sp_config **out, const sp_registry *registry,
                      const char *const *files, size_t file_count,
                      const char *const *overrides, size_t override_count)
{
    return load(out, registry,
                &(inputs){ .files = files,
                           .file_count = file_count,
                           .overrides = overrides,
                           .override_count = override_count });
}

sp_err sp_config_read_back(sp_config **out, const sp_registry *registry,
                           const char *file, const char *const *overrides,
                           size_t override_count)
{
    return load(out, registry,
                &(inputs){ .files = &file,
                           .file_count = 1,
                           .overrides = overrides,
                           .override_count = override_count,
                           .printed = true });
}

void sp_config_free(sp_config *c)
{
    if (!c)
        return;
    sp_arena_free(&c->pool.arena);
    free(c);
}

/* Take over a newly filled section; structs that were handed out stay where
 * they are. */
static void replace(sp_filled *old, const sp_filled *new)
{
    void *common = old->common, *own = old->own;

    if (old->section->size > 0)
        memcpy(common, new->common, old->section->size);
    if (own && new->entry == old->entry)
        memcpy(own, new->own, old->entry->cfg_size);
    else
        own = new->own;
    *old = *new;
    old->common = common;
    old->own = own;
}

sp_err sp_config_set(sp_config *c, const char *override, const char *source)
{
    sp_loading l = { .registry = c->registry, .pool = &c->pool };
    sp_setting **end = &c->settings;
    sp_filled *filled;
    size_t count;
    sp_err e;

    while (*end)
        end = &(*end)->next;
    l.last = end;
    l.layer = c->layers;
    sp_settings_argument(&l, override,
                         source ? sp_pool_text(l.pool, source, strlen(source))
                                : NULL);
    l.first = c->settings;
    filled = fill_all(&l, &count);
    e = sp_conclude(&l);
    if (e != SP_OK) {
        *end = NULL;
        return e;
    }
    for (size_t i = 0; i < count; i++)
        replace(&c->filled[i], &filled[i]);
    c->layers++;
    return SP_OK;
}

/* ---- Looking up -------------------------------------------------------- */

static const sp_filled *find(const sp_config *c, const char *section)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->filled[i].section->name, section) == 0)
            return &c->filled[i];
    return NULL;
}

const void *sp_config_section(const sp_config *c, const char *section)
{
    const sp_filled *f = find(c, section);

    assert(f);
    return f->common;
}

const sp_entry *sp_config_entry(const sp_config *c, const char *section)
{
    const sp_filled *f = find(c, section);

    assert(f && f->section->fallback);
    return f->entry;
}

const void *sp_config_own(const sp_config *c, const char *section)
{
    const sp_filled *f = find(c, section);

    assert(f && f->section->fallback);
    return f->own;
}

const char *sp_config_source(const sp_config *c, const char *section,
                             const char *key)
{
    const sp_filled *f = find(c, section);
    const sp_key *k;

    if (!f)
        return NULL;
    if (f->section->fallback && strcmp(key, "name") == 0)
        return f->name_from;
    k = sp_key_find(f->section->keys, f->section->key_count, key);
    if (k)
        return f->common_from[k - f->section->keys];
    k = f->own ? sp_key_find(f->entry->keys, f->entry->key_count, key) : NULL;
    return k ? f->own_from[k - f->entry->keys] : NULL;
}
