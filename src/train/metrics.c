/* Lines for programs. */
#include "train/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

enum { LIMIT = 1 << 30 /* bytes of a file that is read back */ };

static sp_err append(FILE *file, const char *path, sp_json *j)
{
    const char *text;
    sp_err e = sp_json_finish(j, &text);

    if (e == SP_OK && (fprintf(file, "%s\n", text) < 0 || fflush(file) != 0))
        e = sp_io_fail("write to", path);
    sp_json_free(j);
    return e;
}

sp_err sp_metrics_step(sp_metrics *m, const sp_step_line *line)
{
    sp_json j = { 0 };

    if (!m->metrics)
        return SP_OK;
    sp_json_open(&j, NULL);
    sp_json_text(&j, "kind", "step");
    sp_json_int(&j, "epoch", line->epoch);
    sp_json_int(&j, "step", line->step);
    sp_json_number(&j, "lr", line->lr);
    sp_json_number(&j, "train_loss", line->loss);
    if (!isnan(line->top1))
        sp_json_number(&j, "train_top1", line->top1);
    sp_json_number(&j, "grad_norm", line->norm);
    sp_json_number(&j, "items_per_s", line->items_per_s);
    if (!isnan(line->packet_bytes)) {
        sp_json_number(&j, "packet_bytes", line->packet_bytes);
        sp_json_number(&j, "mpi_bytes", line->mpi_bytes);
        sp_json_number(&j, "net_bytes", line->net_bytes);
    }
    sp_json_close(&j);
    return append(m->metrics, m->metrics_path, &j);
}

sp_err sp_metrics_epoch(sp_metrics *m, const sp_epoch_line *line)
{
    sp_json j = { 0 };

    if (!m->metrics)
        return SP_OK;
    sp_json_open(&j, NULL);
    sp_json_text(&j, "kind", "epoch");
    sp_epoch_line_write(&j, line);
    sp_json_close(&j);
    return append(m->metrics, m->metrics_path, &j);
}

sp_err sp_metrics_hash(sp_metrics *m, int64_t step, const char hex[SP_HASH_HEX])
{
    sp_json j = { 0 };

    if (!m->hashes)
        return SP_OK;
    sp_json_open(&j, NULL);
    sp_json_int(&j, "step", step);
    sp_json_text(&j, "hash", hex);
    sp_json_close(&j);
    return append(m->hashes, m->hashes_path, &j);
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

/* Whether a line was written before the state `at` was reached. An epoch that
 * had ended counts as whole only once its evaluation was in the state; epochs
 * are counted in each round of pruning. */
static bool belongs(const sp_json_value *line, const sp_train_state *at)
{
    const sp_json_value *kind = sp_json_find(line, "kind");
    int64_t step, epoch, round = 0;

    if (sp_json_get_int(line, "step", &step) != SP_OK || step > at->step)
        return false;
    if (!kind || kind->kind != SP_JSON_TEXT || strcmp(kind->text, "epoch") != 0)
        return true;
    if (sp_json_get_int(line, "epoch", &epoch) != SP_OK ||
        (sp_json_find(line, "round") &&
         sp_json_get_int(line, "round", &round) != SP_OK))
        return false;
    return round < at->round || (round == at->round && epoch <= at->epoch);
}

/* Call `each` for every whole line; one that is torn or no JSON is passed
 * over, as it says nothing. */
static sp_err walk(const char *path, const char *text, size_t size,
                   void (*each)(void *arg, const char *line, size_t n,
                                const sp_json_value *value),
                   void *arg)
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
        e = sp_json_parse(&doc, path, text + at, n);
        if (e == SP_OK)
            each(arg, text + at, n + 1, sp_json_root(doc));
        else if (e != SP_EFORMAT)
            return e;
        sp_json_doc_free(doc);
    }
    return SP_OK;
}

typedef struct cut {
    sp_text kept;
    const sp_train_state *at;
} cut;

static void keep(void *arg, const char *line, size_t n,
                 const sp_json_value *value)
{
    cut *c = arg;

    if (belongs(value, c->at))
        sp_text_put(&c->kept, line, n);
}

static sp_err cut_back(const char *path, const sp_train_state *at)
{
    cut c = { .at = at };
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e;

    if (!sp_is_file(path))
        return SP_OK;
    SP_TRY(sp_file_read(path, LIMIT, &bytes, &size));
    e = walk(path, (const char *)bytes, size, keep, &c);
    if (e == SP_OK)
        e = sp_text_check(&c.kept);
    if (e == SP_OK && c.kept.size != size)
        e = sp_file_write_synced(path, sp_text_string(&c.kept), c.kept.size);
    sp_text_free(&c.kept);
    free(bytes);
    return e;
}

static sp_err open_file(char **path, FILE **file, const char *run,
                        const char *name, const sp_train_state *at)
{
    *path = sp_path(run, "%s", name);
    if (!*path)
        return sp_fail(SP_ENOMEM, "out of memory");
    SP_TRY(cut_back(*path, at));
    return sp_file_append(*path, file);
}

sp_err sp_metrics_open(sp_metrics *m, const char *run, const sp_train_state *at)
{
    sp_err e;

    *m = (sp_metrics){ 0 };
    e = open_file(&m->metrics_path, &m->metrics, run, "metrics.jsonl", at);
    if (e == SP_OK)
        e = open_file(&m->hashes_path, &m->hashes, run, "hashes.jsonl", at);
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
    sp_err e = path ? sp_file_read(path, LIMIT, &bytes, &size)
                    : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        e = walk(path, (const char *)bytes, size, take_hash, &list);
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
