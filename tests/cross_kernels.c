/* Every kernel of every instruction set that this CPU has, against plain loops
 * in double. Nothing but the kernels is needed to build it, so that
 * test_neon.sh can do so for another kind of CPU and run it in an emulator; for
 * the emulator's sake the shapes are small.
 */
#include "cross_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

void compare(trial *t, const char *what, size_t i, double got, double want,
             double size)
{
    double error = fabs(got - want) / (1 + size);

    t->count++;
    if (!(error <= t->worst))
        t->worst = error;
    if (!(error <= t->limit) && t->faults++ < 5)
        printf("FAILED: %s, element %zu: %.9g instead of %.9g\n", what, i, got,
               want);
}

void *allocate(size_t bytes)
{
    /* Whole cache lines, so that a sanitizer sees what goes beyond. */
    size_t whole = (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN;
    void *p = aligned_alloc(SP_ALIGN, whole ? whole : SP_ALIGN);

    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memset(p, 0xff, whole ? whole : SP_ALIGN);
}

float *floats(size_t count) { return allocate(count * sizeof(float)); }

double *doubles(size_t count) { return allocate(count * sizeof(double)); }

float *copy_of(const float *p, size_t count)
{
    return memcpy(floats(count), p, count * sizeof *p);
}

float *numbers(size_t count, uint32_t seed, int bits)
{
    float *p = floats(count);

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)((int)(seed >> (31 - bits)) - (1 << bits)) /
               (float)(1 << bits);
    }
    return p;
}

double rest(float beta, float before)
{
    return beta == 0.0f ? 0.0 : (double)beta * (double)before;
}

typedef struct part {
    const char *name;
    double limit; /* of an error */
    void (*run)(trial *t);
} part;

static int run(const sp_kernels *k, const part *p)
{
    trial t = { .kernels = k, .limit = p->limit };

    p->run(&t);
    printf("%-7s %-10s %7zu results, worst error %.1e%s\n", sp_kernels_isa(k),
           p->name, t.count, t.worst, t.faults ? "  FAILED" : "");
    return t.faults > 0 || t.count == 0;
}

int main(void)
{
    static const part reference = { "reference", 1e-6, try_reference };
    static const part parts[] = {
        { "direct", 1e-6, try_direct },
        { "winograd-2", 1e-6, try_winograd_2 },
        { "winograd-4", 2e-6, try_winograd_4 },
        { "norm", 1e-6, try_norm },
        { "elements", 1e-6, try_elements },
        { "softmax", 1e-6, try_softmax },
        { "pool", 1e-6, try_pool },
        { "products", 1e-6, try_products },
        { "gates", 1e-6, try_gates },
    };
    const sp_kernels *k;
    int faults = run(sp_kernels_find(NULL), &reference);

    for (int i = 0; (k = sp_kernels_at(i)); i++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            faults += run(k, &parts[p]);
    return faults ? EXIT_FAILURE : EXIT_SUCCESS;
}
