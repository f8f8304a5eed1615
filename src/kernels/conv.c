/* Convolution: to the direct tiles, Winograd's, or the reference. */
#include "kernels/conv.h"

#include <assert.h>

static sp_conv_call call_of(const sp_conv_how *how, const sp_conv_shape *s,
                            int n, void *scratch)
{
    assert(how->tile == 0 ||
           ((how->tile == 2 || how->tile == 4) && sp_conv_has_tiles(s)));
    return (sp_conv_call){ .how = *how, .s = *s, .n = n, .scratch = scratch };
}

size_t sp_conv_scratch(const sp_conv_how *how, const sp_conv_shape *s, int n,
                       sp_pass pass)
{
    sp_conv_call c = call_of(how, s, n > 0 ? n : 1, NULL);

    if (how->reference)
        return sp_reference_scratch(&c);
    if (how->tile)
        return pass == SP_BACKWARD_WEIGHT ? sp_winograd_weight_scratch(&c)
                                          : sp_winograd_scratch(&c, pass);
    return pass == SP_BACKWARD_WEIGHT ? sp_weight_scratch(&c)
                                      : sp_gather_scratch(&c, pass);
}

void sp_conv_forward(const sp_conv_how *how, const sp_conv_shape *s, int n,
                     const float *x, const float *w, const float *b, float *y,
                     void *scratch)
{
    sp_conv_call c = call_of(how, s, n, scratch);

    if (n <= 0)
        return;
    if (how->reference)
        sp_reference_forward(&c, x, w, b, y);
    else if (how->tile)
        sp_winograd_forward(&c, x, w, b, y);
    else
        sp_gather_forward(&c, x, w, b, y);
}

void sp_conv_backward_input(const sp_conv_how *how, const sp_conv_shape *s,
                            int n, const float *dy, const float *w, float *dx,
                            float beta, void *scratch)
{
    sp_conv_call c = call_of(how, s, n, scratch);

    if (n <= 0)
        return;
    if (how->reference)
        sp_reference_backward(&c, dy, w, dx, beta);
    else if (how->tile)
        sp_winograd_backward(&c, dy, w, dx, beta);
    else
        sp_gather_backward(&c, dy, w, dx, beta);
}

void sp_conv_backward_weight(const sp_conv_how *how, const sp_conv_shape *s,
                             int n, const float *x, const float *dy, float *dw,
                             float beta, void *scratch)
{
    sp_conv_call c = call_of(how, s, n, scratch);

    if (n <= 0) {
        size_t count = (size_t)(s->cin / s->groups) * (size_t)s->cout *
                       (size_t)s->kh * (size_t)s->kw;
        for (size_t i = 0; i < count; i++)
            dw[i] = beta == 0.0f ? 0.0f : beta * dw[i];
        return;
    }
    if (how->reference)
        sp_reference_weight(&c, x, dy, dw, beta);
    else if (how->tile)
        sp_winograd_weight(&c, x, dy, dw, beta);
    else
        sp_weight_backward(&c, x, dy, dw, beta);
}

enum { BIAS_PARTS = 16, BIAS_COLUMNS = 64 };

typedef struct bias_work {
    const float *dy; /* first column of the block */
    size_t rows, ld;
    int columns;
    double sum[BIAS_PARTS][BIAS_COLUMNS];
} bias_work;

static void bias_part(void *arg, size_t begin, size_t end)
{
    bias_work *w = arg;

    for (size_t part = begin; part < end; part++) {
        double *sum = w->sum[part];
        size_t row = w->rows * part / BIAS_PARTS;
        size_t last = w->rows * (part + 1) / BIAS_PARTS;
        for (int j = 0; j < w->columns; j++)
            sum[j] = 0;
        for (; row < last; row++)
            for (int j = 0; j < w->columns; j++)
                sum[j] += w->dy[row * w->ld + (size_t)j];
    }
}

void sp_bias_backward(const sp_conv_how *how, size_t rows, int cout,
                      const float *dy, float *db, float beta)
{
    bias_work w = { .rows = rows, .ld = (size_t)cout };

    for (int first = 0; first < cout; first += BIAS_COLUMNS) {
        int left = cout - first;
        w.columns = left < BIAS_COLUMNS ? left : BIAS_COLUMNS;
        w.dy = dy + first;
        sp_parallel_for(how->threads, BIAS_PARTS, 1, bias_part, &w);
        for (int j = 0; j < w.columns; j++) {
            double sum = 0;
            for (int p = 0; p < BIAS_PARTS; p++)
                sum += w.sum[p][j];
            float *d = db + first + j;
            *d = (float)((beta == 0.0f ? 0.0 : (double)beta * *d) + sum);
        }
    }
}
