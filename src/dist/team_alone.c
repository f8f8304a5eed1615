/* In a build without MPI there is no job of several ranks. */
#include <stdio.h>

#include "dist/team.h"

sp_err sp_team_open(sp_comm *c, int expected, const char *variable, int *lowest)
{
    (void)c;
    (void)lowest;
    if (expected)
        return sp_fail(SP_EARG,
                       "started as one of %d ranks (%s), but this program was "
                       "built without MPI: start one process, or build with "
                       "-Dmpi=enabled",
                       expected, variable);
    return sp_fail(SP_EARG,
                   "started by a launcher (%s), but this program was built "
                   "without MPI: start one process by itself, or build with "
                   "-Dmpi=enabled",
                   variable);
}

char *sp_mpi_version(char *out, size_t room)
{
    snprintf(out, room, "none");
    return out;
}
