/* Convolution the plain way, which the tiles are tested against: the pixels
 * that a filter sees are copied into a row (im2col), then BLAS multiplies.
 *
 *   column[q][i,t] = x[m,q+t,i],  y = column w^T,  dw = dy^T column,
 *   dcolumn = dy w, added back to where it came from
 */
#include <cblas.h>
#include <string.h>

#include "kernels/conv.h"

typedef struct reference {
    const sp_conv_call *c;
    int cin, cout, taps, row; /* of a group; row: cin * taps */
    int pixels;               /* of an output image */
    size_t x_step, y_step;    /* floats in an image */
    const float *x, *w, *b, *dy;
    float *y, *dx;
    float beta;
} reference;

static reference reference_open(const sp_conv_call *c)
{
    const sp_conv_shape *s = &c->s;
    reference r = {
        .c = c,
        .cin = s->cin / s->groups,
        .cout = s->cout / s->groups,
        .taps = s->kh * s->kw,
        .pixels = s->oh * s->ow,
        .x_step = (size_t)s->h * (size_t)s->w * (size_t)s->cin,
    };

    r.row = r.cin * r.taps;
    r.y_step = (size_t)r.pixels * (size_t)s->cout;
    sp_blas_alone();
    return r;
}

static size_t column_bytes(const reference *r)
{
    size_t bytes = sizeof(float) * (size_t)r->pixels * (size_t)r->row;

    return (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN;
}

size_t sp_reference_scratch(const sp_conv_call *c)
{
    reference r = reference_open(c);

    return column_bytes(&r) * sp_conv_threads(&c->how);
}

static float *columns_of(const reference *r)
{
    size_t worker = (size_t)sp_worker(r->c->how.threads);

    return (float *)((char *)r->c->scratch + worker * column_bytes(r));
}

/* Where output pixel q sees tap t in an image of x, as a float offset of the
 * group's first channel; -1 outside. */
static ptrdiff_t seen(const sp_conv_shape *s, int q, int t)
{
    int y = q / s->ow * s->stride + t / s->kw - s->pad;
    int x = q % s->ow * s->stride + t % s->kw - s->pad;

    if (y < 0 || y >= s->h || x < 0 || x >= s->w)
        return -1;
    return ((ptrdiff_t)y * s->w + x) * s->cin;
}

static void im2col(const reference *r, const float *x, float *column)
{
    for (int q = 0; q < r->pixels; q++, column += r->row)
        for (int t = 0; t < r->taps; t++) {
            ptrdiff_t at = seen(&r->c->s, q, t);
            for (int i = 0; i < r->cin; i++)
                column[i * r->taps + t] = at < 0 ? 0.0f : x[at + i];
        }
}

static void col2im(const reference *r, const float *column, float *dx)
{
    for (int q = 0; q < r->pixels; q++, column += r->row)
        for (int t = 0; t < r->taps; t++) {
            ptrdiff_t at = seen(&r->c->s, q, t);
            for (int i = 0; at >= 0 && i < r->cin; i++)
                dx[at + i] += column[i * r->taps + t];
        }
}

static const float *weights_of(const reference *r, int group)
{
    return r->w + (size_t)group * (size_t)r->cout * (size_t)r->row;
}

static void forward_images(void *arg, size_t begin, size_t end)
{
    const reference *r = arg;
    int cout = r->c->s.cout;
    float *column = columns_of(r);

    sp_blas_alone();
    for (size_t m = begin; m < end; m++)
        for (int g = 0; g < r->c->s.groups; g++) {
            float *y = r->y + m * r->y_step + g * r->cout;
            im2col(r, r->x + m * r->x_step + g * r->cin, column);
            for (int q = 0; q < r->pixels; q++)
                for (int o = 0; o < r->cout; o++)
                    y[(size_t)q * (size_t)cout + (size_t)o] =
                        r->b ? r->b[g * r->cout + o] : 0.0f;
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, r->pixels,
                        r->cout, r->row, 1.0f, column, r->row, weights_of(r, g),
                        r->row, 1.0f, y, cout);
        }
}

void sp_reference_forward(const sp_conv_call *c, const float *x, const float *w,
                          const float *b, float *y)
{
    reference r = reference_open(c);

    r.x = x;
    r.w = w;
    r.b = b;
    r.y = y;
    sp_parallel_for(c->how.threads, (size_t)c->n, 1, forward_images, &r);
}

static void backward_images(void *arg, size_t begin, size_t end)
{
    const reference *r = arg;
    float *column = columns_of(r);

    sp_blas_alone();
    for (size_t m = begin; m < end; m++) {
        float *dx = r->dx + m * r->x_step;
        for (size_t i = 0; i < r->x_step; i++)
            dx[i] = r->beta == 0.0f ? 0.0f : r->beta * dx[i];
        for (int g = 0; g < r->c->s.groups; g++) {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, r->pixels,
                        r->row, r->cout, 1.0f,
                        r->dy + m * r->y_step + g * r->cout, r->c->s.cout,
                        weights_of(r, g), r->row, 0.0f, column, r->row);
            col2im(r, column, dx + g * r->cin);
        }
    }
}

void sp_reference_backward(const sp_conv_call *c, const float *dy,
                           const float *w, float *dx, float beta)
{
    reference r = reference_open(c);

    r.dy = dy;
    r.w = w;
    r.dx = dx;
    r.beta = beta;
    sp_parallel_for(c->how.threads, (size_t)c->n, 1, backward_images, &r);
}

/* One image after the other: each adds to the same dw. */
void sp_reference_weight(const sp_conv_call *c, const float *x, const float *dy,
                         float *dw, float beta)
{
    reference r = reference_open(c);
    float *column = c->scratch;

    for (int m = 0; m < c->n; m++, beta = 1.0f)
        for (int g = 0; g < c->s.groups; g++) {
            im2col(&r, x + (size_t)m * r.x_step + g * r.cin, column);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, r.cout, r.row,
                        r.pixels, 1.0f, dy + (size_t)m * r.y_step + g * r.cout,
                        c->s.cout, column, r.row, beta,
                        dw + (size_t)g * (size_t)r.cout * (size_t)r.row, r.row);
        }
}
