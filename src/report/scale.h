/* Numbers on axes and in tables: ticks, scales, units. */
#ifndef SPRAT_REPORT_SCALE_H
#define SPRAT_REPORT_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/run.h"

enum { SP_TICKS = 12, SP_WORD = 48 };

/* From values to places along an axis. */
typedef struct sp_scale {
    double min, max; /* values at the ends; max > min */
    bool log;
    double from, to; /* places of min and max */
    int ticks;
    double tick[SP_TICKS]; /* values, within min and max, rising */
} sp_scale;

/* How numbers are written. */
typedef enum sp_unit {
    SP_PLAIN,   /* 1 234.5 */
    SP_PERCENT, /* 88.99 % */
    SP_BYTES,   /* 7.38 kB */
    SP_SECONDS, /* 41 min 51 s */
    SP_COUNT,   /* 269 722 */
    SP_TIMES_OF /* 146.2x */
} sp_unit;

/* A scale for finite values from `least` to `most`, with round ends and about
 * `wanted` ticks at 1, 2 or 5 times a power of ten. Values that are all above 0
 * and spread over more than a factor 100 get a logarithmic one. `zero` pulls
 * the lower end to 0 when it is near it. */
void sp_scale_set(sp_scale *s, double least, double most, int wanted,
                  bool zero);

/* The same without rounding the ends, linear: for an axis of time. */
void sp_scale_set_exact(sp_scale *s, double least, double most, int wanted);

/* The place of a value; beyond the ends for values beyond them. */
double sp_scale_place(const sp_scale *s, double value);

/* A number as text, short: three or four digits, thousands apart. */
const char *sp_show(char out[SP_WORD], double value, sp_unit unit);

/* A tick's label: no more digits than the ticks of its axis need. */
const char *sp_show_tick(char out[SP_WORD], const sp_scale *s, int i,
                         sp_unit unit);

/* Thin a curve out to what can be seen: of all points within one column, the
 * first, least, greatest and last, in their order, if there are more; columns
 * are `column` wide in x and start at multiples of it. A gap (y NAN) stays. */
void sp_thin(const sp_xy_list *in, double column, sp_xy_list *out);

#endif
