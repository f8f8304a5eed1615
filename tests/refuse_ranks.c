/* One rank of a job that ends in an error, as the program's verbs do; started
 * by test_mpi.sh. refuse_ranks SCENARIO */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tools/sprat.h"
#include "dist/agree.h"

/* All have the error of rank 1. */
static sp_err together(sp_comm *c)
{
    return sp_agree(c,
                    sp_comm_rank(c) == 1 ? sp_fail(SP_EIO, "no disk") : SP_OK);
}

/* Rank 1 has an error that the others, who wait, hear nothing of. */
static sp_err alone(sp_comm *c)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };

    if (sp_comm_rank(c) == 1)
        return sp_fail(SP_EIO, "no disk");
    return sp_op_wait(c, sp_barrier(c, on));
}

static sp_err run(sp_comm *c, const char *scenario)
{
    if (strcmp(scenario, "together") == 0)
        return together(c);
    if (strcmp(scenario, "alone") == 0)
        return alone(c);
    if (strcmp(scenario, "differ") == 0)
        return sp_agree_text(c, "it", sp_comm_rank(c) == 1 ? "a" : "b");
    return sp_fail(SP_ESTOPPED, "stopped by all");
}

int main(int argc, char **argv)
{
    sp_args a = { 0 };
    sp_err e;
    int status;

    if (argc != 2 || sp_comm_open(&a.comm) != SP_OK)
        return 9;
    sp_comm_timeout(a.comm, 20);
    e = run(a.comm, argv[1]);
    status = e == SP_OK ? 0 : sp_refuse_all(&a, e);
    sp_comm_close(a.comm);
    return status;
}
