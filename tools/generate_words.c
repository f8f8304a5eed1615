/* What may stand where on a command line, for completions. */
#include <string.h>

#include "generate.h"

/* Words of usage lines, without brackets and dots. */
static const struct {
    const char *name;
    sp_word word;
} names[] = {
    { "CONFIG", SP_WORD_YAML },     { "TABLE", SP_WORD_YAML },
    { "TABLE.yaml", SP_WORD_YAML }, { "RUN", SP_WORD_FOLDER },
    { "A", SP_WORD_FOLDER },        { "B", SP_WORD_FOLDER },
    { "DIR", SP_WORD_FOLDER },      { "FOLDER", SP_WORD_FOLDER },
    { "FILE", SP_WORD_FILE },       { "KIND|KEY", SP_WORD_KIND },
    { "OP", SP_WORD_OP },
};

static sp_word word_named(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == length &&
            memcmp(names[i].name, name, length) == 0)
            return names[i].word;
    return SP_WORD_ANY;
}

sp_word sp_word_of(const sp_verb *v, int i)
{
    const char *at = v->words;
    sp_word last = SP_WORD_ANY;

    if (v->most >= 0 && i >= v->most)
        return SP_WORD_ANY;
    for (int k = 0; k <= i; k++) {
        size_t length;
        at += strspn(at, " [");
        length = strcspn(at, " ].");
        if (strncmp(at + length, ".yaml", 5) == 0)
            length += 5;
        if (length == 0)
            break;
        last = word_named(at, length);
        at += length;
        at += strspn(at, ".] ");
    }
    return last;
}

sp_word sp_word_of_flag(const sp_flag *f, const char **choices)
{
    static const struct {
        const char *flag, *choices;
    } known[] = {
        { "checkpoint", "last best start" },
        { "split", "train valid test" },
        { "as", "safetensors npz onnx" },
    };

    *choices = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(f->name, known[i].flag) == 0)
            *choices = known[i].choices;
    return f->value ? word_named(f->value, strlen(f->value)) : SP_WORD_ANY;
}

/* ---- Keys ---------------------------------------------------------------- */

/* "a|b" as "a b". */
static const char *values_of(const sp_key *k, char *out, size_t size)
{
    if (k->kind == SP_BOOL)
        return "true false";
    if (k->kind != SP_CHOICE)
        return "";
    snprintf(out, size, "%s", k->choices);
    for (char *c = out; *c; c++)
        if (*c == '|')
            *c = ' ';
    return out;
}

/* Whether an entry before number n has a key of that name. */
static bool seen_before(const sp_registry *r, const char *section, size_t n,
                        const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const sp_entry *e = sp_registry_at(r, section, i);
        for (size_t k = 0; k < e->key_count; k++)
            if (strcmp(e->keys[k].name, name) == 0)
                return true;
    }
    return false;
}

static void each_of(const char *section, const sp_key *k,
                    void (*each)(FILE *out, const char *key, const char *values,
                                 const char *help),
                    FILE *out)
{
    char name[96], values[256];

    snprintf(name, sizeof name, "%s.%s", section, k->name);
    each(out, name, values_of(k, values, sizeof values), k->help);
}

/* The names that a section's `name` may have. */
static void name_key(const sp_registry *r, const sp_section *s,
                     void (*each)(FILE *out, const char *key,
                                  const char *values, const char *help),
                     FILE *out)
{
    const sp_entry *e;
    char name[96], values[1024];
    size_t used = 0;

    for (size_t i = 0;
         (e = sp_registry_at(r, s->name, i)) && used < sizeof values; i++)
        used += (size_t)snprintf(values + used, sizeof values - used, "%s%s",
                                 i ? " " : "", e->name);
    snprintf(name, sizeof name, "%s.name", s->name);
    each(out, name, values, "which one");
}

void sp_each_key(const sp_registry *r,
                 void (*each)(FILE *out, const char *key, const char *values,
                              const char *help),
                 FILE *out)
{
    const sp_section *s;
    const sp_entry *e;

    for (size_t i = 0; (s = sp_registry_section(r, i)); i++) {
        if (s->fallback)
            name_key(r, s, each, out);
        for (size_t k = 0; k < s->key_count; k++)
            each_of(s->name, &s->keys[k], each, out);
        for (size_t n = 0; (e = sp_registry_at(r, s->name, n)); n++)
            for (size_t k = 0; k < e->key_count; k++)
                if (!seen_before(r, s->name, n, e->keys[k].name))
                    each_of(s->name, &e->keys[k], each, out);
    }
}
