/* The folder of a run, and the lock that keeps it to one process: of several
 * ranks, rank 0 makes it, holds the lock, and alone appends to its files. The
 * others check that they see the same folder. */
#ifndef SP_TRAIN_RUNDIR_H
#define SP_TRAIN_RUNDIR_H

#include "sprat/train.h"

typedef struct sp_rundir {
    char *path; /* NULL: not open */
    int lock;   /* descriptor of RUN/.lock; -1: not held by this process */
} sp_rundir;

/* Make the folder of a new run, with the folder for its checkpoints in it, and
 * lock it. Collective over job->comm. Errors, on all ranks if on one: SP_EARG
 * when it is there already (with job->overwrite: when it is no run's folder,
 * holds anything that no run makes, or is in use); SP_EIO, also for a rank that
 * does not see rank 0's folder, or cannot write there. */
SP_MUST sp_err sp_rundir_create(sp_rundir *d, const sp_job *job);

/* Lock the folder of an earlier run. Collective; `c` may be NULL. Errors:
 * SP_EARG when it is none, or in use; SP_EIO, as above. */
SP_MUST sp_err sp_rundir_open(sp_rundir *d, const char *path, sp_comm *c);
void sp_rundir_close(sp_rundir *d);

/* Remove a new run's folder again, which this process holds the lock of, if the
 * run could not begin for the error `e`, which is returned with its text. All
 * files in it that this process writes must be closed. */
SP_MUST sp_err sp_rundir_withdraw(const sp_rundir *d, sp_err e);

/* Whether the folder that was locked is still there. Nothing to check without
 * the lock. Errors: SP_EIO. */
SP_MUST sp_err sp_rundir_present(const sp_rundir *d);

/* RUN/config.yaml. NULL: out of memory. */
char *sp_rundir_config(const char *run);

/* Errors: SP_EARG unless `path` is the folder of a run. */
SP_MUST sp_err sp_rundir_check(const char *path);

#endif
