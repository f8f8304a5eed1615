#include "report/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The least of 1, 2, 5, 10 times a power of ten that is not below x > 0. */
static double nice_step(double x)
{
    double power = pow(10, floor(log10(x)));
    double part = x / power;

    return (part <= 1 + 1e-9   ? 1
            : part <= 2 + 1e-9 ? 2
            : part <= 5 + 1e-9 ? 5
                               : 10) *
           power;
}

static void put_tick(sp_scale *s, double value)
{
    double slack = 1e-9 * (s->max - s->min);

    if (s->ticks < SP_TICKS && value >= s->min - slack &&
        value <= s->max + slack)
        s->tick[s->ticks++] = value;
}

static void linear_ticks(sp_scale *s, double step)
{
    double first = ceil(s->min / step - 1e-9);

    s->ticks = 0;
    for (int i = 0; i < SP_TICKS; i++) {
        double value = (first + i) * step;
        /* 3 x 0.1 is not 0.3; near zero only the zero itself is meant. */
        put_tick(s, fabs(value) < step * 1e-6 ? 0 : value);
    }
}

static void log_ticks(sp_scale *s)
{
    int low = (int)floor(log10(s->min) + 1e-9);
    int high = (int)ceil(log10(s->max) - 1e-9);
    int stride = (high - low) / 6 + 1;

    s->ticks = 0;
    for (int p = low; p <= high && s->ticks < SP_TICKS; p += stride)
        put_tick(s, pow(10, p));
}

/* Some room at both ends, within what a double can be. */
static void set_log(sp_scale *s, double low, double high)
{
    double room = 0.04 * (high - low);

    s->min = pow(10, fmax(low - room, -320));
    s->max = pow(10, fmin(high + room, 308));
    log_ticks(s);
}

/* Room around values that are all the same. */
static void widen(double *least, double *most)
{
    double room = *least == 0 ? 1 : fabs(*least) * 0.1;

    if (*most - *least > fabs(*most) * 1e-9)
        return;
    *least -= *least == 0 ? 0 : room;
    *most += room;
}

void sp_scale_set(sp_scale *s, double least, double most, int wanted, bool zero)
{
    double step;

    s->log = least > 0 && most > 100 * least;
    if (s->log) {
        set_log(s, log10(least), log10(most));
        return;
    }
    if (zero && least >= 0 && least < 0.5 * most)
        least = 0;
    widen(&least, &most);
    step = nice_step((most - least) / wanted);
    /* Ends between ticks: half a step is the most that is left empty. */
    s->min = floor(least / step * 2 + 1e-9) * step / 2;
    s->max = ceil(most / step * 2 - 1e-9) * step / 2;
    linear_ticks(s, step);
}

void sp_scale_set_exact(sp_scale *s, double least, double most, int wanted)
{
    s->log = false;
    widen(&least, &most);
    s->min = least;
    s->max = most;
    linear_ticks(s, nice_step((most - least) / wanted));
}

double sp_scale_place(const sp_scale *s, double value)
{
    double share;

    if (s->log)
        share = value > 0
                    ? (log(value) - log(s->min)) / (log(s->max) - log(s->min))
                    : -1;
    else
        share = (value - s->min) / (s->max - s->min);
    return s->from + share * (s->to - s->from);
}

/* ---- Numbers as text ---------------------------------------------------- */

/* Digits of the whole part in groups of three, by narrow spaces that do not
 * break. */
static void group(char *out, size_t size, const char *digits)
{
    static const char space[] = "\xe2\x80\xaf";
    const char *begin = digits + (*digits == '-');
    size_t whole = strcspn(begin, ".e"), used = 0;

    used +=
        (size_t)snprintf(out, size, "%s", *digits == '-' ? "\xe2\x88\x92" : "");
    for (size_t i = 0; begin[i] && used + 5 < size; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && whole > 4) {
            memcpy(out + used, space, 3);
            used += 3;
        }
        out[used++] = begin[i];
    }
    out[used] = '\0';
}

/* Drop zeros behind the point. */
static void trim_zeros(char *text)
{
    char *end = text + strlen(text);

    if (!strchr(text, '.') || strchr(text, 'e'))
        return;
    while (end[-1] == '0')
        *--end = '\0';
    if (end[-1] == '.')
        end[-1] = '\0';
}

/* Four digits, or all of a whole part. */
static void plain(char *out, size_t size, double x)
{
    char digits[SP_WORD];
    double magnitude = fabs(x);

    if (magnitude >= 1e15 || (magnitude < 1e-4 && magnitude > 0)) {
        snprintf(digits, sizeof digits, "%.3g", x);
    } else {
        int places = magnitude >= 1000  ? 0
                     : magnitude >= 100 ? 1
                     : magnitude >= 10  ? 2
                     : magnitude >= 1   ? 3
                                        : 4;
        snprintf(digits, sizeof digits, "%.*f", places, x);
        trim_zeros(digits);
    }
    group(out, size, digits);
}

static void bytes(char *out, size_t size, double x)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    int u = 0;

    while (fabs(x) >= 999.5 && u < 5) {
        x /= 1000;
        u++;
    }
    snprintf(out, size, "%.3g\xc2\xa0%s", x, units[u]);
}

static void seconds(char *out, size_t size, double x)
{
    if (x < 60)
        snprintf(out, size, "%.3g\xc2\xa0s", x);
    else if (x < 3600)
        snprintf(out, size, "%.0f\xc2\xa0min\xc2\xa0%02.0f\xc2\xa0s",
                 floor(x / 60), floor(fmod(x, 60)));
    else if (x < 1e9)
        snprintf(out, size, "%.0f\xc2\xa0h\xc2\xa0%02.0f\xc2\xa0min",
                 floor(x / 3600), floor(fmod(x, 3600) / 60));
    else
        snprintf(out, size, "%.3g\xc2\xa0s", x);
}

const char *sp_show(char out[SP_WORD], double value, sp_unit unit)
{
    char digits[SP_WORD];

    if (!isfinite(value)) {
        snprintf(out, SP_WORD, "%s",
                 isnan(value) ? "\xe2\x80\x93" : "infinite");
        return out;
    }
    switch (unit) {
    case SP_PERCENT:
        snprintf(out, SP_WORD, "%.2f\xc2\xa0%%", value);
        break;
    case SP_BYTES:
        bytes(out, SP_WORD, value);
        break;
    case SP_SECONDS:
        seconds(out, SP_WORD, value);
        break;
    case SP_COUNT:
        snprintf(digits, sizeof digits, fabs(value) < 1e15 ? "%.0f" : "%.3g",
                 value);
        group(out, SP_WORD, digits);
        break;
    case SP_TIMES_OF:
        plain(out, SP_WORD - 3, value);
        strcat(out, "\xc3\x97");
        break;
    case SP_PLAIN:
        plain(out, SP_WORD, value);
        break;
    }
    return out;
}

/* Places behind the point that tell all ticks of an axis apart. */
static int places_of(const sp_scale *s)
{
    for (int places = 0; places < 8; places++) {
        bool exact = true;
        for (int i = 0; i < s->ticks; i++) {
            double scaled = s->tick[i] * pow(10, places);
            exact &=
                fabs(scaled - round(scaled)) < 1e-6 * fmax(1, fabs(scaled));
        }
        if (exact)
            return places;
    }
    return 8;
}

const char *sp_show_tick(char out[SP_WORD], const sp_scale *s, int i,
                         sp_unit unit)
{
    char digits[SP_WORD];
    double value = s->tick[i], largest = fmax(fabs(s->min), fabs(s->max));

    if (unit == SP_BYTES)
        return sp_show(out, value, SP_BYTES);
    if (largest >= 1e6 || largest < 1e-4 || s->log) {
        plain(digits, sizeof digits, value);
        snprintf(out, SP_WORD, "%s", digits);
    } else {
        snprintf(digits, sizeof digits, "%.*f", places_of(s), value);
        group(out, SP_WORD, digits);
    }
    return out;
}

/* ---- Thinning ----------------------------------------------------------- */

/* Points first..last of a column that is over: at most four of them. */
static void put_column(const sp_xy *at, size_t first, size_t last,
                       sp_xy_list *out)
{
    size_t least = first, most = first;

    for (size_t i = first; i <= last; i++) {
        if (at[i].y < at[least].y)
            least = i;
        if (at[i].y > at[most].y)
            most = i;
    }
    for (size_t i = first; i <= last; i++)
        if (i == first || i == last || i == least || i == most)
            sp_xy_list_add(out, at[i].x, at[i].y);
}

void sp_thin(const sp_xy_list *in, double column, sp_xy_list *out)
{
    const sp_xy *at = sp_xy_list_at(in);
    size_t count = sp_xy_list_count(in);

    for (size_t i = 0, last; i < count; i = last + 1) {
        last = i;
        if (!isfinite(at[i].y)) {
            sp_xy_list_add(out, at[i].x, NAN);
            continue;
        }
        while (last + 1 < count && isfinite(at[last + 1].y) &&
               floor(at[last + 1].x / column) == floor(at[i].x / column))
            last++;
        put_column(at, i, last, out);
    }
}
