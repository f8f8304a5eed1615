/* Numbers and words of a table for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/write.h"

void sp_put_count(sp_text *out, double x)
{
    char digits[64];
    size_t n;

    if (isnan(x))
        return;
    n = (size_t)snprintf(digits, sizeof digits, "%.0f", x);
    for (size_t i = 0; i < n && n < sizeof digits; i++) {
        sp_text_put(out, &digits[i], 1);
        if ((n - i) % 3 == 1 && i + 1 < n && digits[i] != '-')
            sp_text_put(out, ",", 1);
    }
}

void sp_put_score(sp_text *out, const sp_table *t, double x, bool sign)
{
    bool fine = strstr(t->metric->name, "loss") != NULL;

    if (isnan(x))
        return;
    sp_text_add(out, sign ? "%+.*f" : "%.*f", fine ? 4 : 2, x);
}

/* "146", "1.85"; nothing for NAN. */
static void put_ratio(sp_text *out, double x)
{
    if (!isnan(x))
        sp_text_add(out, "%.*f", x < 10 ? 2 : x < 100 ? 1 : 0, x);
}

static void put_open(sp_text *out, const sp_row_summary *s)
{
    int pairs = s->difference.n;

    if (s->failed > 0)
        sp_text_add(out, "failed");
    else if (s->done < s->cells)
        sp_text_add(out, "open (%d of %d runs)", s->done, s->cells);
    else if (pairs < 2)
        sp_text_add(out, "open (%d pair%s)", pairs, pairs == 1 ? "" : "s");
    else
        sp_text_add(out, "open");
}

/* On how many seeds a verdict rests where it is not all: a run that failed,
 * here or in the baseline, has no part in it. */
static void put_pairs(sp_text *out, const sp_row_summary *s)
{
    if (s->difference.n < s->cells)
        sp_text_add(out, " (%d of %d pairs)", s->difference.n, s->cells);
}

void sp_put_verdict(sp_text *out, const sp_table *t, const sp_row_summary *s)
{
    switch (s->verdict) {
    case SP_VERDICT_NONE:
        break;
    case SP_VERDICT_EQUAL:
        sp_text_add(out, "equal within %g", t->margin);
        put_pairs(out, s);
        break;
    case SP_VERDICT_GOOD:
        sp_text_add(out, "no worse than %g", t->margin);
        put_pairs(out, s);
        break;
    case SP_VERDICT_WORSE:
        sp_text_add(out, "worse");
        put_pairs(out, s);
        break;
    case SP_VERDICT_OPEN:
        put_open(out, s);
        break;
    }
}

static void put_estimate(sp_text *out, const sp_table *t, const sp_estimate *e,
                         bool sign, const sp_marks *marks)
{
    if (isnan(e->mean))
        return;
    sp_text_add(out, "%s", marks->open);
    sp_put_score(out, t, e->mean, sign);
    if (!isnan(e->half)) {
        sp_text_add(out, "%s", marks->plus_minus);
        sp_put_score(out, t, e->half, false);
    }
    sp_text_add(out, "%s", marks->close);
}

void sp_put_columns(sp_text *out, const sp_table *t, const sp_row_summary *s,
                    const sp_marks *marks)
{
    sp_text_add(out, "%s", marks->between);
    put_estimate(out, t, &s->value, false, marks);
    if (t->published) {
        sp_text_add(out, "%s", marks->between);
        sp_put_score(out, t, s->row->paper, false);
    }
    if (t->compared) {
        sp_text_add(out, "%s", marks->between);
        put_estimate(out, t, &s->difference, true, marks);
    }
    if (t->margin > 0) {
        sp_text_add(out, "%s", marks->between);
        sp_put_verdict(out, t, s);
    }
    sp_text_add(out, "%s", marks->between);
    sp_put_count(out, s->packet_bytes);
    sp_text_add(out, "%s", marks->between);
    put_ratio(out, s->ratio);
    sp_text_add(out, "%s", marks->between);
    put_ratio(out, s->run_ratio);
    sp_text_add(out, "%s", marks->between);
    sp_put_count(out, s->params);
}

void sp_put_legend(sp_text *out, const sp_table *t)
{
    sp_text_add(out,
                "%s%s of the %s epoch, as the mean over n seeds and the half "
                "width of its %g %% confidence interval (Student's t; none "
                "with one seed).",
                t->metric->name, t->metric->percent ? " in percent" : "",
                t->best ? "best" : "last", 100 * t->confidence);
    if (t->compared)
        sp_text_add(out, " Differences are those to the baseline with the same "
                         "seed.");
    if (t->margin > 0)
        sp_text_add(out,
                    " A row is equal where the interval of its difference is "
                    "within %g, no worse where it reaches beyond that on the "
                    "better side alone, and worse where all of it is worse by "
                    "more; else it is open.",
                    t->margin);
    sp_text_add(out,
                " Bytes are those of one rank's encoded gradients in a step of "
                "the last epoch, counted as they are sent; the ratio is that "
                "of %s to them, there and over the whole run.",
                t->compared ? "the baseline's" : "uncompressed ones");
    if (t->ranks > 0)
        sp_text_add(out, " %d rank%s.", t->ranks, t->ranks == 1 ? "" : "s");
}
