/* Backward-weight pass by Winograd's tiles.
 *
 * Blocks of tiles of x and of dy are transformed to their points, where their
 * products are summed over the tiles; the sums are transformed to weights at
 * the end. The tiles are cut into parts, by size, each with its own sums.
 */
#include "kernels/conv_winograd.h"

enum {
    /* How tiles are cut into parts: this changes bits. At most so many parts,
     * of at least so many tiles each; one where the sums have more bytes. */
    PARTS = 16,
    PART = 256,
    SUMS = 3 << 20,
    CHANNELS = 64, /* of x, in an item of work */
    TRANSFORMS = 4
};

typedef struct sums {
    sp_winograd_pass w;
    size_t parts;
    size_t point_floats; /* sums at one point */
    float *du;     /* [parts] points x blocks x cin x width of the block */
    float *panels; /* the gradient, packed */
    const float *x, *dy;
} sums;

static size_t parts_of(size_t tiles)
{
    size_t parts = tiles / PART;

    return parts < 1 ? 1 : parts < PARTS ? parts : PARTS;
}

/* Gives the bytes of work space. */
static size_t sums_open(sums *s, const sp_conv_call *call)
{
    sp_carver c = { .base = call->scratch };
    sp_winograd_pass *w = &s->w;

    *s = (sums){ .parts = 1 };
    sp_winograd_open(w, call, SP_BACKWARD_WEIGHT);
    s->point_floats = w->width * (size_t)w->in.c;
    if (sizeof(float) * (size_t)w->points * s->point_floats <= SUMS)
        s->parts = parts_of(w->tiles);
    sp_winograd_share(w, s->parts);
    s->du = sp_carve(&c, sizeof(float) * s->parts * (size_t)w->points *
                             s->point_floats);
    s->panels = sp_carve(&c, sizeof(float) * 9 * s->point_floats);
    sp_winograd_carve(w, &c);
    return c.used;
}

typedef struct block_work {
    const sums *s;
    size_t first, count; /* tiles */
    sp_points from, to;
    float *du;
    bool add;
} block_work;

static void transforms(void *arg, size_t begin, size_t end)
{
    const block_work *b = arg;
    const sp_winograd_pass *w = &b->s->w;
    const float *pixel[SP_WINOGRAD_MOST];

    for (size_t i = begin; i < end; i++) {
        sp_winograd_locate(w, &w->in, b->first + i, b->s->x, w->zeros, pixel);
        w->loops->input[w->index](pixel, w->in.c, b->from.base + i * b->from.ld,
                                  b->from.step);
        sp_winograd_locate(w, &w->out, b->first + i, b->s->dy, w->zeros, pixel);
        w->loops->gradient[w->index](pixel, w->out.c, b->to.base + i * b->to.ld,
                                     b->to.step);
    }
}

static int ranges_of(const sp_winograd_pass *w)
{
    return (w->in.c + CHANNELS - 1) / CHANNELS;
}

static void products(void *arg, size_t begin, size_t end)
{
    const block_work *b = arg;
    const sp_winograd_pass *w = &b->s->w;
    size_t blocks = (size_t)w->blocks.count, ranges = (size_t)ranges_of(w);

    for (size_t i = begin; i < end; i++) {
        size_t point = i / (blocks * ranges), range = i % ranges;
        sp_block k = sp_block_at(&w->blocks, (int)(i / ranges % blocks));
        size_t c = range * CHANNELS, left = (size_t)w->in.c - c;
        w->loops->sum_rows[k.vectors - 1](&(sp_point_sum){
            .a = b->from.base + point * b->from.step + c,
            .b = b->to.base + point * b->to.step + k.first,
            .c = b->du + point * b->s->point_floats +
                 (size_t)k.first * (size_t)w->in.c + c * (size_t)k.width,
            .lda = b->from.ld,
            .ldb = b->to.ld,
            .rows = (int)b->count,
            .depth = left < CHANNELS ? (int)left : CHANNELS,
            .add = b->add,
        });
    }
}

/* The tiles of a part into its sums. */
static void run_part(const sums *s, size_t part, size_t set, int threads)
{
    const sp_winograd_pass *w = &s->w;
    size_t end = w->tiles * (part + 1) / s->parts;
    size_t items =
        (size_t)w->points * (size_t)w->blocks.count * (size_t)ranges_of(w);
    block_work b = {
        .s = s,
        .first = w->tiles * part / s->parts,
        .from = sp_winograd_set(w, &w->from, set),
        .to = sp_winograd_set(w, &w->to, set),
        .du = s->du + part * (size_t)w->points * s->point_floats,
    };

    for (; b.first < end; b.first += b.count, b.add = true) {
        size_t left = end - b.first;
        b.count = left < w->block_tiles ? left : w->block_tiles;
        sp_parallel_for(threads, b.count, TRANSFORMS, transforms, &b);
        sp_parallel_for(threads, items, 1, products, &b);
    }
}

static void run_parts(void *arg, size_t begin, size_t end)
{
    const sums *s = arg;
    size_t set = (size_t)sp_worker(s->w.how.threads);

    for (size_t i = begin; i < end; i++)
        run_part(s, i, set, 1);
}

/* The sums of a row, one input channel and the outputs of one block, to its
 * weights. */
static void weights_part(void *arg, size_t begin, size_t end)
{
    const sums *s = arg;
    const sp_winograd_pass *w = &s->w;
    size_t depth = (size_t)w->in.c;

    for (size_t i = begin; i < end; i++) {
        sp_block b = sp_block_at(&w->blocks, (int)(i / depth));
        size_t row = i % depth * (size_t)b.width;
        w->loops->filter_gradient[w->index](
            s->du + (size_t)b.first * depth + row, s->point_floats,
            (int)s->parts, (size_t)w->points * s->point_floats, b.width,
            s->panels + (size_t)b.first * depth * 9 + row,
            depth * (size_t)b.width);
    }
}

size_t sp_winograd_weight_scratch(const sp_conv_call *c)
{
    sums s;

    return sums_open(&s, c);
}

void sp_winograd_weight(const sp_conv_call *c, const float *x, const float *dy,
                        float *dw, float beta)
{
    sums s;
    const sp_winograd_pass *w = &s.w;

    sums_open(&s, c);
    s.x = x;
    s.dy = dy;
    sp_winograd_fill(w);
    for (size_t i = 0; w->together && i < s.parts; i++)
        run_part(&s, i, 0, w->how.threads);
    if (!w->together)
        sp_parallel_for(w->how.threads, s.parts, 1, run_parts, &s);
    sp_parallel_for(w->how.threads, (size_t)w->blocks.count * (size_t)w->in.c,
                    16, weights_part, &s);
    sp_unpack_gradient(
        &w->how, &w->f,
        &(sp_unpacking){
            .panels = s.panels, .parts = 1, .dw = dw, .beta = beta });
}
