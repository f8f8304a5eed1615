/* Making, locking and recognising run folders. */
#include "train/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

enum { NAME_TRIES = 100 };

char *sp_rundir_config(const char *run) { return sp_path(run, "config.yaml"); }

sp_err sp_rundir_check(const char *path)
{
    char *config = sp_rundir_config(path);
    bool found = config && sp_is_file(config);

    free(config);
    if (found)
        return SP_OK;
    if (!sp_is_dir(path))
        return sp_fail(SP_EARG, "%s: there is no such folder", path);
    return sp_fail(SP_EARG,
                   "%s: not the folder of a run: it has no config.yaml", path);
}

static sp_err take_lock(sp_rundir *d)
{
    char *path = sp_path(d->path, ".lock");
    sp_err e = SP_OK;

    if (!path)
        return sp_fail(SP_ENOMEM, "%s: out of memory", d->path);
    d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (d->lock < 0)
        e = sp_io_fail("write to", path);
    else if (flock(d->lock, LOCK_EX | LOCK_NB) != 0)
        e = errno == EWOULDBLOCK
                ? sp_fail(SP_EARG,
                          "%s: another process is at work in this run: wait "
                          "for it, or stop it",
                          d->path)
                : sp_io_fail("lock", path);
    free(path);
    return e;
}

void sp_rundir_close(sp_rundir *d)
{
    if (d->path && d->lock >= 0)
        close(d->lock);
    free(d->path);
    *d = (sp_rundir){ .lock = -1 };
}

sp_err sp_rundir_open(sp_rundir *d, const char *path)
{
    sp_err e;

    *d = (sp_rundir){ .lock = -1 };
    SP_TRY(sp_rundir_check(path));
    d->path = sp_copy(path, strlen(path));
    e = d->path ? take_lock(d) : sp_fail(SP_ENOMEM, "out of memory");
    if (e != SP_OK)
        sp_rundir_close(d);
    return e;
}

/* runs/NAME-YYYYmmdd-HHMMSS, with a number behind it when two runs start in
 * one second. */
static sp_err default_path(const char *name, char **path)
{
    time_t now = time(NULL);
    struct tm local;
    char stamp[32];

    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    for (int i = 1; i <= NAME_TRIES; i++) {
        *path = i == 1 ? sp_path("runs", "%s-%s", name, stamp)
                       : sp_path("runs", "%s-%s-%d", name, stamp, i);
        if (!*path)
            return sp_fail(SP_ENOMEM, "out of memory");
        if (access(*path, F_OK) != 0)
            return SP_OK;
        free(*path);
        *path = NULL;
    }
    return sp_fail(SP_EARG, "runs/%s-%s: taken; give --run", name, stamp);
}

/* Only what is plainly the folder of a run that nobody uses is removed. */
static sp_err clear(const char *path)
{
    sp_rundir old;

    SP_TRY(sp_rundir_open(&old, path));
    sp_rundir_close(&old);
    return sp_dir_remove(path);
}

static sp_err make(sp_rundir *d)
{
    char *checkpoints = sp_path(d->path, "checkpoints");
    sp_err e = checkpoints ? sp_dir_make(checkpoints)
                           : sp_fail(SP_ENOMEM, "out of memory");

    free(checkpoints);
    return e == SP_OK ? take_lock(d) : e;
}

sp_err sp_rundir_create(sp_rundir *d, const sp_job *job)
{
    sp_err e = SP_OK;

    *d = (sp_rundir){ .lock = -1 };
    if (job->run) {
        d->path = sp_copy(job->run, strlen(job->run));
        if (!d->path)
            return sp_fail(SP_ENOMEM, "out of memory");
    } else {
        SP_TRY(default_path(job->name ? job->name : "run", &d->path));
    }
    if (access(d->path, F_OK) == 0) {
        if (job->overwrite)
            e = clear(d->path);
        else
            e = sp_fail(SP_EARG,
                        "%s: is there already: continue it with `sprat resume "
                        "%s`, replace it with --overwrite, or give another "
                        "--run",
                        d->path, d->path);
    }
    if (e == SP_OK)
        e = make(d);
    if (e != SP_OK)
        sp_rundir_close(d);
    return e;
}
