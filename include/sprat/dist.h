/* The ranks of a job: processes that a launcher such as mpirun or srun has
 * started together, and that train one network on shares of each batch. */
#ifndef SPRAT_DIST_H
#define SPRAT_DIST_H

#include <stddef.h>

#include "sprat/base.h"

typedef struct sp_comm sp_comm;

/* Join the other ranks. Collective. Without a launcher, or with one rank: a
 * job of one, which never calls MPI. On success *out is the caller's to close.
 * One at a time in a process, and once only when there are several ranks: MPI
 * cannot be begun twice.
 * Errors: SP_EPEER when MPI cannot be begun; SP_EARG in a build without MPI
 * that was started as one of several ranks. */
SP_MUST sp_err sp_comm_open(sp_comm **out);

/* Leave. Collective (it begins with a barrier), when all ranks have done the
 * same operations up to here; after an error that the others do not share,
 * sp_comm_abort(). NULL is allowed. */
void sp_comm_close(sp_comm *c);

/* End all ranks at once with an exit status; does not return. Not collective:
 * one rank's call is enough. With NULL, or in a job of one, only this process
 * ends, after what it has printed. */
void sp_comm_abort(sp_comm *c, int status);

int sp_comm_rank(const sp_comm *c);  /* 0 for NULL */
int sp_comm_ranks(const sp_comm *c); /* 1 for NULL */

/* Write which MPI this build has into `out`, or "none"; returns out. */
char *sp_mpi_version(char *out, size_t room);

#endif
