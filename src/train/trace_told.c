/* Who waited for whom, in words. */
#include <stdlib.h>

#include "train/trace_parts.h"

/* Of a rank: operations to which it was the last to come, and by how much. */
typedef struct late {
    int times;
    double seconds;
} late;

static int compare(int64_t x, int64_t y) { return (x > y) - (x < y); }

static int compare_operations(const sp_arrival *x, const sp_arrival *y)
{
    int order = compare(x->step, y->step);

    if (order == 0)
        order = compare(x->lane, y->lane);
    if (order == 0)
        order = compare(x->leader, y->leader);
    return order == 0 ? compare(x->number, y->number) : order;
}

/* Those of one operation side by side, the last to come at the end. */
static int by_operation(const void *a, const void *b)
{
    const sp_arrival *x = a, *y = b;
    int order = compare_operations(x, y);

    if (order == 0 && x->at != y->at)
        order = x->at > y->at ? 1 : -1;
    return order == 0 ? compare(x->rank, y->rank) : order;
}

/* Returns how many operations there were of several ranks. */
static int count_late(sp_arrival *a, size_t count, late *ranks)
{
    int operations = 0;

    if (count > 0)
        qsort(a, count, sizeof *a, by_operation);
    for (size_t i = 1; i < count; i++) {
        bool last = i + 1 == count || compare_operations(&a[i], &a[i + 1]) != 0;

        if (!last || compare_operations(&a[i], &a[i - 1]) != 0)
            continue;
        operations++;
        ranks[a[i].rank].times++;
        ranks[a[i].rank].seconds += a[i].at - a[i - 1].at;
    }
    return operations;
}

/* Percent of a rank's recorded time. */
static double part(const sp_trace_sums *s, double seconds)
{
    return s->all > 0 ? 100 * seconds / s->all : 0;
}

static void tell_rank(int rank, const sp_trace_sums *s, sp_text *told)
{
    const double *x = s->seconds;
    double computing =
        x[SP_TIME_FORWARD] + x[SP_TIME_BACKWARD] + x[SP_TIME_OPTIM];
    double known =
        computing + x[SP_TIME_COMPRESS] + x[SP_TIME_EXCHANGE] + x[SP_TIME_DATA];

    sp_text_add(told,
                "         rank %-4d computing %5.1f %%  compressing %4.1f %%  "
                "waiting %5.1f %%  data %4.1f %%  other %4.1f %%",
                rank, part(s, computing), part(s, x[SP_TIME_COMPRESS]),
                part(s, x[SP_TIME_EXCHANGE]), part(s, x[SP_TIME_DATA]),
                part(s, s->all - known));
}

static void tell_ranks(int ranks, const sp_trace_sums *sums, const late *l,
                       int operations, sp_text *told)
{
    for (int r = 0; r < ranks; r++) {
        tell_rank(r, &sums[r], told);
        if (ranks > 1)
            sp_text_add(told, "  last at %d of %d, by %.3f s", l[r].times,
                        operations, l[r].seconds);
        sp_text_add(told, "\n");
    }
}

void sp_trace_tell(const sp_trace *t, const sp_trace_sums *sums,
                   sp_arrival *arrivals, size_t count, sp_text *told)
{
    int ranks = sp_comm_ranks(t->args.comm), operations;
    late *l = calloc((size_t)ranks, sizeof *l);
    double error = 0, lost = 0;

    if (!l) {
        told->failed = true;
        return;
    }
    for (int r = 0; r < ranks; r++) {
        error = sums[r].error > error ? sums[r].error : error;
        lost += sums[r].lost;
    }
    sp_text_add(told, "trace    %s/trace.json: %.0f step%s", t->args.run,
                sums->steps, sums->steps == 1 ? "" : "s");
    if (sums->steps > 0)
        sp_text_add(told, ", %.0f to %.0f", sums->first, sums->last);
    if (ranks > 1)
        sp_text_add(told, ", on %d ranks whose clocks agree to %.3f ms", ranks,
                    1e3 * error);
    sp_text_add(told, "\n");
    if (lost > 0)
        sp_text_add(told,
                    "         %.0f spans had no room: lower log.trace_steps\n",
                    lost);
    operations = count_late(arrivals, count, l);
    if (sums->steps > 0)
        tell_ranks(ranks, sums, l, operations, told);
    free(l);
}
