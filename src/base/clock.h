/* A clock for measuring. */
#ifndef SPRAT_BASE_CLOCK_H
#define SPRAT_BASE_CLOCK_H

/* Seconds of a clock that only goes forward. */
double sp_now(void);

#endif
