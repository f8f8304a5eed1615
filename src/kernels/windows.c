/* Loops over pooling windows, compiled once per instruction set. */
#include "kernels/windows.h"

#include "kernels/vec.h"

/* A byte for each lane. */
typedef uint8_t bytes __attribute__((vector_size(SP_VL)));

enum { MAX_TAPS = SP_POOL_MAX_KERNEL * SP_POOL_MAX_KERNEL };

/* The pixels of one window that lie in the image. */
typedef struct taps {
    int count;
    int id[MAX_TAPS];    /* place in the window, row by row */
    size_t at[MAX_TAPS]; /* first channel in the image */
} taps;

static void find_taps(const sp_pool_shape *s, int oy, int ox, taps *t)
{
    int top = oy * s->stride - s->pad, left = ox * s->stride - s->pad;

    t->count = 0;
    for (int ky = 0; ky < s->kernel; ky++)
        for (int kx = 0; kx < s->kernel; kx++) {
            int y = top + ky, x = left + kx;
            if (y < 0 || y >= s->h || x < 0 || x >= s->w)
                continue;
            t->id[t->count] = ky * s->kernel + kx;
            t->at[t->count++] =
                ((size_t)y * (size_t)s->w + (size_t)x) * (size_t)s->c;
        }
}

/* One step of a window's work: lanes [i, i + m) of its pixels, whose place in
 * y is `out`. */
typedef struct arrays {
    const float *in;
    float *out;
    uint8_t *tap;
    float factor;
    bool store;
} arrays;

typedef void (*window)(const arrays *a, const taps *t, size_t out, size_t i,
                       int m);

SP_INLINE void walk(const sp_pool_shape *s, const arrays *a, window f)
{
    size_t c = (size_t)s->c, out = 0;
    taps t;

    for (int oy = 0; oy < s->oh; oy++)
        for (int ox = 0; ox < s->ow; ox++, out += c) {
            size_t i = 0;
            find_taps(s, oy, ox, &t);
            for (; i + SP_VL <= c; i += SP_VL)
                f(a, &t, out + i, i, SP_VL);
            if (i < c)
                f(a, &t, out + i, i, (int)(c - i));
        }
}

SP_INLINE void max_window(const arrays *a, const taps *t, size_t out, size_t i,
                          int m)
{
    const sp_vec zero = { 0 };
    sp_vec best = sp_load(a->in + t->at[0] + i, m, zero);
    sp_ivec id = t->id[0] - (sp_ivec){ 0 };

    for (int k = 1; k < t->count; k++) {
        sp_vec v = sp_load(a->in + t->at[k] + i, m, zero);
        /* What is not a number wins, and stays. */
        sp_ivec more = (v > best) | (v != v);
        best = sp_select(more, v, best);
        id = (more & t->id[k]) | (~more & id);
    }
    sp_store(a->out + out, best, m);
    if (a->tap) {
        bytes b = __builtin_convertvector(id, bytes);
        memcpy(a->tap + out, &b, (size_t)m);
    }
}

static void max(const sp_pool_shape *s, const float *x, float *y, uint8_t *tap)
{
    arrays a = { .in = x, .out = y, .tap = tap };

    walk(s, &a, max_window);
}

SP_INLINE void average_window(const arrays *a, const taps *t, size_t out,
                              size_t i, int m)
{
    const sp_vec zero = { 0 };
    sp_vec sum = zero;

    for (int k = 0; k < t->count; k++)
        sum += sp_load(a->in + t->at[k] + i, m, zero);
    sp_store(a->out + out, sum * a->factor, m);
}

/* 1 / pixels of a window, those outside the image included. */
static float share(const sp_pool_shape *s)
{
    return 1.0f / (float)(s->kernel * s->kernel);
}

static void average(const sp_pool_shape *s, const float *x, float *y)
{
    arrays a = { .in = x, .out = y, .factor = share(s) };

    walk(s, &a, average_window);
}

SP_INLINE void give(const arrays *a, size_t at, sp_vec v, int m)
{
    if (!a->store)
        v += sp_load(a->out + at, m, (sp_vec){ 0 });
    sp_store(a->out + at, v, m);
}

SP_INLINE void max_back_window(const arrays *a, const taps *t, size_t out,
                               size_t i, int m)
{
    sp_vec dy = sp_load(a->in + out, m, (sp_vec){ 0 });
    bytes b = { 0 };
    sp_ivec id;

    memcpy(&b, a->tap + out, (size_t)m);
    id = __builtin_convertvector(b, sp_ivec);
    for (int k = 0; k < t->count; k++)
        give(a, t->at[k] + i, sp_where(id == t->id[k], dy), m);
}

static void max_back(const sp_pool_shape *s, const float *dy,
                     const uint8_t *tap, float *dx, bool store)
{
    arrays a = { .in = dy, .out = dx, .tap = (uint8_t *)tap, .store = store };

    walk(s, &a, max_back_window);
}

SP_INLINE void average_back_window(const arrays *a, const taps *t, size_t out,
                                   size_t i, int m)
{
    sp_vec dy = sp_load(a->in + out, m, (sp_vec){ 0 }) * a->factor;

    for (int k = 0; k < t->count; k++)
        give(a, t->at[k] + i, dy, m);
}

static void average_back(const sp_pool_shape *s, const float *dy, float *dx,
                         bool store)
{
    arrays a = { .in = dy, .out = dx, .factor = share(s), .store = store };

    walk(s, &a, average_back_window);
}

extern const sp_windows SP_FOR_ISA(sp_windows);

const sp_windows SP_FOR_ISA(sp_windows) = {
    .max = max,
    .average = average,
    .max_back = max_back,
    .average_back = average_back,
};
