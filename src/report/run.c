#include "report/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

enum { MOST_RESULT = 1 << 26 };

void sp_xy_list_add(sp_xy_list *p, double x, double y)
{
    sp_xy at = { x, y };

    sp_text_put(&p->bytes, &at, sizeof at);
}

size_t sp_xy_list_count(const sp_xy_list *p)
{
    return p->bytes.size / sizeof(sp_xy);
}

const sp_xy *sp_xy_list_at(const sp_xy_list *p)
{
    return (const sp_xy *)(const void *)p->bytes.bytes;
}

void sp_xy_list_free(sp_xy_list *p) { sp_text_free(&p->bytes); }

void sp_run_note(sp_run_record *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    sp_text_addv(&r->notes, fmt, args);
    va_end(args);
    sp_text_put(&r->notes, "\n", 1);
}

sp_err sp_run_read_lines(sp_run_record *r, const char *name,
                         sp_err (*each)(void *arg, const sp_line *line),
                         void *arg)
{
    char *path = sp_path(r->path, "%s", name);
    bool torn = false;
    sp_err e = path ? sp_run_lines(path, each, arg, &torn)
                    : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && torn)
        sp_run_note(r, "%s: the last line is cut off and was left out", path);
    free(path);
    return e;
}

static sp_err read_result(sp_run_record *r)
{
    char *path = sp_path(r->path, "result.json");
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && sp_is_file(path)) {
        e = sp_json_read(&r->result, path, MOST_RESULT);
        if (e == SP_OK && sp_json_root(r->result)->kind != SP_JSON_OBJECT)
            e = sp_fail(SP_EFORMAT, "%s:1: not a JSON object", path);
        if (e == SP_OK)
            r->root = sp_json_root(r->result);
    }
    free(path);
    return e;
}

/* How much of a run's name is that of its row. */
static size_t row_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    bool seed = slash && slash > name && strncmp(slash, "/seed-", 6) == 0;

    return seed ? (size_t)(slash - name) : strlen(name);
}

sp_err sp_run_open(sp_run_record *r, const char *path, const char *name)
{
    *r = (sp_run_record){ .batches = NAN };
    r->path = sp_copy(path, strlen(path));
    r->name = sp_copy(name, strlen(name));
    r->row = sp_copy(name, row_length(name));
    if (!r->path || !r->name || !r->row)
        return sp_fail(SP_ENOMEM, "out of memory");
    SP_TRY(read_result(r));
    SP_TRY(sp_run_read_config(r));
    SP_TRY(sp_run_read_metrics(r));
    SP_TRY(sp_run_read_tensors(r));
    SP_TRY(sp_run_read_log(r));
    return sp_text_check(&r->notes);
}

void sp_run_free(sp_run_record *r)
{
    size_t tensors = r->tensors.size / sizeof(sp_run_tensor);
    sp_run_tensor *t = (sp_run_tensor *)(void *)r->tensors.bytes;

    for (size_t i = 0; i < tensors; i++)
        free(t[i].name);
    for (int m = 0; m < SP_METRIC_COUNT; m++) {
        sp_xy_list_free(&r->steps[m]);
        sp_xy_list_free(&r->epochs[m]);
    }
    sp_json_doc_free(r->result);
    sp_text_free(&r->settings);
    sp_text_free(&r->tensors);
    sp_text_free(&r->stats);
    sp_text_free(&r->warnings);
    sp_text_free(&r->notes);
    free(r->config);
    free(r->path);
    free(r->name);
    free(r->row);
    *r = (sp_run_record){ 0 };
}

static const sp_json_value *find(const sp_run_record *r, const char *first,
                                 const char *second)
{
    const sp_json_value *v = sp_json_find(r->root, first);

    return second ? sp_json_find(v, second) : v;
}

double sp_run_number(const sp_run_record *r, const char *first,
                     const char *second)
{
    const sp_json_value *v = find(r, first, second);

    return v && v->kind == SP_JSON_NUMBER ? v->number : NAN;
}

const char *sp_run_text(const sp_run_record *r, const char *first,
                        const char *second)
{
    const sp_json_value *v = find(r, first, second);

    return v && v->kind == SP_JSON_TEXT ? v->text : NULL;
}

const sp_run_setting *sp_run_setting_at(const sp_run_record *r, size_t i)
{
    const sp_run_setting *s = (const void *)r->settings.bytes;

    return i < r->settings.size / sizeof *s ? &s[i] : NULL;
}

const char *sp_run_setting_of(const sp_run_record *r, const char *section,
                              const char *key)
{
    const sp_run_setting *s;

    for (size_t i = 0; (s = sp_run_setting_at(r, i)); i++)
        if (strcmp(s->section, section) == 0 && strcmp(s->key, key) == 0)
            return s->value;
    return NULL;
}

const char *sp_run_status(const sp_run_record *r)
{
    const char *status = sp_run_text(r, "status", NULL);

    return status    ? status
           : r->root ? "ended, it does not say how"
                     : "under way or killed";
}

static const char *const metric_keys[] = {
#define X(name, key) key,
    SP_RUN_METRICS(X)
#undef X
};

const char *sp_run_metric_key(sp_run_metric m) { return metric_keys[m]; }

bool sp_run_metric_percent(sp_run_metric m)
{
    return m == SP_TRAIN_TOP1 || m == SP_VALID_TOP1 || m == SP_TEST_TOP1;
}

sp_run_metric sp_run_score(const sp_run_record *r)
{
    static const sp_run_metric tried[] = { SP_VALID_TOP1, SP_TEST_TOP1,
                                           SP_VALID_PPL,  SP_TEST_PPL,
                                           SP_VALID_LOSS, SP_TEST_LOSS };

    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (sp_xy_list_count(&r->epochs[tried[i]]) > 0)
            return tried[i];
    return SP_NO_METRIC;
}

bool sp_run_is_ahead(const sp_run_record *r)
{
    return sp_run_number(r, "step", NULL) < r->last_step;
}

double sp_run_final(const sp_run_record *r, sp_run_metric m)
{
    double value = sp_run_number(r, "final", sp_run_metric_key(m));
    size_t count = sp_xy_list_count(&r->epochs[m]);

    if ((isnan(value) || sp_run_is_ahead(r)) && count > 0)
        value = sp_xy_list_at(&r->epochs[m])[count - 1].y;
    return value;
}
