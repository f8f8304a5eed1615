/* The files in golden/, which tools/golden.py and golden_rnn.py make and
 * explain: lines of a word and what belongs to it. Most are digests of arrays
 * that PyTorch computed in float64. Failures end the test. */
#ifndef SPRAT_TESTS_GOLDEN_FILE_H
#define SPRAT_TESTS_GOLDEN_FILE_H

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_SAMPLES = 8, GOLDEN_PROJECTIONS = 3 };

/* What is stored of one array. */
typedef struct golden_digest {
    char kind[16], name[96]; /* "gradient" of "conv1.weight" */
    size_t count;
    double norm, largest, projection[GOLDEN_PROJECTIONS];
    size_t at[GOLDEN_SAMPLES];
    double sample[GOLDEN_SAMPLES];
} golden_digest;

/* Give every line of a file, but comments, to `take`. */
void golden_read(const char *name, void (*take)(void *arg, char *line),
                 void *arg);

void golden_read_digest(golden_digest *d, const char *line);

/* The largest disagreement of an array with what is stored of it: entries
 * against the largest, sums against the norm. `seed` is that of the weights. */
double golden_disagreement(const golden_digest *d, const float *x,
                           uint64_t seed);

#endif
