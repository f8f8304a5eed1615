/* Classifying images of one's own. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/files.h"
#include "train/evaluate.h"
#include "train/trained.h"

enum { BEST = 5 };

/* What predicting needs, opened once. */
typedef struct predictor {
    const sp_predict_opt *opt;
    sp_session session;
    sp_augment augment;
    sp_data_info info;
    sp_arena arena;
    const char **names; /* of the outputs; NULL: numbers */
    uint8_t *image;
} predictor;

/* Whether the n letters at `text` name class i: by its name, or by its number
 * where classes have none. */
static bool is_class(const predictor *p, int i, const char *text, size_t n)
{
    char number[16];
    const char *name = number;

    if (p->info.class_names)
        name = p->info.class_names[i];
    else
        snprintf(number, sizeof number, "%d", i);
    return strlen(name) == n && strncmp(name, text, n) == 0;
}

/* The class that the folder holding `file` is named as, or -1. */
static int label_of(const predictor *p, const char *file)
{
    const char *end = strrchr(file, '/'), *start = end;

    if (!end)
        return -1;
    while (start > file && start[-1] != '/')
        start--;
    for (int i = 0; i < p->info.classes; i++)
        if (is_class(p, i, start, (size_t)(end - start)))
            return i;
    return -1;
}

/* The `BEST` classes with the largest logits, and their softmax. */
static void rank(const float *logits, int classes, sp_prediction *out)
{
    double sum = 0;
    int found = 0;

    /* The best so far, in order; the earlier class comes first of equals. */
    for (int k = 0; k < classes; k++) {
        int place = found < BEST ? found++ : BEST;

        for (; place > 0 && !(logits[k] <= logits[out->best[place - 1]]);
             place--)
            if (place < BEST)
                out->best[place] = out->best[place - 1];
        if (place < BEST)
            out->best[place] = k;
    }
    for (int k = 0; k < classes; k++)
        sum += exp((double)logits[k] - (double)logits[out->best[0]]);
    for (int i = 0; i < BEST && i < classes; i++)
        out->confidence[i] =
            exp((double)logits[out->best[i]] - (double)logits[out->best[0]]) /
            sum;
}

static sp_err predict_file(predictor *p, const char *file)
{
    sp_session *s = &p->session;
    sp_prediction out = { .file = file, .label = label_of(p, file) };
    sp_run run = { .n = 1, .t = 1, .weight = 1 };
    int *label = s->eval.label->data;

    SP_TRY(sp_png_read(file, p->info.h, p->info.w, p->info.c, true, p->image));
    sp_augment_apply(&p->augment, (sp_cut){ 0 }, p->image, s->eval.input->data);
    *label = 0; /* of no consequence: the loss is not looked at */
    sp_forward(s->eval.graph, &run);
    rank(s->eval.logits->data, s->classes, &out);
    for (int i = 0; i < BEST && i < s->classes; i++)
        if (!isfinite(out.confidence[i]))
            return sp_fail(SP_ENUMERIC,
                           "%s: the network's answer is not finite: take "
                           "another checkpoint",
                           file);
    p->opt->each(p->opt->arg, &out, p->names, s->classes);
    return SP_OK;
}

static int is_visible(const struct dirent *d) { return d->d_name[0] != '.'; }

/* All files of a folder by name and, one level deep, of the folders in it. */
static sp_err predict_folder(predictor *p, const char *folder, bool deeper)
{
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, is_visible, alphasort);
    sp_err e = count < 0 ? sp_io_fail("list", folder) : SP_OK;

    if (count == 0)
        e = sp_fail(SP_EDATA, "%s: there is no file in this folder", folder);
    for (int i = 0; e == SP_OK && i < count; i++) {
        char *path = sp_path(folder, "%s", entry[i]->d_name);
        if (!path)
            e = sp_fail(SP_ENOMEM, "out of memory");
        else if (!sp_is_dir(path))
            e = predict_file(p, path);
        else if (deeper)
            e = predict_folder(p, path, false);
        else
            e = sp_fail(SP_EDATA,
                        "%s: a folder this deep is not looked into: give the "
                        "folder that holds the class folders",
                        path);
        free(path);
    }
    for (int i = 0; i < count; i++)
        free(entry[i]);
    free(entry);
    return e;
}

static sp_err predict_all(predictor *p)
{
    for (size_t i = 0; i < p->opt->file_count; i++) {
        const char *file = p->opt->files[i];
        SP_TRY(sp_is_dir(file) ? predict_folder(p, file, true)
                               : predict_file(p, file));
    }
    return SP_OK;
}

/* The classes' names; outputs beyond them, which model.classes may ask for, go
 * by their numbers. */
static sp_err name_outputs(predictor *p)
{
    int classes = p->session.classes;
    char number[16];

    if (!p->info.class_names)
        return SP_OK;
    p->names = sp_arena_alloc(&p->arena, (size_t)classes * sizeof *p->names);
    for (int i = 0; p->names && i < classes; i++) {
        snprintf(number, sizeof number, "%d", i);
        p->names[i] = i < p->info.classes ? p->info.class_names[i]
                                          : sp_arena_text(&p->arena, number);
        if (!p->names[i])
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    return p->names ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

static sp_err open_predictor(predictor *p, const sp_trained *t)
{
    const sp_manifest *m = &t->checkpoint.manifest;

    if (m->text)
        return sp_fail(SP_ECONFIG,
                       "%s: was trained on text: `sprat sample` lets it write",
                       p->opt->run);
    SP_TRY(sp_trained_session(t, &p->session));
    p->info = p->session.info;
    SP_TRY(name_outputs(p));
    SP_TRY(sp_augment_init(&p->augment, p->session.set.data, m->h, m->w, m->c));
    p->image = malloc((size_t)m->h * (size_t)m->w * (size_t)m->c);
    return p->image ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

sp_err sp_predict(const sp_registry *r, const sp_predict_opt *o)
{
    predictor p = { .opt = o };
    sp_trained t;
    sp_err e;

    SP_TRY(sp_trained_open(&t, r, o->run, o->checkpoint));
    e = open_predictor(&p, &t);
    if (e == SP_OK)
        e = predict_all(&p);
    free(p.image);
    sp_arena_free(&p.arena);
    sp_session_close(&p.session);
    sp_trained_close(&t);
    return e;
}
