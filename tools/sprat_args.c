/* Command lines, taken apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sprat.h"

static int flag_count(const sp_verb *v)
{
    int n = 0;

    while (n < SP_FLAGS_MAX && v->flags[n].name)
        n++;
    return n;
}

/* The option that the first `length` letters of `name` spell, or -1. */
static int flag_find(const sp_verb *v, const char *name, size_t length)
{
    for (int i = 0; i < flag_count(v); i++) {
        const char *known = v->flags[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return i;
    }
    return -1;
}

static const char *flag_next(const void *verb, size_t i)
{
    const sp_verb *v = verb;

    return i < (size_t)flag_count(v) ? v->flags[i].name : NULL;
}

/* Newcomers give settings as options, as other programs take them. */
static void say_unknown(const sp_verb *v, const char *word)
{
    if (flag_count(v) > 0)
        sp_unknown("option", word, flag_next, v);
    else
        sp_say("%s: sprat %s takes no options", word, v->name);
    if (v->overrides)
        sp_say("settings are given as section.key=value; `sprat list` shows "
               "all");
}

/* One --option or -o, whose value may be the following word. Gives how many
 * words it took, 0 after saying what is wrong. */
static int take_flag(sp_args *a, const char *word, const char *following)
{
    const char *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    int i = flag_find(a->verb, name, length);
    const sp_flag *f;

    if (i >= 0 &&
        strlen(sp_dashes(a->verb->flags[i].name)) != (size_t)(name - word))
        i = -1;

    if (i < 0) {
        say_unknown(a->verb, word);
        return 0;
    }
    f = &a->verb->flags[i];
    if (a->flags[i]) {
        sp_say("%s%s is given twice", sp_dashes(f->name), f->name);
        return 0;
    }
    if (!f->value && name[length]) {
        sp_say("%s%s takes no value", sp_dashes(f->name), f->name);
        return 0;
    }
    if (!f->value) {
        a->flags[i] = "";
        return 1;
    }
    a->flags[i] = name[length] ? name + length + 1 : following;
    if (!a->flags[i] || !*a->flags[i]) {
        sp_say("%s%s needs a value: %s%s %s", sp_dashes(f->name), f->name,
               sp_dashes(f->name), f->name, f->value);
        return 0;
    }
    return name[length] ? 1 : 2;
}

/* section.key=value; a path such as ./a.b=c is an operand. */
static bool is_override(const char *word)
{
    size_t length = strcspn(word, "=/");

    return word[length] == '=';
}

/* Whether a word that is no file looks like a key whose value was forgotten. */
static bool lacks_value(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t section = strspn(word, letters);
    const char *dot = word + section;
    size_t key = *dot == '.' ? strspn(dot + 1, letters) : 0;

    return section > 0 && key > 0 && !dot[1 + key] &&
           strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0 &&
           access(word, F_OK) != 0;
}

static bool check_operands(const sp_args *a)
{
    const sp_verb *v = a->verb;

    for (size_t i = 0; v->overrides && i < a->word_count; i++)
        if (lacks_value(a->words[i])) {
            sp_say("there is no file %s; a setting is %s=VALUE", a->words[i],
                   a->words[i]);
            return false;
        }

    if (a->word_count < (size_t)v->least ||
        (v->most >= 0 && a->word_count > (size_t)v->most)) {
        sp_say("%s: usage: sprat %s%s%s", v->name, v->name,
               *v->words ? " " : "", v->words);
        sp_say("`sprat help %s` tells more", v->name);
        return false;
    }
    return true;
}

bool sp_args_parse(sp_args *a, const sp_verb *v, int argc, char **argv)
{
    bool options = true;

    *a = (sp_args){ .verb = v };
    a->words = calloc((size_t)argc + 1, sizeof *a->words);
    a->overrides = calloc((size_t)argc + 1, sizeof *a->overrides);
    if (!a->words || !a->overrides) {
        sp_say("out of memory");
        return false;
    }
    for (int i = 0, used; i < argc; i += used) {
        const char *word = argv[i];
        used = 1;
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options &&
                   (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            a->help = true;
            return true;
        } else if (options && word[0] == '-' && word[1]) {
            used = take_flag(a, word, i + 1 < argc ? argv[i + 1] : NULL);
            if (!used)
                return false;
        } else if (options && v->overrides && is_override(word)) {
            a->overrides[a->override_count++] = word;
        } else {
            a->words[a->word_count++] = word;
        }
    }
    return check_operands(a);
}

void sp_args_free(sp_args *a)
{
    free(a->words);
    free(a->overrides);
    *a = (sp_args){ 0 };
}

const char *sp_args_flag(const sp_args *a, const char *name)
{
    int i = flag_find(a->verb, name, strlen(name));

    return i < 0 ? NULL : a->flags[i];
}

bool sp_args_number(const sp_args *a, const char *name, double fallback,
                    double *out)
{
    const char *text = sp_args_flag(a, name);
    char *end;

    if (!text) {
        *out = fallback;
        return true;
    }
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0 && *out <= 1e9)) {
        sp_say("--%s %s: want a number from 0 to 1000000000", name, text);
        return false;
    }
    return true;
}

bool sp_args_count(const sp_args *a, const char *name, long fallback, long most,
                   long *out)
{
    const char *text = sp_args_flag(a, name);
    char *end;

    if (!text) {
        *out = fallback;
        return true;
    }
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || end == text || *end || *out < 1 || *out > most) {
        sp_say("--%s %s: want a whole number from 1 to %ld", name, text, most);
        return false;
    }
    return true;
}
