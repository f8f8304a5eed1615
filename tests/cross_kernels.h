/* What the parts of cross_kernels share. */
#ifndef SP_TESTS_CROSS_KERNELS_H
#define SP_TESTS_CROSS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/op.h"

enum { THREADS = 3 };

/* What is tried, and how it went. */
typedef struct trial {
    const sp_kernels *kernels;
    double limit; /* of an error */
    double worst; /* error, as compare() says */
    size_t count; /* of results */
    int faults;
} trial;

/* Note the error |got - want| / (1 + size), a fault beyond t->limit; size: the
 * sum of the absolute values of the terms of `want`. */
void compare(trial *t, const char *what, size_t i, double got, double want,
             double size);

/* Memory that is not a number, as floats and as doubles. */
void *allocate(size_t bytes);
float *floats(size_t count);
double *doubles(size_t count);
float *copy_of(const float *p, size_t count);

/* Bits behind the point. With few, sums and products are exact, so that the
 * kink of a ReLU and equal pixels are met, and met by both sides. */
enum { MANY = 23, FEW = 5 };

/* Numbers in [-1, 1), the same in every run. */
float *numbers(size_t count, uint32_t seed, int bits);

/* What results are multiplied by before something is added. */
enum { BETAS = 3 };
static const float betas[BETAS] = { 0.0f, 1.0f, 0.5f };

/* What a result that was `before` has of it. */
double rest(float beta, float before);

/* The parts. */
void try_reference(trial *t);
void try_direct(trial *t);
void try_winograd_2(trial *t);
void try_winograd_4(trial *t);
void try_norm(trial *t);
void try_elements(trial *t);
void try_softmax(trial *t);
void try_pool(trial *t);
void try_products(trial *t);
void try_gates(trial *t);

#endif
