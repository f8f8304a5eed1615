/* What surrounds this process: its cores, and whether a launcher started it
 * as one of several ranks. */
#define _GNU_SOURCE
#include "train/launcher.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "sprat/train.h"

int sp_threads_available(void)
{
    cpu_set_t set;
    long online;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    /* More than 1024 cores: the mask does not fit the set. */
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

sp_err sp_launcher_check(void)
{
    /* A variable that holds the number of ranks, and one without which it
     * only describes the job around a single process. */
    static const struct {
        const char *ranks, *within;
    } launchers[] = {
        { "OMPI_COMM_WORLD_SIZE", NULL },
        { "PMI_SIZE", NULL },
        { "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID" },
    };

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *ranks = getenv(launchers[i].ranks);
        const char *within = launchers[i].within;

        if (ranks && (!within || getenv(within)) && atoi(ranks) > 1)
            return sp_fail(SP_EARG,
                           "started as one of %s ranks (%s), but this build "
                           "trains on one: start one process",
                           ranks, launchers[i].ranks);
    }
    return SP_OK;
}
