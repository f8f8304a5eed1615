/* sprat doctor: the launcher of ranks, and ranks that look at each other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "dist/agree.h"
#include "doctor.h"
#include "train/shared.h"

extern char **environ;

enum { PATIENCE = 60, PATH_ROOM = 4096, TAKEN = 4096 };

/* ---- A launcher, tried --------------------------------------------------- */

static bool in_path(const char *program)
{
    const char *path = getenv("PATH");
    char name[PATH_ROOM];

    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        snprintf(name, sizeof name, "%.*s/%s", (int)n, path, program);
        if (access(name, X_OK) == 0 && !sp_is_dir(name))
            return true;
    }
    return false;
}

/* What a trial needs beyond what users set: more ranks than cores, as root,
 * each on any core. Open MPI's names; others do not look at them. */
static void prepare(void)
{
    static const char *const settings[][2] = {
        { "OMPI_MCA_rmaps_base_oversubscribe", "1" },
        { "OMPI_MCA_hwloc_base_binding_policy", "none" },
        { "PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe" },
        { "OMPI_ALLOW_RUN_AS_ROOT", "1" },
        { "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1" },
    };

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 1);
    /* Who started this may ignore it; then no child would tell its status. */
    signal(SIGCHLD, SIG_DFL);
}

/* Start it in a process group of its own; *out is the end of a pipe that gets
 * what it says. */
static int start(char *const argv[], pid_t *child, int *out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2], status;

    if (pipe(ends) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    status = posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (status != 0)
        close(ends[0]);
    *out = ends[0];
    return status;
}

/* Read what it says, the first TAKEN bytes of it, until it ends. False: it
 * has not by then. */
static bool listen_to(int out, char text[TAKEN])
{
    struct pollfd ready = { .fd = out, .events = POLLIN };
    double end = sp_now() + PATIENCE;
    size_t used = 0;

    for (double left = PATIENCE; left > 0; left = end - sp_now()) {
        char bytes[512];
        ssize_t n;

        if (poll(&ready, 1, (int)(left * 1000)) <= 0)
            continue;
        n = read(out, bytes, sizeof bytes);
        if (n <= 0) {
            text[used] = '\0';
            return true;
        }
        for (ssize_t i = 0; i < n && used < TAKEN - 1; i++)
            text[used++] = bytes[i];
    }
    text[used] = '\0';
    return false;
}

/* Wait for a child until then; it may live on after its last word. */
static bool has_ended(pid_t child, double then, int *status)
{
    *status = -1;
    while (waitpid(child, status, WNOHANG) == 0) {
        if (sp_now() > then)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    return true;
}

/* mpirun passes the first signal on; the second ends what is left. */
static void end(pid_t child)
{
    int status;

    kill(-child, SIGTERM);
    nanosleep(&(struct timespec){ .tv_sec = 3 }, NULL);
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
}

/* The first line of what ranks that failed have said that tells why: findings
 * come before it, and mpirun draws lines around its own words. */
static void keep_reason(char *text)
{
    char *line = text, *next;

    while (*line) {
        size_t n = strcspn(line, "\n");
        bool tells = strspn(line, " -") < n && strncmp(line, "ok ", 3) != 0 &&
                     strncmp(line, "note ", 5) != 0;
        next = line + n + (line[n] == '\n');
        if (tells) {
            memmove(text, line, n);
            text[n] = '\0';
            return;
        }
        line = next;
    }
}

static void try_ranks(sp_doctor *d, const char *launcher)
{
    char self[PATH_ROOM], text[TAKEN];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *argv[] = { (char *)launcher, "-n", "2", self, "doctor", NULL };
    double begin = sp_now();
    bool done;
    pid_t child;
    int out = -1, status;

    if (n < 0)
        return; /* a system without that */
    self[n] = '\0';
    prepare();
    status = start(argv, &child, &out);
    if (status != 0) {
        sp_found(d, SP_PROBLEM, "launcher", "is it this machine's?",
                 "%s cannot be started: %s", launcher, strerror(status));
        return;
    }
    done = listen_to(out, text) && has_ended(child, begin + PATIENCE, &status);
    close(out);
    if (!done)
        end(child);
    if (done && status == 0) {
        sp_found(d, SP_FINE, "launcher", NULL,
                 "%s -n 2: both ranks met and have the same sum (%.1f s)",
                 launcher, sp_now() - begin);
        return;
    }
    keep_reason(text);
    sp_found(d, SP_PROBLEM, "launcher",
             "run `mpirun -n 2 sprat doctor` to see all it says; is it of the "
             "MPI that Sprat was built with? docs/clusters.md tells more",
             done ? "%s -n 2 failed: %s" : "%s -n 2 hangs: %s", launcher,
             *text ? text : "it says nothing");
}

static void root(sp_doctor *d)
{
    if (geteuid() == 0 && !getenv("OMPI_ALLOW_RUN_AS_ROOT"))
        sp_found(d, SP_NOTE, "root",
                 "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                 "Open MPI's mpirun refuses to run as root");
}

/* Ranks of one host meet in memory that is a file. */
static void shared_memory(sp_doctor *d)
{
    const double least = 256;
    struct statvfs s;
    double mib;

    if (statvfs("/dev/shm", &s) != 0)
        return;
    mib = (double)s.f_bavail * (double)s.f_frsize / (1024 * 1024);
    if (mib < least)
        sp_found(d, SP_NOTE, "/dev/shm",
                 "--shm-size of the container, or mpirun --mca btl tcp,self",
                 "%.0f MiB free for ranks of this host to share", mib);
}

void sp_doctor_mpi(sp_doctor *d)
{
    static const char *const launchers[] = { "mpirun", "mpiexec" };
    char version[80];

    if (strcmp(sp_mpi_version(version, sizeof version), "none") == 0)
        return;
    root(d);
    shared_memory(d);
    if (in_path("srun"))
        sp_found(d, SP_FINE, "launcher", NULL, "srun is here; not tried");
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (in_path(launchers[i])) {
            try_ranks(d, launchers[i]);
            return;
        }
    sp_found(d, SP_NOTE, "launcher",
             "apt-get install openmpi-bin, or load the cluster's module",
             "there is no mpirun: one rank only");
}

/* ---- As one of several --------------------------------------------------- */

/* Milliseconds of a sum of `n` ones; what comes out must be the ranks. */
static sp_err time_sum(sp_comm *c, float *x, size_t n, double *ms)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    float want = (float)sp_comm_ranks(c);
    double begin;

    for (size_t i = 0; i < n; i++)
        x[i] = 1;
    SP_TRY(sp_op_wait(c, sp_barrier(c, on)));
    begin = sp_now();
    SP_TRY(sp_op_wait(c, sp_sum_floats(c, on, x, n)));
    *ms = (sp_now() - begin) * 1000;
    for (size_t i = 0; i < n; i++)
        if (x[i] != want)
            return sp_fail(SP_EPEER,
                           "a sum over all ranks is wrong: element %zu is %g, "
                           "not %g",
                           i, (double)x[i], (double)want);
    return SP_OK;
}

static sp_err sums(sp_doctor *d, sp_comm *c)
{
    enum { LARGE = 1 << 20 };
    float *x = malloc(LARGE * sizeof *x);
    double small = 0, large = 0;
    sp_err e = sp_agree(c, x ? SP_OK : sp_fail(SP_ENOMEM, "out of memory"));

    for (int i = 0; i < 3 && e == SP_OK; i++)
        e = time_sum(c, x, 1, &small);
    for (int i = 0; i < 3 && e == SP_OK; i++)
        e = time_sum(c, x, LARGE, &large);
    free(x);
    SP_TRY(e);
    if (sp_comm_rank(c) == 0)
        sp_found(d, SP_FINE, "sum", NULL,
                 "of 4 bytes %.3f ms, of 4 MiB %.2f ms", small, large);
    return SP_OK;
}

static sp_err cores(sp_doctor *d, sp_comm *c)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    int threads = 0;
    bool crowded = false;
    double some;

    SP_TRY(sp_agree_threads(c, 0, &threads, &crowded));
    some = crowded;
    SP_TRY(sp_op_wait(c, sp_max_doubles(c, on, &some, 1)));
    if (sp_comm_rank(c) == 0)
        sp_found(d, some > 0 ? SP_NOTE : SP_FINE, "cores",
                 some > 0 ? "fewer ranks on each host: ranks that wait take "
                            "the cores of ranks that work"
                          : NULL,
                 some > 0 ? "%d thread%s for rank 0; a host has fewer cores "
                            "than ranks"
                          : "%d thread%s for rank 0",
                 threads, threads == 1 ? "" : "s");
    return SP_OK;
}

/* Rank 0 makes a file where runs are written; all others must see it. */
static sp_err folder(sp_doctor *d, sp_comm *c)
{
    char name[64];
    sp_err e = SP_OK;

    snprintf(name, sizeof name, "%s/.doctor-%ld", sp_doctor_runs(),
             (long)getpid());
    SP_TRY(sp_shared_bytes(c, SP_USE_CHECK, name, sizeof name));
    if (sp_comm_rank(c) == 0)
        e = sp_file_write_synced(name, name, strlen(name));
    SP_TRY(sp_agree(c, e));
    if (sp_comm_rank(c) > 0)
        e = sp_shared_wait(name, name);
    e = sp_agree(c, e);
    if (sp_comm_rank(c) == 0) {
        unlink(name);
        if (e == SP_OK)
            sp_found(d, SP_FINE, "folder", NULL,
                     "all ranks see what rank 0 writes to %s",
                     sp_doctor_runs());
    }
    return e;
}

sp_err sp_doctor_ranks(sp_doctor *d, sp_comm *c)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    double hosts = sp_group_rank(c, SP_NODE) == 0;

    SP_TRY(sp_op_wait(c, sp_sum_doubles(c, on, &hosts, 1)));
    if (sp_comm_rank(c) == 0)
        sp_found(d, SP_FINE, "ranks", NULL, "%d on %.0f host%s",
                 sp_comm_ranks(c), hosts, hosts > 1 ? "s" : "");
    SP_TRY(cores(d, c));
    SP_TRY(sums(d, c));
    return folder(d, c);
}
