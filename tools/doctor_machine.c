/* sprat doctor: CPU, cores, memory, and what limits them. */
#define _DEFAULT_SOURCE /* getloadavg() */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doctor.h"
#include "kernels/kernels.h"
#include "sprat/train.h"

enum { LINE_ROOM = 256 };

static const double mib = 1024 * 1024;

/* The value behind "KEY : " or "KEY: " of the first line that starts with it.
 */
static bool line_of(const char *path, const char *key, char out[LINE_ROOM])
{
    FILE *f = fopen(path, "r");
    bool found = false;

    out[0] = '\0';
    while (f && !found && fgets(out, LINE_ROOM, f)) {
        const char *value = strchr(out, ':');
        found = value && strncmp(out, key, strlen(key)) == 0;
        if (found) {
            value += 1 + strspn(value + 1, " \t");
            memmove(out, value, strlen(value) + 1);
            out[strcspn(out, "\n")] = '\0';
        }
    }
    if (f)
        fclose(f);
    return found;
}

static void cpu(sp_doctor *d)
{
    char name[LINE_ROOM], levels[64] = "";
    const sp_kernels *k;
    const char *best = sp_kernels_isa(sp_kernels_find(NULL));
    bool plain = strcmp(best, "base") == 0;

    if (!line_of("/proc/cpuinfo", "model name", name))
        snprintf(name, sizeof name, "of unknown name");
    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        size_t used = strlen(levels);
        snprintf(levels + used, sizeof levels - used, " %s", sp_kernels_isa(k));
    }
    sp_found(d, plain ? SP_NOTE : SP_FINE, "CPU",
             plain ? "Sprat is made for AVX2, AVX-512 or NEON: another CPU, or "
                     "a virtual machine that does not hide its own"
                   : NULL,
             "%s; instruction sets%s, of which auto takes %s", name, levels,
             best);
}

static void caches(sp_doctor *d)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);

    if (l1 > 0 && l2 > 0)
        sp_found(d, SP_FINE, "caches", NULL,
                 "%ld KiB L1, %ld KiB L2, %ld KiB L3", l1 / 1024, l2 / 1024,
                 l3 > 0 ? l3 / 1024 : 0);
    else
        sp_found(d, SP_NOTE, "caches", "OPENBLAS_L2_SIZE=1048576, or as it is",
                 "the system does not tell their sizes, so that OpenBLAS has "
                 "to guess");
#endif
}

static void cores(sp_doctor *d, const sp_limits *l)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = sp_threads_available();
    double load;
    char remedy[128];

    if (l->cpus < threads) {
        snprintf(remedy, sizeof remedy, "train.threads=%d",
                 l->cpus < 1 ? 1 : (int)l->cpus);
        sp_found(d, SP_NOTE, "cores", remedy,
                 "%d threads, as the affinity mask allows, of %ld cores, but "
                 "a control group allows the time of %.2g",
                 threads, online, l->cpus);
    } else if (threads < online) {
        sp_found(d, SP_NOTE, "cores",
                 "a launcher's binding (mpirun --bind-to none), taskset, or "
                 "OMP_PROC_BIND does that",
                 "%d thread%s, as the affinity mask allows, of %ld cores",
                 threads, threads == 1 ? "" : "s", online);
    } else {
        sp_found(d, SP_FINE, "cores", NULL, "%d thread%s on %ld core%s",
                 threads, threads == 1 ? "" : "s", online,
                 online == 1 ? "" : "s");
    }
    if (getloadavg(&load, 1) == 1 && load > 0.5 * (double)online)
        sp_found(d, SP_NOTE, "load", "times of steps will vary",
                 "%.1f on %ld cores: other programs are at work", load, online);
}

static void memory(sp_doctor *d, const sp_limits *l)
{
    const double little = 1024;
    char text[LINE_ROOM];
    double total = NAN, left = NAN, most = l->bytes / mib;
    bool low;

    if (line_of("/proc/meminfo", "MemTotal", text))
        total = strtod(text, NULL) / 1024;
    if (line_of("/proc/meminfo", "MemAvailable", text))
        left = strtod(text, NULL) / 1024;
    if (isnan(total) || isnan(left)) {
        sp_found(d, SP_NOTE, "memory", "`sprat info` tells what a run needs",
                 "the system does not tell how much there is");
        return;
    }
    low = fmin(left, most) < little;
    if (most < total)
        snprintf(text, sizeof text, "; a control group allows %.0f MiB", most);
    else
        text[0] = '\0';
    sp_found(d, low ? SP_NOTE : SP_FINE, "memory",
             low ? "`sprat info` tells what a run needs; train.micro_batch, "
                   "train.recompute and train.eval_batch make it less"
                 : NULL,
             "%.0f of %.0f MiB are free%s", left, total, text);
}

static void pages(sp_doctor *d)
{
    const char *path = "/sys/kernel/mm/transparent_hugepage/enabled";
    char line[LINE_ROOM];

    if (!sp_first_line(path, line, sizeof line))
        return;
    if (strstr(line, "[never]"))
        sp_found(d, SP_NOTE, "huge pages",
                 "as root: echo madvise >"
                 "/sys/kernel/mm/transparent_hugepage/enabled",
                 "never given, so that large arrays cost more page faults");
    else
        sp_found(d, SP_FINE, "huge pages", NULL, "%s", line);
}

static void address_space(sp_doctor *d)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_AS, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return;
    sp_found(d, SP_NOTE, "ulimit -v", "ulimit -v unlimited",
             "the address space ends at %.0f MiB; it is more than the memory "
             "that is used, and OpenBLAS hangs with less than about 400",
             (double)r.rlim_cur / mib);
}

void sp_doctor_machine(sp_doctor *d)
{
    sp_limits l = sp_limits_read("/proc/self/cgroup", "/sys/fs/cgroup");

    cpu(d);
    caches(d);
    cores(d, &l);
    memory(d, &l);
    pages(d);
    address_space(d);
}
