#include "convert/about.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/normalize.h"
#include "train/config_text.h"

static sp_err add(sp_about *a, const char *key, const char *value)
{
    sp_st_pair *p = &a->pairs[a->count];

    if (a->count == SP_ABOUT_MOST)
        return sp_fail(SP_EARG,
                       "%s: more than %d settings do not fit into a "
                       "file's metadata",
                       key, SP_ABOUT_MOST);
    p->key = sp_arena_text(&a->arena, key);
    p->value = sp_arena_text(&a->arena, value);
    if (!p->key || !p->value)
        return sp_fail(SP_ENOMEM, "out of memory");
    a->count++;
    return SP_OK;
}

static sp_err add_number(sp_about *a, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    return add(a, key, text);
}

/* Finish a JSON value, and add it as text. */
static sp_err add_json(sp_about *a, const char *key, sp_json *j)
{
    const char *text;
    sp_err e = sp_json_finish(j, &text);

    if (e == SP_OK)
        e = add(a, key, text);
    sp_json_free(j);
    return e;
}

/* Settings of no use to others: a file's name, and 0 for as many classes as the
 * data have. */
static bool is_left_out(const char *key)
{
    return strcmp(key, "model.init") == 0 || strcmp(key, "model.classes") == 0;
}

/* The lines "  KEY: VALUE" of the section `model`, as a file has them. */
static sp_err add_settings(sp_about *a, char *yaml)
{
    bool inside = false;
    char *next, key[80];

    for (char *line = yaml; *line; line = next) {
        size_t n = strcspn(line, "\n");
        char *colon = memchr(line, ':', n);
        next = line + n + (line[n] == '\n');
        line[n] = '\0';
        if (line[0] != ' ')
            inside = strcmp(line, "model:") == 0;
        if (!inside || line[0] != ' ' || !colon)
            continue;
        line += strspn(line, " ");
        snprintf(key, sizeof key, "model.%.*s", (int)(colon - line), line);
        if (!is_left_out(key))
            SP_TRY(add(a, key, colon + 1 + strspn(colon + 1, " ")));
    }
    return SP_OK;
}

static sp_err add_model(sp_about *a, const sp_config *c)
{
    char *yaml;
    sp_err e;

    SP_TRY(sp_config_values(c, &yaml));
    e = add_settings(a, yaml);
    free(yaml);
    return e;
}

/* To as many digits as normalisation's floats have. */
static double rounded(double x) { return round(x * 1e6) / 1e6; }

/* value = (pixel - mean) / std, so black is -mean / std, white (1 - mean) /
 * std. */
static sp_err add_normalization(sp_about *a, const sp_session *s)
{
    sp_json mean = { 0 }, std = { 0 };
    sp_pixels pixels;
    sp_err e;

    SP_TRY(sp_normalize_table(s->set.data->normalize, s->info.c, &pixels));
    sp_json_list(&mean, NULL);
    sp_json_list(&std, NULL);
    for (int i = 0; i < s->info.c; i++) {
        const float *v = pixels.value[pixels.step * i];
        double spread = 1 / ((double)v[255] - (double)v[0]);
        sp_json_number(&mean, NULL, rounded(-(double)v[0] * spread) + 0.0);
        sp_json_number(&std, NULL, rounded(spread));
    }
    sp_json_close(&mean);
    sp_json_close(&std);
    e = add_json(a, "mean", &mean);
    if (e == SP_OK)
        e = add_json(a, "std", &std);
    sp_json_free(&mean);
    sp_json_free(&std);
    return e;
}

static sp_err add_images(sp_about *a, const sp_session *s)
{
    const int sizes[] = { s->info.c, s->info.h, s->info.w };
    sp_json j = { 0 };

    sp_json_list(&j, NULL);
    for (int i = 0; i < 3; i++)
        sp_json_int(&j, NULL, sizes[i]);
    sp_json_close(&j);
    SP_TRY(add_json(a, "input", &j));
    return add_normalization(a, s);
}

static sp_err add_classes(sp_about *a, const sp_data_info *info)
{
    sp_json j = { 0 };

    if (!info->class_names)
        return SP_OK;
    sp_json_list(&j, NULL);
    for (int i = 0; i < info->classes; i++)
        sp_json_text(&j, NULL, info->class_names[i]);
    sp_json_close(&j);
    return add_json(a, "classes", &j);
}

static sp_err tell(sp_about *a, const sp_trained *t, const sp_session *s)
{
    const sp_train_state *state = &t->checkpoint.manifest.state;

    SP_TRY(add(a, "format", "pt"));
    SP_TRY(add(a, "sprat", SP_VERSION));
    SP_TRY(add_number(a, "step", state->step));
    SP_TRY(add_number(a, "epoch", state->epoch));
    SP_TRY(add_model(a, t->config));
    SP_TRY(add_number(a, "outputs", s->classes));
    if (!s->info.text)
        SP_TRY(add_images(a, s));
    return add_classes(a, &s->info);
}

sp_err sp_about_open(sp_about *a, const sp_trained *t, const sp_session *s)
{
    sp_err e;

    *a = (sp_about){ 0 };
    e = tell(a, t, s);
    if (e != SP_OK)
        sp_about_close(a);
    return e;
}

void sp_about_close(sp_about *a)
{
    sp_arena_free(&a->arena);
    a->count = 0;
}
