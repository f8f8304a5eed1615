#include "base/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double sp_now(void) { return seconds(CLOCK_MONOTONIC); }

double sp_time_of_day(void) { return seconds(CLOCK_REALTIME); }
