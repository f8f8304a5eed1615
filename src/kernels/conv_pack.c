/* Weights between PyTorch's order and the order in which tiles read them. */
#include <string.h>

#include "kernels/conv.h"

/* Channels that one part of the work moves: the packed side of a part, which
 * is touched once for every column, then stays in the first cache. */
enum { CHANNELS = 16 };

typedef struct pack_work {
    const sp_conv_form *f;
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
    return p;
}

/* The stored weights of `channels` input channels, a row of channels x taps,
 * against one column of a panel, whose taps are `step` apart. */
static inline void to_column(const float *row, int channels, size_t taps,
                             float *column, size_t width, size_t step)
{
    for (int i = 0; i < channels; i++, column += width)
        for (size_t t = 0; t < taps; t++)
            column[t * step] = *row++;
}

static inline void from_column(float *row, int channels, size_t taps,
                               const float *column, size_t width, size_t step,
                               float beta)
{
    for (int i = 0; i < channels; i++, column += width)
        for (size_t t = 0; t < taps; t++, row++)
            *row = (beta == 0.0f ? 0.0f : beta * *row) + column[t * step];
}

static size_t stored_row(const pack_work *w, const pack_part *p, int j)
{
    size_t o =
        (size_t)p->group * (size_t)w->f->cout + (size_t)(p->block.first + j);

    return o * row_length(w->f) + (size_t)p->begin * (size_t)w->f->stored_taps;
}

static void pack_forward(const pack_work *w, const pack_part *p)
{
    size_t width = (size_t)p->block.width, taps = (size_t)w->f->stored_taps;
    size_t step = (size_t)w->f->stored_cin * width;
    int channels = p->end - p->begin;
    float *column = p->panel + (size_t)p->begin * width;

    if (p->block.valid < p->block.width)
        for (size_t t = 0; t < taps; t++)
            memset(column + t * step, 0,
                   sizeof(float) * (size_t)channels * width);
    for (int j = 0; j < p->block.valid; j++, column++) {
        const float *row = w->w + stored_row(w, p, j);
        /* The usual numbers as constants, for the compiler. */
        if (taps == 1)
            to_column(row, channels, 1, column, width, step);
        else if (taps == 9)
            to_column(row, channels, 9, column, width, step);
        else
            to_column(row, channels, taps, column, width, step);
    }
}

static void pack_forward_parts(void *arg, size_t begin, size_t end)
{
    const pack_work *w = arg;

    for (size_t i = begin; i < end; i++) {
        pack_part p = pack_at(w, i, row_length(w->f));
        pack_forward(w, &p);
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

static void pack_backward(const pack_work *w, const pack_part *p)
{
    const sp_conv_form *f = w->f;
    size_t width = (size_t)p->block.width, valid = (size_t)p->block.valid;
    size_t taps = (size_t)f->taps, step = (size_t)f->cout * width;
    size_t first = (size_t)p->group * (size_t)f->cout;
    size_t at[2 * SP_MAX_VL];

    for (size_t j = 0; j < valid; j++)
        at[j] = channel_at(f, p->block.first + (int)j);
    for (int o = p->begin; o < p->end; o++) {
        const float *row = w->w + (first + (size_t)o) * row_length(f);
        float *to = p->panel + (size_t)o * width;
        for (size_t t = 0; t < taps; t++, to += step, row++) {
            for (size_t j = 0; j < valid; j++)
                to[j] = row[at[j]];
            for (size_t j = valid; j < width; j++)
                to[j] = 0.0f;
        }
    }
}

static void pack_backward_parts(void *arg, size_t begin, size_t end)
{
    const pack_work *w = arg;
    size_t depth = (size_t)w->f->cout * (size_t)w->f->taps;

    for (size_t i = begin; i < end; i++) {
        pack_part p = pack_at(w, i, depth);
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

static void unpack(const pack_work *w, const pack_part *p)
{
    size_t width = (size_t)p->block.width, taps = (size_t)w->f->stored_taps;
    size_t step = (size_t)w->f->stored_cin * width;
    int channels = p->end - p->begin;
    const float *column = p->panel + (size_t)p->begin * width;
    float beta = w->unpack->beta;

    for (int j = 0; j < p->block.valid; j++, column++) {
        float *row = w->unpack->dw + stored_row(w, p, j);
        if (taps == 1)
            from_column(row, channels, 1, column, width, step, beta);
        else if (taps == 9)
            from_column(row, channels, 9, column, width, step, beta);
        else
            from_column(row, channels, taps, column, width, step, beta);
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
