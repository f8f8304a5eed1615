#include "kernels/elements.h"

#include "kernels/table.h"

/* Floats a thread takes at a time. */
enum { GRAIN = 16384, LANES = 8 };

typedef struct job {
    const sp_row_loops *loops;
    const float *a, *b;
    float *y;
    float beta;
} job;

static void relu_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    j->loops->relu(end - begin, j->a + begin, j->y + begin);
}

void sp_relu_forward(const sp_run *r, size_t n, const float *x, float *y)
{
    job j = { .loops = r->kernels->rows, .a = x, .y = y };

    sp_parallel_for(r->threads, n, GRAIN, relu_part, &j);
}

static void relu_back_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    j->loops->relu_back(end - begin, j->a + begin, j->b + begin, j->y + begin,
                        j->beta);
}

void sp_relu_backward(const sp_run *r, size_t n, const float *y,
                      const float *dy, float *dx, float beta)
{
    job j = {
        .loops = r->kernels->rows, .a = y, .b = dy, .y = dx, .beta = beta
    };

    sp_parallel_for(r->threads, n, GRAIN, relu_back_part, &j);
}

static void add_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    j->loops->add(end - begin, j->a + begin, j->b + begin, j->y + begin);
}

void sp_add_forward(const sp_run *r, size_t n, const float *a, const float *b,
                    float *y)
{
    job j = { .loops = r->kernels->rows, .a = a, .b = b, .y = y };

    sp_parallel_for(r->threads, n, GRAIN, add_part, &j);
}

static void accumulate_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    j->loops->accumulate(end - begin, j->a + begin, j->y + begin, j->beta);
}

void sp_accumulate(const sp_run *r, size_t n, const float *x, float *y,
                   float beta)
{
    job j = { .loops = r->kernels->rows, .a = x, .y = y, .beta = beta };

    if (x == y && beta == 0.0f)
        return;
    sp_parallel_for(r->threads, n, GRAIN, accumulate_part, &j);
}

double sp_sum_squares(const float *x, size_t n)
{
    double lane[LANES] = { 0 }, sum = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < n; i++)
        lane[0] += (double)x[i] * (double)x[i];
    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

void sp_softmax_sums(const sp_kernels *k, size_t n, const float *x, float *max,
                     double *sum, double *total)
{
    *max = k->rows->max(n, x);
    *sum = k->rows->exp_sum(n, x, *max, total);
}

void sp_softmax_grad(const sp_kernels *k, size_t n, const float *x, float *dx,
                     const sp_softmax *s)
{
    k->rows->softmax_back(n, x, dx, s);
}
