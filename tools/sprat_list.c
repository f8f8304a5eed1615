/* sprat list: everything that can stand in a configuration. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sprat.h"
#include "sprat/op.h"
#include "sprat/train.h"

static const char *const kinds[] = {
    [SP_INT] = "int",   [SP_FLOAT] = "number",  [SP_BOOL] = "true|false",
    [SP_TEXT] = "text", [SP_CHOICE] = "choice", [SP_LIST] = "list",
};

/* "3 to 1001", ">= 0" or "" for a number without bounds. */
static void bounds_text(const sp_key *k, char *out, size_t size)
{
    bool low = isfinite(k->min) && k->min > -1e9;
    bool high = isfinite(k->max) && k->max < 1e9;

    out[0] = '\0';
    if ((k->kind != SP_INT && k->kind != SP_FLOAT && k->kind != SP_LIST) ||
        k->min >= k->max)
        return;
    if (low && high)
        snprintf(out, size, " %.10g to %.10g", k->min, k->max);
    else if (low)
        snprintf(out, size, " >= %.10g", k->min);
    else if (high)
        snprintf(out, size, " <= %.10g", k->max);
}

void sp_key_type(const sp_key *k, char *out, size_t size)
{
    char bounds[64];

    bounds_text(k, bounds, sizeof bounds);
    snprintf(out, size, "%s%s",
             k->kind == SP_CHOICE ? k->choices : kinds[k->kind], bounds);
}

const char *sp_key_fallback(const sp_key *k)
{
    return k->fallback && *k->fallback ? k->fallback : "\"\"";
}

static void print_key(const char *section, const sp_key *k)
{
    char name[96], type[256];

    snprintf(name, sizeof name, "%s.%s", section, k->name);
    sp_key_type(k, type, sizeof type);
    printf("    %-26s %s = %s\n", name, type, sp_key_fallback(k));
    printf("        %s\n", k->help);
}

static void print_keys(const char *section, const sp_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_key(section, &keys[i]);
}

static void print_section(const sp_registry *r, const sp_section *s)
{
    const sp_entry *e;

    printf("%s\n", s->plural ? s->plural : s->name);
    print_keys(s->name, s->keys, s->key_count);
    for (size_t i = 0; (e = sp_registry_at(r, s->name, i)); i++) {
        bool usual = s->fallback && strcmp(s->fallback, e->name) == 0;
        printf("  %s.name: %s%s\n        %s\n", s->name, e->name,
               usual ? " (default)" : "", e->help);
        print_keys(s->name, e->keys, e->key_count);
    }
    printf("\n");
}

static void print_ops(void)
{
    const sp_op *op;

    printf("ops\n");
    for (int i = 0; (op = sp_op_at(i)); i++)
        printf("  %-14s %s\n", op->name, op->help);
    printf("\n");
}

/* What may stand behind `list`: "ops", plurals, and names of sections. */
static const char *kind_next(const void *registry, size_t i)
{
    const sp_section *s;

    if (i-- == 0)
        return "ops";
    for (size_t k = 0; (s = sp_registry_section(registry, k)); k++) {
        if (s->plural && i-- == 0)
            return s->plural;
        if (i-- == 0)
            return s->name;
    }
    return NULL;
}

static bool is_kind(const sp_section *s, const char *word)
{
    return strcmp(s->name, word) == 0 ||
           (s->plural && strcmp(s->plural, word) == 0);
}

/* A key's name in its section, or NULL. */
static const char *key_in(const sp_section *s, const char *word)
{
    size_t length = strlen(s->name);

    return strncmp(s->name, word, length) == 0 && word[length] == '.'
               ? word + length + 1
               : NULL;
}

static bool print_named(const char *section, const sp_key *keys, size_t count,
                        const char *name)
{
    bool found = false;

    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0) {
            print_key(section, &keys[i]);
            found = true;
        }
    return found;
}

/* A key of a section, and wherever its models and the like have one of that
 * name. False: there is none. */
static bool list_key(const sp_registry *r, const char *word)
{
    bool found = false;
    const sp_section *s;
    const sp_entry *e;
    const char *name;

    for (size_t i = 0; (s = sp_registry_section(r, i)); i++) {
        if (!(name = key_in(s, word)))
            continue;
        found |= print_named(s->name, s->keys, s->key_count, name);
        for (size_t k = 0; (e = sp_registry_at(r, s->name, k)); k++)
            if (print_named(s->name, e->keys, e->key_count, name)) {
                printf("        of %s\n", e->name);
                found = true;
            }
    }
    return found;
}

static int list_one(const sp_registry *r, const char *word)
{
    const sp_section *s;

    if (strcmp(word, "ops") == 0) {
        print_ops();
        return SP_EXIT_DONE;
    }
    for (size_t i = 0; (s = sp_registry_section(r, i)); i++) {
        if (is_kind(s, word)) {
            print_section(r, s);
            return SP_EXIT_DONE;
        }
    }
    if (list_key(r, word))
        return SP_EXIT_DONE;
    return sp_unknown("kind", word, kind_next, r);
}

static int list(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_err e = sp_opened_registry(&o);
    const sp_section *s;
    int status = SP_EXIT_DONE;

    if (e != SP_OK)
        return sp_refuse(e);
    for (size_t i = 0; i < a->word_count && status == SP_EXIT_DONE; i++)
        status = list_one(o.registry, a->words[i]);
    if (a->word_count == 0) {
        for (size_t i = 0; (s = sp_registry_section(o.registry, i)); i++)
            print_section(o.registry, s);
        print_ops();
    }
    sp_opened_free(&o);
    return status;
}

const sp_verb sp_verb_list = {
    .name = "list",
    .words = "[KIND|KEY...]",
    .most = -1,
    .help = "list models, data, ... with their keys and defaults",
    .examples =
        "A key is shown as: section.key, type or choices, bounds = default. "
        "Kinds are\nthe words at the margin, and the names of sections; a key "
        "stands for itself.\n\n"
        "  sprat list models\n"
        "  sprat list train\n"
        "  sprat list train.winograd\n"
        "  sprat list\n",
    .run = list,
};
