#include "kernels/pool.h"

#include <string.h>

#include "kernels/table.h"

typedef struct job {
    const sp_pool_how *how;
    size_t in, out; /* floats of an image and of its result */
    const float *from;
    float *to;
    uint8_t *tap;
    float beta;
    bool store; /* every pixel of dx is in exactly one window */
} job;

static job open_job(const sp_pool_how *how, const float *from, float *to)
{
    sp_pool_shape s = how->shape;

    return (job){
        .how = how,
        .in = (size_t)s.h * (size_t)s.w * (size_t)s.c,
        .out = (size_t)s.oh * (size_t)s.ow * (size_t)s.c,
        .from = from,
        .to = to,
    };
}

static void for_images(job *j, sp_body body)
{
    sp_parallel_for(j->how->threads, (size_t)j->how->images, 1, body, j);
}

static void max_images(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    const sp_pool_how *how = j->how;

    for (size_t i = begin; i < end; i++)
        how->kernels->windows->max(&how->shape, j->from + i * j->in,
                                   j->to + i * j->out,
                                   j->tap ? j->tap + i * j->out : NULL);
}

void sp_max_pool_forward(const sp_pool_how *how, const float *x, float *y,
                         uint8_t *tap)
{
    job j = open_job(how, x, y);

    j.tap = tap;
    for_images(&j, max_images);
}

static void average_images(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    const sp_pool_how *how = j->how;

    for (size_t i = begin; i < end; i++)
        how->kernels->windows->average(&how->shape, j->from + i * j->in,
                                       j->to + i * j->out);
}

void sp_avg_pool_forward(const sp_pool_how *how, const float *x, float *y)
{
    job j = open_job(how, x, y);

    for_images(&j, average_images);
}

static bool exact_cover(const sp_pool_shape *s)
{
    return s->stride == s->kernel && s->pad == 0 && s->h % s->kernel == 0 &&
           s->w % s->kernel == 0;
}

static void back_images(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    const sp_pool_how *how = j->how;
    const sp_windows *loops = how->kernels->windows;

    for (size_t i = begin; i < end; i++) {
        const float *dy = j->from + i * j->out;
        float *dx = j->to + i * j->in;
        if (j->beta == 0.0f && !j->store)
            memset(dx, 0, j->in * sizeof *dx);
        if (j->tap)
            loops->max_back(&how->shape, dy, j->tap + i * j->out, dx, j->store);
        else
            loops->average_back(&how->shape, dy, dx, j->store);
    }
}

void sp_max_pool_backward(const sp_pool_how *how, const float *dy,
                          const uint8_t *tap, float *dx, float beta)
{
    job j = open_job(how, dy, dx);

    j.tap = (uint8_t *)tap; /* only read in backward */
    j.beta = beta;
    j.store = beta == 0.0f && exact_cover(&how->shape);
    for_images(&j, back_images);
}

void sp_avg_pool_backward(const sp_pool_how *how, const float *dy, float *dx,
                          float beta)
{
    job j = open_job(how, dy, dx);

    j.beta = beta;
    j.store = beta == 0.0f && exact_cover(&how->shape);
    for_images(&j, back_images);
}
