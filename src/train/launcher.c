/* What surrounds this process: its cores, and whether a launcher started it
 * as one of several ranks. */
#define _GNU_SOURCE
#include "train/launcher.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "dist/team.h"
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
    const char *variable;
    int ranks = sp_launched(&variable);

    if (ranks <= 1)
        return SP_OK;
    return sp_fail(SP_EARG,
                   "started as one of %d ranks (%s), but none are given to "
                   "train with: pass an sp_comm (sprat/dist.h), or start one "
                   "process",
                   ranks, variable);
}
