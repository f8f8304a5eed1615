/* Sharing out work on layers. */
#include "train/layer_work.h"

#include <math.h>
#include <stdlib.h>

#include "dist/agree.h"
#include "sprat/op.h"

/* Operations of a decomposition, but for a constant. */
static double cost_of(const sp_param *whole)
{
    double rows = whole->dims[0], columns = (double)whole->count / rows;

    return rows * columns * fmin(rows, columns);
}

/* `load` has a zero for each rank. */
static void share_out(const sp_layer_work *w, double *load, int *owner)
{
    int ranks = sp_comm_ranks(w->comm);

    for (size_t i = 0; i < w->count; i++) {
        int least = 0;

        for (int r = 1; r < ranks; r++)
            if (load[r] < load[least])
                least = r;
        owner[i] = least;
        load[least] += cost_of(w->whole[i]);
    }
}

typedef struct job {
    const sp_layer_work *w;
    const int *owner;
    sp_err *e; /* what has become of each layer */
} job;

static void do_own(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    int rank = sp_comm_rank(j->w->comm);

    for (size_t i = begin; i < end; i++)
        if (j->owner[i] == rank)
            j->e[i] = j->w->one(j->w->arg, i);
}

/* Texts of errors are a thread's own. */
static sp_err first_error(const job *j)
{
    for (size_t i = 0; i < j->w->count; i++)
        if (j->e[i] != SP_OK)
            return sp_fail(
                j->e[i], "%s %s: %s", j->w->whole[i]->name, j->w->failed,
                j->e[i] == SP_ENUMERIC ? "not all of its weights are finite"
                                       : sp_strerror(j->e[i]));
    return SP_OK;
}

sp_err sp_layer_work_do(const sp_layer_work *w, int *owner)
{
    double *load = calloc((size_t)sp_comm_ranks(w->comm), sizeof *load);
    job j = { w, owner, calloc(w->count + 1, sizeof *j.e) };
    sp_err e = SP_OK;

    if (load && j.e) {
        share_out(w, load, owner);
        sp_parallel_for(w->threads, w->count, 1, do_own, &j);
        e = first_error(&j);
    } else {
        e = sp_fail(SP_ENOMEM, "work on layers: out of memory");
    }
    free(load);
    free(j.e);
    return sp_agree(w->comm, e);
}
