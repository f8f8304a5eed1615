/* Means, Student's t, and verdicts of equivalence. */
#include "table/statistics.h"

#include <math.h>

static const double half_pi = 1.57079632679489661923;

/* The probability that |t| does not exceed sqrt(freedom) tan(angle): finite
 * sums, A & S 26.7.3 for odd and 26.7.4 for even degrees of freedom. */
static double probability_within(double angle, int freedom)
{
    double c = cos(angle), s = sin(angle), term, sum;
    bool odd = freedom % 2 == 1;

    term = odd ? c : 1;
    sum = freedom == 1 ? 0 : term;
    for (int i = odd ? 3 : 2; i <= freedom - 2; i += 2) {
        term *= c * c * (i - 1) / i;
        sum += term;
    }
    return odd ? (angle + s * sum) / half_pi : s * sum;
}

double sp_t_quantile(double p, int freedom)
{
    double within = fabs(2 * p - 1), low = 0, high = half_pi;

    for (int i = 0; i < 80; i++) {
        double middle = low + (high - low) / 2;

        if (probability_within(middle, freedom) < within)
            low = middle;
        else
            high = middle;
    }
    return copysign(sqrt(freedom) * tan(low), 2 * p - 1);
}

sp_estimate sp_estimate_of(const double *x, int n, double level)
{
    sp_estimate s = { .n = n, .mean = NAN, .sd = NAN, .half = NAN };
    double sum = 0, squares = 0;

    if (n < 1)
        return s;
    for (int i = 0; i < n; i++)
        sum += x[i];
    s.mean = sum / n;
    if (n < 2)
        return s;
    for (int i = 0; i < n; i++)
        squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.sd = sqrt(squares / (n - 1));
    s.half = sp_t_quantile((1 + level) / 2, n - 1) * s.sd / sqrt(n);
    return s;
}

sp_verdict sp_verdict_of(const sp_estimate *d, double margin, bool higher)
{
    double gain = higher ? d->mean : -d->mean;

    if (d->n > 1 && isinf(gain) && gain < 0)
        return SP_VERDICT_WORSE;
    if (isnan(d->half))
        return SP_VERDICT_OPEN;
    if (gain + d->half < -margin)
        return SP_VERDICT_WORSE;
    if (gain - d->half < -margin)
        return SP_VERDICT_OPEN;
    return gain + d->half <= margin ? SP_VERDICT_EQUAL : SP_VERDICT_GOOD;
}
