/* Clocks: one for measuring, one for people. */
#ifndef SPRAT_BASE_CLOCK_H
#define SPRAT_BASE_CLOCK_H

/* Seconds of a clock that only goes forward. */
double sp_now(void);

/* Seconds since 1970, by a clock that may be set. */
double sp_time_of_day(void);

#endif
