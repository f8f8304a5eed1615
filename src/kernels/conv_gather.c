/* Forward and backward-input passes: both gather, for every pixel they write,
 * the pixels it meets at each tap.
 *
 *   forward:         y[m,q,o]  = b[o] + sum over t, i of x[m,q+t,i] * w[o,i,t]
 *   backward input:  dx[m,q,i] = beta * dx[m,q,i]
 *                              + sum over t, o of dy[m,q-t,o] * w[o,i,t]
 */
#include <string.h>

#include "kernels/conv.h"

enum {
    /* Maps of at most this many pixels are computed in tiles that hold the same
     * pixel of several images, so that taps outside the image cost nothing; in
     * larger maps those taps are few, and a tile of neighbours, whose inputs
     * overlap, is kinder to the cache. */
    SMALL_MAP = 64,
    /* Products in a row of a tile before it goes back to memory: the weights of
     * a block of columns then stay in the second cache, and long sums, added up
     * in pieces, are more exact. */
    LONG_SUM = 2560,
    /* A part of the work: long enough to hide its start, short enough for
     * threads to end together. In multiply-adds of a vector. */
    PART = 400000,
    MIN_PARTS = 32
};

typedef struct gather {
    sp_conv_how how;
    const sp_tiles *tiles;
    sp_conv_form f;
    sp_meeting meeting;
    sp_sites sites;
    sp_blocks blocks;
    int pixels;                   /* written of an image */
    bool across;                  /* a tile holds one pixel of several images */
    int depth, depth_step;        /* channels read of a group; at a time */
    size_t read_step, write_step; /* floats in an image */
    int read_c, write_c;          /* floats in a pixel */
    size_t panel_depth;           /* depth * taps */

    float *panels, *start;
    float *zeros; /* what pixels outside the image hold, along a run */
    size_t zero_count;
    char *work; /* of all threads */
    size_t work_bytes;

    const float *from;
    float *to;
    float beta;
    size_t tiles_total, tiles_part, parts; /* of a block of columns */
} gather;

/* What one thread works with. */
typedef struct thread_work {
    const float **x; /* [taps][rows] */
    float *edge;     /* [rows][block]: ragged columns */
    float *dump;     /* [block]: rows that do not exist */
} thread_work;

static bool is_across(const gather *g)
{
    size_t rows = (size_t)g->tiles->rows;
    return g->pixels == 1 ||
           (g->pixels <= SMALL_MAP &&
            (g->f.images >= 4 * rows || g->f.images % rows == 0));
}

/* Cut the tiles of a block of columns into parts. */
static void cut_tiles(gather *g)
{
    size_t rows = (size_t)g->tiles->rows, images = g->f.images;
    size_t cost = rows * 2 * g->panel_depth + 1;
    size_t blocks = (size_t)g->f.s.groups * (size_t)g->blocks.count;
    size_t fewest = (MIN_PARTS + blocks - 1) / blocks, most;

    g->tiles_total = (size_t)g->sites.count *
                     (g->across ? (images + rows - 1) / rows : images);
    g->tiles_part = PART / cost > 8 ? PART / cost : 8;
    most = g->tiles_total / fewest;
    if (g->tiles_part > most)
        g->tiles_part = most > 0 ? most : 1;
    g->parts = (g->tiles_total + g->tiles_part - 1) / g->tiles_part;
}

static void set_sides(gather *g, bool back)
{
    const sp_conv_shape *s = &g->f.s;
    size_t x = (size_t)s->h * (size_t)s->w * (size_t)s->cin;
    size_t y = (size_t)s->oh * (size_t)s->ow * (size_t)s->cout;

    g->pixels = back ? s->h * s->w : s->oh * s->ow;
    g->read_c = back ? s->cout : s->cin;
    g->write_c = back ? s->cin : s->cout;
    g->read_step = back ? y : x;
    g->write_step = back ? x : y;
    g->depth = back ? g->f.cout : g->f.cin;
    g->panel_depth = (size_t)g->depth * (size_t)g->f.taps;
}

static void carve_work(gather *g, sp_carver *c)
{
    size_t rows = (size_t)g->tiles->rows, wide = 2 * (size_t)g->tiles->vl;
    size_t threads = sp_conv_threads(&g->how);
    sp_carver one = { 0 };

    sp_carve(&one, sizeof(float *) * (size_t)g->f.taps * rows);
    sp_carve(&one, sizeof(float) * (rows + 1) * wide);
    g->work_bytes = one.used;
    g->work = sp_carve(c, threads * one.used);
}

/* Everything but the arrays. */
static void gather_open(gather *g, const sp_conv_call *call, sp_pass pass)
{
    bool back = pass == SP_BACKWARD_INPUT;
    int pieces;

    *g = (gather){ .how = call->how, .tiles = call->how.kernels->tiles };
    g->f = sp_conv_simplify(&call->s, call->n);
    set_sides(g, back);
    g->blocks = sp_blocks_of(back ? g->f.cin : g->f.cout, g->tiles->vl);
    pieces = (int)(g->panel_depth / LONG_SUM) + 1;
    g->depth_step = (g->depth + pieces - 1) / pieces;
    g->f.pairs = g->depth % 2 == 0 && g->depth_step % 2 == 0 &&
                 (back || g->f.stored_cin % 2 == 0);
    g->zero_count = (size_t)g->depth_step + 2 * (size_t)g->tiles->vl +
                    2 * (size_t)g->f.s.kw * (size_t)g->read_c;
}

/* Gives the bytes of work space. */
static size_t carve(gather *g, void *scratch, sp_pass pass)
{
    sp_carver c = { .base = scratch };
    size_t columns =
        (size_t)g->f.s.groups * (size_t)sp_blocks_width(&g->blocks);

    sp_meeting_layout(&g->meeting, &g->f, pass, &c);
    sp_sites_layout(&g->sites, &g->meeting, g->across ? 1 : g->tiles->rows, &c);
    g->panels = sp_carve(&c, sizeof(float) * columns * g->panel_depth);
    g->start = sp_carve(&c, sizeof(float) * columns);
    g->zeros = sp_carve(&c, sizeof(float) * g->zero_count);
    carve_work(g, &c);
    return c.used;
}

static thread_work work_of(const gather *g)
{
    size_t rows = (size_t)g->tiles->rows, wide = 2 * (size_t)g->tiles->vl;
    sp_carver c = { .base = g->work +
                            (size_t)sp_worker(g->how.threads) * g->work_bytes };
    thread_work b = { .x = sp_carve(&c, sizeof(float *) * (size_t)g->f.taps *
                                            rows) };

    b.edge = sp_carve(&c, sizeof(float) * (rows + 1) * wide);
    b.dump = b.edge + rows * wide;
    memset(b.dump, 0, sizeof(float) * wide);
    return b;
}

/* A block of columns of one group, and the channels it reads now. */
typedef struct strip {
    sp_block block;
    sp_layout layout;
    int group, begin, end;
    const float *panel, *start;
    float beta;
} strip;

/* Which tile: of an image, or of `rows` images. */
typedef struct tile_at {
    size_t image, site;
} tile_at;

/* Where the rows of a tile are read and written; rows that do not exist go to
 * the dump. */
static void rows_along(const gather *g, const strip *s, const thread_work *b,
                       const tile_at *at, float **y)
{
    const int *pixel = g->sites.pixel + at->site * (size_t)g->sites.span;
    size_t group = (size_t)(s->group * g->depth + s->begin);
    float *to = g->to + s->group * g->blocks.columns + s->block.first +
                at->image * g->write_step;

    for (int p = 0; p < g->tiles->rows; p++)
        y[p] =
            pixel[p] < 0 ? b->dump : to + (size_t)pixel[p] * (size_t)g->write_c;
    g->tiles->locate(
        g->sites.at + at->site * (size_t)g->sites.taps * (size_t)g->sites.span,
        g->sites.runs[at->site], g->from + at->image * g->read_step + group,
        g->zeros + (size_t)g->f.s.kw * (size_t)g->read_c, b->x);
}

static void rows_across(const gather *g, const strip *s, const thread_work *b,
                        const tile_at *at, float **y)
{
    size_t rows = (size_t)g->tiles->rows, first = at->image * rows;
    const float *from = g->from + s->group * g->depth + s->begin;
    float *to = g->to + s->group * g->blocks.columns + s->block.first +
                (size_t)g->sites.pixel[at->site] * (size_t)g->write_c;
    const float *base[SP_MAX_ROWS];

    for (size_t p = 0; p < rows; p++) {
        bool exists = first + p < g->f.images;
        y[p] = exists ? to + (first + p) * g->write_step : b->dump;
        base[p] = from + (exists ? first + p : 0) * g->read_step;
    }
    g->tiles->locate_across(g->sites.at + at->site * (size_t)g->sites.taps,
                            g->sites.runs[at->site], base, b->x);
}

/* A block with fewer columns than its vectors have is computed aside. */
static void run_edge(const gather *g, const strip *s, const thread_work *b,
                     sp_tile *t)
{
    size_t rows = (size_t)g->tiles->rows, width = (size_t)s->block.width;
    size_t bytes = sizeof(float) * (size_t)s->block.valid;
    float *const *y = t->y;
    float *edge[SP_MAX_ROWS];

    for (size_t p = 0; p < rows; p++) {
        edge[p] = b->edge + p * width;
        if (t->beta != 0.0f) {
            memset(edge[p], 0, sizeof(float) * width);
            memcpy(edge[p], y[p], bytes);
        }
    }
    t->y = edge;
    g->tiles->tile[s->layout](t);
    for (size_t p = 0; p < rows; p++)
        memcpy(y[p], edge[p], bytes);
}

static void run_strip(const gather *g, const strip *s, const thread_work *b,
                      size_t begin, size_t end)
{
    size_t sites = (size_t)g->sites.count;
    tile_at at = { .image = begin / sites, .site = begin % sites };
    float *y[SP_MAX_ROWS];
    sp_tile t = {
        .x = b->x,
        .depth = s->end - s->begin,
        .tap_step = g->meeting.tap_step,
        .shift = g->meeting.shift,
        .w = s->panel + (size_t)s->begin * (size_t)s->block.width,
        .w_step = (size_t)g->depth * (size_t)s->block.width,
        .start = s->start,
        .beta = s->beta,
    };

    for (size_t i = begin; i < end; i++) {
        if (g->across)
            rows_across(g, s, b, &at, y);
        else
            rows_along(g, s, b, &at, y);
        t.runs = g->sites.runs[at.site];
        t.run = g->sites.run + at.site * (size_t)g->sites.taps;
        t.y = y;
        if (s->block.valid < s->block.width)
            run_edge(g, s, b, &t);
        else
            g->tiles->tile[s->layout](&t);
        if (++at.site == sites) {
            at.site = 0;
            at.image++;
        }
    }
}

/* One item: a part of the tiles of one block of columns. */
static void gather_item(const gather *g, size_t item)
{
    size_t block = item / g->parts, part = item % g->parts;
    size_t count = (size_t)g->blocks.count;
    size_t begin = part * g->tiles_part, end = begin + g->tiles_part;
    thread_work b = work_of(g);
    strip s = { .block = sp_block_at(&g->blocks, (int)(block % count)),
                .group = (int)(block / count) };
    size_t column = (size_t)s.group * (size_t)sp_blocks_width(&g->blocks) +
                    (size_t)s.block.first;

    s.layout = sp_layout_of(&g->f, &s.block);
    s.panel = g->panels + column * g->panel_depth;
    s.start = g->start + column;
    s.beta = g->beta;
    end = end < g->tiles_total ? end : g->tiles_total;
    for (; s.begin < g->depth; s.begin = s.end) {
        s.end = s.begin + g->depth_step;
        s.end = s.end < g->depth ? s.end : g->depth;
        run_strip(g, &s, &b, begin, end);
        s.start = g->zeros;
        s.beta = 1.0f;
    }
}

static void gather_items(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        gather_item(arg, i);
}

/* `start`: what the sums of each column begin with, or NULL for zero. */
static void gather_run(gather *g, const float *start, sp_pass pass)
{
    size_t blocks = (size_t)g->f.s.groups * (size_t)g->blocks.count;
    size_t wide = (size_t)sp_blocks_width(&g->blocks);
    size_t columns = (size_t)g->blocks.columns;

    memset(g->start, 0, sizeof(float) * (size_t)g->f.s.groups * wide);
    for (size_t i = 0; start && i < (size_t)g->f.s.groups; i++)
        memcpy(g->start + i * wide, start + i * columns,
               sizeof(float) * columns);
    memset(g->zeros, 0, sizeof(float) * g->zero_count);
    sp_meeting_fill(&g->meeting, &g->f, pass);
    sp_sites_fill(&g->sites, &g->meeting, &g->how);
    cut_tiles(g);
    sp_parallel_for(g->how.threads, blocks * g->parts, 1, gather_items, g);
}

size_t sp_gather_scratch(const sp_conv_call *c, sp_pass pass)
{
    gather g;
    size_t along, across;

    /* A smaller batch may want the other kind of tile. */
    gather_open(&g, c, pass);
    along = carve(&g, NULL, pass);
    g.across = true;
    across = carve(&g, NULL, pass);
    return along > across ? along : across;
}

static void gather_start(gather *g, const sp_conv_call *c, sp_pass pass)
{
    gather_open(g, c, pass);
    g->across = is_across(g);
    carve(g, c->scratch, pass);
}

void sp_gather_forward(const sp_conv_call *c, const float *x, const float *w,
                       const float *b, float *y)
{
    gather g;

    gather_start(&g, c, SP_FORWARD);
    g.from = x;
    g.to = y;
    sp_pack_forward(&c->how, &g.f, w, g.panels);
    gather_run(&g, b, SP_FORWARD);
}

void sp_gather_backward(const sp_conv_call *c, const float *dy, const float *w,
                        float *dx, float beta)
{
    gather g;

    gather_start(&g, c, SP_BACKWARD_INPUT);
    g.from = dy;
    g.to = dx;
    g.beta = beta;
    sp_pack_backward(&c->how, &g.f, w, g.panels);
    gather_run(&g, NULL, SP_BACKWARD_INPUT);
}
