/* Products of a few rows with the same weights again and again.
 *
 *   y[r][o] = beta * y[r][o] + sum over i of x[r][i] * w[o][i]
 *
 * Large weights come from memory at every call, and take about as long as the
 * products: each block of columns is therefore read once for up to BAND rows,
 * a piece that the first cache holds after the other.
 */
#include <cblas.h>
#include <string.h>

#include "kernels/conv.h"

enum {
    /* Most depth of a piece: of 32 columns, 32 KiB. */
    PIECE = 256,
    /* Rows of a band, and floats that a band reads before all columns of a
     * group have had them: half of the second cache. */
    BAND = 256,
    BAND_FLOATS = 1 << 18,
    /* A part of the work: long enough to hide its start, short enough for
     * threads to end together. In multiply-adds. */
    PART = 1 << 20
};

typedef struct product_work {
    const sp_packed *p;
    const sp_products *products;
    sp_blocks blocks; /* of the columns of a group */
    int groups;
    size_t floats;  /* of a group's packed weights */
    int piece;      /* depth of all pieces of a panel but the last */
    int begin, end; /* the depth that is taken now, in whole pieces */
    int n, bands;   /* rows, in bands of about equal size */
    const float *x;
    float *y;
    float beta;
} product_work;

static int groups_of(const sp_packed *p)
{
    return p->groups > 1 ? p->groups : 1;
}

/* The weights as those of a convolution of one pixel, whose columns are its
 * outputs or, transposed, its inputs. */
static sp_conv_form form_of(const sp_packed *p)
{
    int in = p->transposed ? p->out : p->in;
    int out = p->transposed ? p->in : p->out;
    int groups = groups_of(p);
    sp_conv_shape s = sp_linear_shape(in * groups, out * groups);

    s.groups = groups;
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
        memcpy(p->data, w,
               (size_t)groups_of(p) * sp_packed_size(how, p->in, p->out));
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

/* One item: a band of rows, a group, a block of its columns. */
static void run_item(const product_work *w, size_t item)
{
    size_t count = (size_t)w->blocks.count, groups = (size_t)w->groups;
    size_t group = item / count % groups;
    int band = (int)(item / count / groups), row = row_at(w->n, band, w->bands);
    int rows = row_at(w->n, band + 1, w->bands) - row;
    sp_block b = sp_block_at(&w->blocks, (int)(item % count));
    size_t in = (size_t)w->p->in, out = (size_t)w->p->out;
    const float *panel = w->p->data + group * w->floats + (size_t)b.first * in +
                         (size_t)w->begin * (size_t)b.width;
    const float *last = w->p->data + groups * w->floats;
    const float *x = w->x + ((size_t)row * groups + group) * in;
    float *y = w->y + ((size_t)row * groups + group) * out;

    for (int k = w->begin; k < w->end; k += w->piece) {
        int step = w->end - k < w->piece ? w->end - k : w->piece;
        size_t floats = (size_t)step * (size_t)b.width;
        sp_product t = { .x = x + k,
                         .w = panel,
                         .y = y + b.first,
                         .x_step = groups * in,
                         .y_step = groups * out,
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
static void reference_row(const product_work *w, size_t row)
{
    const sp_packed *p = w->p;
    size_t in = (size_t)p->in, out = (size_t)p->out;
    size_t first = row * (size_t)w->groups;

    for (size_t k = 0; k < (size_t)w->groups; k++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans,
                    p->transposed ? CblasNoTrans : CblasTrans, 1, p->out, p->in,
                    1.0f, w->x + (first + k) * in, p->in,
                    p->data + k * in * out, p->transposed ? p->out : p->in,
                    w->beta, w->y + (first + k) * out, p->out);
}

static void reference_rows(void *arg, size_t begin, size_t end)
{
    sp_blas_alone();
    for (size_t r = begin; r < end; r++)
        reference_row(arg, r);
}

/* Pieces of about the same depth, whole turns of the unrolled loops. */
static int piece_of(int in)
{
    enum { TURN = 8 };
    int pieces = in / PIECE + (in % PIECE > 0);
    int depth = in / pieces + (in % pieces > 0);

    return (depth + TURN - 1) / TURN * TURN;
}

/* All columns see a band's rows up to some depth before it goes on, so that
 * these stay in the second cache. The sums are the same. */
static void run_bands(const sp_conv_how *how, product_work *w)
{
    int in = w->p->in, rows, depth;
    size_t cost, grain;

    w->floats = (size_t)in * (size_t)sp_blocks_width(&w->blocks);
    w->piece = piece_of(in);
    w->bands = w->n / BAND + (w->n % BAND > 0);
    rows = w->n / w->bands + (w->n % w->bands > 0);
    depth = BAND_FLOATS / rows / w->piece * w->piece;
    cost = (size_t)rows * 2 * (size_t)w->blocks.vl *
           (size_t)(in < depth ? in : depth);
    grain = PART / cost > 0 ? PART / cost : 1;
    for (; w->begin < in; w->begin = w->end) {
        w->end = in - w->begin < depth ? in : w->begin + depth;
        sp_parallel_for(how->threads,
                        (size_t)w->bands * (size_t)w->groups *
                            (size_t)w->blocks.count,
                        grain, run_items, w);
    }
}

void sp_packed_product(const sp_conv_how *how, const sp_packed *p, int n,
                       const float *x, float *y, float beta)
{
    product_work w = { .p = p,
                       .products = how->kernels->products,
                       .blocks = sp_blocks_of(p->out, how->kernels->tiles->vl),
                       .groups = groups_of(p),
                       .n = n,
                       .x = x,
                       .y = y,
                       .beta = beta };

    if (n <= 0)
        return;
    if (how->reference)
        sp_parallel_for(how->threads, (size_t)n, 1, reference_rows, &w);
    else
        run_bands(how, &w);
}
