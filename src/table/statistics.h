/* Means over few seeds, and what can be said by them. */
#ifndef SP_TABLE_STATISTICS_H
#define SP_TABLE_STATISTICS_H

#include <stdbool.h>

/* What n values tell of their mean. */
typedef struct sp_estimate {
    int n;
    double mean; /* NAN: n is 0 */
    double sd;   /* the sample's, of n - 1 degrees of freedom; NAN: n < 2 */
    double half; /* of the confidence interval mean -+ half; NAN: n < 2 */
} sp_estimate;

/* The value that Student's t with `freedom` degrees of freedom, at least 1,
 * does not exceed with the probability p, between 0 and 1.
 * Source: Abramowitz & Stegun 1964, 26.7.3 and 26.7.4, inverted by bisection.
 */
double sp_t_quantile(double p, int freedom);

/* Mean, standard deviation, and the two-sided confidence interval at a level
 * such as 0.95, for values that are normal and independent. */
sp_estimate sp_estimate_of(const double *x, int n, double level);

/* How a difference to a baseline compares with a margin within which the two
 * count as equal. */
typedef enum sp_verdict {
    SP_VERDICT_NONE,  /* nothing to compare */
    SP_VERDICT_EQUAL, /* the whole interval is within the margin */
    SP_VERDICT_GOOD,  /* no worse than by the margin, maybe better by more */
    SP_VERDICT_WORSE, /* the whole interval is worse than by the margin; or
                         a run diverged, to a perplexity beyond all numbers */
    SP_VERDICT_OPEN   /* the interval does not tell, or there is none */
} sp_verdict;

/* `difference` is the row's less the baseline's, paired by seeds; `higher`: the
 * larger value is the better one. */
sp_verdict sp_verdict_of(const sp_estimate *difference, double margin,
                         bool higher);

#endif
