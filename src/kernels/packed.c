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
    /* Depth of a piece: its sums stay in registers. */
    PIECE = 256,
    /* A part of the work: long enough to hide its start, short enough for
     * threads to end together. In multiply-adds. */
    PART = 1 << 20
};

typedef struct product_work {
    const sp_packed *p;
    const sp_products *products;
    sp_blocks blocks;
    int n, tiles; /* rows; tiles of rows, of about equal size */
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

static void run_rows(const product_work *w, sp_product *t, size_t x_step,
                     size_t y_step)
{
    const float *x = t->x;
    float *y = t->y;

    for (int i = 0; i < w->tiles; i++) {
        int first = (int)((long)w->n * i / w->tiles);
        t->rows = (int)((long)w->n * (i + 1) / w->tiles) - first;
        t->x = x + (size_t)first * x_step;
        t->y = y + (size_t)first * y_step;
        w->products->run(t);
    }
}

static void run_block(const product_work *w, int i)
{
    sp_block b = sp_block_at(&w->blocks, i);
    size_t in = (size_t)w->p->in, out = (size_t)w->p->out;
    const float *panel = w->p->data + (size_t)b.first * in;

    for (int k = 0; k < w->p->in; k += PIECE) {
        int left = w->p->in - k;
        sp_product t = { .x = w->x + k,
                         .w = panel + (size_t)k * (size_t)b.width,
                         .y = w->y + b.first,
                         .x_step = in,
                         .y_step = out,
                         .depth = left < PIECE ? left : PIECE,
                         .vectors = b.vectors,
                         .columns = b.valid,
                         .beta = k > 0 ? 1.0f : w->beta };
        run_rows(w, &t, in, out);
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
    size_t cost, grain;

    (void)scratch;
    if (n <= 0)
        return;
    if (how->reference) {
        sp_parallel_for(how->threads, (size_t)n, 1, reference_rows, &w);
        return;
    }
    w.tiles = (n + products->rows - 1) / products->rows;
    cost = (size_t)n * (size_t)p->in * 2 * (size_t)w.blocks.vl;
    grain = PART / cost > 0 ? PART / cost : 1;
    sp_parallel_for(how->threads, (size_t)w.blocks.count, grain, run_blocks,
                    &w);
}
