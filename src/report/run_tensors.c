/* What a run's tensors were like, tensors.jsonl. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/run.h"

enum { MOST_TENSORS = 4096 };

/* The present list of names: at which of the run's tensors each stands. */
typedef struct names {
    sp_run_record *run;
    size_t index[MOST_TENSORS];
    size_t count;
    bool told; /* a list of names was read */
} names;

static size_t tensor_count(const sp_run_record *r)
{
    return r->tensors.size / sizeof(sp_run_tensor);
}

/* The place of a name among the run's tensors, where it is put if it is new. */
static sp_err place_of(const sp_line *line, sp_run_record *r, const char *name,
                       size_t *at)
{
    const sp_run_tensor *t = (const void *)r->tensors.bytes;
    sp_run_tensor added = { .elements = NAN };

    for (*at = 0; *at < tensor_count(r); ++*at)
        if (strcmp(t[*at].name, name) == 0)
            return SP_OK;
    if (*at == MOST_TENSORS)
        return sp_line_fail(line, "there are more names than are read", NULL);
    added.name = sp_copy(name, strlen(name));
    if (!added.name)
        return sp_fail(SP_ENOMEM, "out of memory");
    sp_text_put(&r->tensors, &added, sizeof added);
    if (sp_text_check(&r->tensors) != SP_OK)
        free(added.name);
    return sp_text_check(&r->tensors);
}

static sp_err take_names(names *n, const sp_line *line)
{
    const sp_json_value *list, *elements, *size;

    SP_TRY(sp_line_list(line, "names", &list));
    SP_TRY(sp_line_list(line, "elements", &elements));
    if (!list || list->count > MOST_TENSORS ||
        (elements && elements->count != list->count))
        return sp_line_fail(line, "lists do not fit", "names");
    n->count = 0;
    n->told = true;
    size = elements ? elements->first : NULL;
    for (const sp_json_value *v = list->first; v; v = v->next) {
        sp_run_tensor *t;
        if (v->kind != SP_JSON_TEXT)
            return sp_line_fail(line, "holds what is no text", "names");
        SP_TRY(place_of(line, n->run, v->text, &n->index[n->count]));
        t = (sp_run_tensor *)(void *)n->run->tensors.bytes;
        if (size && size->kind == SP_JSON_NUMBER)
            t[n->index[n->count]].elements = size->number;
        size = size ? size->next : NULL;
        n->count++;
    }
    return SP_OK;
}

/* The number that a list has next; moves on. */
static double next_number(const sp_json_value **at)
{
    const sp_json_value *v = *at;

    if (!v)
        return NAN;
    *at = v->next;
    return v->kind == SP_JSON_NUMBER ? v->number : NAN;
}

static sp_err check_list(const names *n, const sp_line *line, const char *key,
                         const sp_json_value **first)
{
    const sp_json_value *list;

    SP_TRY(sp_line_list(line, key, &list));
    if (list && list->count != n->count)
        return sp_line_fail(line, "has not one value for each name", key);
    *first = list ? list->first : NULL;
    return SP_OK;
}

static sp_err take_stats(names *n, const sp_line *line)
{
    const sp_json_value *weights = NULL, *grads = NULL;
    double step, epoch;

    if (!n->told)
        return sp_line_fail(line, "stands before any names", NULL);
    SP_TRY(sp_line_number(line, "step", &step));
    SP_TRY(sp_line_number(line, "epoch", &epoch));
    SP_TRY(check_list(n, line, "weight_norm", &weights));
    SP_TRY(check_list(n, line, "grad_norm", &grads));
    if (step > 0 && n->run->batches > 0)
        epoch = step / n->run->batches;
    if (!(epoch >= 0 && epoch < 1e9))
        return sp_line_fail(line, "there is no epoch", NULL);
    for (size_t i = 0; i < n->count; i++) {
        sp_run_stat s = { .tensor = n->index[i], .epoch = epoch };
        s.weight_norm = next_number(&weights);
        s.grad_norm = next_number(&grads);
        sp_text_put(&n->run->stats, &s, sizeof s);
    }
    return sp_text_check(&n->run->stats);
}

static sp_err take_line(void *arg, const sp_line *line)
{
    names *n = arg;
    const char *kind;

    SP_TRY(sp_line_text(line, "kind", &kind));
    if (kind && strcmp(kind, "names") == 0)
        return take_names(n, line);
    if (kind && strcmp(kind, "tensors") == 0)
        return take_stats(n, line);
    return SP_OK; /* of a later version */
}

sp_err sp_run_read_tensors(sp_run_record *r)
{
    names *n = calloc(1, sizeof *n);
    sp_err e;

    if (!n)
        return sp_fail(SP_ENOMEM, "out of memory");
    n->run = r;
    e = sp_run_read_lines(r, "tensors.jsonl", take_line, n);
    free(n);
    return e;
}
