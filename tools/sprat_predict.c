/* sprat predict. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sprat.h"
#include "sprat/train.h"

/* What is gathered while predictions arrive. */
typedef struct summary {
    sp_json *json; /* predictions go here; NULL: to stdout as text */
    int classes;
    char **names;      /* of the classes, copied */
    size_t *confusion; /* classes x classes: true class, answer; or NULL */
    size_t count, labelled, right;
    bool failed;
} summary;

/* Names by the first prediction, a matrix by the first with a known class. */
static bool prepare(summary *s, const char *const *names, int classes,
                    bool labelled)
{
    size_t n = (size_t)classes;
    char number[16];

    if (!s->names) {
        s->names = calloc(n, sizeof *s->names);
        s->classes = s->names ? classes : 0;
        s->failed = !s->names;
        for (int c = 0; c < s->classes; c++) {
            snprintf(number, sizeof number, "%d", c);
            s->names[c] = strdup(names ? names[c] : number);
            s->failed = s->failed || !s->names[c];
        }
    }
    if (labelled && !s->confusion) {
        s->confusion = calloc(n, n * sizeof *s->confusion);
        s->failed = s->failed || !s->confusion;
    }
    return !s->failed;
}

static void forget(summary *s)
{
    for (int c = 0; c < s->classes; c++)
        free(s->names[c]);
    free(s->names);
    free(s->confusion);
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

    if (s->failed || !prepare(s, names, classes, p->label >= 0))
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
    s->confusion[(size_t)p->label * (size_t)classes + (size_t)p->best[0]]++;
}

static double top1(const summary *s)
{
    return 100.0 * (double)s->right / (double)s->labelled;
}

/* How many images of class c were taken for class k. */
static size_t counted(const summary *s, int c, int k)
{
    return s->confusion[(size_t)c * (size_t)s->classes + (size_t)k];
}

static void show_confusion(const summary *s)
{
    printf("\n%zu images, %zu with a known class, %.2f %% of these right\n",
           s->count, s->labelled, top1(s));
    printf("rows: true class; columns: answer, in the same order\n");
    for (int c = 0; c < s->classes; c++) {
        printf("%20.20s", s->names[c]);
        for (int k = 0; k < s->classes; k++)
            printf(" %5zu", counted(s, c, k));
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
                sp_json_int(j, NULL, (int64_t)counted(s, c, k));
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
        e = sp_fail(SP_ENOMEM, "out of memory for what the classes are");
    if (e == SP_OK) {
        status = finish(&s);
    } else {
        sp_json_free(&json);
        status = sp_refuse(e);
    }
    forget(&s);
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
