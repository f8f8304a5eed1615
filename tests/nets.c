#include "nets.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set a key of a model's own settings from text, as a file would. */
static void set(void *own, const sp_key *key, const char *text)
{
    char *field = (char *)own + key->offset;
    const char *end = key->choices;

    switch (key->kind) {
    case SP_INT:
        *(int *)field = atoi(text);
        return;
    case SP_FLOAT:
        *(double *)field = atof(text);
        return;
    case SP_BOOL:
        *(bool *)field = strcmp(text, "true") == 0;
        return;
    case SP_TEXT:
        *(const char **)field = text;
        return;
    case SP_CHOICE:
        for (*(int *)field = 0; strncmp(end, text, strlen(text)) != 0;
             end = strchr(end, '|') + 1)
            ++*(int *)field;
        return;
    case SP_LIST:
        *(sp_list *)field = (sp_list){ 0 };
        for (const char *at = text + 1; *at && *at != ']';) {
            sp_list *list = (sp_list *)field;
            list->value[list->count++] = strtod(at, (char **)&end);
            at = *end == ',' ? end + 1 : end;
        }
        return;
    }
}

static void configure(net *t, const sp_model *m, const char *settings)
{
    ck_assert_uint_le(m->entry.cfg_size, OWN_BYTES);
    for (size_t i = 0; i < m->entry.key_count; i++)
        set(t->own, &m->entry.keys[i], m->entry.keys[i].fallback);
    for (const char *at = settings; *at;) {
        char word[64], *value;
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        value = strchr(word, '=');
        *value++ = '\0';
        for (size_t i = 0; i < m->entry.key_count; i++)
            if (strcmp(m->entry.keys[i].name, word) == 0)
                set(t->own, &m->entry.keys[i], value);
        at += at[n] ? n + 1 : n;
    }
}

static void begin(net *t, const sp_model *m, const char *settings,
                  sp_graph_opt opt)
{
    configure(t, m, settings);
    t->p = sp_params_new();
    t->g = sp_graph_new(t->p, opt);
}

static void build(net *t, const sp_model *m, sp_tensor *x, int classes)
{
    sp_model_args args = { .classes = classes, .own = t->own };

    t->y = m->build(t->g, x, &args);
    sp_output(t->g, "logits", t->y);
}

void nets_record(net *t, const sp_model *m, const char *settings,
                 sp_shape image, sp_graph_opt opt)
{
    begin(t, m, settings, opt);
    build(t, m, sp_input(t->g, "image", image, SP_F32), 10);
}

void nets_record_text(net *t, const sp_model *m, const char *settings,
                      int vocabulary, sp_graph_opt opt)
{
    sp_shape tokens = { .t = 3, .n = 2 };

    begin(t, m, settings, opt);
    build(t, m, sp_input(t->g, "token", tokens, SP_I32), vocabulary);
}

void nets_record_large(net *t, const sp_model *m, const char *settings,
                       int size, const sp_rank_rule *ranks)
{
    sp_shape image = { .n = 1, .h = size, .w = size, .c = 3 };

    begin(t, m, settings, (sp_graph_opt){ .no_memory = true, .ranks = ranks });
    build(t, m, sp_input(t->g, "image", image, SP_F32), 1000);
}

void nets_close(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}
