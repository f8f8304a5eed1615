/* Convolutions: all three passes and the bias's gradient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cross_kernels.h"
#include "kernels/kernels.h"

typedef struct example {
    int n;
    sp_conv_shape s; /* oh, ow are worked out */
} example;

/* By pass: what it writes, and what should come out. */
typedef struct conv {
    int n;
    sp_conv_shape s;
    float *x, *w, *b, *dy;
    size_t count[3];
    double *sum[3], *size[3]; /* size: of the absolute values */
} conv;

/* n, { h, w, cin, -, -, cout, kh, kw, stride, pad, groups } */
static const example examples[] = {
    { 1, { 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1 } },
    { 2, { 5, 7, 3, 0, 0, 5, 3, 3, 1, 1, 1 } },
    { 1, { 9, 9, 16, 0, 0, 16, 3, 3, 1, 1, 1 } },
    { 9, { 4, 4, 20, 0, 0, 36, 3, 3, 1, 1, 1 } },
    { 2, { 7, 6, 5, 0, 0, 33, 3, 3, 2, 1, 1 } },
    { 3, { 8, 8, 9, 0, 0, 17, 1, 1, 1, 0, 1 } },
    { 3, { 7, 7, 8, 0, 0, 12, 1, 1, 2, 0, 1 } },
    { 2, { 9, 8, 3, 0, 0, 7, 5, 5, 1, 2, 1 } },
    { 1, { 15, 13, 3, 0, 0, 9, 7, 7, 2, 3, 1 } },
    { 1, { 23, 27, 3, 0, 0, 10, 11, 11, 4, 2, 1 } },
    { 2, { 6, 5, 6, 0, 0, 9, 2, 3, 1, 0, 3 } },
    { 2, { 6, 6, 24, 0, 0, 24, 3, 3, 1, 1, 2 } },
    { 2, { 5, 5, 11, 0, 0, 11, 3, 3, 1, 1, 11 } },
    { 2, { 10, 10, 3, 0, 0, 6, 3, 3, 4, 0, 1 } },
    { 5, { 4, 3, 3, 0, 0, 10, 4, 3, 1, 0, 1 } },
    { 19, { 1, 1, 70, 0, 0, 40, 1, 1, 1, 0, 1 } },
    { 2, { 1, 1, 2600, 0, 0, 3, 1, 1, 1, 0, 1 } },
    { 2, { 9, 10, 2, 0, 0, 3, 3, 3, 1, 1, 1 } },
    { 1, { 4, 5, 6, 0, 0, 7, 3, 3, 1, 2, 1 } },
};

static void add_term(conv *c, sp_pass pass, size_t at, float a, float b)
{
    double v = (double)a * (double)b;

    c->sum[pass][at] += v;
    c->size[pass][at] += fabs(v);
}

/* All that has to do with tap (ky, kx) of output pixel (oy, ox) of image m. */
static void conv_tap(conv *c, int m, int oy, int ox, int ky, int kx)
{
    const sp_conv_shape *s = &c->s;
    int h = oy * s->stride + ky - s->pad, w = ox * s->stride + kx - s->pad;
    int cin = s->cin / s->groups, cout = s->cout / s->groups;

    if (h < 0 || h >= s->h || w < 0 || w >= s->w)
        return;
    for (int o = 0; o < s->cout; o++)
        for (int i = 0; i < cin; i++) {
            int y = ((m * s->oh + oy) * s->ow + ox) * s->cout + o;
            int x = ((m * s->h + h) * s->w + w) * s->cin + o / cout * cin + i;
            int k = ((o * cin + i) * s->kh + ky) * s->kw + kx;
            add_term(c, SP_FORWARD, (size_t)y, c->x[x], c->w[k]);
            add_term(c, SP_BACKWARD_INPUT, (size_t)x, c->dy[y], c->w[k]);
            add_term(c, SP_BACKWARD_WEIGHT, (size_t)k, c->x[x], c->dy[y]);
        }
}

static conv conv_open(const example *e)
{
    conv c = { .n = e->n, .s = e->s };
    sp_conv_shape *s = &c.s;

    s->oh = (s->h + 2 * s->pad - s->kh) / s->stride + 1;
    s->ow = (s->w + 2 * s->pad - s->kw) / s->stride + 1;
    c.count[SP_FORWARD] = (size_t)(c.n * s->oh * s->ow * s->cout);
    c.count[SP_BACKWARD_INPUT] = (size_t)(c.n * s->h * s->w * s->cin);
    c.count[SP_BACKWARD_WEIGHT] =
        (size_t)(s->cout * s->cin / s->groups * s->kh * s->kw);
    c.dy = numbers(c.count[SP_FORWARD], 1, MANY);
    c.x = numbers(c.count[SP_BACKWARD_INPUT], 2, MANY);
    c.w = numbers(c.count[SP_BACKWARD_WEIGHT], 3, MANY);
    c.b = numbers((size_t)s->cout, 4, MANY);
    for (int pass = 0; pass < 3; pass++) {
        c.sum[pass] = doubles(c.count[pass]);
        c.size[pass] = doubles(c.count[pass]);
        memset(c.sum[pass], 0, c.count[pass] * sizeof(double));
        memset(c.size[pass], 0, c.count[pass] * sizeof(double));
    }
    for (int q = 0; q < c.n * s->oh * s->ow; q++)
        for (int t = 0; t < s->kh * s->kw; t++)
            conv_tap(&c, q / (s->oh * s->ow), q / s->ow % s->oh, q % s->ow,
                     t / s->kw, t % s->kw);
    return c;
}

static void conv_close(conv *c)
{
    free(c->x);
    free(c->w);
    free(c->b);
    free(c->dy);
    for (int pass = 0; pass < 3; pass++) {
        free(c->sum[pass]);
        free(c->size[pass]);
    }
}

static void conv_run(const conv *c, const sp_conv_how *how, sp_pass pass,
                     float *to, float beta)
{
    void *scratch = allocate(sp_conv_scratch(how, &c->s, c->n, pass));

    if (pass == SP_FORWARD)
        sp_conv_forward(how, &c->s, c->n, c->x, c->w, c->b, to, scratch);
    else if (pass == SP_BACKWARD_INPUT)
        sp_conv_backward_input(how, &c->s, c->n, c->dy, c->w, to, beta,
                               scratch);
    else
        sp_conv_backward_weight(how, &c->s, c->n, c->x, c->dy, to, beta,
                                scratch);
    free(scratch);
}

/* In a Winograd tile, terms of all results take part in each: its error goes
 * with the largest. */
static void try_pass(trial *t, const conv *c, const sp_conv_how *how,
                     sp_pass pass)
{
    static const char *const names[] = { "forward", "backward input",
                                         "backward weight" };
    size_t count = c->count[pass];
    float *before = numbers(count, 5, MANY);
    double most = 0;

    for (size_t i = 0; i < count; i++)
        most = fmax(most, c->size[pass][i]);
    for (int b = 0; b < (pass == SP_FORWARD ? 1 : BETAS); b++) {
        float *to = b == 0 ? floats(count) : copy_of(before, count);
        conv_run(c, how, pass, to, betas[b]);
        for (size_t i = 0; i < count; i++) {
            double more = pass == SP_FORWARD
                              ? (double)c->b[i % (size_t)c->s.cout]
                              : rest(betas[b], before[i]);
            compare(t, names[pass], i, (double)to[i], c->sum[pass][i] + more,
                    how->tile ? most : c->size[pass][i]);
        }
        free(to);
    }
    free(before);
}

/* One thread and several: the same bits. */
static void try_threads(trial *t, const conv *c, const sp_conv_how *how,
                        sp_pass pass)
{
    sp_conv_how alone = *how;
    float *one = floats(c->count[pass]), *many = floats(c->count[pass]);

    alone.threads = 1;
    conv_run(c, &alone, pass, one, 0.0f);
    conv_run(c, how, pass, many, 0.0f);
    for (size_t i = 0; i < c->count[pass]; i++)
        if (memcmp(&one[i], &many[i], sizeof *one) != 0)
            compare(t, "the number of threads", i, HUGE_VAL, 0, 0);
    free(one);
    free(many);
}

static void try_bias(trial *t, const conv *c, const sp_conv_how *how)
{
    size_t cout = (size_t)c->s.cout, rows = c->count[SP_FORWARD] / cout;
    float *db = floats(cout);

    sp_bias_backward(how, rows, c->s.cout, c->dy, db, 0.0f);
    for (size_t o = 0; o < cout; o++) {
        double sum = 0, size = 0;
        for (size_t i = o; i < rows * cout; i += cout) {
            sum += (double)c->dy[i];
            size += fabs((double)c->dy[i]);
        }
        compare(t, "backward bias", o, (double)db[o], sum, size);
    }
    free(db);
}

static void try_convs(trial *t, sp_conv_how how)
{
    how.kernels = t->kernels;
    how.threads = THREADS;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (how.tile && !sp_conv_has_tiles(&examples[i].s))
            continue;
        conv c = conv_open(&examples[i]);
        for (sp_pass pass = SP_FORWARD; pass <= SP_BACKWARD_WEIGHT; pass++) {
            try_pass(t, &c, &how, pass);
            try_threads(t, &c, &how, pass);
        }
        try_bias(t, &c, &how);
        conv_close(&c);
    }
}

void try_reference(trial *t)
{
    try_convs(t, (sp_conv_how){ .reference = true });
}

void try_direct(trial *t) { try_convs(t, (sp_conv_how){ 0 }); }

void try_winograd_2(trial *t) { try_convs(t, (sp_conv_how){ .tile = 2 }); }

void try_winograd_4(trial *t) { try_convs(t, (sp_conv_how){ .tile = 4 }); }
