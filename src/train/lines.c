/* Lines for programs, kept in step with a run's state. */
#include "train/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"

/* Kinds of lines that sum up an epoch. */
static const char *const of_epochs[] = { "epoch", "time", "tensors" };

static bool sums_up(const sp_json_value *line)
{
    const sp_json_value *kind = sp_json_find(line, "kind");

    for (size_t i = 0; i < sizeof of_epochs / sizeof *of_epochs; i++)
        if (kind && kind->kind == SP_JSON_TEXT &&
            strcmp(kind->text, of_epochs[i]) == 0)
            return true;
    return false;
}

bool sp_line_belongs(const sp_json_value *line, const sp_train_state *at)
{
    int64_t step, epoch, round = 0;

    if (sp_json_get_int(line, "step", &step) != SP_OK || step > at->step)
        return false;
    if (!sums_up(line))
        return true;
    if (sp_json_get_int(line, "epoch", &epoch) != SP_OK ||
        (sp_json_find(line, "round") &&
         sp_json_get_int(line, "round", &round) != SP_OK))
        return false;
    return round < at->round || (round == at->round && epoch <= at->epoch);
}

sp_err sp_lines_walk(const char *name, const char *text, size_t size,
                     sp_line_each each, void *arg)
{
    const char *end;

    for (size_t at = 0; at < size; at = (size_t)(end - text) + 1) {
        sp_json_doc *doc = NULL;
        size_t n;
        sp_err e;

        end = memchr(text + at, '\n', size - at);
        if (!end)
            return SP_OK;
        n = (size_t)(end - (text + at));
        e = sp_json_parse(&doc, name, text + at, n);
        if (e == SP_OK)
            each(arg, text + at, n + 1, sp_json_root(doc));
        else if (e != SP_EFORMAT)
            return e;
        sp_json_doc_free(doc);
    }
    return SP_OK;
}

sp_err sp_lines_read(const char *path, sp_line_each each, void *arg)
{
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e;

    if (!sp_is_file(path))
        return SP_OK;
    SP_TRY(sp_file_read(path, SP_LINES_LIMIT, &bytes, &size));
    e = sp_lines_walk(path, (const char *)bytes, size, each, arg);
    free(bytes);
    return e;
}

sp_err sp_lines_keep(const char *path, const sp_text *kept)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool same;

    SP_TRY(sp_text_check(kept));
    if (sp_is_file(path))
        SP_TRY(sp_file_read(path, SP_LINES_LIMIT, &bytes, &size));
    same = size == kept->size &&
           (size == 0 || memcmp(bytes, kept->bytes, size) == 0);
    free(bytes);
    return same ? SP_OK
                : sp_file_write_synced(path, sp_text_string(kept), kept->size);
}

typedef struct cut {
    sp_text kept;
    const sp_train_state *at;
} cut;

static void keep(void *arg, const char *line, size_t n,
                 const sp_json_value *value)
{
    cut *c = arg;

    if (sp_line_belongs(value, c->at))
        sp_text_put(&c->kept, line, n);
}

sp_err sp_lines_cut(const char *path, const sp_train_state *at)
{
    cut c = { .at = at };
    sp_err e = sp_lines_read(path, keep, &c);

    if (e == SP_OK)
        e = sp_lines_keep(path, &c.kept);
    sp_text_free(&c.kept);
    return e;
}

sp_err sp_lines_put(FILE *file, const char *path, const void *bytes, size_t n)
{
    if (fwrite(bytes, 1, n, file) != n || fflush(file) != 0)
        return sp_io_fail("write to", path);
    return SP_OK;
}

sp_err sp_lines_append(FILE *file, const char *path, const sp_json *j)
{
    sp_text line = { 0 };
    const char *text;
    sp_err e;

    SP_TRY(sp_json_finish(j, &text));
    sp_text_add(&line, "%s\n", text);
    e = sp_text_check(&line);
    if (e == SP_OK)
        e = sp_lines_put(file, path, line.bytes, line.size);
    sp_text_free(&line);
    return e;
}
