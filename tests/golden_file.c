#include "golden_file.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

#include "sprat/random.h"

void golden_read(const char *name, void (*take)(void *arg, char *line),
                 void *arg)
{
    char path[512], line[1024];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.txt", SP_GOLDEN_DIR, name);
    f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read", path);
    while (fgets(line, sizeof line, f))
        if (line[0] != '#')
            take(arg, line);
    fclose(f);
}

void golden_read_digest(golden_digest *d, const char *line)
{
    int used = 0;

    ck_assert_int_eq(sscanf(line, "%15s %95s %zu %lf %lf%n", d->kind, d->name,
                            &d->count, &d->norm, &d->largest, &used),
                     5);
    line += used;
    for (int j = 0; j < GOLDEN_PROJECTIONS; j++, line += used)
        ck_assert_int_eq(sscanf(line, "%lf%n", &d->projection[j], &used), 1);
    for (int k = 0; k < GOLDEN_SAMPLES; k++, line += used)
        ck_assert_int_eq(
            sscanf(line, "%zu %lf%n", &d->at[k], &d->sample[k], &used), 2);
}

/* The sum of the entries, each with a pseudo-random sign. */
static double project(const golden_digest *d, const float *x, uint64_t seed,
                      unsigned j)
{
    uint64_t hash = sp_name_hash(d->name);
    uint32_t r[4];
    double sum = 0;

    for (size_t i = 0; i < d->count; i++) {
        if (i % 128 == 0)
            sp_random(seed, SP_FOR_TEST, hash, ((uint64_t)j << 32) + i / 128,
                      r);
        sum += r[i % 128 / 32] >> (i % 32) & 1 ? -(double)x[i] : (double)x[i];
    }
    return sum;
}

double golden_disagreement(const golden_digest *d, const float *x,
                           uint64_t seed)
{
    double worst, square = 0;

    for (size_t i = 0; i < d->count; i++)
        square += (double)x[i] * (double)x[i];
    worst = fabs(sqrt(square) - d->norm) / d->norm;
    for (unsigned j = 0; j < GOLDEN_PROJECTIONS; j++)
        worst = fmax(worst,
                     fabs(project(d, x, seed, j) - d->projection[j]) / d->norm);
    for (int k = 0; k < GOLDEN_SAMPLES; k++)
        worst =
            fmax(worst, fabs((double)x[d->at[k]] - d->sample[k]) / d->largest);
    return isfinite(square) ? worst : INFINITY;
}
