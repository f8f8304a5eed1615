/* sprat predict. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sprat.h"
#include "sprat/train.h"

/* What is gathered while predictions arrive. */
typedef struct summary {
    sp_json *json; /* predictions go here; NULL: to stdout as text */
    int classes;
    char (*names)[64]; /* of the classes, copied */
    size_t *confusion; /* classes x classes: true class, answer */
    size_t count, labelled, right;
    bool failed;
} summary;

static void set_names(summary *s, const char *const *names)
{
    for (int c = 0; c < s->classes; c++) {
        if (names)
            snprintf(s->names[c], sizeof s->names[c], "%s", names[c]);
        else
            snprintf(s->names[c], sizeof s->names[c], "%d", c);
    }
}

static bool prepare(summary *s, const char *const *names, int classes)
{
    size_t n = (size_t)classes;

    if (s->classes)
        return true;
    s->names = calloc(n, sizeof *s->names);
    s->confusion = calloc(n * n, sizeof *s->confusion);
    if (!s->names || !s->confusion) {
        s->failed = true;
        return false;
    }
    s->classes = classes;
    set_names(s, names);
    return true;
}

static int answers(const summary *s) { return s->classes < 5 ? s->classes : 5; }

static void show(const summary *s, const sp_prediction *p)
{
    printf("%s:", p->file);
    for (int i = 0; i < answers(s) && i < 3; i++)
        printf("%s %s %.1f %%", i ? "," : "", s->names[p->best[i]],
               100 * p->confidence[i]);
    if (p->label >= 0 && p->label != p->best[0])
        printf("  (is %s)", s->names[p->label]);
    printf("\n");
}

static void show_json(const summary *s, const sp_prediction *p)
{
    sp_json *j = s->json;

    sp_json_open(j, NULL);
    sp_json_text(j, "file", p->file);
    if (p->label >= 0)
        sp_json_text(j, "label", s->names[p->label]);
    sp_json_list(j, "best");
    for (int i = 0; i < answers(s); i++) {
        sp_json_open(j, NULL);
        sp_json_text(j, "class", s->names[p->best[i]]);
        sp_json_number(j, "confidence", p->confidence[i]);
        sp_json_close(j);
    }
    sp_json_close(j);
    sp_json_close(j);
}

static void each(void *arg, const sp_prediction *p, const char *const *names,
                 int classes)
{
    summary *s = arg;

    if (s->failed || !prepare(s, names, classes))
        return;
    s->count++;
    if (s->json)
        show_json(s, p);
    else
        show(s, p);
    if (p->label < 0)
        return;
    s->labelled++;
    s->right += p->label == p->best[0];
    s->confusion[p->label * classes + p->best[0]]++;
}

static double top1(const summary *s)
{
    return 100.0 * (double)s->right / (double)s->labelled;
}

static void show_confusion(const summary *s)
{
    printf("\n%zu images, %zu with a known class, %.2f %% of these right\n",
           s->count, s->labelled, top1(s));
    printf("rows: true class; columns: answer, in the same order\n");
    for (int c = 0; c < s->classes; c++) {
        printf("%20.20s", s->names[c]);
        for (int k = 0; k < s->classes; k++)
            printf(" %5zu", s->confusion[c * s->classes + k]);
        printf("\n");
    }
}

static void end_json(const summary *s)
{
    sp_json *j = s->json;

    sp_json_close(j);
    sp_json_int(j, "count", (int64_t)s->count);
    sp_json_int(j, "labelled", (int64_t)s->labelled);
    if (s->labelled) {
        sp_json_number(j, "top1", top1(s));
        sp_json_list(j, "classes");
        for (int c = 0; c < s->classes; c++)
            sp_json_text(j, NULL, s->names[c]);
        sp_json_close(j);
        sp_json_list(j, "confusion");
        for (int c = 0; c < s->classes; c++) {
            sp_json_list(j, NULL);
            for (int k = 0; k < s->classes; k++)
                sp_json_int(j, NULL, (int64_t)s->confusion[c * s->classes + k]);
            sp_json_close(j);
        }
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void begin_json(sp_json *j, const char *checkpoint)
{
    sp_json_open(j, NULL);
    sp_json_text(j, "checkpoint", checkpoint);
    sp_json_list(j, "predictions");
}

static int finish(const summary *s)
{
    if (s->json) {
        end_json(s);
        return sp_print_json(s->json);
    }
    if (s->labelled)
        show_confusion(s);
    return SP_EXIT_DONE;
}

static int predict(const sp_args *a)
{
    const char *checkpoint = sp_args_flag(a, "checkpoint");
    sp_opened o = { 0 };
    sp_json json = { 0 };
    summary s = { .json = sp_args_flag(a, "json") ? &json : NULL };
    sp_predict_opt opt = { .run = a->words[0],
                           .checkpoint = checkpoint ? checkpoint : "best",
                           .files = a->words + 1,
                           .file_count = a->word_count - 1,
                           .each = each,
                           .arg = &s };
    sp_err e = sp_opened_registry(&o);
    int status;

    if (s.json)
        begin_json(&json, opt.checkpoint);
    if (e == SP_OK)
        e = sp_predict(o.registry, &opt);
    if (e == SP_OK && s.failed)
        e = sp_fail(SP_ENOMEM, "out of memory for the confusion matrix");
    if (e == SP_OK) {
        status = finish(&s);
    } else {
        sp_json_free(&json);
        status = sp_refuse(e);
    }
    free(s.names);
    free(s.confusion);
    sp_opened_free(&o);
    return status;
}

const sp_verb sp_verb_predict = {
    .name = "predict",
    .words = "RUN FILE...",
    .least = 2,
    .most = -1,
    .help = "tell the classes of your own PNG images",
    .flags = {
        { "checkpoint", "NAME",
          "best (default), last, or a folder in RUN/checkpoints" },
        { "json", NULL, "print one JSON object and nothing else" },
    },
    .examples =
        "A FILE may be a folder with a folder of PNG images for each class: "
        "then a\nconfusion matrix follows. Images are scaled to the network's "
        "input. The\nobject's keys: checkpoint predictions[{file,label,"
        "best[{class,confidence}]}]\ncount labelled top1 classes confusion.\n\n"
        "  sprat predict runs/mine boot.png shirt.png\n"
        "  sprat predict runs/mine my/test/images\n",
    .run = predict,
};
