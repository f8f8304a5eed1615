/* Making, locking and recognising run folders. */
#include "train/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/outputs.h"
#include "base/text.h"
#include "train/shared.h"

enum { NAME_TRIES = 100, SIGN_ROOM = 128 };

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

/* Who holds the lock, in the file itself: other ranks must find it there. */
static sp_err sign(int lock, const char *path, char text[SIGN_ROOM])
{
    struct timespec now;
    char host[SIGN_ROOM / 2] = "";
    size_t n;

    clock_gettime(CLOCK_REALTIME, &now);
    gethostname(host, sizeof host - 1);
    snprintf(text, SIGN_ROOM, "%s %lld %lld.%09ld\n", host, (long long)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
    n = strlen(text);
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, n, 0) != (ssize_t)n ||
        fsync(lock) != 0)
        return sp_io_fail("write to", path);
    return SP_OK;
}

static sp_err take_lock(sp_rundir *d, char text[SIGN_ROOM])
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
    else
        e = sign(d->lock, path, text);
    free(path);
    return e;
}

/* Whether this rank can write its part of checkpoints, rather than learn that
 * when the first is to be saved. Where there is no folder for them there are
 * none to go on from, which is told later. */
static sp_err probe(const char *run, int rank)
{
    char *folder = sp_path(run, "checkpoints");
    char *path = sp_path(run, "checkpoints/.probe-%04d", rank);
    sp_err e = SP_OK;
    int file;

    if (!folder || !path) {
        e = sp_fail(SP_ENOMEM, "out of memory");
    } else {
        file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (file >= 0)
            close(file);
        if (file >= 0 ? unlink(path) != 0 : errno != ENOENT)
            e = sp_io_fail("save checkpoints in", folder);
    }
    free(path);
    free(folder);
    return e;
}

/* The other ranks learn the path of the folder that rank 0 has opened, or why
 * it has not, and look whether it is theirs, too. All look whether they can
 * write to it. */
static sp_err join(sp_rundir *d, sp_comm *c, char text[SIGN_ROOM], sp_err e)
{
    char *path = NULL;

    SP_TRY(sp_agree(c, e));
    SP_TRY(sp_shared_text(c, SP_USE_CHECK, &d->path));
    SP_TRY(sp_shared_bytes(c, SP_USE_CHECK, text, SIGN_ROOM));
    if (sp_comm_rank(c) > 0) {
        path = sp_path(d->path, ".lock");
        e = path ? sp_shared_wait(path, text)
                 : sp_fail(SP_ENOMEM, "out of memory");
        free(path);
    }
    if (e == SP_OK)
        e = probe(d->path, sp_comm_rank(c));
    return sp_agree(c, e);
}

sp_err sp_rundir_present(const sp_rundir *d)
{
    struct stat held, there;
    char *path = d->lock < 0 ? NULL : sp_path(d->path, ".lock");
    bool same;

    if (!path)
        return d->lock < 0 ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");
    same = fstat(d->lock, &held) == 0 && stat(path, &there) == 0 &&
           held.st_dev == there.st_dev && held.st_ino == there.st_ino;
    free(path);
    if (same)
        return SP_OK;
    return sp_fail(SP_EIO,
                   "%s: the run's folder was removed or replaced while it "
                   "trained: nothing can be saved there",
                   d->path);
}

void sp_rundir_close(sp_rundir *d)
{
    if (d->path && d->lock >= 0)
        close(d->lock);
    free(d->path);
    *d = (sp_rundir){ .lock = -1 };
}

static sp_err open_first(sp_rundir *d, const char *path, char text[SIGN_ROOM])
{
    SP_TRY(sp_rundir_check(path));
    d->path = sp_copy(path, strlen(path));
    return d->path ? take_lock(d, text) : sp_fail(SP_ENOMEM, "out of memory");
}

sp_err sp_rundir_open(sp_rundir *d, const char *path, sp_comm *c)
{
    char text[SIGN_ROOM] = "";
    sp_err e = SP_OK;

    *d = (sp_rundir){ .lock = -1 };
    if (sp_comm_rank(c) == 0)
        e = open_first(d, path, text);
    e = join(d, c, text, e);
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

/* Refuse a folder with anything in it that no run makes, or without the lock
 * that each run makes first: a config.yaml alone may be anyone's. */
static sp_err check_own(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    bool empty = true, locked = false;
    sp_err e = SP_OK;

    if (!dir)
        return sp_io_fail("open folder", path);
    while (e == SP_OK && (d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        empty = false;
        locked = locked || strcmp(d->d_name, ".lock") == 0;
        if (!sp_run_makes(d->d_name))
            e = sp_fail(SP_EARG,
                        "%s: is not replaced, for it holds %s, which no run "
                        "makes: move that elsewhere, or give another --run",
                        path, d->d_name);
    }
    closedir(dir);
    if (e == SP_OK && !empty && !locked)
        e = sp_fail(SP_EARG,
                    "%s: is not replaced, for without a file .lock it is not "
                    "the folder of a run: give another --run",
                    path);
    return e;
}

/* Only what is plainly the folder of a run that nobody uses is removed. */
static sp_err clear(const char *path)
{
    sp_rundir old = { .lock = -1 };
    char text[SIGN_ROOM];
    sp_err e;

    SP_TRY(check_own(path));
    old.path = sp_copy(path, strlen(path));
    e = old.path ? take_lock(&old, text) : sp_fail(SP_ENOMEM, "out of memory");
    sp_rundir_close(&old);
    return e == SP_OK ? sp_dir_remove(path) : e;
}

/* Something is there already: say what can be done about it. */
static sp_err occupied(const char *path)
{
    if (!sp_is_dir(path))
        return sp_fail(SP_EARG,
                       "%s: is a file, where the run's folder would be: give "
                       "another --run",
                       path);
    if (sp_rundir_check(path) != SP_OK)
        return sp_fail(SP_EARG,
                       "%s: is there already, and is not the folder of a run: "
                       "give another --run (--overwrite would replace it if it "
                       "were empty)",
                       path);
    return sp_fail(SP_EARG,
                   "%s: is there already: continue it with `sprat resume %s`, "
                   "replace it with --overwrite, or give another --run",
                   path, path);
}

/* The lock comes first, as the mark of a run's folder. */
static sp_err make(sp_rundir *d, char text[SIGN_ROOM])
{
    char *checkpoints = sp_path(d->path, "checkpoints");
    sp_err e = checkpoints ? sp_dir_make(d->path)
                           : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK) {
        e = take_lock(d, text);
        if (e == SP_OK)
            e = sp_dir_make(checkpoints);
        if (e != SP_OK)
            e = sp_dir_withdraw(d->path, e);
    }
    free(checkpoints);
    return e;
}

static sp_err create_first(sp_rundir *d, const sp_job *job,
                           char text[SIGN_ROOM])
{
    if (job->run) {
        d->path = sp_copy(job->run, strlen(job->run));
        if (!d->path)
            return sp_fail(SP_ENOMEM, "out of memory");
    } else {
        SP_TRY(default_path(job->name ? job->name : "run", &d->path));
    }
    if (access(d->path, F_OK) == 0)
        SP_TRY(job->overwrite && sp_is_dir(d->path) ? clear(d->path)
                                                    : occupied(d->path));
    return make(d, text);
}

sp_err sp_rundir_create(sp_rundir *d, const sp_job *job)
{
    char text[SIGN_ROOM] = "";
    bool made = false;
    sp_err e = SP_OK;

    *d = (sp_rundir){ .lock = -1 };
    if (sp_comm_rank(job->comm) == 0) {
        e = create_first(d, job, text);
        made = e == SP_OK;
    }
    e = join(d, job->comm, text, e);
    if (e != SP_OK && made)
        e = sp_dir_withdraw(d->path, e);
    if (e != SP_OK)
        sp_rundir_close(d);
    return e;
}

sp_err sp_rundir_withdraw(const sp_rundir *d, sp_err e)
{
    return d->path && d->lock >= 0 ? sp_dir_withdraw(d->path, e) : e;
}
