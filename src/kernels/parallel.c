/* The one place that opens a team of threads. */
#include <omp.h>

#include "kernels/kernels.h"

int sp_worker(int threads)
{
    /* A team of one opens no region: the number would be that of a caller's. */
    return threads > 1 ? omp_get_thread_num() : 0;
}

void sp_parallel_for(int threads, size_t count, size_t grain, sp_body body,
                     void *arg)
{
    size_t parts = (count + grain - 1) / grain;

    if (threads <= 1 || parts <= 1) {
        for (size_t p = 0; p < parts; p++) {
            size_t begin = p * grain;
            body(arg, begin, count - begin < grain ? count : begin + grain);
        }
        return;
    }
    /* Explicit: setting OpenBLAS to one thread also resets OpenMP's default
     * team. Dynamic: cores of shared machines are rarely equally fast. */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (size_t p = 0; p < parts; p++) {
        size_t begin = p * grain;
        body(arg, begin, count - begin < grain ? count : begin + grain);
    }
}
