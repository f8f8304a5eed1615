/* Products with packed weights. */
#include <math.h>
#include <stdlib.h>

#include "cross_kernels.h"
#include "kernels/kernels.h"

/* One product over n rows; `before` is what y holds. */
typedef struct product {
    sp_packed p;
    int n;
    float beta;
    float *x, *w, *before;
} product;

/* Of w {out,in} or, transposed, {in,out}. */
static double weight(const product *a, int o, int i)
{
    return (double)(a->p.transposed ? a->w[i * a->p.out + o]
                                    : a->w[o * a->p.in + i]);
}

static void check(trial *t, const product *a, const float *y)
{
    for (int r = 0; r < a->n; r++)
        for (int o = 0; o < a->p.out; o++) {
            size_t at = (size_t)(r * a->p.out + o);
            double sum = rest(a->beta, a->before[at]), size = fabs(sum);
            for (int i = 0; i < a->p.in; i++) {
                double term = (double)a->x[r * a->p.in + i] * weight(a, o, i);
                sum += term;
                size += fabs(term);
            }
            compare(t, "product", at, (double)y[at], sum, size);
        }
}

static void try_product(trial *t, product *a)
{
    sp_conv_how how = { .kernels = t->kernels, .threads = THREADS };
    size_t in = (size_t)a->p.in, out = (size_t)a->p.out, n = (size_t)a->n;

    a->x = numbers(n * in, 1, MANY);
    a->w = numbers(in * out, 2, MANY);
    a->before = numbers(n * out, 3, MANY);
    a->p.data = allocate(sp_packed_size(&how, a->p.in, a->p.out));
    sp_pack(&how, &a->p, a->w);
    for (int b = 0; b < BETAS; b++) {
        float *y = copy_of(a->before, n * out);
        a->beta = betas[b];
        sp_packed_product(&how, &a->p, a->n, a->x, y, a->beta);
        check(t, a, y);
        free(y);
    }
    free(a->x);
    free(a->w);
    free(a->before);
    free(a->p.data);
}

void try_products(trial *t)
{
    /* Inputs, outputs, rows: parts of vectors and tiles, and several pieces. */
    static const int sizes[][3] = {
        { 1, 1, 1 }, { 9, 7, 5 }, { 17, 40, 3 }, { 40, 33, 13 }, { 300, 21, 8 }
    };

    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        const int *s = sizes[i / 2];
        product a = { .p = { .in = s[0], .out = s[1], .transposed = i % 2 },
                      .n = s[2] };
        try_product(t, &a);
    }
}
