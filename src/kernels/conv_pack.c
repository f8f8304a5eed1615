/* Weights between PyTorch's order and the order in which tiles read them. */
#include <string.h>

#include "kernels/conv.h"

/* Channels that one part of the work moves: the packed side of a part, which
 * is touched once for every column, then stays in the first cache. */
enum { CHANNELS = 16 };

typedef struct pack_work {
    const sp_conv_form *f;
    const sp_tiles *tiles;
    sp_blocks blocks;
    int depth; /* channels that the parts cut */
    int parts; /* of a block */
    const float *w;
    float *panels;
    const sp_unpacking *unpack;
} pack_work;

/* One part: of the channels of one block of one group. */
typedef struct pack_part {
    sp_block block;
    int group, begin, end;
    float *panel;
    size_t apart;     /* floats from column to column */
    size_t odd, even; /* to an odd channel, to an even one, from the last */
} pack_part;

static size_t row_length(const sp_conv_form *f)
{
    return (size_t)f->stored_cin * (size_t)f->stored_taps;
}

static pack_work pack_open(const sp_conv_how *how, const sp_conv_form *f,
                           int depth, int columns)
{
    return (pack_work){
        .f = f,
        .tiles = how->kernels->tiles,
        .blocks = sp_blocks_of(columns, how->kernels->tiles->vl),
        .depth = depth,
        .parts = (depth + CHANNELS - 1) / CHANNELS,
    };
}

static void pack_run(const sp_conv_how *how, pack_work *w, sp_body body)
{
    size_t count =
        (size_t)w->f->s.groups * (size_t)w->blocks.count * (size_t)w->parts;

    sp_parallel_for(how->threads, count, 4, body, w);
}

static pack_part pack_at(const pack_work *w, size_t item, size_t depth)
{
    size_t block = item / (size_t)w->parts, count = (size_t)w->blocks.count;
    pack_part p = {
        .block = sp_block_at(&w->blocks, (int)(block % count)),
        .group = (int)(block / count),
        .begin = (int)(item % (size_t)w->parts) * CHANNELS,
    };
    size_t column = (size_t)p.group * (size_t)sp_blocks_width(&w->blocks) +
                    (size_t)p.block.first;

    p.end = w->depth - p.begin < CHANNELS ? w->depth : p.begin + CHANNELS;
    p.panel = w->panels + column * depth;
    p.apart = 1;
    p.odd = p.even = (size_t)p.block.width;
    if (sp_layout_of(w->f, &p.block) == SP_PAIRS) {
        p.apart = 2;
        p.odd = 1;
        p.even = 2 * (size_t)p.block.width - 1;
    }
    return p;
}

static size_t stored_row(const pack_work *w, const pack_part *p, int j)
{
    size_t o =
        (size_t)p->group * (size_t)w->f->cout + (size_t)(p->block.first + j);

    return o * row_length(w->f) + (size_t)p->begin * (size_t)w->f->stored_taps;
}

static bool in_pairs(const pack_part *p) { return p->apart == 2; }

/* Where the weights of all columns stand in a panel of which the stored rows
 * hold floats from `q` on, counted from the part's first. */
static void panel_rows(const pack_work *w, const pack_part *p, int q, int count,
                       float **at)
{
    size_t width = (size_t)p->block.width, i = (size_t)p->begin;
    int taps = w->f->stored_taps, t = q % taps;

    i += (size_t)(q / taps);
    for (int c = 0; c < count; c++) {
        at[c] = p->panel + ((size_t)t * (size_t)w->f->stored_cin + i) * width;
        if (++t == taps) {
            t = 0;
            i++;
        }
    }
}

/* A part that is not in pairs, by squares: `vl` columns, as many floats of
 * their stored rows. */
static void pack_squares(const pack_work *w, const pack_part *p)
{
    int vl = w->tiles->vl, length = (p->end - p->begin) * w->f->stored_taps;
    const float *from[SP_MAX_VL];
    float *to[SP_MAX_VL];

    for (int q = 0; q < length; q += vl) {
        sp_square s = { .from = from, .to = to };
        s.columns = length - q < vl ? length - q : vl;
        panel_rows(w, p, q, s.columns, to);
        for (int j = 0; j < p->block.width; j += vl) {
            s.rows = p->block.valid - j < vl ? p->block.valid - j : vl;
            for (int r = 0; r < s.rows; r++)
                from[r] = w->w + stored_row(w, p, j + r) + q;
            w->tiles->transpose(&s);
            for (int c = 0; c < s.columns; c++)
                to[c] += vl;
        }
    }
}

static void pack_pairs(const pack_work *w, const pack_part *p)
{
    size_t width = (size_t)p->block.width, taps = (size_t)w->f->stored_taps;
    size_t step = (size_t)w->f->stored_cin * width;
    size_t channels = (size_t)(p->end - p->begin);
    float *column = p->panel + (size_t)p->begin * width;

    if (p->block.valid < p->block.width)
        for (size_t t = 0; t < taps; t++)
            memset(column + t * step, 0, sizeof(float) * channels * width);
    for (int j = 0; j < p->block.valid; j++) {
        const float *row = w->w + stored_row(w, p, j);
        float *to = column + 2 * j;
        for (int i = p->begin; i < p->end; i++) {
            for (size_t t = 0; t < taps; t++)
                to[t * step] = *row++;
            to += i % 2 ? p->even : p->odd;
        }
    }
}

static void pack_forward_parts(void *arg, size_t begin, size_t end)
{
    const pack_work *w = arg;

    for (size_t i = begin; i < end; i++) {
        pack_part p = pack_at(w, i, row_length(w->f));
        if (in_pairs(&p))
            pack_pairs(w, &p);
        else
            pack_squares(w, &p);
    }
}

void sp_pack_forward(const sp_conv_how *how, const sp_conv_form *f,
                     const float *w, float *panels)
{
    pack_work work = pack_open(how, f, f->stored_cin, f->cout);

    work.w = w;
    work.panels = panels;
    pack_run(how, &work, pack_forward_parts);
}

/* Where the weights of tap 0 of an input channel stand in a row. */
static size_t channel_at(const sp_conv_form *f, int channel)
{
    size_t i = (size_t)channel, cin = (size_t)f->stored_cin;

    return i % cin * (size_t)f->stored_taps + i / cin;
}

/* Whether the weights of a part's columns stand one after the other, with no
 * more taps than a vector holds. */
static bool in_squares(const pack_work *w, const pack_part *p)
{
    int taps = w->f->taps;

    return !in_pairs(p) && taps == w->f->stored_taps && taps > 1 &&
           taps <= w->tiles->vl;
}

static void pack_backward_squares(const pack_work *w, const pack_part *p)
{
    const sp_conv_form *f = w->f;
    int vl = w->tiles->vl, taps = f->taps;
    size_t width = (size_t)p->block.width, step = (size_t)f->cout * width;
    const float *end = w->w + (size_t)f->s.cout * row_length(f);
    const float *from[SP_MAX_VL];
    float *to[SP_MAX_VL];
    sp_square s = { .from = from, .to = to, .columns = taps };

    for (int o = p->begin; o < p->end; o++) {
        size_t row = (size_t)p->group * (size_t)f->cout + (size_t)o;
        const float *first =
            w->w + row * row_length(f) + (size_t)p->block.first * (size_t)taps;
        for (int j = 0; j < p->block.width; j += vl, first += vl * taps) {
            s.rows = p->block.valid - j < vl ? p->block.valid - j : vl;
            s.whole = end - first >= (ptrdiff_t)(s.rows - 1) * taps + vl;
            for (int r = 0; r < s.rows; r++)
                from[r] = first + (ptrdiff_t)r * taps;
            for (int t = 0; t < taps; t++)
                to[t] = p->panel + (size_t)t * step + (size_t)o * width + j;
            w->tiles->transpose(&s);
        }
    }
}

static void pack_backward(const pack_work *w, const pack_part *p)
{
    const sp_conv_form *f = w->f;
    size_t width = (size_t)p->block.width, valid = (size_t)p->block.valid;
    size_t taps = (size_t)f->taps, step = (size_t)f->cout * width;
    size_t first = (size_t)p->group * (size_t)f->cout;
    float *first_column = p->panel + (size_t)p->begin * width;
    bool alone = f->stored_taps == 1 && !in_pairs(p);
    size_t at[2 * SP_MAX_VL];

    for (size_t j = 0; j < valid; j++)
        at[j] = channel_at(f, p->block.first + (int)j);
    for (int o = p->begin; o < p->end; o++) {
        const float *row = w->w + (first + (size_t)o) * row_length(f);
        for (size_t t = 0; t < taps; t++, row++) {
            float *to = first_column + t * step;
            if (alone)
                memcpy(to, row + at[0], sizeof(float) * valid);
            else
                for (size_t j = 0; j < valid; j++)
                    to[j * p->apart] = row[at[j]];
            for (size_t j = valid; j < width; j++)
                to[j * p->apart] = 0.0f;
        }
        first_column += o % 2 ? p->even : p->odd;
    }
}

static void pack_backward_parts(void *arg, size_t begin, size_t end)
{
    const pack_work *w = arg;
    size_t depth = (size_t)w->f->cout * (size_t)w->f->taps;

    for (size_t i = begin; i < end; i++) {
        pack_part p = pack_at(w, i, depth);
        if (in_squares(w, &p))
            pack_backward_squares(w, &p);
        else
            pack_backward(w, &p);
    }
}

void sp_pack_backward(const sp_conv_how *how, const sp_conv_form *f,
                      const float *w, float *panels)
{
    pack_work work = pack_open(how, f, f->cout, f->cin);

    work.w = w;
    work.panels = panels;
    pack_run(how, &work, pack_backward_parts);
}

/* Add the other gradients to the first, in their order. */
static void combine(const pack_work *w, const pack_part *p)
{
    const sp_conv_form *f = w->f;
    size_t width = (size_t)p->block.width;
    size_t count = (size_t)(p->end - p->begin) * width;
    size_t whole = (size_t)f->s.groups * (size_t)sp_blocks_width(&w->blocks) *
                   row_length(f);

    for (int t = 0; t < f->stored_taps; t++) {
        size_t row = (size_t)t * (size_t)f->stored_cin + (size_t)p->begin;
        float *sum = p->panel + row * width;
        for (int part = 1; part < w->unpack->parts; part++) {
            const float *more = sum + (size_t)part * whole;
            for (size_t i = 0; i < count; i++)
                sum[i] += more[i];
        }
    }
}

/* The stored weights of a part's input channels, a row of channels x taps, from
 * one column of a panel, whose taps are `step` apart. What can be a constant is
 * one, for the compiler. */
static inline void from_column(const pack_part *p, float *row, size_t taps,
                               const float *column, size_t step, float beta,
                               bool pairs)
{
    size_t width = (size_t)p->block.width;

    for (int i = p->begin; i < p->end; i++) {
        for (size_t t = 0; t < taps; t++, row++)
            *row = (beta == 0.0f ? 0.0f : beta * *row) + column[t * step];
        column += !pairs ? width : i % 2 ? p->even : p->odd;
    }
}

static void unpack(const pack_work *w, const pack_part *p)
{
    size_t width = (size_t)p->block.width, taps = (size_t)w->f->stored_taps;
    size_t step = (size_t)w->f->stored_cin * width;
    const float *column = p->panel + (size_t)p->begin * width;
    float beta = w->unpack->beta;

    for (int j = 0; j < p->block.valid; j++, column += p->apart) {
        float *row = w->unpack->dw + stored_row(w, p, j);
        if (in_pairs(p))
            from_column(p, row, taps, column, step, beta, true);
        else if (taps == 1)
            from_column(p, row, 1, column, step, beta, false);
        else if (taps == 9)
            from_column(p, row, 9, column, step, beta, false);
        else
            from_column(p, row, taps, column, step, beta, false);
    }
}

static void unpack_parts(void *arg, size_t begin, size_t end)
{
    const pack_work *w = arg;

    for (size_t i = begin; i < end; i++) {
        pack_part p = pack_at(w, i, row_length(w->f));
        combine(w, &p);
        unpack(w, &p);
    }
}

void sp_unpack_gradient(const sp_conv_how *how, const sp_conv_form *f,
                        const sp_unpacking *u)
{
    pack_work work = pack_open(how, f, f->stored_cin, f->cout);

    work.panels = u->panels;
    work.unpack = u;
    pack_run(how, &work, unpack_parts);
}
