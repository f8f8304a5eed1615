/* A rank's part of the timeline: an event a line, commas between them on lines
 * of their own. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "dist/agree.h"
#include "train/console.h"
#include "train/lines.h"
#include "train/shared.h"
#include "train/trace_parts.h"

static const char *const kinds[SP_SPANS] = {
    [SP_SPAN_STEP] = "step",         [SP_SPAN_DATA] = "data",
    [SP_SPAN_WORKER] = "worker",     [SP_SPAN_PASS] = "pass",
    [SP_SPAN_OPERATOR] = "operator", [SP_SPAN_COMPRESS] = "compress",
    [SP_SPAN_EXCHANGE] = "exchange", [SP_SPAN_OPTIM] = "optimizer",
    [SP_SPAN_EVALUATE] = "evaluate", [SP_SPAN_SAVE] = "checkpoint",
};

double sp_trace_time(const sp_trace *t, double moment)
{
    return round((moment + t->ahead) * 1e9) / 1e3;
}

/* ---- Events -------------------------------------------------------------- */

static void put_event(sp_trace *t, sp_text *out, sp_json *j)
{
    const char *text;

    if (sp_json_finish(j, &text) == SP_OK)
        sp_text_add(out, "%s%s\n", t->filled ? ",\n" : "", text);
    else
        out->failed = true;
    t->filled = true;
    sp_json_free(j);
}

/* Begin an event of this rank; its "args" are open. */
static void open_event(const sp_trace *t, sp_json *j, const char *name,
                       const char *phase, int track)
{
    sp_json_open(j, NULL);
    sp_json_text(j, "name", name);
    sp_json_text(j, "ph", phase);
    sp_json_int(j, "pid", sp_comm_rank(t->args.comm));
    sp_json_int(j, "tid", track);
}

static void put_times(const sp_trace *t, sp_json *j, double begin, double end)
{
    double from = sp_trace_time(t, begin), to = sp_trace_time(t, end);

    sp_json_number(j, "ts", from);
    sp_json_number(j, "dur", round((to - from) * 1e3) / 1e3);
}

/* Names of the rank and of its tracks, for people. */
static void put_name(sp_trace *t, sp_text *out, int track, const char *what,
                     const char *name)
{
    sp_json j = { 0 };

    open_event(t, &j, what, "M", track);
    sp_json_open(&j, "args");
    sp_json_text(&j, "name", name);
    sp_json_close(&j);
    sp_json_close(&j);
    put_event(t, out, &j);
}

static void name_workers(sp_trace *t, sp_text *out, int last)
{
    while (t->workers <= last)
        put_name(t, out, SP_WORKERS + t->workers++, "thread_name",
                 "preparing data");
}

static void put_span(sp_trace *t, sp_text *out, const sp_kept_span *s)
{
    bool worker = s->of.kind == SP_SPAN_WORKER;
    sp_json j = { 0 };

    if (worker && s->of.worker >= t->workers)
        name_workers(t, out, s->of.worker);
    open_event(t, &j, s->of.name, "X", worker ? SP_WORKERS + s->of.worker : 0);
    sp_json_text(&j, "cat", kinds[s->of.kind]);
    put_times(t, &j, s->of.begin, s->of.end);
    sp_json_open(&j, "args");
    sp_json_int(&j, "step", s->step);
    if (s->of.kind == SP_SPAN_EVALUATE)
        sp_json_int(&j, "epoch", s->epoch);
    if (s->of.of)
        sp_json_text(&j, "of", s->of.of);
    if (s->of.bytes > 0)
        sp_json_number(&j, "bytes", s->of.bytes);
    sp_json_close(&j);
    sp_json_close(&j);
    put_event(t, out, &j);
}

/* Operations overlap: each goes to the first track that is free by then. */
static int track_of(sp_trace *t, const sp_comm_done *d)
{
    int best = 0;

    for (int i = 0; i < SP_TRACKS; i++) {
        if (t->track_end[i] <= d->taken) {
            best = i;
            break;
        }
        if (t->track_end[i] < t->track_end[best])
            best = i;
    }
    t->track_end[best] = d->ended;
    return best;
}

static void put_op(sp_trace *t, sp_text *out, const sp_kept_op *o)
{
    const sp_comm_done *d = &o->done;
    int track = track_of(t, d);
    sp_json j = { 0 };

    if (track == t->tracks)
        put_name(t, out, 1 + t->tracks++, "thread_name", "messages");
    open_event(t, &j, sp_use_name(d->on.use), "X", 1 + track);
    sp_json_text(&j, "cat", "message");
    put_times(t, &j, d->taken, d->ended);
    sp_json_open(&j, "args");
    sp_json_int(&j, "step", o->step);
    sp_json_int(&j, "bytes", d->bytes);
    sp_json_number(&j, "begun", sp_trace_time(t, d->begun));
    if (d->number >= 0) {
        sp_json_int(&j, "lane", 2 * (int)d->on.group + (int)d->on.channel);
        sp_json_int(&j, "leader", d->leader);
        sp_json_int(&j, "number", d->number);
    }
    sp_json_close(&j);
    sp_json_close(&j);
    put_event(t, out, &j);
}

static int by_taken(const void *a, const void *b)
{
    double x = ((const sp_kept_op *)a)->done.taken;
    double y = ((const sp_kept_op *)b)->done.taken;

    return (x > y) - (x < y);
}

sp_err sp_trace_write(sp_trace *t)
{
    size_t ops = atomic_load_explicit(&t->op_count, memory_order_acquire);
    sp_text out = { 0 };
    sp_err e;

    for (size_t i = 0; i < t->span_count; i++)
        put_span(t, &out, &t->spans[i]);
    qsort(t->ops + t->op_written, ops - t->op_written, sizeof *t->ops,
          by_taken);
    for (; t->op_written < ops; t->op_written++)
        put_op(t, &out, &t->ops[t->op_written]);
    t->span_count = 0;
    e = sp_text_check(&out);
    if (e == SP_OK && out.size > 0)
        e = sp_lines_put(t->file, t->path, out.bytes, out.size);
    sp_text_free(&out);
    return e;
}

/* ---- What there is already ----------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_part(const char *name)
{
    static const char digits[] = "0123456789";
    size_t n;

    if (strncmp(name, "rank-", 5) != 0)
        return false;
    n = strspn(name + 5, digits);
    return n >= 4 && strcmp(name + 5 + n, ".json") == 0;
}

void sp_trace_list_free(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

static sp_err add_path(const sp_trace *t, const char *name, char ***paths,
                       size_t *count)
{
    char **more = realloc(*paths, (*count + 1) * sizeof *more);
    char *path = more ? sp_path(t->folder, "%s", name) : NULL;

    if (more)
        *paths = more;
    if (!path)
        return sp_fail(SP_ENOMEM, "out of memory");
    more[(*count)++] = path;
    return SP_OK;
}

sp_err sp_trace_list(const sp_trace *t, char ***paths, size_t *count)
{
    DIR *dir = opendir(t->folder);
    sp_err e = dir ? SP_OK : sp_io_fail("read", t->folder);
    struct dirent *d;

    *paths = NULL;
    *count = 0;
    while (e == SP_OK && (d = readdir(dir)))
        if (is_part(d->d_name))
            e = add_path(t, d->d_name, paths, count);
    if (dir)
        closedir(dir);
    if (e != SP_OK) {
        sp_trace_list_free(*paths, *count);
        return e;
    }
    if (*count > 0)
        qsort(*paths, *count, sizeof **paths, by_name);
    return SP_OK;
}

typedef struct cut {
    const sp_train_state *at;
    sp_text kept;
    double origin; /* NAN: not found */
} cut;

/* Of what happened at the very step that the run stands at, an evaluation is
 * kept if the state has counted it. */
static bool belongs(const sp_json_value *args, const sp_train_state *at)
{
    int64_t step, epoch;

    if (sp_json_get_int(args, "step", &step) != SP_OK || step < at->step)
        return true;
    return step == at->step &&
           (sp_json_get_int(args, "epoch", &epoch) != SP_OK ||
            epoch <= at->epoch);
}

static void keep(void *arg, const char *line, size_t n,
                 const sp_json_value *event)
{
    const sp_json_value *args = sp_json_find(event, "args");
    const sp_json_value *origin = sp_json_find(args, "origin");
    cut *c = arg;

    if (isnan(c->origin) && origin && origin->kind == SP_JSON_NUMBER)
        c->origin = origin->number;
    if (!belongs(args, c->at))
        return;
    sp_text_add(&c->kept, "%s", c->kept.size > 2 ? ",\n" : "");
    sp_text_put(&c->kept, line, n);
}

static sp_err cut_part(const char *path, cut *c)
{
    sp_err e;

    sp_text_put(&c->kept, "[\n", 2);
    e = sp_lines_read(path, keep, c);
    if (e == SP_OK)
        e = sp_lines_keep(path, &c->kept);
    sp_text_free(&c->kept);
    return e;
}

/* Of all ranks, also of those that the run no longer has. */
static sp_err cut_all(sp_trace *t)
{
    cut c = { .at = &t->at, .origin = NAN };
    char **paths;
    size_t count;
    sp_err e;

    SP_TRY(sp_dir_make(t->folder));
    SP_TRY(sp_trace_list(t, &paths, &count));
    e = SP_OK;
    for (size_t i = 0; e == SP_OK && i < count; i++)
        e = cut_part(paths[i], &c);
    sp_trace_list_free(paths, count);
    t->origin = isnan(c.origin) ? sp_time_of_day() : c.origin;
    return e;
}

static sp_err open_own(sp_trace *t)
{
    sp_text out = { 0 };
    char name[SP_RANK_NAME];
    sp_err e;
    long size;

    SP_TRY(sp_shared_wait(t->folder, NULL));
    SP_TRY(sp_file_append(t->path, &t->file));
    size = fseek(t->file, 0, SEEK_END) == 0 ? ftell(t->file) : -1;
    if (size < 0)
        return sp_io_fail("read", t->path);
    if (size == 0)
        sp_text_put(&out, "[\n", 2);
    t->filled = size > 2;
    sp_rank_name(t->args.comm, SP_ALL, sp_comm_rank(t->args.comm), name);
    put_name(t, &out, 0, "process_name", name);
    put_name(t, &out, 0, "thread_name", "computing");
    e = sp_text_check(&out);
    if (e == SP_OK)
        e = sp_lines_put(t->file, t->path, out.bytes, out.size);
    sp_text_free(&out);
    return e;
}

sp_err sp_trace_part_open(sp_trace *t)
{
    sp_comm *c = t->args.comm;
    int rank = sp_comm_rank(c);
    sp_err e = SP_OK;

    t->folder = sp_path(t->args.run, "trace");
    t->path = sp_path(t->args.run, "trace/rank-%04d.json", rank);
    if (!t->folder || !t->path)
        e = sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK && rank == 0)
        e = cut_all(t);
    SP_TRY(sp_agree(c, e));
    SP_TRY(sp_shared_bytes(c, SP_USE_CHECK, &t->origin, sizeof t->origin));
    t->ahead = sp_time_of_day() - t->origin - sp_now();
    return sp_agree(c, open_own(t));
}

/* ---- Clocks -------------------------------------------------------------- */

enum { QUESTIONS = 12 };

/* Of rank 0: answer another's questions. */
static sp_err answer(sp_trace *t, int rank)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    sp_comm *c = t->args.comm;
    double now;

    for (int i = 0; i < QUESTIONS; i++) {
        SP_TRY(sp_op_wait(c, sp_swap(c, on, rank, NULL, 0, &now, sizeof now)));
        now = sp_now() + t->ahead;
        SP_TRY(sp_op_wait(c, sp_swap(c, on, rank, &now, sizeof now, NULL, 0)));
    }
    return SP_OK;
}

/* Of another: how far rank 0's clock is ahead, by the fastest answer, which was
 * given in the middle but for half of its time at most. */
static sp_err ask(sp_trace *t, double *offset, double *error)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    sp_comm *c = t->args.comm;
    double theirs, begin, end;

    *error = INFINITY;
    for (int i = 0; i < QUESTIONS; i++) {
        begin = sp_now() + t->ahead;
        SP_TRY(sp_op_wait(c, sp_swap(c, on, 0, &begin, sizeof begin, NULL, 0)));
        SP_TRY(
            sp_op_wait(c, sp_swap(c, on, 0, NULL, 0, &theirs, sizeof theirs)));
        end = sp_now() + t->ahead;
        if ((end - begin) / 2 >= *error)
            continue;
        *error = (end - begin) / 2;
        *offset = theirs - (begin + end) / 2;
    }
    return SP_OK;
}

static sp_err put_clock(sp_trace *t, bool end, double offset, double error)
{
    sp_text out = { 0 };
    sp_json j = { 0 };
    sp_err e;

    open_event(t, &j, "clock", "i", 0);
    sp_json_text(&j, "s", "t");
    sp_json_number(&j, "ts", sp_trace_time(t, sp_now()));
    sp_json_open(&j, "args");
    sp_json_number(&j, "origin", t->origin);
    sp_json_bool(&j, "end", end);
    sp_json_number(&j, "offset", 1e6 * offset);
    sp_json_number(&j, "error", 1e6 * error);
    sp_json_close(&j);
    sp_json_close(&j);
    put_event(t, &out, &j);
    e = sp_text_check(&out);
    if (e == SP_OK)
        e = sp_lines_put(t->file, t->path, out.bytes, out.size);
    sp_text_free(&out);
    return e;
}

/* From here on rank 0 sees it, on network file systems, too. */
static sp_err close_part(sp_trace *t)
{
    FILE *file = t->file;

    t->file = NULL;
    return fclose(file) == 0 ? SP_OK : sp_io_fail("write to", t->path);
}

sp_err sp_trace_clock(sp_trace *t, bool end)
{
    sp_comm *c = t->args.comm;
    double offset = 0, error = 0;
    sp_err e;

    if (sp_comm_rank(c) > 0)
        SP_TRY(ask(t, &offset, &error));
    for (int r = 1; sp_comm_rank(c) == 0 && r < sp_comm_ranks(c); r++)
        SP_TRY(answer(t, r));
    if (error > t->sums.error)
        t->sums.error = error;
    e = put_clock(t, end, offset, error);
    if (e == SP_OK && end)
        e = close_part(t);
    return sp_agree(c, e);
}
