/* Two configurations, compared key by key as they are printed. */
#include "table/same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/text.h"
#include "sprat/data.h"
#include "sprat/train.h"
#include "train/config_text.h"

/* Keys that change neither what is computed nor its order. */
static const char *const without_effect[][2] = {
    { "train", "threads" },     { "train", "planner" },
    { "train", "max_minutes" }, { "train", "checkpoint_steps" },
    { "train", "keep" },        { "train", "checkpoint_minutes" },
    { "data", "workers" },      { "dist", "timeout_s" },
    { "dist", "check_every" },  { "log", NULL /* all */ },
};

/* A key with its value, within a printed configuration. */
typedef struct line {
    const char *section, *key, *value;
    int section_length, key_length, value_length;
} line;

/* The next key behind *text; false at the end. Sections stand at the margin,
 * their keys behind two spaces. */
static bool next_line(const char **text, line *l)
{
    while (**text) {
        const char *start = *text, *colon;
        size_t n = strcspn(start, "\n");

        *text += n + (start[n] == '\n');
        colon = memchr(start, ':', n);
        if (!colon)
            continue;
        if (*start != ' ') {
            l->section = start;
            l->section_length = (int)(colon - start);
            continue;
        }
        l->key = start + 2;
        l->key_length = (int)(colon - l->key);
        l->value = colon + 2;
        l->value_length = (int)(start + n - l->value);
        return true;
    }
    return false;
}

static bool is(const char *word, const char *text, int length)
{
    return strlen(word) == (size_t)length &&
           strncmp(word, text, (size_t)length) == 0;
}

static bool names(const line *l, const char *section, const char *key)
{
    return is(section, l->section, l->section_length) &&
           (!key || is(key, l->key, l->key_length));
}

static bool has_effect(const line *l)
{
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (names(l, without_effect[i][0], without_effect[i][1]))
            return false;
    return true;
}

static bool same_text(const line *a, const line *b)
{
    return a->value_length == b->value_length &&
           strncmp(a->value, b->value, (size_t)a->value_length) == 0;
}

/* Both there, and one file or folder. Frees both. */
static bool same_place(char *a, char *b)
{
    struct stat x, y;
    bool same = a && b && stat(a, &x) == 0 && stat(b, &y) == 0 &&
                x.st_dev == y.st_dev && x.st_ino == y.st_ino;

    free(a);
    free(b);
    return same;
}

static char *data_folder(const sp_config *c)
{
    const sp_data_cfg *data = sp_config_section(c, "data");
    const sp_data_set *set = (const sp_data_set *)sp_config_entry(c, "data");
    const char *root = *data->root ? data->root : set->folder;
    char *path = NULL;

    return root && sp_data_find(root, &path) == SP_OK ? path : NULL;
}

static char *first_weights(const sp_config *c)
{
    const sp_model_cfg *model = sp_config_section(c, "model");

    return sp_copy(model->init, strlen(model->init));
}

static bool same_value(const sp_config *a, const line *of_a, const sp_config *b,
                       const line *of_b)
{
    if (same_text(of_a, of_b))
        return true;
    if (names(of_a, "data", "root"))
        return same_place(data_folder(a), data_folder(b));
    if (names(of_a, "model", "init"))
        return same_place(first_weights(a), first_weights(b));
    return false;
}

/* Keys stand in the order of the tables, which is the same for both as long as
 * they select the same things; `name` comes first. */
static bool compare(const sp_config *a, const char *text_a, const sp_config *b,
                    const char *text_b, char first[SP_DIFFERENCE_ROOM])
{
    line x = { 0 }, y = { 0 };

    while (next_line(&text_a, &x) && next_line(&text_b, &y)) {
        if (!has_effect(&x) || same_value(a, &x, b, &y))
            continue;
        snprintf(first, SP_DIFFERENCE_ROOM, "%.*s.%.*s is %.*s, not %.*s",
                 x.section_length, x.section, x.key_length, x.key,
                 y.value_length, y.value, x.value_length, x.value);
        return false;
    }
    return true;
}

/* Both as text; the caller frees. */
static sp_err print_both(const sp_config *a, char **text_a, const sp_config *b,
                         char **text_b)
{
    *text_a = *text_b = NULL;
    SP_TRY(sp_config_values(a, text_a));
    return sp_config_values(b, text_b);
}

sp_err sp_config_same(const sp_config *a, const sp_config *b, bool *same,
                      char first[SP_DIFFERENCE_ROOM])
{
    char *text_a, *text_b;
    sp_err e = print_both(a, &text_a, b, &text_b);

    if (e == SP_OK)
        *same = compare(a, text_a, b, text_b, first);
    free(text_a);
    free(text_b);
    return e;
}

static sp_err add_setting(sp_overrides *out, const line *l)
{
    char **grown =
        realloc(out->setting, (out->count + 1) * sizeof *out->setting);
    char *text = sp_path("", "%.*s.%.*s=%.*s", l->section_length, l->section,
                         l->key_length, l->key, l->value_length, l->value);

    out->setting = grown ? grown : out->setting;
    if (!grown || !text) {
        free(text);
        return sp_fail(SP_ENOMEM, "out of memory");
    }
    out->setting[out->count++] = text;
    return SP_OK;
}

sp_err sp_config_change(const sp_config *want, const sp_config *have,
                        sp_overrides *out)
{
    char *text_want, *text_have;
    const char *x, *y;
    line to = { 0 }, from = { 0 };
    sp_err e = print_both(want, &text_want, have, &text_have);

    *out = (sp_overrides){ 0 };
    x = text_want;
    y = text_have;
    while (e == SP_OK && next_line(&x, &to) && next_line(&y, &from))
        if (!has_effect(&to) && !same_text(&to, &from))
            e = add_setting(out, &to);
    free(text_want);
    free(text_have);
    if (e != SP_OK)
        sp_overrides_free(out);
    return e;
}

void sp_overrides_free(sp_overrides *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->setting[i]);
    free(l->setting);
    *l = (sp_overrides){ 0 };
}
