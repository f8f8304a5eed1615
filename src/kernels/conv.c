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

/* Sums over rows in so many parts, each in double, then over the parts. A block
 * of columns is one run of memory in every row. */
enum { BIAS_PARTS = 16, BIAS_COLUMNS = 256 };

typedef struct bias_work {
    const float *dy;
    size_t rows, cout;
    float *db;
    float beta;
} bias_work;

/* Of the parts [begin, end), the columns [first, first + columns). */
static void sum_parts(const bias_work *w, size_t first, size_t columns,
                      size_t begin, size_t end, double sum[][BIAS_COLUMNS])
{
    for (size_t part = begin; part < end; part++) {
        double *s = sum[part];
        size_t row = w->rows * part / BIAS_PARTS;
        size_t last = w->rows * (part + 1) / BIAS_PARTS;
        for (size_t j = 0; j < columns; j++)
            s[j] = 0;
        for (; row < last; row++)
            for (size_t j = 0; j < columns; j++)
                s[j] += w->dy[row * w->cout + first + j];
    }
}

static void add_parts(const bias_work *w, size_t first, size_t columns,
                      double sum[][BIAS_COLUMNS])
{
    for (size_t j = 0; j < columns; j++) {
        float *d = w->db + first + j;
        double all = 0;
        for (int p = 0; p < BIAS_PARTS; p++)
            all += sum[p][j];
        *d = (float)((w->beta == 0.0f ? 0.0 : (double)w->beta * *d) + all);
    }
}

/* Many columns: a thread sums blocks of them. */
static void bias_blocks(void *arg, size_t begin, size_t end)
{
    const bias_work *w = arg;
    double sum[BIAS_PARTS][BIAS_COLUMNS];

    for (size_t first = begin; first < end; first += BIAS_COLUMNS) {
        size_t left = end - first;
        size_t columns = left < BIAS_COLUMNS ? left : BIAS_COLUMNS;
        sum_parts(w, first, columns, 0, BIAS_PARTS, sum);
        add_parts(w, first, columns, sum);
    }
}

/* Few columns: a thread sums parts of the rows. */
typedef struct bias_rows {
    bias_work work;
    double sum[BIAS_PARTS][BIAS_COLUMNS];
} bias_rows;

static void bias_parts(void *arg, size_t begin, size_t end)
{
    bias_rows *r = arg;

    sum_parts(&r->work, 0, r->work.cout, begin, end, r->sum);
}

void sp_bias_backward(const sp_conv_how *how, size_t rows, int cout,
                      const float *dy, float *db, float beta)
{
    bias_rows r;

    r.work = (bias_work){ dy, rows, (size_t)cout, db, beta };
    if (cout > BIAS_COLUMNS) {
        sp_parallel_for(how->threads, (size_t)cout, BIAS_COLUMNS, bias_blocks,
                        &r.work);
        return;
    }
    sp_parallel_for(how->threads, BIAS_PARTS, 1, bias_parts, &r);
    add_parts(&r.work, 0, (size_t)cout, r.sum);
}
