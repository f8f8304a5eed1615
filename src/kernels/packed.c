/* Products of a few rows with the same weights again and again.
 *
 *   y[r][o] = beta * y[r][o] + sum over i of x[r][i] * w[o][i]
 *
 * Large weights come from memory at every call, and take about as long as the
 * products: each block of columns is therefore read once, a piece that the
 * first cache holds after the other, and multiplied by all rows meanwhile.
 */
#include <cblas.h>
#include <string.h>

#include "kernels/conv.h"

enum {
    /* Most depth of a piece: of 32 columns, 32 KiB. */
    PIECE = 256,
    /* A part of the work: long enough to hide its start, short enough for
     * threads to end together. In multiply-adds. */
    PART = 1 << 20
};

typedef struct product_work {
    const sp_packed *p;
    const sp_products *products;
    sp_blocks blocks;
    size_t floats; /* of the packed weights */
    int piece;     /* depth of all pieces of a panel but the last */
    int n, tiles;  /* rows; tiles of rows, of about equal size */
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

size_t sp_packed_scratch(const sp_conv_how *how, int in, int out, int n)
{
    (void)how, (void)in, (void)out, (void)n;
    return 0;
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

/* All rows against one piece. Its first tile fetches half of the next piece of
 * a block of two vectors, the second the other; `ahead` is that piece. */
static void run_rows(const product_work *w, sp_product *t, const float *ahead)
{
    const float *x = t->x;
    float *y = t->y;

    for (int i = 0; i < w->tiles; i++) {
        int first = (int)((int64_t)w->n * i / w->tiles);
        t->rows = (int)((int64_t)w->n * (i + 1) / w->tiles) - first;
        t->x = x + (size_t)first * t->x_step;
        t->y = y + (size_t)first * t->y_step;
        t->ahead = ahead;
        if (i % 2 && t->vectors == 2)
            t->ahead += (size_t)t->depth * (size_t)w->blocks.vl;
        w->products->run(t);
    }
}

static void run_block(const product_work *w, int i)
{
    sp_block b = sp_block_at(&w->blocks, i);
    int in = w->p->in;
    const float *panel = w->p->data + (size_t)b.first * (size_t)in;
    const float *end = w->p->data + w->floats;

    for (int k = 0; k < in; k += w->piece) {
        int step = in - k < w->piece ? in - k : w->piece;
        size_t floats = (size_t)step * (size_t)b.width;
        sp_product t = { .x = w->x + k,
                         .w = panel,
                         .y = w->y + b.first,
                         .x_step = (size_t)in,
                         .y_step = (size_t)w->p->out,
                         .depth = step,
                         .vectors = b.vectors,
                         .columns = b.valid,
                         .beta = k > 0 ? 1.0f : w->beta };
        run_rows(w, &t,
                 (size_t)(end - panel) >= 2 * floats ? panel + floats : panel);
        panel += floats;
    }
}

static void run_blocks(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        run_block(arg, (int)i);
}

/* Row by row: BLAS sums in an order that depends on their number. */
static void reference_rows(void *arg, size_t begin, size_t end)
{
    const product_work *w = arg;
    const sp_packed *p = w->p;
    size_t in = (size_t)p->in, out = (size_t)p->out;

    openblas_set_num_threads(1);
    for (size_t r = begin; r < end; r++) {
        float *y = w->y + r * out;
        if (w->beta == 0.0f)
            memset(y, 0, sizeof(float) * out);
        cblas_sgemm(CblasRowMajor, CblasNoTrans,
                    p->transposed ? CblasNoTrans : CblasTrans, 1, p->out, p->in,
                    1.0f, w->x + r * in, p->in, p->data,
                    p->transposed ? p->out : p->in, w->beta, y, p->out);
    }
}

/* Pieces of about the same depth, whole turns of the unrolled loops. */
static int piece_of(int in)
{
    enum { TURN = 8 };
    int pieces = in / PIECE + (in % PIECE > 0);
    int depth = in / pieces + (in % pieces > 0);

    return (depth + TURN - 1) / TURN * TURN;
}

void sp_packed_product(const sp_conv_how *how, const sp_packed *p, int n,
                       const float *x, float *y, float beta, void *scratch)
{
    const sp_products *products = how->kernels->products;
    product_work w = { .p = p,
                       .products = products,
                       .blocks = sp_blocks_of(p->out, how->kernels->tiles->vl),
                       .n = n,
                       .x = x,
                       .y = y,
                       .beta = beta };
    size_t cost;

    (void)scratch;
    if (n <= 0)
        return;
    if (how->reference) {
        sp_parallel_for(how->threads, (size_t)n, 1, reference_rows, &w);
        return;
    }
    w.floats = (size_t)p->in * (size_t)sp_blocks_width(&w.blocks);
    w.piece = piece_of(p->in);
    w.tiles = n / products->rows + (n % products->rows > 0);
    cost = (size_t)n * (size_t)p->in * 2 * (size_t)w.blocks.vl;
    sp_parallel_for(how->threads, (size_t)w.blocks.count,
                    PART / cost > 0 ? PART / cost : 1, run_blocks, &w);
}
