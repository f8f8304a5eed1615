/* Averages of buffers, in double: with whole numbers as weights a value that
 * all ranks have stays what it is. */
#include "train/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "train/shared.h"

size_t sp_statistics_count(const sp_params *p)
{
    size_t n = 0;

    for (int i = 0; sp_params_at(p, i); i++)
        if (sp_params_at(p, i)->buffer)
            n += sp_params_at(p, i)->count;
    return n;
}

void sp_statistics_add(const sp_params *p, double samples, double *sum)
{
    for (int i = 0; sp_params_at(p, i); i++) {
        const sp_param *q = sp_params_at(p, i);

        if (!q->buffer)
            continue;
        for (size_t k = 0; k < q->count; k++)
            sum[k] += samples * (double)q->value[k];
        sum += q->count;
    }
}

void sp_statistics_set(sp_params *p, const double *sum, double samples)
{
    for (int i = 0; sp_params_at(p, i); i++) {
        sp_param *q = sp_params_at(p, i);

        if (!q->buffer)
            continue;
        for (size_t k = 0; k < q->count; k++)
            q->value[k] = (float)(sum[k] / samples);
        sum += q->count;
    }
}

/* Copy all buffers to `local`, or back. */
static void copy(const sp_params *p, float *local, bool back)
{
    for (int i = 0; sp_params_at(p, i); i++) {
        sp_param *q = sp_params_at(p, i);

        if (!q->buffer)
            continue;
        memcpy(back ? q->value : local, back ? local : q->value,
               q->count * sizeof *local);
        local += q->count;
    }
}

sp_err sp_statistics_average(sp_statistics *kept, const sp_session *s,
                             sp_use use)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, use };
    size_t n = sp_statistics_count(s->params), first, samples;
    size_t batch = (size_t)s->set.train->batch;
    double *sum;
    sp_err e;

    *kept = (sp_statistics){ .params = s->params };
    if (n == 0 || sp_comm_ranks(s->comm) == 1)
        return SP_OK;
    kept->local = malloc(n * sizeof *kept->local);
    sum = calloc(n, sizeof *sum);
    e = sp_agree(s->comm, kept->local && sum
                              ? SP_OK
                              : sp_fail(SP_ENOMEM, "running statistics: out of "
                                                   "memory"));
    if (e == SP_OK) {
        copy(s->params, kept->local, false);
        sp_share(batch, sp_comm_rank(s->comm), sp_comm_ranks(s->comm), &first,
                 &samples);
        sp_statistics_add(s->params, (double)samples, sum);
        e = sp_op_wait(s->comm, sp_sum_doubles(s->comm, on, sum, n));
    }
    if (e == SP_OK) {
        sp_statistics_set(s->params, sum, (double)batch);
    } else {
        free(kept->local);
        kept->local = NULL;
    }
    free(sum);
    return e;
}

void sp_statistics_restore(sp_statistics *kept)
{
    if (kept->local)
        copy(kept->params, kept->local, true);
    free(kept->local);
    *kept = (sp_statistics){ 0 };
}
