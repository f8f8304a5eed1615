/* Backward-weight pass of a layer over rows, whose images are one pixel:
 *
 *   dw[o][i] = beta * dw[o][i] + sum over rows m of dy[m][o] * x[m][i]
 *
 * The columns of dy, turned into rows, are multiplied by x packed as weights
 * are. conv_weight.c would go through x and dy, whose rows are far apart, once
 * for every few channels; its sums, in chunks of rows, have the same bits.
 */
#include "kernels/conv.h"

enum {
    /* Fewer weights, or rows, are not worth the packing; what is packed shall
     * not be much more than the weights. */
    LEAST_WEIGHTS = 1 << 18,
    LEAST_ROWS = 64,
    MOST_ROWS = 4096,
    /* Beyond, conv_weight.c has shorter chunks. */
    MOST_INPUTS = 1 << 23,
    /* Rows of dw at a time, and items that there should be. */
    GROUP = 96,
    MIN_ITEMS = 32
};

typedef struct rows_pass {
    const sp_tiles *tiles;
    const sp_products *products;
    sp_blocks blocks; /* columns of dw: input channels */
    int threads;
    int cin, cout, images;
    int group; /* rows of dw at a time */
    int ld;    /* floats of a row of turned */
    float *panels;
    char *work; /* of all threads */
    size_t work_bytes;
    const float *dy;
    float *dw;
    float beta;
} rows_pass;

/* What one thread works with. */
typedef struct rows_work {
    float *turned; /* [group][ld]: columns of dy */
    float *sums;   /* [group][two vectors] */
} rows_work;

/* The most rows that pay, if not 0. */
static size_t most_rows(const sp_conv_form *f)
{
    const sp_conv_shape *s = &f->s;
    size_t most = 2 * (size_t)f->cout;

    if (f->stored_taps != 1 || s->h != 1 || s->w != 1 || s->pad != 0 ||
        s->groups != 1 || f->cin > MOST_INPUTS ||
        (size_t)f->cin * (size_t)f->cout < LEAST_WEIGHTS)
        return 0;
    return most < MOST_ROWS ? most : MOST_ROWS;
}

bool sp_rows_pay(const sp_conv_form *f)
{
    return f->images >= LEAST_ROWS && f->images <= most_rows(f);
}

static rows_work carve_work(const rows_pass *r, sp_carver *c)
{
    size_t group = (size_t)r->group, wide = 2 * (size_t)r->tiles->vl;
    rows_work w;

    w.turned = sp_carve(c, sizeof(float) * group * (size_t)r->ld);
    w.sums = sp_carve(c, sizeof(float) * group * wide);
    return w;
}

/* Gives the bytes of work space. */
static size_t rows_open(rows_pass *r, const sp_conv_call *call,
                        const sp_conv_form *f, size_t images)
{
    const sp_kernels *k = call->how.kernels;
    sp_carver c = { .base = call->scratch }, one = { 0 };
    int vl = k->tiles->vl;

    *r = (rows_pass){ .tiles = k->tiles,
                      .products = k->products,
                      .blocks = sp_blocks_of(f->cin, vl),
                      .threads = call->how.threads,
                      .cin = f->cin,
                      .cout = f->cout,
                      .images = (int)images };
    r->group = (f->cout / MIN_ITEMS + vl - 1) / vl * vl;
    r->group = r->group < vl ? vl : r->group > GROUP ? GROUP : r->group;
    r->ld = (r->images + vl - 1) / vl * vl;
    r->panels = sp_carve(&c, sp_packed_size(&call->how, r->images, r->cin));
    carve_work(r, &one);
    r->work_bytes = one.used;
    r->work = sp_carve(&c, sp_conv_threads(&call->how) * one.used);
    return c.used;
}

/* Columns [first, first + count) of dy into rows, with zeros behind. */
static void turn(const rows_pass *r, const rows_work *w, int first, int count)
{
    int vl = r->tiles->vl;
    const float *from[SP_MAX_VL];
    float *to[SP_MAX_VL];
    sp_square s = { .from = from, .to = to };

    for (int m = 0; m < r->images; m += vl)
        for (int j = 0; j < count; j += vl) {
            s.rows = r->images - m < vl ? r->images - m : vl;
            s.columns = count - j < vl ? count - j : vl;
            for (int i = 0; i < s.rows; i++)
                from[i] = r->dy + (size_t)(m + i) * (size_t)r->cout + first + j;
            for (int i = 0; i < s.columns; i++)
                to[i] = w->turned + (size_t)(j + i) * (size_t)r->ld + m;
            r->tiles->transpose(&s);
        }
}

/* The sums of a block of columns, chunk after chunk. */
static void sum_block(const rows_pass *r, const rows_work *w, int rows,
                      const sp_block *b)
{
    size_t wide = 2 * (size_t)r->tiles->vl, width = (size_t)b->width;
    const float *panel = r->panels + (size_t)b->first * (size_t)r->images;
    sp_product t = { .y = w->sums,
                     .x_step = (size_t)r->ld,
                     .y_step = wide,
                     .rows = rows,
                     .vectors = b->vectors,
                     .columns = b->width };

    for (int m = 0; m < r->images; m += SP_WEIGHT_CHUNK) {
        int left = r->images - m, next = left - SP_WEIGHT_CHUNK;
        t.depth = left < SP_WEIGHT_CHUNK ? left : SP_WEIGHT_CHUNK;
        t.x = w->turned + m;
        t.w = panel + (size_t)m * width;
        t.ahead = next < SP_WEIGHT_CHUNK ? t.w : t.w + SP_WEIGHT_CHUNK * width;
        sp_product_rows(r->products, &t);
        t.beta = 1.0f;
    }
}

static void add_sums(const rows_pass *r, const rows_work *w, int first,
                     int rows, const sp_block *b)
{
    size_t wide = 2 * (size_t)r->tiles->vl;
    float beta = r->beta;

    for (int i = 0; i < rows; i++) {
        const float *sum = w->sums + (size_t)i * wide;
        float *dw = r->dw + (size_t)(first + i) * (size_t)r->cin + b->first;
        for (int j = 0; j < b->valid; j++)
            dw[j] = (beta == 0.0f ? 0.0f : beta * dw[j]) + sum[j];
    }
}

static void run_groups(void *arg, size_t begin, size_t end)
{
    const rows_pass *r = arg;
    sp_carver c = { .base = r->work +
                            (size_t)sp_worker(r->threads) * r->work_bytes };
    rows_work w = carve_work(r, &c);

    for (size_t i = begin; i < end; i++) {
        int first = (int)i * r->group, left = r->cout - first;
        int rows = left < r->group ? left : r->group;
        turn(r, &w, first, rows);
        for (int j = 0; j < r->blocks.count; j++) {
            sp_block b = sp_block_at(&r->blocks, j);
            sum_block(r, &w, rows, &b);
            add_sums(r, &w, first, rows, &b);
        }
    }
}

size_t sp_rows_scratch(const sp_conv_call *c, const sp_conv_form *f)
{
    size_t most = most_rows(f);
    rows_pass r;

    most = most < f->images ? most : f->images;
    return most < LEAST_ROWS ? 0 : rows_open(&r, c, f, most);
}

void sp_rows_weight(const sp_conv_call *c, const sp_conv_form *f,
                    const float *x, const float *dy, float *dw, float beta)
{
    rows_pass r;

    rows_open(&r, c, f, f->images);
    r.dy = dy;
    r.dw = dw;
    r.beta = beta;
    sp_pack(&c->how,
            &(sp_packed){ .in = r.images,
                          .out = r.cin,
                          .transposed = true,
                          .data = r.panels },
            x);
    sp_parallel_for(r.threads, (size_t)(r.cout + r.group - 1) / (size_t)r.group,
                    1, run_groups, &r);
}
