#include "kernels/norm.h"

#include <string.h>

#include "kernels/rows.h"
#include "kernels/table.h"

/* A part's sums are floats, so it is short; it is read twice, so it fits the
 * first-level cache where its tables are small. */
enum { PART_FLOATS = 8192, PART_WIDE_ROWS = 32, MAX_TABLES = 5 };

/* Rows that the loops take as one, so that it is whole vectors of any length
 * and long enough to spread the cost of a loop. */
static size_t rows_in_wide(int c)
{
    size_t rows = 1;

    while (rows * (size_t)c % 16 != 0 || rows * (size_t)c < 64)
        rows *= 2;
    return rows;
}

static size_t part_rows(int c)
{
    size_t wide_rows = rows_in_wide(c), wide = wide_rows * (size_t)c;
    size_t count = PART_FLOATS / wide;

    return (count < PART_WIDE_ROWS ? PART_WIDE_ROWS : count) * wide_rows;
}

static size_t part_count(size_t rows, int c)
{
    return (rows + part_rows(c) - 1) / part_rows(c);
}

size_t sp_norm_scratch(size_t rows, int c)
{
    size_t wide = rows_in_wide(c) * (size_t)c;

    return (MAX_TABLES + 2 * part_count(rows, c)) * wide * sizeof(float);
}

/* One call's work: what its threads share. */
typedef struct job {
    const sp_norm_how *how;
    const sp_row_loops *loops;
    size_t wide, wide_rows;
    sp_norm_part all; /* pointers to the first row */
    float *sums;      /* of each part: 2 * wide floats */
    double *out[2];
    float *tables;
} job;

static job open_job(const sp_norm_how *how)
{
    job j = { .how = how, .loops = how->kernels->rows };

    j.wide_rows = rows_in_wide(how->c);
    j.wide = j.wide_rows * (size_t)how->c;
    j.all.wide = j.wide;
    j.tables = how->scratch;
    j.sums = j.tables + MAX_TABLES * j.wide;
    return j;
}

/* Repeat a table of c numbers over a wide row. */
static const float *widen(job *j, const float *table)
{
    float *wide = j->tables;
    size_t c = (size_t)j->how->c;

    j->tables += j->wide;
    for (size_t r = 0; r < j->wide_rows; r++)
        memcpy(wide + r * c, table, c * sizeof *table);
    return wide;
}

/* Add up what a wide row holds of each channel, into its first c floats. */
static void fold(const job *j, float *wide)
{
    size_t c = (size_t)j->how->c;

    for (size_t r = 1; r < j->wide_rows; r++)
        for (size_t i = 0; i < c; i++)
            wide[i] += wide[r * c + i];
}

static const float *shifted(const float *p, size_t at)
{
    return p ? p + at : NULL;
}

/* The part of rows [begin, end). */
static sp_norm_part cut(const job *j, size_t begin, size_t end)
{
    sp_norm_part p = j->all;
    size_t at = begin * (size_t)j->how->c;

    p.count = (end - begin) * (size_t)j->how->c;
    p.x = shifted(p.x, at);
    p.add = shifted(p.add, at);
    p.dy = shifted(p.dy, at);
    p.y = p.y ? p.y + at : NULL;
    p.dx = p.dx ? p.dx + at : NULL;
    p.dadd = p.dadd ? p.dadd + at : NULL;
    return p;
}

static float *part_sums(const job *j, size_t begin)
{
    return j->sums + 2 * j->wide * (begin / part_rows(j->how->c));
}

static void for_parts(job *j, sp_body body)
{
    sp_parallel_for(j->how->threads, j->how->rows, part_rows(j->how->c), body,
                    j);
}

/* Combine the parts' sums, 16 channels at a time: one cache line. */
static void for_channels(job *j, sp_body body)
{
    sp_parallel_for(j->how->threads, (size_t)j->how->c, 16, body, j);
}

/* A part's mean and sum of squared distances from it. */
static void moments_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    sp_norm_part p = cut(j, begin, end);
    float *mean = part_sums(j, begin), *squares = mean + j->wide;
    size_t c = (size_t)j->how->c;

    memset(mean, 0, 2 * j->wide * sizeof *mean);
    j->loops->sum(&p, mean);
    fold(j, mean);
    for (size_t i = 0; i < c; i++)
        mean[i] /= (float)(end - begin);
    for (size_t r = 1; r < j->wide_rows; r++)
        memcpy(mean + r * c, mean, c * sizeof *mean);
    p.mean = mean;
    j->loops->squares(&p, squares);
    fold(j, squares);
}

/*   mean    = sum_k n_k mean_k / n
 *   squares = sum_k squares_k + n_k (mean_k - mean)^2   over parts k. */
static void moments_channels(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    size_t rows = j->how->rows, step = part_rows(j->how->c);
    double *mean = j->out[0], *squares = j->out[1];

    for (size_t i = begin; i < end; i++)
        mean[i] = squares[i] = 0;
    for (size_t at = 0; at < rows; at += step) {
        const float *part = part_sums(j, at);
        double n = (double)(rows - at < step ? rows - at : step);
        for (size_t i = begin; i < end; i++)
            mean[i] += n * (double)part[i];
    }
    for (size_t i = begin; i < end; i++)
        mean[i] /= (double)rows;
    for (size_t at = 0; at < rows; at += step) {
        const float *part = part_sums(j, at);
        double n = (double)(rows - at < step ? rows - at : step);
        for (size_t i = begin; i < end; i++) {
            double d = (double)part[i] - mean[i];
            squares[i] += (double)part[j->wide + i] + n * d * d;
        }
    }
}

static void clear(const sp_norm_how *how, double *a, double *b)
{
    memset(a, 0, (size_t)how->c * sizeof *a);
    memset(b, 0, (size_t)how->c * sizeof *b);
}

void sp_norm_moments(const sp_norm_how *how, const float *x, double *mean,
                     double *squares)
{
    job j = open_job(how);

    if (how->rows == 0) {
        clear(how, mean, squares);
        return;
    }
    j.all.x = x;
    j.out[0] = mean;
    j.out[1] = squares;
    for_parts(&j, moments_part);
    for_channels(&j, moments_channels);
}

/* Whether to write arrays, NULL for none, past the caches. Through them, each
 * line is read before it is overwritten: a quarter to a third of the traffic,
 * wasted unless the next operator finds the array in the last cache. From a
 * quarter of the cache on, it hardly does: what the array is computed from and
 * what is computed from it want their place, too. The bits are the same. */
static bool past_caches(const sp_norm_how *how, const float *a, const float *b)
{
    size_t bytes = how->rows * (size_t)how->c * sizeof *a;

    return (uintptr_t)a % SP_ALIGN == 0 && (uintptr_t)b % SP_ALIGN == 0 &&
           bytes > sp_last_cache() / 4;
}

static void apply_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    sp_norm_part p = cut(j, begin, end);

    j->loops->apply(&p);
}

void sp_norm_apply(const sp_norm_how *how, const sp_norm_forward *f)
{
    job j = open_job(how);

    j.all.x = f->x;
    j.all.add = f->add;
    j.all.y = f->y;
    j.all.relu = f->relu;
    j.all.stream = past_caches(how, f->y, NULL);
    j.all.mean = widen(&j, f->mean);
    j.all.scale = widen(&j, f->scale);
    j.all.shift = widen(&j, f->shift);
    for_parts(&j, apply_part);
}

static job open_backward(const sp_norm_how *how, const sp_norm_backward *b)
{
    job j = open_job(how);

    j.all.x = b->x;
    j.all.y = (float *)b->y; /* only read in backward */
    j.all.dy = b->dy;
    j.all.relu = b->relu;
    j.all.mean = widen(&j, b->mean);
    j.all.scale = widen(&j, b->scale);
    j.all.shift = widen(&j, b->shift);
    return j;
}

static void back_sums_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    sp_norm_part p = cut(j, begin, end);
    float *sums = part_sums(j, begin);

    memset(sums, 0, 2 * j->wide * sizeof *sums);
    j->loops->back_sum(&p, sums);
    fold(j, sums);
    fold(j, sums + j->wide);
}

static void back_sums_channels(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    size_t step = part_rows(j->how->c);

    for (size_t i = begin; i < end; i++)
        j->out[0][i] = j->out[1][i] = 0;
    for (size_t at = 0; at < j->how->rows; at += step) {
        const float *part = part_sums(j, at);
        for (size_t i = begin; i < end; i++) {
            j->out[0][i] += (double)part[i];
            j->out[1][i] += (double)part[j->wide + i];
        }
    }
}

void sp_norm_back_sums(const sp_norm_how *how, const sp_norm_backward *b,
                       double *dz_sum, double *dot)
{
    job j = open_backward(how, b);

    j.out[0] = dz_sum;
    j.out[1] = dot;
    for_parts(&j, back_sums_part);
    for_channels(&j, back_sums_channels);
}

static void back_apply_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    sp_norm_part p = cut(j, begin, end);

    j->loops->back_apply(&p);
}

void sp_norm_back_apply(const sp_norm_how *how, const sp_norm_backward *b,
                        const float *slope, const float *offset,
                        const sp_norm_grads *g)
{
    job j = open_backward(how, b);

    j.all.slope = widen(&j, slope);
    j.all.offset = widen(&j, offset);
    j.all.dx = g->dx;
    j.all.dadd = g->dadd;
    j.all.stream = past_caches(how, g->dx, g->dadd);
    j.all.dx_beta = g->dx_beta;
    j.all.dadd_beta = g->dadd_beta;
    for_parts(&j, back_apply_part);
}
