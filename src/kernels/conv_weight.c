/* Backward-weight pass.
 *
 *   dw[o,i,t] = beta * dw[o,i,t] + sum over m, q of x[m,q+t,i] * dy[m,q,o]
 *
 * One item of work holds a block of output channels, a range of input channels
 * and a range of images. It goes through its pixels in chunks whose gradients
 * are copied to adjacent memory once and then serve all taps.
 */
#include <limits.h>
#include <string.h>

#include "kernels/conv.h"

enum {
    CHUNK = SP_WEIGHT_CHUNK, /* pixels: their copied gradients stay in the first
                                cache */
    PART = 512, /* pixels that make a dw of their own worth its sum */
    RANGE = 64, /* input channels of an item */
    LINE = 16,  /* at a time: a line of the cache serves all taps, if many */
    MIN_ITEMS =
        32 /* fewer: images are cut as well, each part with its own dw */
};

/* Output pixels in ranges, and for each tap those that meet a pixel of x; of
 * all the images of a chunk, one after the other, where an image is no longer
 * than a range. */
typedef struct meetings {
    int range, count; /* pixels in a range; ranges of an image */
    size_t list;      /* most meetings of a tap */
    int *first;       /* [taps][count + 1]: into the tap's list, first image */
    int *x_at;        /* [taps][list]: float offset in the images of x */
    int *y_at;        /* [taps][list]: float offset in the copied range of dy */
} meetings;

typedef struct weight_pass {
    sp_conv_how how;
    const sp_tiles *tiles;
    sp_conv_form f;
    sp_meeting meeting;
    meetings meet;
    sp_blocks blocks;
    int pixels;          /* of an image of y */
    int ranges, parts;   /* of input channels; of images */
    int line;            /* input channels taken together */
    size_t chunk_images; /* images in a chunk */
    size_t part_floats;  /* of a packed dw */
    float *panels;       /* [parts] packed dw */
    float *copies;       /* [threads] chunks of dy */
    size_t copy_floats;
    const float *x, *dy;
} weight_pass;

static int cut_images(const weight_pass *w)
{
    size_t blocks =
        (size_t)w->f.s.groups * (size_t)w->blocks.count * (size_t)w->ranges;
    size_t parts = (MIN_ITEMS + blocks - 1) / blocks;
    size_t most = w->f.images * (size_t)w->pixels / PART;

    parts = parts < most ? parts : most;
    parts = parts < w->f.images ? parts : w->f.images;
    return parts > 0 ? (int)parts : 1;
}

static void meetings_layout(meetings *m, weight_pass *w, sp_carver *c)
{
    const sp_conv_shape *s = &w->f.s;
    size_t taps = (size_t)w->f.taps;
    size_t most = INT_MAX / ((size_t)s->h * (size_t)s->w * (size_t)s->cin);

    m->range = w->pixels < CHUNK ? w->pixels : CHUNK;
    m->count = (w->pixels + m->range - 1) / m->range;
    w->chunk_images = (size_t)(CHUNK / m->range);
    if (w->chunk_images > most)
        w->chunk_images = most;
    m->list = w->chunk_images * (size_t)w->pixels;
    m->first = sp_carve(c, sizeof(int) * taps * (size_t)(m->count + 1));
    m->x_at = sp_carve(c, sizeof(int) * (taps * m->list + SP_WEIGHT_AHEAD));
    m->y_at = sp_carve(c, sizeof(int) * taps * m->list);
}

/* Gives the bytes of work space. */
static size_t weight_open(weight_pass *w, const sp_conv_call *call,
                          void *scratch)
{
    sp_carver c = { .base = scratch };
    size_t threads = sp_conv_threads(&call->how);

    *w = (weight_pass){ .how = call->how, .tiles = call->how.kernels->tiles };
    w->f = sp_conv_simplify(&call->s, call->n);
    w->f.pairs = w->f.cin % 2 == 0 && w->f.stored_cin % 2 == 0;
    w->pixels = w->f.s.oh * w->f.s.ow;
    w->blocks = sp_blocks_of(w->f.cout, w->tiles->vl);
    w->ranges = (w->f.cin + RANGE - 1) / RANGE;
    w->line = w->f.taps > 1 ? LINE : RANGE;
    w->parts = cut_images(w);
    sp_meeting_layout(&w->meeting, &w->f, SP_FORWARD, &c);
    meetings_layout(&w->meet, w, &c);
    w->part_floats = (size_t)w->f.s.groups *
                     (size_t)sp_blocks_width(&w->blocks) * (size_t)w->f.cin *
                     (size_t)w->f.taps;
    w->panels = sp_carve(&c, sizeof(float) * (size_t)w->parts * w->part_floats);
    w->copy_floats =
        w->chunk_images * (size_t)w->meet.range * 2 * (size_t)w->tiles->vl;
    w->copies = sp_carve(&c, sizeof(float) * threads * w->copy_floats);
    return c.used;
}

/* The meetings of tap t in image m of a chunk. Gives how many there are up to
 * its end. */
static int fill_image(const weight_pass *w, int t, int image, int n)
{
    const sp_meeting *m = &w->meeting;
    const meetings *to = &w->meet;
    int *first = to->first + t * (to->count + 1);
    int *x_at = to->x_at + (size_t)t * to->list;
    int *y_at = to->y_at + (size_t)t * to->list;
    int wide = 2 * w->tiles->vl, q = 0;
    int x_first = image * w->f.s.h * w->f.s.w * w->f.s.cin;
    int y_first = image * to->range;

    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++, q++) {
            int at = sp_meet(m, y, x, t / m->kw, t % m->kw);
            if (image == 0 && q % to->range == 0)
                first[q / to->range] = n;
            if (at < 0)
                continue;
            x_at[n] = x_first + at;
            y_at[n++] = (y_first + q % to->range) * wide;
        }
    if (image == 0)
        first[to->count] = n;
    return n;
}

static void fill_taps(void *arg, size_t begin, size_t end)
{
    const weight_pass *w = arg;

    for (int t = (int)begin; t < (int)end; t++)
        for (int image = 0, n = 0; image < (int)w->chunk_images; image++)
            n = fill_image(w, t, image, n);
}

/* A block of output channels, a range of input channels, a part of images. */
typedef struct item {
    sp_block block;
    int group, begin, end;
    size_t first, last; /* images */
    float *panel;
    float *copy;
    bool add;
} item;

/* The channels from k on that are taken together, at all taps of a chunk. */
static void run_line(const weight_pass *w, const item *it, int r, size_t images,
                     const float *x, int k)
{
    const meetings *meet = &w->meet;
    size_t cin = (size_t)w->f.cin, width = (size_t)it->block.width;
    sp_layout layout = sp_layout_of(&w->f, &it->block);
    sp_weight_tile t = {
        .x = x + k,
        .dy = it->copy,
        .channels = it->end - k < w->line ? it->end - k : w->line,
        .add = it->add,
    };

    for (int tap = 0; tap < w->f.taps; tap++) {
        const int *first = meet->first + tap * (meet->count + 1) + r;
        size_t list = (size_t)tap * meet->list + (size_t)first[0];
        t.x_at = meet->x_at + list;
        t.y_at = meet->y_at + list;
        t.count = (first[1] - first[0]) * (int)images;
        t.dw = it->panel + ((size_t)tap * cin + (size_t)k) * width;
        w->tiles->weight_tile[layout](&t);
    }
}

/* One chunk: `count` images from `image`, range `r` of their pixels. */
static void run_chunk(const weight_pass *w, item *it, size_t image,
                      size_t count, int r)
{
    const sp_conv_shape *s = &w->f.s;
    bool pairs = sp_layout_of(&w->f, &it->block) == SP_PAIRS;
    size_t ld = (size_t)s->cout, range = (size_t)w->meet.range;
    size_t start = (size_t)r * range, left = (size_t)w->pixels - start;
    size_t step = (size_t)s->h * (size_t)s->w * (size_t)s->cin;
    const float *x = w->x + image * step + it->group * w->f.cin;
    const float *dy = w->dy + (image * (size_t)w->pixels + start) * ld +
                      it->group * w->f.cout + it->block.first;

    /* More than one image: the range is the whole image, so that the pixels of
     * all are adjacent. */
    (pairs ? w->tiles->copy_pairs
           : w->tiles->copy_rows)(dy, ld, count * (left < range ? left : range),
                                  it->block.valid, it->copy);
    for (int k = it->begin; k < it->end; k += w->line)
        run_line(w, it, r, count, x, k);
    it->add = true;
}

static void run_item(const weight_pass *w, size_t i)
{
    size_t part = i % (size_t)w->parts, rest = i / (size_t)w->parts;
    size_t range = rest % (size_t)w->ranges, block = rest / (size_t)w->ranges;
    size_t count = (size_t)w->blocks.count;
    size_t length = (size_t)w->f.cin * (size_t)w->f.taps;
    item it = {
        .block = sp_block_at(&w->blocks, (int)(block % count)),
        .group = (int)(block / count),
        .begin = (int)range * RANGE,
        .first = w->f.images * part / (size_t)w->parts,
        .last = w->f.images * (part + 1) / (size_t)w->parts,
        .copy = w->copies + (size_t)sp_worker(w->how.threads) * w->copy_floats,
    };
    size_t column = (size_t)it.group * (size_t)sp_blocks_width(&w->blocks) +
                    (size_t)it.block.first;

    it.end = w->f.cin - it.begin < RANGE ? w->f.cin : it.begin + RANGE;
    it.panel = w->panels + part * w->part_floats + column * length;
    for (size_t m = it.first; m < it.last; m += w->chunk_images) {
        size_t left = it.last - m;
        for (int r = 0; r < w->meet.count; r++)
            run_chunk(w, &it, m,
                      left < w->chunk_images ? left : w->chunk_images, r);
    }
}

static void run_items(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        run_item(arg, i);
}

size_t sp_weight_scratch(const sp_conv_call *c)
{
    weight_pass w;
    size_t bytes = weight_open(&w, c, NULL);
    size_t more = sp_rows_scratch(c, &w.f);

    return bytes > more ? bytes : more;
}

void sp_weight_backward(const sp_conv_call *c, const float *x, const float *dy,
                        float *dw, float beta)
{
    weight_pass w;
    size_t items;

    weight_open(&w, c, c->scratch);
    if (w.parts == 1 && sp_rows_pay(&w.f)) {
        sp_rows_weight(c, &w.f, x, dy, dw, beta);
        return;
    }
    w.x = x;
    w.dy = dy;
    sp_meeting_fill(&w.meeting, &w.f, SP_FORWARD);
    memset(w.meet.x_at + (size_t)w.f.taps * w.meet.list, 0,
           sizeof(int) * SP_WEIGHT_AHEAD);
    sp_parallel_for(w.how.threads, (size_t)w.f.taps, 1, fill_taps, &w);
    items = (size_t)w.f.s.groups * (size_t)w.blocks.count * (size_t)w.ranges *
            (size_t)w.parts;
    sp_parallel_for(w.how.threads, items, 1, run_items, &w);
    sp_unpack_gradient(
        &w.how, &w.f,
        &(sp_unpacking){
            .panels = w.panels, .parts = w.parts, .dw = dw, .beta = beta });
}
