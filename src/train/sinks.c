/* All forms of metrics.jsonl, and the tables among them. */
#include "train/sinks.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/lines.h"
#include "train/metrics.h"

/* ---- Tables --------------------------------------------------------------
 *
 * The columns are all keys that a kind of line can have, so they stay the same
 * when others apply from some epoch on; what does not apply is empty. Keys are
 * words and values numbers, of which none needs quotes.
 *
 * Source: RFC 4180. */

static bool wants_csv(const sp_log_cfg *log) { return log->csv; }

static void put_value(sp_text *out, const sp_json_value *v)
{
    if (!v)
        return;
    if (v->kind == SP_JSON_NUMBER)
        sp_text_number(out, v->number);
    else if (v->kind == SP_JSON_NULL)
        sp_text_add(out, "inf"); /* as it is read back, see state.c */
}

static sp_err place_table(const sp_sink *s, const char *run, char **path)
{
    *path = sp_path(run, "%s", s->name);
    return *path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

static void put_heads(const sp_sink *s, sp_text *out)
{
    const char *key;

    for (int i = 0; (key = sp_metrics_key(s->kind, i)); i++)
        sp_text_add(out, "%s%s", i > 0 ? "," : "", key);
    sp_text_put(out, "\r\n", 2);
}

static void put_row(const sp_sink *s, sp_text *out, const sp_json_value *line)
{
    const char *key;

    for (int i = 0; (key = sp_metrics_key(s->kind, i)); i++) {
        if (i > 0)
            sp_text_put(out, ",", 1);
        put_value(out, sp_json_find(line, key));
    }
    sp_text_put(out, "\r\n", 2);
}

static const sp_sink tables[] = {
    { "metrics.csv", "epoch", wants_csv, place_table, put_heads, put_row,
      NULL },
    { "steps.csv", "step", wants_csv, place_table, put_heads, put_row, NULL },
    { "times.csv", "time", wants_csv, place_table, put_heads, put_row, NULL },
};

/* ---- All of them --------------------------------------------------------- */

static const sp_sink *const all[SP_SINKS] = { &tables[0], &tables[1],
                                              &tables[2],
                                              &sp_sink_tensorboard };

static void put_line(const sp_sink *s, sp_text *out, const sp_json_value *line)
{
    const sp_json_value *kind = sp_json_find(line, "kind");

    if (!s->kind || (kind && kind->kind == SP_JSON_TEXT &&
                     strcmp(kind->text, s->kind) == 0))
        s->line(s, out, line);
}

typedef struct copy {
    const sp_sink *sink;
    sp_text text;
} copy;

static void copy_line(void *arg, const char *line, size_t n,
                      const sp_json_value *value)
{
    copy *c = arg;

    (void)line;
    (void)n;
    put_line(c->sink, &c->text, value);
}

/* The whole file from the lines so far. */
static sp_err write_anew(const sp_sink *sink, const char *path,
                         const char *metrics)
{
    copy c = { .sink = sink };
    sp_err e;

    sink->begin(sink, &c.text);
    e = sp_lines_read(metrics, copy_line, &c);
    if (e == SP_OK)
        e = sp_text_check(&c.text);
    if (e == SP_OK)
        e = sp_file_write_synced(path, c.text.bytes, c.text.size);
    sp_text_free(&c.text);
    return e;
}

static sp_err open_one(const sp_sink *sink, const char *run,
                       const char *metrics, char **path, FILE **file)
{
    SP_TRY(sink->place(sink, run, path));
    SP_TRY(write_anew(sink, *path, metrics));
    if (sink->settle)
        SP_TRY(sink->settle(*path));
    return sp_file_append(*path, file);
}

sp_err sp_sinks_open(sp_sinks *s, const char *run, const char *metrics,
                     const sp_log_cfg *log)
{
    sp_err e = SP_OK;

    *s = (sp_sinks){ .file = { NULL } };
    for (int i = 0; e == SP_OK && i < SP_SINKS; i++)
        if (all[i]->wanted(log))
            e = open_one(all[i], run, metrics, &s->path[i], &s->file[i]);
    if (e != SP_OK)
        sp_sinks_close(s);
    return e;
}

void sp_sinks_close(sp_sinks *s)
{
    for (int i = 0; i < SP_SINKS; i++) {
        if (s->file[i])
            fclose(s->file[i]);
        free(s->path[i]);
    }
    *s = (sp_sinks){ .file = { NULL } };
}

static sp_err append(sp_sinks *s, int i, const sp_json_value *line)
{
    sp_text out = { 0 };
    sp_err e;

    put_line(all[i], &out, line);
    e = sp_text_check(&out);
    if (e == SP_OK && out.size > 0)
        e = sp_lines_put(s->file[i], s->path[i], out.bytes, out.size);
    sp_text_free(&out);
    return e;
}

sp_err sp_sinks_line(sp_sinks *s, const char *line)
{
    sp_json_doc *doc = NULL;
    sp_err e = SP_OK;

    for (int i = 0; e == SP_OK && i < SP_SINKS; i++) {
        if (!s->file[i])
            continue;
        if (!doc)
            e = sp_json_parse(&doc, "a line of metrics", line, strlen(line));
        if (e == SP_OK)
            e = append(s, i, sp_json_root(doc));
    }
    sp_json_doc_free(doc);
    return e;
}
