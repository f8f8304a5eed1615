/* What the folder of a run tells. */
#include "table/cell.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/config_text.h"
#include "train/metrics.h"
#include "train/rotate.h"
#include "train/rundir.h"

enum { RESULT_BYTES = 64 << 20 /* of result.json, at most */ };

static const double MOST_COUNTED = 1e15; /* bytes, parameters, seconds */

static void forget(sp_cell *c)
{
    free(c->reason);
    c->reason = NULL;
    c->state = SP_CELL_NEW;
    c->saved = false;
    c->ranks = 0;
    c->hash[0] = '\0';
    c->value = c->packet_bytes = c->dense_bytes = NAN;
    c->sent = (sp_run_sent){ NAN, NAN };
    c->params = c->seconds = NAN;
}

sp_err sp_cell_name(sp_cell *c, const char *folder, const sp_table_row *row,
                    int seed)
{
    *c = (sp_cell){ .row = row, .seed = seed };
    forget(c);
    c->path = sp_path("", "%s/seed-%d", row->slug, seed);
    c->run = c->path ? sp_path(folder, "%s", c->path) : NULL;
    return c->run ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

void sp_cell_free(sp_cell *c)
{
    free(c->path);
    free(c->run);
    free(c->reason);
    *c = (sp_cell){ 0 };
}

sp_err sp_cell_config(const sp_cell *c, const sp_registry *r, sp_config **out)
{
    const sp_table_row *row = c->row;
    const char **set = malloc((row->set.count + 1) * sizeof *set);
    char seed[32];
    sp_err e;

    if (!set)
        return sp_fail(SP_ENOMEM, "out of memory");
    snprintf(seed, sizeof seed, "train.seed=%d", c->seed);
    if (row->set.count > 0)
        memcpy(set, row->set.word, row->set.count * sizeof *set);
    set[row->set.count] = seed;
    e = sp_config_load(out, r, row->configs.word, row->configs.count, set,
                       row->set.count + 1);
    free(set);
    return e;
}

/* What is asked for, and what is there. The caller frees both. */
static sp_err load_both(const sp_cell *c, const sp_registry *r,
                        sp_config **want, sp_config **have)
{
    *want = *have = NULL;
    SP_TRY(sp_cell_config(c, r, want));
    return sp_config_of_run(have, r, c->run, NULL, 0);
}

static sp_err check_config(const sp_cell *c, const sp_registry *r)
{
    sp_config *want, *have;
    char first[SP_DIFFERENCE_ROOM];
    bool same = false;
    sp_err e = load_both(c, r, &want, &have);

    if (e == SP_OK)
        e = sp_config_same(want, have, &same, first);
    if (e == SP_OK && !same)
        e = sp_fail(SP_ECONFIG,
                    "%s: is a run of another configuration: %s: move it away, "
                    "or change the table",
                    c->run, first);
    sp_config_free(want);
    sp_config_free(have);
    return e;
}

sp_err sp_cell_change(const sp_cell *c, const sp_registry *r, sp_overrides *out)
{
    sp_config *want, *have;
    sp_err e = load_both(c, r, &want, &have);

    *out = (sp_overrides){ 0 };
    if (e == SP_OK)
        e = sp_config_change(want, have, out);
    sp_config_free(want);
    sp_config_free(have);
    return e;
}

/* The state of the parameters that a run tells last. */
static sp_err read_hash(sp_cell *c)
{
    char *path = sp_path(c->run, "hashes.jsonl");
    sp_hash_line *lines = NULL;
    size_t count = 0;
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && sp_is_file(path))
        e = sp_hashes_read(c->run, &lines, &count);
    if (count > 0)
        memcpy(c->hash, lines[count - 1].hex, sizeof c->hash);
    free(lines);
    free(path);
    return e;
}

/* The scores that a line has, for a message. */
static void list_scores(const sp_epoch_line *line, sp_text *out)
{
    const char *name;

    for (size_t i = 0; (name = sp_metric_name(NULL, i)); i++)
        if (!isnan(sp_metric_of(sp_metric_find(name), line)))
            sp_text_add(out, "%s%s", out->size ? ", " : "", name);
}

/* Nothing that runs tell is negative, or beyond what can be counted; a score
 * may be infinite. */
static sp_err check_numbers(const sp_cell *c, const char *where)
{
    const struct {
        const char *name;
        double value, most;
    } numbers[] = {
        { "the metric", c->value, INFINITY },
        { "packet_bytes", c->packet_bytes, MOST_COUNTED },
        { "dense_bytes", c->dense_bytes, MOST_COUNTED },
        { "params", c->params, MOST_COUNTED },
        { "seconds", c->seconds, MOST_COUNTED },
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < 0 || numbers[i].value > numbers[i].most)
            return sp_fail(SP_EFORMAT, "%s: %s is %g, which no run tells",
                           where, numbers[i].name, numbers[i].value);
    return SP_OK;
}

static sp_err read_scores(sp_cell *c, const sp_table *t,
                          const sp_json_value *result)
{
    const char *key = t->best ? "best" : "final";
    const sp_json_value *line;
    sp_epoch_line at = sp_epoch_line_none(), last = at;
    sp_text scores = { 0 };

    SP_TRY(sp_json_get(result, key, SP_JSON_OBJECT, &line));
    SP_TRY(sp_epoch_line_read(line, &at));
    SP_TRY(sp_json_get(result, "final", SP_JSON_OBJECT, &line));
    SP_TRY(sp_epoch_line_read(line, &last));
    c->value = sp_metric_of(t->metric, &at);
    c->packet_bytes = last.packet_bytes;
    c->dense_bytes = last.dense_bytes;
    SP_TRY(read_hash(c));
    SP_TRY(sp_sent_in_run(c->run, &c->sent));
    SP_TRY(sp_json_get_number(result, "params", &c->params));
    SP_TRY(sp_json_get_number(result, "seconds", &c->seconds));
    SP_TRY(check_numbers(c, result->where));
    if (!isnan(c->value))
        return SP_OK;
    list_scores(&at, &scores);
    sp_fail(SP_EARG, "%s: has no %s in the %s epoch, only %s", c->run,
            t->metric->name, t->best ? "best" : "last",
            sp_text_string(&scores));
    sp_text_free(&scores);
    return SP_EARG;
}

static sp_err read_result(sp_cell *c, const sp_table *t,
                          const sp_json_value *result)
{
    const sp_json_value *reason = sp_json_find(result, "reason");
    const char *status;
    int64_t ranks;

    SP_TRY(sp_json_get_text(result, "status", &status));
    SP_TRY(sp_json_get_int(result, "ranks", &ranks));
    if (ranks < 1 || ranks > INT_MAX)
        return sp_fail(SP_EFORMAT, "%s: ranks is %lld, not 1 or more",
                       result->where, (long long)ranks);
    c->ranks = (int)ranks;
    if (strcmp(status, "done") == 0) {
        c->state = SP_CELL_DONE;
        return read_scores(c, t, result);
    }
    if (strcmp(status, "failed") != 0 && strcmp(status, "not_finite") != 0)
        return SP_OK;
    c->state = SP_CELL_FAILED;
    if (reason && reason->kind == SP_JSON_TEXT)
        status = reason->text;
    c->reason = sp_copy(status, strlen(status));
    return c->reason ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
}

static sp_err look_result(sp_cell *c, const sp_table *t)
{
    char *path = sp_path(c->run, "result.json");
    sp_json_doc *doc = NULL;
    sp_err e = SP_OK;

    if (!path)
        return sp_fail(SP_ENOMEM, "out of memory");
    if (sp_is_file(path)) {
        e = sp_json_read(&doc, path, RESULT_BYTES);
        if (e == SP_OK)
            e = read_result(c, t, sp_json_root(doc));
    }
    sp_json_doc_free(doc);
    free(path);
    return e;
}

/* A run that would begin anew must not have been under way: links get lost when
 * folders are copied. `last`: what the link would be. */
static sp_err check_lost(const sp_cell *c, bool config, const char *last)
{
    char *name = sp_rotate_other(c->run, last);
    sp_err e = SP_OK;

    if (name && strcmp(name, "start") != 0 && config)
        e = sp_fail(SP_EARG,
                    "%s: has checkpoints, but no link `last` to the newest: "
                    "make it with `ln -s %s %s`, or move the folder away",
                    c->run, name, last);
    else if (name && strcmp(name, "start") != 0)
        e = sp_fail(SP_EARG,
                    "%s: has checkpoints, but no config.yaml: bring that back, "
                    "or move the folder away",
                    c->run);
    free(name);
    return e;
}

sp_err sp_cell_look(sp_cell *c, const sp_table *t, const sp_registry *r)
{
    char *config = sp_rundir_config(c->run);
    char *last = sp_path(c->run, "checkpoints/last");
    sp_err e = SP_OK;

    forget(c);
    if (!config || !last) {
        e = sp_fail(SP_ENOMEM, "out of memory");
    } else if (sp_is_file(config)) {
        e = check_config(c, r);
        c->saved = sp_is_dir(last);
        c->state = c->saved ? SP_CELL_BEGUN : SP_CELL_NEW;
        if (e == SP_OK)
            e = look_result(c, t);
    }
    if (e == SP_OK && config && last && !c->saved && c->state != SP_CELL_DONE)
        e = check_lost(c, sp_is_file(config), last);
    free(config);
    free(last);
    return e;
}
