/* Which pixels meet at which tap, found once a call and used for every image:
 * what falls outside an image, or between the pixels of a stride, is never
 * multiplied. */
#include <string.h>

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
        .tap_step = back ? s->stride : 1,
        .shift = back ? -s->cout : s->cin,
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
    s->runs = sp_carve(c, sizeof(int) * count);
    s->run = sp_carve(c, sizeof(sp_tap_run) * count * taps);
    s->at = sp_carve(c, sizeof(int) * count * taps * (size_t)span);
}

typedef struct sites_work {
    const sp_sites *s;
    const sp_meeting *m;
} sites_work;

/* The pixels of a site, and where they meet at a tap and met at the last. */
typedef struct site {
    const int *row[SP_MAX_ROWS], *col[SP_MAX_ROWS]; /* of the meeting */
    int span, now[SP_MAX_ROWS], last[SP_MAX_ROWS];
} site;

static site site_at(const sp_sites *s, const sp_meeting *m, size_t i)
{
    const int *pixel = s->pixel + i * (size_t)s->span;
    site at = { .span = s->span };

    for (int p = 0; p < s->span && pixel[p] >= 0; p++) {
        at.row[p] = m->row + (size_t)(pixel[p] / m->width) * (size_t)m->kh;
        at.col[p] = m->col + (size_t)(pixel[p] % m->width) * (size_t)m->kw;
    }
    return at;
}

/* False: no pixel meets one at this tap. */
static bool meet_all(const sp_meeting *m, site *at, int ky, int kx)
{
    bool any = false;

    for (int p = 0; p < at->span; p++) {
        int row = at->row[p] ? at->row[p][ky] : -1;
        int col = at->row[p] ? at->col[p][kx] : -1;
        bool both = row >= 0 && col >= 0;
        at->now[p] = both ? (row * m->from_width + col) * m->from_c : -1;
        any |= both;
    }
    return any;
}

/* Whether a tap of the row of taps that a run is in belongs to the run. */
static bool follows(const sp_meeting *m, const sp_tap_run *r, int tap,
                    const site *at)
{
    if (tap != r->tap + r->taps * m->tap_step)
        return false;
    for (int p = 0; p < at->span; p++)
        if ((at->now[p] < 0) != (at->last[p] < 0) ||
            (at->now[p] >= 0 && at->now[p] != at->last[p] + m->shift))
            return false;
    return true;
}

static void fill_site(const sp_sites *s, const sp_meeting *m, size_t i)
{
    size_t taps = (size_t)s->taps, span = (size_t)s->span;
    sp_tap_run *run = s->run + i * taps, *end = run;
    int *to = s->at + i * taps * span;
    site at = site_at(s, m, i);

    for (int ky = 0; ky < m->kh; ky++) {
        sp_tap_run *row = end; /* runs do not go on in the next row */
        for (int kx = 0; kx < m->kw; kx++) {
            int tap = ky * m->kw + kx;
            if (!meet_all(m, &at, ky, kx))
                continue;
            if (end > row && follows(m, end - 1, tap, &at)) {
                end[-1].taps++;
            } else {
                *end++ = (sp_tap_run){ .tap = tap, .taps = 1 };
                memcpy(to, at.now, sizeof(int) * span);
                to += span;
            }
            memcpy(at.last, at.now, sizeof at.last);
        }
    }
    s->runs[i] = (int)(end - run);
}

static void fill_sites(void *arg, size_t begin, size_t end)
{
    const sites_work *work = arg;

    for (size_t i = begin; i < end; i++)
        fill_site(work->s, work->m, i);
}

void sp_sites_fill(const sp_sites *s, const sp_meeting *m,
                   const sp_conv_how *how)
{
    int *pixel = s->pixel, stride = m->tap_step;
    sites_work work = { .s = s, .m = m };

    for (int y0 = 0; y0 < stride && y0 < m->height; y0++)
        for (int x0 = 0; x0 < stride && x0 < m->width; x0++)
            for (int y = y0; y < m->height; y += stride)
                for (int x = x0; x < m->width; x += stride)
                    *pixel++ = y * m->width + x;
    while (pixel < s->pixel + (size_t)s->count * (size_t)s->span)
        *pixel++ = -1;
    sp_parallel_for(how->threads, (size_t)s->count, 16, fill_sites, &work);
}
