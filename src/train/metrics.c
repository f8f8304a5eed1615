/* What a run says of itself for programs. */
#include "train/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "train/lines.h"

/* ---- Keys ---------------------------------------------------------------- */

#define AT(field)                             \
    {                                         \
#field, offsetof(sp_step_line, field) \
    }

/* What can be left out comes from one table, too. */
static const struct {
    const char *key;
    size_t offset;
} step_fields[] = {
    AT(epoch),      AT(step),      AT(lr),          AT(train_loss),
    AT(train_top1), AT(grad_norm), AT(items_per_s), AT(packet_bytes),
    AT(mpi_bytes),  AT(net_bytes),
};

enum { STEP_FIELDS = sizeof step_fields / sizeof *step_fields };

static const char *const time_heads[] = { "epoch", "step", "round" };

enum { TIME_HEADS = sizeof time_heads / sizeof *time_heads };

static const char *step_key(int i)
{
    return i < STEP_FIELDS ? step_fields[i].key : NULL;
}

static const char *time_key(int i)
{
    if (i < TIME_HEADS)
        return time_heads[i];
    if (i < TIME_HEADS + SP_TIMES)
        return sp_time_key((sp_time)(i - TIME_HEADS));
    return i == TIME_HEADS + SP_TIMES ? "other_s" : NULL;
}

static const struct {
    const char *kind;
    const char *(*key)(int i);
} kinds[] = {
    { "step", step_key },
    { "epoch", sp_epoch_line_key },
    { "time", time_key },
};

const char *sp_metrics_key(const char *kind, int i)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *key = kinds[k].key(i);

        if (strcmp(kinds[k].kind, kind) != 0)
            continue;
        if (key)
            return key;
        return i > 0 && kinds[k].key(i - 1) ? SP_WALL_TIME : NULL;
    }
    return NULL;
}

/* ---- Lines --------------------------------------------------------------- */

/* With the time of day, to metrics.jsonl and its other forms. */
static sp_err append(sp_metrics *m, sp_json *j)
{
    const char *text;
    sp_err e;

    sp_json_number(j, SP_WALL_TIME, floor(1e3 * sp_time_of_day()) / 1e3);
    sp_json_close(j);
    e = sp_lines_append(m->metrics, m->metrics_path, j);
    if (e == SP_OK)
        e = sp_json_finish(j, &text);
    if (e == SP_OK)
        e = sp_sinks_line(&m->sinks, text);
    sp_json_free(j);
    return e;
}

static void open_line(sp_json *j, const char *kind)
{
    sp_json_open(j, NULL);
    sp_json_text(j, "kind", kind);
}

static void put(sp_json *j, const char *key, double value)
{
    if (!isnan(value))
        sp_json_number(j, key, value);
}

sp_err sp_metrics_step(sp_metrics *m, const sp_step_line *line)
{
    sp_json j = { 0 };

    if (!m->metrics)
        return SP_OK;
    open_line(&j, "step");
    for (int i = 0; i < STEP_FIELDS; i++)
        put(&j, step_fields[i].key,
            *(const double *)(const void *)((const char *)line +
                                            step_fields[i].offset));
    return append(m, &j);
}

sp_err sp_metrics_epoch(sp_metrics *m, const sp_epoch_line *line)
{
    sp_json j = { 0 };

    if (!m->metrics)
        return SP_OK;
    open_line(&j, "epoch");
    sp_epoch_line_write(&j, line);
    return append(m, &j);
}

sp_err sp_metrics_times(sp_metrics *m, const sp_time_line *line)
{
    const double heads[TIME_HEADS] = { line->epoch, line->step, line->round };
    sp_json j = { 0 };

    if (!m->metrics)
        return SP_OK;
    open_line(&j, "time");
    for (int i = 0; i < TIME_HEADS; i++)
        put(&j, time_key(i), heads[i]);
    for (int i = 0; i < SP_TIMES; i++)
        put(&j, time_key(TIME_HEADS + i), line->times[i]);
    put(&j, time_key(TIME_HEADS + SP_TIMES), line->other);
    return append(m, &j);
}

sp_err sp_metrics_hash(sp_metrics *m, int64_t step, const char hex[SP_HASH_HEX])
{
    sp_json j = { 0 };
    sp_err e;

    if (!m->hashes)
        return SP_OK;
    sp_json_open(&j, NULL);
    sp_json_int(&j, "step", step);
    sp_json_text(&j, "hash", hex);
    sp_json_close(&j);
    e = sp_lines_append(m->hashes, m->hashes_path, &j);
    sp_json_free(&j);
    return e;
}

void sp_params_hash(const sp_params *p, char hex[SP_HASH_HEX])
{
    sp_hash h;

    sp_hash_start(&h);
    for (int i = 0; sp_params_at(p, i); i++) {
        const sp_param *q = sp_params_at(p, i);
        sp_hash_add(&h, q->value, q->count * sizeof(float));
    }
    sp_hash_end(&h, hex);
}

/* ---- Files --------------------------------------------------------------- */

static sp_err open_file(char **path, FILE **file, const char *run,
                        const char *name, const sp_train_state *at)
{
    *path = sp_path(run, "%s", name);
    if (!*path)
        return sp_fail(SP_ENOMEM, "out of memory");
    SP_TRY(sp_lines_cut(*path, at));
    return sp_file_append(*path, file);
}

sp_err sp_metrics_open(sp_metrics *m, const char *run, const sp_train_state *at,
                       const sp_log_cfg *log)
{
    sp_err e;

    *m = (sp_metrics){ 0 };
    e = open_file(&m->metrics_path, &m->metrics, run, "metrics.jsonl", at);
    if (e == SP_OK)
        e = open_file(&m->hashes_path, &m->hashes, run, "hashes.jsonl", at);
    if (e == SP_OK)
        e = sp_sinks_open(&m->sinks, run, m->metrics_path, log);
    if (e != SP_OK)
        sp_metrics_close(m);
    return e;
}

void sp_metrics_close(sp_metrics *m)
{
    if (m->metrics)
        fclose(m->metrics);
    if (m->hashes)
        fclose(m->hashes);
    sp_sinks_close(&m->sinks);
    free(m->metrics_path);
    free(m->hashes_path);
    *m = (sp_metrics){ 0 };
}

static void take_hash(void *arg, const char *line, size_t n,
                      const sp_json_value *value)
{
    sp_text *list = arg; /* the bytes of one sp_hash_line after the other */
    sp_hash_line h = { 0 };
    const char *hex;

    (void)line;
    (void)n;
    if (sp_json_get_int(value, "step", &h.step) != SP_OK ||
        sp_json_get_text(value, "hash", &hex) != SP_OK)
        return;
    snprintf(h.hex, sizeof h.hex, "%s", hex);
    sp_text_put(list, &h, sizeof h);
}

sp_err sp_hashes_read(const char *run, sp_hash_line **lines, size_t *count)
{
    sp_text list = { 0 };
    char *path = sp_path(run, "hashes.jsonl");
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e = path ? sp_file_read(path, SP_LINES_LIMIT, &bytes, &size)
                    : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        e = sp_lines_walk(path, (const char *)bytes, size, take_hash, &list);
    if (e == SP_OK)
        e = sp_text_check(&list);
    if (e == SP_OK) {
        *lines = (sp_hash_line *)(void *)list.bytes;
        *count = list.size / sizeof **lines;
    } else {
        sp_text_free(&list);
    }
    free(bytes);
    free(path);
    return e;
}
