/* How many threads each rank of a host may run. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "dist/agree.h"
#include "dist/team.h"

enum { CORES = 8192 }; /* as many as Linux can be built for */

/* A rank's cores as its affinity mask has them, and the threads it wants. */
typedef struct place {
    int32_t wanted;
    uint8_t cores[CORES / 8];
} place;

static bool has(const place *p, int core)
{
    return p->cores[core / 8] >> core % 8 & 1;
}

static void put(place *p, int core)
{
    p->cores[core / 8] |= (uint8_t)(1 << core % 8);
}

static sp_err find_cores(place *p)
{
    size_t bytes = CPU_ALLOC_SIZE(CORES);
    cpu_set_t *set = CPU_ALLOC(CORES);
    bool known;

    if (!set)
        return sp_fail(SP_ENOMEM, "out of memory");
    CPU_ZERO_S(bytes, set);
    known = sched_getaffinity(0, bytes, set) == 0;
    for (int core = 0; known && core < CORES; core++)
        if (CPU_ISSET_S((size_t)core, bytes, set))
            put(p, core);
    CPU_FREE(set);
    if (!known) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);

        for (int core = 0; core < online && core < CORES; core++)
            put(p, core);
    }
    return SP_OK;
}

/* What rank `rank` may use; the ranks of its host have `lowest` alike. */
static int share(const place *all, const int *lowest, int ranks, int rank)
{
    double cores = 0;

    for (int core = 0; core < CORES; core++) {
        int users = 0;

        if (!has(&all[rank], core))
            continue;
        for (int r = 0; r < ranks; r++)
            users += lowest[r] == lowest[rank] && has(&all[r], core);
        cores += 1.0 / users;
    }
    /* Three thirds of three cores are three. */
    return cores + 1e-6 < 1 ? 1 : (int)(cores + 1e-6);
}

/* Cores that the masks of the host's ranks allow. */
static int host_cores(const place *all, const int *lowest, int ranks, int rank)
{
    int cores = 0;

    for (int core = 0; core < CORES; core++) {
        bool used = false;

        for (int r = 0; r < ranks; r++)
            used |= lowest[r] == lowest[rank] && has(&all[r], core);
        cores += used;
    }
    return cores;
}

static int threads_of(const place *all, const int *lowest, int ranks, int rank)
{
    int wanted = all[rank].wanted;

    return wanted > 0 ? wanted : share(all, lowest, ranks, rank);
}

static void divide(const place *all, const int *lowest, int ranks, int rank,
                   int *threads, bool *oversubscribed)
{
    int total = 0;

    for (int r = 0; r < ranks; r++)
        if (lowest[r] == lowest[rank])
            total += threads_of(all, lowest, ranks, r);
    *threads = threads_of(all, lowest, ranks, rank);
    *oversubscribed = total > host_cores(all, lowest, ranks, rank);
}

sp_err sp_agree_threads(sp_comm *c, int wanted, int *threads,
                        bool *oversubscribed)
{
    static const sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    static const int alone[] = { 0 };
    int ranks = sp_comm_ranks(c), rank = sp_comm_rank(c);
    place *all = calloc((size_t)ranks, sizeof *all);
    sp_err e;

    if (!all)
        return sp_fail(SP_ENOMEM, "out of memory");
    all[rank].wanted = wanted;
    e = find_cores(&all[rank]);
    if (e == SP_OK)
        e = sp_op_wait(c, sp_gather_all(c, on, &all[rank], sizeof *all, all));
    if (e == SP_OK)
        divide(all, c ? c->lowest : alone, ranks, rank, threads,
               oversubscribed);
    free(all);
    return e;
}
