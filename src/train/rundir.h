/* The folder of a run, and the lock that keeps it to one process. */
#ifndef SP_TRAIN_RUNDIR_H
#define SP_TRAIN_RUNDIR_H

#include "sprat/train.h"

typedef struct sp_rundir {
    char *path; /* NULL: not open */
    int lock;   /* descriptor of RUN/.lock */
} sp_rundir;

/* Make the folder of a new run, with the folder for its checkpoints in it, and
 * lock it. Errors: SP_EARG when it is there already (with job->overwrite: when
 * it is no run's folder, holds anything that no run makes, or is in use);
 * SP_EIO. */
SP_MUST sp_err sp_rundir_create(sp_rundir *d, const sp_job *job);

/* Lock the folder of an earlier run. Errors: SP_EARG when it is none, or in
 * use; SP_EIO. */
SP_MUST sp_err sp_rundir_open(sp_rundir *d, const char *path);
void sp_rundir_close(sp_rundir *d);

/* RUN/config.yaml. NULL: out of memory. */
char *sp_rundir_config(const char *run);

/* Errors: SP_EARG unless `path` is the folder of a run. */
SP_MUST sp_err sp_rundir_check(const char *path);

#endif
