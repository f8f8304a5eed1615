/* What the machine can do: the peak of its arithmetic, and its bandwidth. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "kernels/table.h"

typedef struct peak_work {
    const sp_tiles *tiles;
    size_t turns;
} peak_work;

static void peak_part(void *arg, size_t begin, size_t end)
{
    const peak_work *w = arg;
    volatile float keep; /* or the compiler drops the loop */

    for (size_t i = begin; i < end; i++)
        keep = w->tiles->peak(w->turns);
    (void)keep;
}

double sp_kernels_peak(const sp_kernels *k, int threads, double seconds)
{
    size_t parts = threads > 1 ? (size_t)threads : 1;
    peak_work w = { .tiles = k->tiles, .turns = 1000000 };
    double best = 0, end = sp_now() + seconds;

    /* The best of many short rounds: others may use the machine too. */
    do {
        double start = sp_now();
        sp_parallel_for(threads, parts, 1, peak_part, &w);
        double rate = (double)parts * (double)w.turns *
                      (double)w.tiles->peak_flops / (sp_now() - start);
        best = rate > best ? rate : best;
    } while (sp_now() < end);
    return best * 1e-9;
}

typedef struct triad_work {
    const sp_row_loops *rows;
    float *a, *b, *c;
} triad_work;

/* Pages that nobody has written may all be one page of zeros. */
static void clear_part(void *arg, size_t begin, size_t end)
{
    const triad_work *w = arg;
    size_t bytes = (end - begin) * sizeof(float);

    memset(w->a + begin, 0, bytes);
    memset(w->b + begin, 0, bytes);
    memset(w->c + begin, 0, bytes);
}

static void triad_part(void *arg, size_t begin, size_t end)
{
    const triad_work *w = arg;

    w->rows->triad(end - begin, w->b + begin, w->c + begin, 3.0f, w->a + begin);
}

size_t sp_last_cache(void)
{
    const long least = 32L << 20;
    long bytes = 0;

#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return (size_t)(bytes < least ? least : bytes);
}

/* Of one array: of three as large as the last cache, none stays in it. */
static size_t triad_floats(void)
{
    const size_t most = (size_t)384 << 20;
    size_t bytes = sp_last_cache();

    return (bytes < most ? bytes : most) / sizeof(float);
}

double sp_kernels_bandwidth(const sp_kernels *k, int threads, double seconds)
{
    enum { GRAIN = 1 << 18 };
    size_t n = triad_floats(), room = n * sizeof(float);
    triad_work w = { .rows = k->rows,
                     .a = sp_block_alloc(room),
                     .b = sp_block_alloc(room),
                     .c = sp_block_alloc(room) };
    double best = 0;

    if (w.a && w.b && w.c) {
        sp_parallel_for(threads, n, GRAIN, clear_part, &w);
        double end = sp_now() + seconds;
        do {
            double start = sp_now();
            sp_parallel_for(threads, n, GRAIN, triad_part, &w);
            double rate = 3.0 * (double)room / (sp_now() - start);
            best = rate > best ? rate : best;
        } while (sp_now() < end);
    }
    free(w.a);
    free(w.b);
    free(w.c);
    return best * 1e-9;
}
