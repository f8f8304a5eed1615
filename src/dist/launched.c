/* Whether a launcher started this process as one of several ranks. */
#include <stddef.h>
#include <stdlib.h>

#include "dist/comm.h"

/* A variable that holds the number of ranks, and one without which it only
 * describes the job around a single process. */
static const struct {
    const char *ranks, *within;
} launchers[] = {
    { "OMPI_COMM_WORLD_SIZE", NULL }, /* Open MPI's mpirun */
    { "PMI_SIZE", NULL },             /* MPICH's mpiexec, Flux */
    { "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID" },
};

int sp_launched(const char **variable)
{
    *variable = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *ranks = getenv(launchers[i].ranks);
        const char *within = launchers[i].within;

        if (!ranks || (within && !getenv(within)))
            continue;
        *variable = launchers[i].ranks;
        return atoi(ranks) > 1 ? atoi(ranks) : 1;
    }
    /* Another launcher's, which MPI has to be asked about. */
    if (!getenv("PMIX_RANK"))
        return 1;
    *variable = "PMIX_RANK";
    return 0;
}
