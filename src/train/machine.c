/* Threads and instruction set, of one rank or of several. */
#include "train/machine.h"

#include <string.h>

#include "dist/agree.h"
#include "kernels/kernels.h"
#include "train/keys.h"

enum {
    ISAS = 5
}; /* the choices of train.isa; each x86 level has those before
      it */

/* The number of the instruction set that this rank would take. */
static sp_err level_of(const sp_session *s, int *level)
{
    const char *asked = sp_isa_choice(s->set.train->isa);
    const sp_kernels *k = sp_kernels_find(asked);

    if (!k)
        return sp_fail(SP_ECONFIG, "train.isa: this CPU lacks %s: choose auto",
                       asked);
    *level = 0;
    for (int i = 0; i < ISAS; i++)
        if (strcmp(sp_isa_choice(i), sp_kernels_isa(k)) == 0)
            *level = i;
    return SP_OK;
}

static sp_err agree_isa(sp_session *s)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    int own = 0;
    double least;

    SP_TRY(sp_agree(s->comm, level_of(s, &own)));
    least = -own;
    SP_TRY(sp_op_wait(s->comm, sp_max_doubles(s->comm, on, &least, 1)));
    s->isa = sp_isa_choice((int)-least);
    return SP_OK;
}

/* Rank 0 warns, for whichever host. */
static sp_err agree_crowded(sp_session *s)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    double some = s->crowded;

    SP_TRY(sp_op_wait(s->comm, sp_max_doubles(s->comm, on, &some, 1)));
    s->crowded = some > 0;
    return SP_OK;
}

sp_err sp_machine_open(sp_session *s)
{
    const sp_train_cfg *cfg = s->set.train;
    const sp_dist_cfg *dist = s->set.dist;

    sp_comm_timeout(s->comm, dist->timeout_s);
    SP_TRY(sp_comm_nodes(s->comm, dist->ranks_per_node));
    s->isa = sp_isa_choice(cfg->isa);
    s->threads = cfg->threads ? cfg->threads : sp_threads_available();
    if (sp_comm_ranks(s->comm) > 1) {
        SP_TRY(
            sp_agree_threads(s->comm, cfg->threads, &s->threads, &s->crowded));
        SP_TRY(agree_isa(s));
        SP_TRY(agree_crowded(s));
    }
    if (s->threads > SP_MAX_THREADS)
        s->threads = SP_MAX_THREADS;
    return SP_OK;
}
