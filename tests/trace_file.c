#include "trace_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"

/* Microseconds. Times are rounded to a thousandth of one. */
#define ROUNDING 0.01
#define CLOCKS 2000.0 /* by which clocks of one host may seem to differ */

typedef struct span {
    const char *name, *cat;
    int64_t pid, tid, step, lane, leader, number;
    double begin, end, begun;
} span;

typedef struct spans {
    span *all;
    size_t count;
    int faults;
} spans;

static void fault(spans *s, const span *x, const char *what)
{
    s->faults++;
    if (s->faults <= 20)
        printf("rank %lld track %lld: %s (%s) of step %lld at %.3f: %s\n",
               (long long)x->pid, (long long)x->tid, x->name, x->cat,
               (long long)x->step, x->begin, what);
}

static int64_t integer(const sp_json_value *o, const char *key)
{
    int64_t n;

    return sp_json_get_int(o, key, &n) == SP_OK ? n : -1;
}

static double number(const sp_json_value *o, const char *key)
{
    double x;

    return sp_json_get_number(o, key, &x) == SP_OK ? x : NAN;
}

static const char *text(const sp_json_value *o, const char *key)
{
    const char *t;

    return sp_json_get_text(o, key, &t) == SP_OK ? t : "";
}

static void read_all(spans *s, const sp_json_value *list)
{
    double before = 0;

    s->all = calloc(list->count + 1, sizeof *s->all);
    for (const sp_json_value *e = list->first; e; e = e->next) {
        const sp_json_value *args = sp_json_find(e, "args");
        span x = { .name = text(e, "name"),
                   .cat = text(e, "cat"),
                   .pid = integer(e, "pid"),
                   .tid = integer(e, "tid"),
                   .step = integer(args, "step"),
                   .lane = integer(args, "lane"),
                   .leader = integer(args, "leader"),
                   .number = integer(args, "number"),
                   .begun = number(args, "begun"),
                   .begin = number(e, "ts") };

        x.end = x.begin + number(e, "dur");
        if (!x.name[0] || x.pid < 0 || x.tid < 0)
            fault(s, &x, "no name, pid or tid");
        if (strcmp(text(e, "ph"), "M") == 0)
            continue;
        if (strcmp(text(e, "ph"), "X") != 0 || !(x.begin >= 0) ||
            !(x.end >= x.begin))
            fault(s, &x, "no span");
        if (x.begin < before)
            fault(s, &x, "behind a later one");
        before = x.begin;
        s->all[s->count++] = x;
    }
}

/* Those of one track are in order. */
static void check_nesting(spans *s, int64_t pid, int64_t tid)
{
    double open[64];
    int depth = 0;

    for (size_t i = 0; i < s->count; i++) {
        const span *x = &s->all[i];

        if (x->pid != pid || x->tid != tid)
            continue;
        while (depth > 0 && open[depth - 1] <= x->begin + ROUNDING)
            depth--;
        if (depth == 64 || (depth > 0 && x->end > open[depth - 1] + ROUNDING))
            fault(s, x, "neither behind nor within the one before");
        else
            open[depth++] = x->end;
    }
}

static const span *find_step(const spans *s, int64_t pid, int64_t step,
                             int *found)
{
    const span *at = NULL;

    *found = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->all[i].pid == pid && s->all[i].step == step &&
            strcmp(s->all[i].cat, "step") == 0) {
            at = &s->all[i];
            ++*found;
        }
    return at;
}

static void check_step(spans *s, int64_t pid, int64_t step)
{
    static const char *const within[] = { "pass", "operator", "optimizer" };
    span missing = { .name = "step", .cat = "step", .pid = pid, .step = step };
    int found, parts = 0;
    const span *whole = find_step(s, pid, step, &found);

    if (found != 1) {
        fault(s, &missing, found == 0 ? "is not there" : "more than once");
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        const span *x = &s->all[i];

        for (size_t k = 0; k < sizeof within / sizeof *within; k++) {
            if (x->pid != pid || x->step != step || strcmp(x->cat, within[k]))
                continue;
            parts++;
            if (x->begin < whole->begin - ROUNDING ||
                x->end > whole->end + ROUNDING)
                fault(s, x, "outside of its step");
        }
    }
    if (parts < 3)
        fault(s, whole, "has no passes and no optimizer");
}

/* A sum, or a gathering, ends nowhere before all have begun it. */
static void check_causes(spans *s)
{
    static const char *const all[] = { "dense", "sizes", "packet", "status" };
    bool counts;

    for (size_t i = 0; i < s->count; i++) {
        const span *x = &s->all[i];

        counts = false;
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            counts = counts || strcmp(x->name, all[k]) == 0;
        if (!counts || strcmp(x->cat, "message") != 0 || x->number < 0)
            continue;
        for (size_t k = 0; k < s->count; k++) {
            const span *y = &s->all[k];

            if (y->step == x->step && y->lane == x->lane &&
                y->leader == x->leader && y->number == x->number &&
                strcmp(y->cat, "message") == 0 && y->begun > x->end + CLOCKS)
                fault(s, x, "ends before another has begun it");
        }
    }
}

static void check(spans *s, int ranks, int64_t first, int64_t last)
{
    for (int64_t pid = 0; pid < ranks; pid++) {
        for (int64_t tid = 0; tid <= 64; tid++)
            check_nesting(s, pid, tid);
        for (int64_t step = first; step <= last; step++)
            check_step(s, pid, step);
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->all[i].pid >= ranks)
            fault(s, &s->all[i], "of a rank that is not there");
    check_causes(s);
}

int trace_faults(const char *path, int ranks, int64_t first, int64_t last)
{
    sp_json_doc *doc = NULL;
    spans s = { 0 };
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e = sp_file_read(path, 1 << 26, &bytes, &size);

    if (e == SP_OK)
        e = sp_json_parse(&doc, path, bytes, size);
    if (e != SP_OK || sp_json_root(doc)->kind != SP_JSON_LIST) {
        printf("%s: %s\n", path, e == SP_OK ? "no list" : sp_last_error());
        s.faults = 1;
    } else {
        read_all(&s, sp_json_root(doc));
        check(&s, ranks, first, last);
    }
    free(s.all);
    sp_json_doc_free(doc);
    free(bytes);
    return s.faults;
}
