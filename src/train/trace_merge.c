/* The parts of all ranks, put together on the clock of rank 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/lines.h"
#include "train/trace_parts.h"

/* An event of the whole: its text in `texts`. */
typedef struct event {
    double at; /* microseconds; of a name -1: those come first */
    double lasts;
    size_t text, size;
} event;

/* How far rank 0's clock is ahead of a part's, at a time. */
typedef struct mark {
    double at, offset;
} mark;

typedef struct merging {
    sp_text events, arrivals, texts; /* arrays, one item after the other */
    sp_text names;                   /* size_t: which events are names */
    sp_text marks;                   /* of the part at hand, in turn */
    size_t reached;                  /* marks that its events are behind */
    int64_t from;                    /* step at which this call began */
    int ranks;
    sp_err e;
} merging;

static double number_of(const sp_json_value *object, const char *key)
{
    const sp_json_value *v = sp_json_find(object, key);

    return v && v->kind == SP_JSON_NUMBER ? v->number : NAN;
}

static bool has_text(const sp_json_value *object, const char *key,
                     const char *want)
{
    const sp_json_value *v = sp_json_find(object, key);

    return v && v->kind == SP_JSON_TEXT && strcmp(v->text, want) == 0;
}

/* ---- Clocks -------------------------------------------------------------- */

/* False: it is another event, or says nothing of a clock. */
static bool read_mark(const sp_json_value *e, mark *out)
{
    *out = (mark){ number_of(e, "ts"),
                   number_of(sp_json_find(e, "args"), "offset") };
    return has_text(e, "name", "clock") && !isnan(out->at) &&
           !isnan(out->offset);
}

static bool is_end(const sp_json_value *e)
{
    const sp_json_value *v = sp_json_find(sp_json_find(e, "args"), "end");

    return v && v->kind == SP_JSON_BOOL && v->truth;
}

/* First every clock of the part: events behind a mark of a start go by that
 * one, and by the next if that is of an end. */
typedef struct pair {
    mark start, end;
} pair;

static void take_mark(void *arg, const char *line, size_t n,
                      const sp_json_value *e)
{
    merging *m = arg;
    pair p = { .end = { NAN, NAN } };

    (void)line;
    (void)n;
    if (!read_mark(e, &p.start))
        return;
    if (!is_end(e))
        sp_text_put(&m->marks, &p, sizeof p);
    else if (m->marks.size > 0)
        ((pair *)(void *)m->marks.bytes)[m->marks.size / sizeof p - 1].end =
            p.start;
}

/* A time of the part at hand on rank 0's clock; what two marks differ by has
 * grown evenly. */
static double shift(const merging *m, double at)
{
    const pair *p = (const pair *)(const void *)m->marks.bytes + m->reached - 1;
    double span, share;

    if (m->reached == 0)
        return at;
    span = p->end.at - p->start.at;
    if (isnan(span) || span <= 0)
        return at + p->start.offset;
    share = (at - p->start.at) / span;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return at + p->start.offset + share * (p->end.offset - p->start.offset);
}

/* ---- Events -------------------------------------------------------------- */

static void copy_value(sp_json *j, const char *key, const sp_json_value *v)
{
    switch (v->kind) {
    case SP_JSON_NULL:
        sp_json_null(j, key);
        return;
    case SP_JSON_BOOL:
        sp_json_bool(j, key, v->truth);
        return;
    case SP_JSON_NUMBER:
        sp_json_number(j, key, v->number);
        return;
    case SP_JSON_TEXT:
        sp_json_text(j, key, v->text);
        return;
    case SP_JSON_LIST:
        sp_json_list(j, key);
        break;
    case SP_JSON_OBJECT:
        sp_json_open(j, key);
        break;
    }
    for (const sp_json_value *in = v->first; in; in = in->next)
        copy_value(j, in->key, in);
    sp_json_close(j);
}

static double fine(double microseconds)
{
    return round(microseconds * 1e3) / 1e3;
}

/* The event with its times on rank 0's clock. */
static void write_event(const merging *m, sp_json *j, const sp_json_value *e)
{
    double begin = number_of(e, "ts"), end = begin + number_of(e, "dur");

    sp_json_open(j, NULL);
    for (const sp_json_value *v = e->first; v; v = v->next) {
        if (strcmp(v->key, "ts") == 0)
            sp_json_number(j, "ts", fine(shift(m, begin)));
        else if (strcmp(v->key, "dur") == 0)
            sp_json_number(j, "dur", fine(shift(m, end) - shift(m, begin)));
        else
            copy_value(j, v->key, v);
    }
    sp_json_close(j);
}

/* Names are written again by each call of the program. Those of one rank follow
 * each other: only the names are searched, from the last. */
static bool is_there(const merging *m, const char *text, size_t size)
{
    const event *all = (const event *)(const void *)m->events.bytes;
    const size_t *names = (const size_t *)(const void *)m->names.bytes;

    for (size_t i = m->names.size / sizeof *names; i-- > 0;)
        if (all[names[i]].size == size &&
            memcmp(m->texts.bytes + all[names[i]].text, text, size) == 0)
            return true;
    return false;
}

/* Once memory has run out nothing is kept, so that places in lists stay true.
 */
static void keep_event(merging *m, event new, bool name, const char *text)
{
    size_t place = m->events.size / sizeof new;

    new.text = m->texts.size;
    new.size = strlen(text);
    if (name && is_there(m, text, new.size))
        return;
    sp_text_put(&m->texts, text, new.size);
    if (!m->texts.failed)
        sp_text_put(&m->events, &new, sizeof new);
    if (name && !m->texts.failed && !m->events.failed)
        sp_text_put(&m->names, &place, sizeof place);
}

static void add_event(merging *m, const sp_json_value *e)
{
    bool name = has_text(e, "ph", "M");
    double lasts = number_of(e, "dur");
    event new = { .at = name ? -1 : shift(m, number_of(e, "ts")),
                  .lasts = isnan(lasts) ? 0 : lasts };
    sp_json j = { 0 };
    const char *text;

    write_event(m, &j, e);
    if (sp_json_finish(&j, &text) == SP_OK)
        keep_event(m, new, name, text);
    else
        m->e = SP_ENOMEM;
    sp_json_free(&j);
}

static void add_arrival(merging *m, const sp_json_value *e)
{
    const sp_json_value *args = sp_json_find(e, "args");
    int64_t rank;
    sp_arrival a = { .at = 1e-6 * shift(m, number_of(args, "begun")) };

    if (!has_text(e, "cat", "message") ||
        sp_json_get_int(args, "step", &a.step) != SP_OK || a.step <= m->from ||
        sp_json_get_int(args, "number", &a.number) != SP_OK ||
        sp_json_get_int(args, "lane", &a.lane) != SP_OK ||
        sp_json_get_int(args, "leader", &a.leader) != SP_OK ||
        sp_json_get_int(e, "pid", &rank) != SP_OK || rank < 0 ||
        rank >= m->ranks || isnan(a.at))
        return;
    a.rank = (int)rank;
    sp_text_put(&m->arrivals, &a, sizeof a);
}

static void take_event(void *arg, const char *line, size_t n,
                       const sp_json_value *e)
{
    merging *m = arg;
    mark at;

    (void)line;
    (void)n;
    if (read_mark(e, &at)) {
        m->reached += !is_end(e);
        return;
    }
    if (e->kind != SP_JSON_OBJECT ||
        (isnan(number_of(e, "ts")) && !has_text(e, "ph", "M")))
        return;
    add_event(m, e);
    add_arrival(m, e);
}

static sp_err take_part(merging *m, const char *path)
{
    m->marks.size = 0;
    m->reached = 0;
    SP_TRY(sp_lines_read(path, take_mark, m));
    SP_TRY(sp_text_check(&m->marks));
    return sp_lines_read(path, take_event, m);
}

/* ---- The whole ----------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;

    if (x->at != y->at)
        return x->at > y->at ? 1 : -1;
    if (x->lasts != y->lasts) /* what is within comes behind */
        return x->lasts < y->lasts ? 1 : -1;
    return (x->text > y->text) - (x->text < y->text);
}

static sp_err put_whole(const merging *m, const char *path)
{
    const event *all = (const event *)(const void *)m->events.bytes;
    size_t count = m->events.size / sizeof *all;
    sp_file_out *f;
    sp_err e;

    SP_TRY(sp_file_begin(&f, path));
    e = sp_file_put(f, "[\n", 2);
    for (size_t i = 0; e == SP_OK && i < count; i++) {
        if (i > 0)
            e = sp_file_put(f, ",\n", 2);
        if (e == SP_OK)
            e = sp_file_put(f, m->texts.bytes + all[i].text, all[i].size);
    }
    if (e == SP_OK)
        e = sp_file_put(f, "\n]\n", 3);
    if (e == SP_OK)
        return sp_file_commit(f);
    sp_file_cancel(f);
    return e;
}

static sp_err write_whole(const sp_trace *t, merging *m)
{
    char *path = sp_path(t->args.run, "trace.json");
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (m->events.size > 0)
        qsort(m->events.bytes, m->events.size / sizeof(event), sizeof(event),
              by_time);
    if (e == SP_OK)
        e = put_whole(m, path);
    free(path);
    return e;
}

static sp_err take_parts(const sp_trace *t, merging *m)
{
    char **paths;
    size_t count;
    sp_err e = SP_OK;

    SP_TRY(sp_trace_list(t, &paths, &count));
    for (size_t i = 0; e == SP_OK && i < count; i++)
        e = take_part(m, paths[i]);
    sp_trace_list_free(paths, count);
    if (e == SP_OK && m->e != SP_OK)
        e = sp_fail(m->e, "trace: out of memory");
    if (e == SP_OK)
        e = sp_text_check(&m->events);
    if (e == SP_OK)
        e = sp_text_check(&m->texts);
    if (e == SP_OK)
        e = sp_text_check(&m->names);
    return e == SP_OK ? sp_text_check(&m->arrivals) : e;
}

sp_err sp_trace_merge(const sp_trace *t, const sp_trace_sums *sums,
                      sp_text *told)
{
    merging m = { .from = t->at.step, .ranks = sp_comm_ranks(t->args.comm) };
    sp_err e = take_parts(t, &m);

    if (e == SP_OK)
        e = write_whole(t, &m);
    if (e == SP_OK)
        sp_trace_tell(t, sums, (sp_arrival *)(void *)m.arrivals.bytes,
                      m.arrivals.size / sizeof(sp_arrival), told);
    sp_text_free(&m.events);
    sp_text_free(&m.texts);
    sp_text_free(&m.names);
    sp_text_free(&m.marks);
    sp_text_free(&m.arrivals);
    return e;
}
