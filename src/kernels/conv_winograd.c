/* Forward and backward-input passes by Winograd's tiles.
 *
 * A block of tiles is transformed to its points, multiplied there by the
 * weights, which are transformed once a call, and transformed back. The
 * backward pass is the forward pass over dy with the weights turned around.
 */
#include "kernels/conv_winograd.h"

#include <string.h>

enum {
    /* Bytes of weights that each thread may stream for every block of its own,
     * and of such a block, which stays in its second cache. */
    WEIGHTS = 3 << 20,
    BLOCK = 384 << 10,
    /* Bytes of a block of all threads: as little as still hides the streaming
     * of the weights, half of theirs, within these limits. */
    TOGETHER_LEAST = 8 << 20,
    TOGETHER_MOST = 20 << 20,
    PAD = 16, /* floats: matrices at powers of two would evict each other */
    MIN_BLOCKS = 32,
    TRANSFORMS = 4 /* tiles of a part of the work */
};

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static size_t between(size_t n, size_t least, size_t most)
{
    return n < least ? least : n > most ? most : n;
}

static void set_sides(sp_winograd_pass *w, bool back)
{
    const sp_conv_shape *s = &w->f.s;
    sp_tiling x = { .h = s->h, .w = s->w, .c = s->cin };
    sp_tiling y = { .h = s->oh, .w = s->ow, .c = s->cout };

    w->in = back ? y : x;
    w->out = back ? x : y;
    w->in.side = w->m + 2;
    w->in.origin = back ? s->pad - 2 : -s->pad;
    w->out.side = w->m;
    w->across = (w->out.w + w->m - 1) / w->m;
    w->down = (w->out.h + w->m - 1) / w->m;
    w->image = (size_t)w->across * (size_t)w->down;
    w->tiles = w->f.images * w->image;
}

/* How many tiles make a block; their number changes no bits. */
static void cut_tiles(sp_winograd_pass *w)
{
    size_t rows = (size_t)w->loops->rows, points = (size_t)w->points;
    size_t depth = round_up((size_t)w->in.c, (size_t)w->loops->vl);
    size_t tile = sizeof(float) * points * (depth + w->width);
    size_t weights = sizeof(float) * points * depth * w->width;

    w->large = weights > WEIGHTS;
    if (w->large) {
        size_t bytes = between(weights / 2, TOGETHER_LEAST, TOGETHER_MOST);
        w->block_tiles = between(bytes / tile, 1, w->tiles);
    } else {
        size_t most = w->tiles / MIN_BLOCKS;
        w->block_tiles = between(BLOCK / tile, 1, most > 0 ? most : 1);
    }
    w->block_tiles = round_up(w->block_tiles, rows);
    w->from = (sp_points){ NULL, depth, w->block_tiles * depth + PAD };
    w->to = (sp_points){ NULL, w->width, w->block_tiles * w->width + PAD };
    w->set_floats = points * (w->from.step + w->to.step);
}

void sp_winograd_open(sp_winograd_pass *w, const sp_conv_call *call,
                      sp_pass pass)
{
    int m = call->how.tile;

    *w = (sp_winograd_pass){
        .how = call->how,
        .loops = call->how.kernels->winograd,
        .f = sp_conv_simplify(&call->s, call->n),
        .m = m,
        .points = (m + 2) * (m + 2),
        .index = m == 2 ? 0 : 1,
    };
    set_sides(w, pass == SP_BACKWARD_INPUT);
    w->blocks = sp_blocks_of(w->out.c, w->loops->vl);
    w->width = (size_t)sp_blocks_width(&w->blocks);
    cut_tiles(w);
}

void sp_winograd_share(sp_winograd_pass *w, size_t pieces)
{
    size_t threads = sp_conv_threads(&w->how);

    w->together = w->large || pieces < threads;
    w->sets = w->together ? 1 : (int)threads;
}

static size_t zero_floats(const sp_winograd_pass *w)
{
    return w->from.ld > w->width ? w->from.ld : w->width;
}

static void carve_tables(const sp_winograd_pass *w, sp_tiling *t, sp_carver *c)
{
    size_t side = (size_t)t->side * sizeof(int);

    t->row = sp_carve(c, side * (size_t)w->down);
    t->col = sp_carve(c, side * (size_t)w->across);
}

void sp_winograd_carve(sp_winograd_pass *w, sp_carver *c)
{
    w->zeros = sp_carve(c, sizeof(float) * zero_floats(w));
    carve_tables(w, &w->in, c);
    carve_tables(w, &w->out, c);
    w->from.base = sp_carve(c, sizeof(float) * (size_t)w->sets * w->set_floats);
    w->to.base = w->from.base;
    if (w->to.base)
        w->to.base += (size_t)w->points * w->from.step;
}

/* Along one axis of `size` pixels, `step` floats apart. */
static void fill_table(const sp_winograd_pass *w, const sp_tiling *t, int tiles,
                       int size, int step, int *at)
{
    for (int i = 0; i < tiles; i++)
        for (int j = 0; j < t->side; j++) {
            int pixel = i * w->m + t->origin + j;
            *at++ = pixel < 0 || pixel >= size ? -1 : pixel * step;
        }
}

void sp_winograd_fill(const sp_winograd_pass *w)
{
    const sp_tiling *all[] = { &w->in, &w->out };

    memset(w->zeros, 0, sizeof(float) * zero_floats(w));
    for (int i = 0; i < 2; i++) {
        const sp_tiling *t = all[i];
        fill_table(w, t, w->down, t->h, t->w * t->c, t->row);
        fill_table(w, t, w->across, t->w, t->c, t->col);
    }
}

void sp_winograd_locate(const sp_winograd_pass *w, const sp_tiling *t,
                        size_t tile, const float *base, const float *outside,
                        const float **pixel)
{
    int side = t->side;

    if (tile >= w->tiles) {
        for (int i = 0; i < side * side; i++)
            pixel[i] = outside;
        return;
    }
    size_t image = tile / w->image, at = tile % w->image;
    const int *row = t->row + at / (size_t)w->across * (size_t)side;
    const int *col = t->col + at % (size_t)w->across * (size_t)side;
    base += image * (size_t)t->h * (size_t)t->w * (size_t)t->c;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            *pixel++ =
                (row[y] | col[x]) < 0 ? outside : base + (row[y] + col[x]);
}

/* A pass that writes images. */
typedef struct gather {
    sp_winograd_pass w;
    size_t blocks; /* of tiles */
    size_t u_step; /* floats of the weights at one point */
    float *u;      /* points x blocks x depth x width of the block */
    float *panels; /* the weights as they are packed, only before the
                      points are in use: in the same memory */
    float *start;  /* bias, whole vectors; or zeros */
    float *dump;   /* [threads]: pixels outside the image */
    bool back;
    const float *x;
    float *y;
    float beta;
} gather;

/* Gives the bytes of work space. */
static size_t gather_open(gather *g, const sp_conv_call *call, sp_pass pass)
{
    sp_carver c = { .base = call->scratch }, packed;
    sp_winograd_pass *w = &g->w;
    size_t threads = sp_conv_threads(&call->how);
    size_t depth;

    *g = (gather){ .back = pass == SP_BACKWARD_INPUT };
    sp_winograd_open(w, call, pass);
    g->blocks = (w->tiles + w->block_tiles - 1) / w->block_tiles;
    sp_winograd_share(w, g->blocks);
    depth = (size_t)w->in.c;
    g->u_step = w->width * depth;
    g->start = sp_carve(&c, sizeof(float) * w->width);
    g->dump = sp_carve(&c, sizeof(float) * threads * w->width);
    g->u = sp_carve(&c, sizeof(float) * (size_t)w->points * g->u_step);
    packed = c;
    g->panels = sp_carve(&packed, sizeof(float) * 9 * g->u_step);
    sp_winograd_carve(w, &c);
    return c.used > packed.used ? c.used : packed.used;
}

/* ---- Weights at all points ---------------------------------------------- */

static void filter_part(void *arg, size_t begin, size_t end)
{
    const gather *g = arg;
    const sp_winograd_pass *w = &g->w;
    size_t depth = (size_t)w->in.c;

    for (size_t i = begin; i < end; i++) {
        /* A row: one input channel's weights for the outputs of one block. */
        sp_block b = sp_block_at(&w->blocks, (int)(i / depth));
        size_t row = i % depth * (size_t)b.width;
        size_t taps = depth * (size_t)b.width;
        const float *panel = g->panels + (size_t)b.first * depth * 9 + row;
        float *u = g->u + (size_t)b.first * depth + row;
        if (g->back)
            w->loops->filter[w->index](panel + 8 * taps, -(ptrdiff_t)taps,
                                       b.width, u, g->u_step);
        else
            w->loops->filter[w->index](panel, (ptrdiff_t)taps, b.width, u,
                                       g->u_step);
    }
}

static void transform_filter(gather *g, const float *weights)
{
    const sp_winograd_pass *w = &g->w;

    if (g->back)
        sp_pack_backward(&w->how, &w->f, weights, g->panels);
    else
        sp_pack_forward(&w->how, &w->f, weights, g->panels);
    sp_parallel_for(w->how.threads, (size_t)w->blocks.count * (size_t)w->in.c,
                    16, filter_part, g);
}

/* ---- Blocks of tiles ---------------------------------------------------- */

typedef struct block_work {
    const gather *g;
    int threads;         /* that work on this block */
    size_t first, count; /* tiles, whole rows of products */
    sp_points from, to;
    float *dump;
} block_work;

static void inputs(void *arg, size_t begin, size_t end)
{
    const block_work *b = arg;
    const sp_winograd_pass *w = &b->g->w;
    const float *pixel[SP_WINOGRAD_MOST];

    for (size_t i = begin; i < end; i++) {
        sp_winograd_locate(w, &w->in, b->first + i, b->g->x, w->zeros, pixel);
        w->loops->input[w->index](pixel, w->in.c, b->from.base + i * b->from.ld,
                                  b->from.step);
    }
}

static void products(void *arg, size_t begin, size_t end)
{
    const block_work *b = arg;
    const gather *g = b->g;
    const sp_winograd_pass *w = &g->w;
    size_t count = (size_t)w->blocks.count;

    for (size_t i = begin; i < end; i++) {
        size_t point = i / count;
        sp_block k = sp_block_at(&w->blocks, (int)(i % count));
        w->loops->multiply[k.vectors - 1](&(sp_point_product){
            .a = b->from.base + point * b->from.step,
            .b = g->u + point * g->u_step + (size_t)k.first * (size_t)w->in.c,
            .c = b->to.base + point * b->to.step + k.first,
            .lda = b->from.ld,
            .ldc = b->to.ld,
            .rows = (int)b->count,
            .depth = w->in.c,
        });
    }
}

static void outputs(void *arg, size_t begin, size_t end)
{
    const block_work *b = arg;
    const gather *g = b->g;
    const sp_winograd_pass *w = &g->w;
    float *dump = b->dump + (size_t)sp_worker(b->threads) * w->width;
    const float *pixel[SP_WINOGRAD_MOST];

    for (size_t i = begin; i < end && b->first + i < w->tiles; i++) {
        sp_winograd_locate(w, &w->out, b->first + i, g->y, dump, pixel);
        w->loops->output[w->index](
            b->to.base + i * b->to.ld, b->to.step, w->out.c,
            &(sp_winograd_output){ .y = (float *const *)pixel,
                                   .start = g->start,
                                   .beta = g->beta });
    }
}

static void run_block(const gather *g, size_t block, size_t set, int threads)
{
    const sp_winograd_pass *w = &g->w;
    size_t items = (size_t)w->points * (size_t)w->blocks.count;
    size_t left;
    block_work b = {
        .g = g,
        .threads = threads,
        .first = block * w->block_tiles,
        .from = sp_winograd_set(w, &w->from, set),
        .to = sp_winograd_set(w, &w->to, set),
        .dump = g->dump + set * w->width,
    };

    left = round_up(w->tiles - b.first, (size_t)w->loops->rows);
    b.count = left < w->block_tiles ? left : w->block_tiles;
    sp_parallel_for(threads, b.count, TRANSFORMS, inputs, &b);
    sp_parallel_for(threads, items, 1, products, &b);
    sp_parallel_for(threads, b.count, TRANSFORMS, outputs, &b);
}

static void run_blocks(void *arg, size_t begin, size_t end)
{
    const gather *g = arg;
    size_t set = (size_t)sp_worker(g->w.how.threads);

    for (size_t i = begin; i < end; i++)
        run_block(g, i, set, 1);
}

static void gather_run(gather *g, const float *weights, const float *bias)
{
    const sp_winograd_pass *w = &g->w;
    size_t threads = sp_conv_threads(&w->how);

    transform_filter(g, weights);
    sp_winograd_fill(w);
    memset(g->dump, 0, sizeof(float) * threads * w->width);
    memset(g->start, 0, sizeof(float) * w->width);
    if (bias)
        memcpy(g->start, bias, sizeof(float) * (size_t)w->out.c);
    if (!w->together) {
        sp_parallel_for(w->how.threads, g->blocks, 1, run_blocks, g);
        return;
    }
    for (size_t i = 0; i < g->blocks; i++)
        run_block(g, i, 0, w->how.threads);
}

size_t sp_winograd_scratch(const sp_conv_call *c, sp_pass pass)
{
    gather g;

    return gather_open(&g, c, pass);
}

void sp_winograd_forward(const sp_conv_call *c, const float *x, const float *w,
                         const float *b, float *y)
{
    gather g;

    gather_open(&g, c, SP_FORWARD);
    g.x = x;
    g.y = y;
    gather_run(&g, w, b);
}

void sp_winograd_backward(const sp_conv_call *c, const float *dy,
                          const float *w, float *dx, float beta)
{
    gather g;

    gather_open(&g, c, SP_BACKWARD_INPUT);
    g.x = dy;
    g.y = dx;
    g.beta = beta;
    gather_run(&g, w, NULL);
}
