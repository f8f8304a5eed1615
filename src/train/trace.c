/* Keeping spans of time in memory. */
#include "train/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "train/console.h"
#include "train/trace_parts.h"

/* Room for a step: networks of some hundred operators have about a thousand
 * spans. And at most, in spans: memory that nothing is written to the system
 * does not give. */
enum { STEP_SPANS = 4096, STEP_OPS = 1024, MOST = 1 << 20 };

/* ---- Recording ----------------------------------------------------------- */

static bool records(const sp_trace *t)
{
    return atomic_load_explicit(&t->step, memory_order_relaxed) > 0;
}

static bool always(sp_span_kind kind)
{
    return kind == SP_SPAN_EVALUATE || kind == SP_SPAN_SAVE;
}

void sp_trace_span(sp_trace *t, const sp_span_of *span)
{
    sp_kept_span *at;
    int64_t step;

    if (!t || !(records(t) || always(span->kind)) || span->begin < t->opened)
        return;
    if (t->span_count == t->span_room) {
        t->sums.lost++;
        return;
    }
    step = atomic_load_explicit(&t->step, memory_order_relaxed);
    at = &t->spans[t->span_count++];
    *at = (sp_kept_span){
        .of = *span,
        .step = step > 0 ? step : t->args.at->step,
        .epoch = t->args.at->epoch + 1,
    };
    if (span->end == 0)
        at->of.end = sp_now();
}

/* An sp_watch: spans of operators, part by part. */
static void lap(void *arg, const sp_run *r, const sp_node *n, sp_pass pass)
{
    sp_trace *t = arg;

    (void)r;
    (void)pass;
    if (n)
        sp_trace_span(t,
                      &(sp_span_of){
                          .kind = SP_SPAN_OPERATOR,
                          .name = n->name && n->name[0] ? n->name : n->op->name,
                          .of = n->op->name,
                          .begin = t->lap,
                      });
    t->lap = sp_now();
}

/* An sp_comm_watch. What it has filled in is seen before the count. */
static void keep_op(void *arg, const sp_comm_done *d)
{
    sp_trace *t = arg;
    size_t at = atomic_load_explicit(&t->op_count, memory_order_relaxed);
    int64_t step = atomic_load_explicit(&t->step, memory_order_relaxed);

    if (step == 0)
        return;
    if (at == t->op_room) {
        atomic_fetch_add_explicit(&t->op_lost, 1, memory_order_relaxed);
        return;
    }
    t->ops[at] = (sp_kept_op){ .done = *d, .step = step };
    atomic_store_explicit(&t->op_count, at + 1, memory_order_release);
}

bool sp_trace_step(sp_trace *t, int64_t step, const double times[SP_TIMES])
{
    if (t->recorded == t->args.steps)
        return false;
    atomic_store_explicit(&t->step, step, memory_order_relaxed);
    memcpy(t->before, times, sizeof t->before);
    t->began = sp_now();
    return true;
}

bool sp_trace_stepped(sp_trace *t, const double times[SP_TIMES])
{
    sp_trace_sums *s = &t->sums;

    if (!records(t))
        return false;
    sp_trace_span(t, &(sp_span_of){ .kind = SP_SPAN_STEP,
                                    .name = "step",
                                    .begin = t->began });
    for (int i = 0; i < SP_TIMES; i++)
        s->seconds[i] += times[i] - t->before[i];
    s->all += sp_now() - t->began;
    s->last = (double)atomic_load_explicit(&t->step, memory_order_relaxed);
    s->first = t->recorded == 0 ? s->last : s->first;
    s->steps = ++t->recorded;
    if (t->recorded < t->args.steps)
        return false;
    atomic_store_explicit(&t->step, 0, memory_order_relaxed);
    return true;
}

const sp_watch *sp_trace_watch(sp_trace *t) { return t ? &t->watch : NULL; }

/* ---- From the start to the end ------------------------------------------- */

static size_t room(int steps, size_t each)
{
    size_t all = ((size_t)steps + 1) * each;

    return all < MOST ? all : MOST;
}

static sp_err allocate(sp_trace *t)
{
    t->span_room = room(t->args.steps, STEP_SPANS);
    t->op_room = room(t->args.steps, STEP_OPS);
    t->spans = malloc(t->span_room * sizeof *t->spans);
    t->ops = malloc(t->op_room * sizeof *t->ops);
    return t->spans && t->ops
               ? SP_OK
               : sp_fail(SP_ENOMEM,
                         "log.trace: there is no memory for what %d steps "
                         "record: lower log.trace_steps",
                         t->args.steps);
}

sp_err sp_trace_open(sp_trace **out, const sp_trace_args *args)
{
    sp_trace *t = calloc(1, sizeof *t);
    sp_err e = t ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (t) {
        t->args = *args;
        t->at = *args->at;
        t->watch = (sp_watch){ .lap = lap, .arg = t };
        t->follow = (sp_comm_watch){ .done = keep_op, .arg = t };
        e = allocate(t);
    }
    e = sp_agree(args->comm, e);
    if (e == SP_OK)
        e = sp_trace_part_open(t);
    if (e == SP_OK)
        e = sp_trace_clock(t, false);
    if (e != SP_OK) {
        sp_trace_free(t);
        return e;
    }
    sp_comm_follow(args->comm, &t->follow);
    t->opened = sp_now();
    *out = t;
    return SP_OK;
}

void sp_trace_free(sp_trace *t)
{
    if (!t)
        return;
    sp_comm_follow(t->args.comm, NULL);
    if (t->file)
        fclose(t->file);
    free(t->folder);
    free(t->path);
    free(t->spans);
    free(t->ops);
    free(t);
}

/* Every rank's sums; the part is whole before they are. */
static sp_err gather(sp_trace *t, sp_trace_sums **all)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    sp_comm *c = t->args.comm;
    sp_trace_sums *sums = calloc((size_t)sp_comm_ranks(c), sizeof *sums);
    sp_err e = sums ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    t->sums.lost += (double)atomic_load(&t->op_lost);
    e = sp_agree(c, e);
    if (e == SP_OK && sp_comm_ranks(c) > 1)
        e = sp_op_wait(c, sp_gather_all(c, on, &t->sums, sizeof *sums, sums));
    else if (e == SP_OK)
        *sums = t->sums;
    if (e != SP_OK)
        free(sums);
    else
        *all = sums;
    return e;
}

sp_err sp_trace_end(sp_trace *t, sp_text *told)
{
    sp_comm *c = t->args.comm;
    sp_trace_sums *sums;
    sp_err e = SP_OK;

    atomic_store_explicit(&t->step, 0, memory_order_relaxed);
    sp_comm_follow(c, NULL);
    SP_TRY(sp_agree(c, sp_trace_write(t)));
    SP_TRY(sp_trace_clock(t, true));
    SP_TRY(gather(t, &sums));
    if (sp_comm_rank(c) == 0)
        e = sp_trace_merge(t, sums, told);
    free(sums);
    return sp_agree(c, e);
}
