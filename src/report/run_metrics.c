/* What a run measured, metrics.jsonl, and where its time went. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/run.h"

enum { MOST_MANIFEST = 1 << 24 };

const char *const sp_run_time_keys[SP_RUN_TIMES] = {
    "data_s",  "forward_s", "backward_s",   "compress_s", "exchange_s",
    "optim_s", "eval_s",    "checkpoint_s", "other_s",
};
const char *const sp_run_time_names[SP_RUN_TIMES] = {
    "data",   "forward",    "backward",   "compression", "exchange",
    "update", "evaluation", "checkpoint", "other",
};

/* Whether the line has the key at all: of what a run does not measure, no
 * points are kept. */
static sp_err take_metrics(const sp_line *line, double step, sp_xy_list *into)
{
    for (int m = 0; m < SP_METRIC_COUNT; m++) {
        double y;
        if (!sp_json_find(line->root, sp_run_metric_key(m)))
            continue;
        SP_TRY(sp_line_number(line, sp_run_metric_key(m), &y));
        sp_xy_list_add(&into[m], step, y);
        SP_TRY(sp_text_check(&into[m].bytes));
    }
    return SP_OK;
}

/* Epochs are counted anew in each round of pruning; steps are not. */
static sp_err take_epoch(sp_run_record *r, const sp_line *line, double step)
{
    double epoch;

    SP_TRY(sp_line_number(line, "epoch", &epoch));
    if (r->epoch_count == 0 && epoch >= 1 && step >= 1)
        r->batches = step / epoch;
    r->epoch_count++;
    return take_metrics(line, step, r->epochs);
}

static sp_err take_time(sp_run_record *r, const sp_line *line)
{
    for (int i = 0; i < SP_RUN_TIMES; i++) {
        double seconds;
        SP_TRY(sp_line_number(line, sp_run_time_keys[i], &seconds));
        if (seconds > 0 && isfinite(seconds)) {
            r->times[i] += seconds;
            r->timed = true;
        }
    }
    return SP_OK;
}

static sp_err take_line(void *run, const sp_line *line)
{
    sp_run_record *r = run;
    const char *kind;
    double step;

    SP_TRY(sp_line_text(line, "kind", &kind));
    if (!kind)
        return sp_line_fail(line, "there is no kind", NULL);
    if (strcmp(kind, "time") == 0)
        return take_time(r, line);
    if (strcmp(kind, "step") != 0 && strcmp(kind, "epoch") != 0)
        return SP_OK; /* of a later version */
    SP_TRY(sp_line_number(line, "step", &step));
    if (!(step >= 0))
        return sp_line_fail(line, "there is no step", NULL);
    if (step > r->last_step)
        r->last_step = step;
    return kind[0] == 'e' ? take_epoch(r, line, step)
                          : take_metrics(line, step, r->steps);
}

/* In its first epoch a run has told its steps only in a checkpoint. */
static sp_err read_batches(sp_run_record *r)
{
    char *path = sp_path(r->path, "checkpoints/start/manifest.json");
    sp_json_doc *doc = NULL;
    int64_t batches;
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && sp_is_file(path)) {
        e = sp_json_read(&doc, path, MOST_MANIFEST);
        if (e == SP_OK && sp_json_find(sp_json_root(doc), "batches")) {
            e = sp_json_get_int(sp_json_root(doc), "batches", &batches);
            if (e == SP_OK && batches > 0)
                r->batches = (double)batches;
        }
    }
    sp_json_doc_free(doc);
    free(path);
    return e;
}

sp_err sp_run_read_metrics(sp_run_record *r)
{
    char *path = sp_path(r->path, "metrics.jsonl");
    sp_err e = path ? sp_run_read_lines(r, "metrics.jsonl", take_line, r)
                    : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && !sp_is_file(path))
        sp_run_note(r, "%s: is not there: no curves", path);
    if (e == SP_OK && isnan(r->batches))
        e = read_batches(r);
    free(path);
    return e;
}
