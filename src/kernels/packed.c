/* Products of a few rows with the same weights again and again.
 *
 *   y[r][o] = beta * y[r][o] + sum over i of x[r][i] * w[o][i]
 *
 * Large weights come from memory at every call, and take about as long as the
 * products: each block of columns is therefore read once for up to GROUP rows,
 * a piece that the first cache holds after the other.
 */
#include <cblas.h>
#include <string.h>

#include "kernels/conv.h"

enum {
    /* Most depth of a piece: of 32 columns, 32 KiB. */
    PIECE = 256,
    /* Rows of a group, and floats that a group reads before all columns have
     * had them: half of the second cache. */
    GROUP = 256,
    GROUP_FLOATS = 1 << 18,
    /* A part of the work: long enough to hide its start, short enough for
     * threads to end together. In multiply-adds. */
    PART = 1 << 20
};

typedef struct product_work {
    const sp_packed *p;
    const sp_products *products;
    sp_blocks blocks;
    size_t floats;  /* of the packed weights */
    int piece;      /* depth of all pieces of a panel but the last */
    int begin, end; /* the depth that is taken now, in whole pieces */
    int n, groups;  /* rows, in groups of about equal size */
    const float *x;
    float *y;
    float beta;
} product_work;

/* The weights as those of a convolution of one pixel, whose columns are its
 * outputs or, transposed, its inputs. */
static sp_conv_form form_of(const sp_packed *p)
{
    int in = p->transposed ? p->out : p->in;
    int out = p->transposed ? p->in : p->out;
    sp_conv_shape s = { .h = 1,
                        .w = 1,
                        .cin = in,
                        .oh = 1,
                        .ow = 1,
                        .cout = out,
                        .kh = 1,
                        .kw = 1,
                        .stride = 1,
                        .groups = 1 };

    return sp_conv_simplify(&s, 1);
}

size_t sp_packed_size(const sp_conv_how *how, int in, int out)
{
    sp_blocks b = sp_blocks_of(out, how->kernels->tiles->vl);
    int columns = how->reference ? out : sp_blocks_width(&b);

    return sizeof(float) * (size_t)in * (size_t)columns;
}

void sp_pack(const sp_conv_how *how, const sp_packed *p, const float *w)
{
    sp_conv_form f = form_of(p);

    if (how->reference)
        memcpy(p->data, w, sp_packed_size(how, p->in, p->out));
    else if (p->transposed)
        sp_pack_backward(how, &f, w, p->data);
    else
        sp_pack_forward(how, &f, w, p->data);
}

/* The first row of the i-th of `parts` of n rows. */
static int row_at(int n, int i, int parts)
{
    return (int)((int64_t)n * i / parts);
}

/* In tiles of about equal size. The first fetches one half of the next piece of
 * a block of two vectors, the second the other; what others would fetch is
 * there already. */
void sp_product_rows(const sp_products *p, const sp_product *all)
{
    int tiles = all->rows / p->rows + (all->rows % p->rows > 0);
    size_t half = (size_t)all->depth * (size_t)p->vl;
    sp_product t = *all;

    for (int i = 0; i < tiles; i++) {
        int first = row_at(all->rows, i, tiles);
        t.rows = row_at(all->rows, i + 1, tiles) - first;
        t.x = all->x + (size_t)first * all->x_step;
        t.y = all->y + (size_t)first * all->y_step;
        t.ahead = i < 2 ? all->ahead : all->w;
        if (i == 1 && all->vectors == 2)
            t.ahead += half;
        p->run(&t);
    }
}

/* One item: a group of rows, a block of columns. */
static void run_item(const product_work *w, size_t item)
{
    size_t count = (size_t)w->blocks.count;
    int group = (int)(item / count), row = row_at(w->n, group, w->groups);
    int rows = row_at(w->n, group + 1, w->groups) - row;
    sp_block b = sp_block_at(&w->blocks, (int)(item % count));
    size_t in = (size_t)w->p->in, out = (size_t)w->p->out;
    const float *panel =
        w->p->data + (size_t)b.first * in + (size_t)w->begin * (size_t)b.width;
    const float *last = w->p->data + w->floats;

    for (int k = w->begin; k < w->end; k += w->piece) {
        int step = w->end - k < w->piece ? w->end - k : w->piece;
        size_t floats = (size_t)step * (size_t)b.width;
        sp_product t = { .x = w->x + (size_t)row * in + k,
                         .w = panel,
                         .y = w->y + (size_t)row * out + b.first,
                         .x_step = in,
                         .y_step = out,
                         .rows = rows,
                         .depth = step,
                         .vectors = b.vectors,
                         .columns = b.valid,
                         .beta = k > 0 ? 1.0f : w->beta };
        bool more = (size_t)(last - panel) >= 2 * floats;
        t.ahead = more ? panel + floats : panel;
        sp_product_rows(w->products, &t);
        panel += floats;
    }
}

static void run_items(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        run_item(arg, i);
}

/* Row by row: BLAS sums in an order that depends on their number. */
static void reference_rows(void *arg, size_t begin, size_t end)
{
    const product_work *w = arg;
    const sp_packed *p = w->p;
    size_t in = (size_t)p->in, out = (size_t)p->out;

    sp_blas_alone();
    for (size_t r = begin; r < end; r++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans,
                    p->transposed ? CblasNoTrans : CblasTrans, 1, p->out, p->in,
                    1.0f, w->x + r * in, p->in, p->data,
                    p->transposed ? p->out : p->in, w->beta, w->y + r * out,
                    p->out);
}

/* Pieces of about the same depth, whole turns of the unrolled loops. */
static int piece_of(int in)
{
    enum { TURN = 8 };
    int pieces = in / PIECE + (in % PIECE > 0);
    int depth = in / pieces + (in % pieces > 0);

    return (depth + TURN - 1) / TURN * TURN;
}

/* All columns see a group's rows up to some depth before it goes on, so that
 * these stay in the second cache. The sums are the same. */
static void run_groups(const sp_conv_how *how, product_work *w)
{
    int in = w->p->in, rows, depth;
    size_t cost, grain;

    w->floats = (size_t)in * (size_t)sp_blocks_width(&w->blocks);
    w->piece = piece_of(in);
    w->groups = w->n / GROUP + (w->n % GROUP > 0);
    rows = w->n / w->groups + (w->n % w->groups > 0);
    depth = GROUP_FLOATS / rows / w->piece * w->piece;
    cost = (size_t)rows * 2 * (size_t)w->blocks.vl *
           (size_t)(in < depth ? in : depth);
    grain = PART / cost > 0 ? PART / cost : 1;
    for (; w->begin < in; w->begin = w->end) {
        w->end = in - w->begin < depth ? in : w->begin + depth;
        sp_parallel_for(how->threads,
                        (size_t)w->groups * (size_t)w->blocks.count, grain,
                        run_items, w);
    }
}

void sp_packed_product(const sp_conv_how *how, const sp_packed *p, int n,
                       const float *x, float *y, float beta)
{
    product_work w = { .p = p,
                       .products = how->kernels->products,
                       .blocks = sp_blocks_of(p->out, how->kernels->tiles->vl),
                       .n = n,
                       .x = x,
                       .y = y,
                       .beta = beta };

    if (n <= 0)
        return;
    if (how->reference)
        sp_parallel_for(how->threads, (size_t)n, 1, reference_rows, &w);
    else
        run_groups(how, &w);
}
