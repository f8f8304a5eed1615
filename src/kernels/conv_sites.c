/* Which pixels meet at which tap, found once a call and used for every image:
 * what falls outside an image, or between the pixels of a stride, is never
 * multiplied. */
#include "kernels/conv.h"

void sp_meeting_layout(sp_meeting *m, const sp_conv_form *f, sp_pass pass,
                       sp_carver *c)
{
    const sp_conv_shape *s = &f->s;
    bool back = pass == SP_BACKWARD_INPUT;

    *m = (sp_meeting){
        .height = back ? s->h : s->oh,
        .width = back ? s->w : s->ow,
        .from_width = back ? s->ow : s->w,
        .from_c = back ? s->cout : s->cin,
        .kh = s->kh,
        .kw = s->kw,
    };
    m->row = sp_carve(c, sizeof *m->row * (size_t)m->height * (size_t)s->kh);
    m->col = sp_carve(c, sizeof *m->col * (size_t)m->width * (size_t)s->kw);
}

/* Along one axis, `size` pixels are written and `from` read. */
static void fill_axis(int *at, int size, int kernel, int from,
                      const sp_conv_shape *s, bool back)
{
    for (int i = 0; i < size; i++)
        for (int k = 0; k < kernel; k++, at++) {
            int j = back ? i + s->pad - k : i * s->stride + k - s->pad;
            bool between = back && j % s->stride != 0;
            if (back)
                j = j < 0 ? -1 : j / s->stride;
            *at = between || j < 0 || j >= from ? -1 : j;
        }
}

void sp_meeting_fill(const sp_meeting *m, const sp_conv_form *f, sp_pass pass)
{
    const sp_conv_shape *s = &f->s;
    bool back = pass == SP_BACKWARD_INPUT;

    fill_axis(m->row, m->height, m->kh, back ? s->oh : s->h, s, back);
    fill_axis(m->col, m->width, m->kw, back ? s->ow : s->w, s, back);
}

void sp_sites_layout(sp_sites *s, const sp_meeting *m, int span, sp_carver *c)
{
    int pixels = m->height * m->width;
    size_t count, taps;

    s->span = span;
    s->count = (pixels + span - 1) / span;
    s->taps = m->kh * m->kw;
    count = (size_t)s->count;
    taps = (size_t)s->taps;
    s->pixel = sp_carve(c, sizeof(int) * count * (size_t)span);
    s->used = sp_carve(c, sizeof(int) * count);
    s->tap = sp_carve(c, sizeof(int) * count * taps);
    s->at = sp_carve(c, sizeof(int) * count * taps * (size_t)span);
}

typedef struct sites_work {
    const sp_sites *s;
    const sp_meeting *m;
} sites_work;

/* at[tap][p] for one pixel of a site. */
static void fill_pixel(const sp_meeting *m, int pixel, size_t span, int *at)
{
    int y = pixel / m->width, x = pixel % m->width;

    for (int ky = 0; ky < m->kh; ky++)
        for (int kx = 0; kx < m->kw; kx++, at += span)
            *at = pixel < 0 ? -1 : sp_meet(m, y, x, ky, kx);
}

/* Keep the taps at which any pixel of the site meets one. Gives how many. */
static int keep_used(int taps, size_t span, int *tap, int *at)
{
    int used = 0;

    for (int t = 0; t < taps; t++) {
        const int *from = at + (size_t)t * span;
        int *to = at + (size_t)used * span;
        bool any = false;
        for (size_t p = 0; p < span; p++) {
            to[p] = from[p];
            any |= from[p] >= 0;
        }
        if (any)
            tap[used++] = t;
    }
    return used;
}

static void fill_taps(void *arg, size_t begin, size_t end)
{
    const sites_work *work = arg;
    const sp_sites *s = work->s;
    size_t span = (size_t)s->span, taps = (size_t)s->taps;

    for (size_t i = begin; i < end; i++) {
        int *at = s->at + i * taps * span;
        for (size_t p = 0; p < span; p++)
            fill_pixel(work->m, s->pixel[i * span + p], span, at + p);
        s->used[i] = keep_used(s->taps, span, s->tap + i * taps, at);
    }
}

void sp_sites_fill(const sp_sites *s, const sp_meeting *m, int stride,
                   const sp_conv_how *how)
{
    int *pixel = s->pixel;
    sites_work work = { .s = s, .m = m };

    for (int y0 = 0; y0 < stride && y0 < m->height; y0++)
        for (int x0 = 0; x0 < stride && x0 < m->width; x0++)
            for (int y = y0; y < m->height; y += stride)
                for (int x = x0; x < m->width; x += stride)
                    *pixel++ = y * m->width + x;
    while (pixel < s->pixel + (size_t)s->count * (size_t)s->span)
        *pixel++ = -1;
    sp_parallel_for(how->threads, (size_t)s->count, 16, fill_taps, &work);
}
