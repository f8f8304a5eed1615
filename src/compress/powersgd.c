/* PowerSGD: a parameter's gradient is sent as a product of two matrices of low
 * rank, found by a step of power iteration that goes on from the last one's.
 * The optimizer's momentum follows on what arrives.
 *
 * M = error + gradient is seen as a matrix: dims[0] rows, the rest columns.
 *   round 0   P = sum over ranks of M Q       then orthonormal columns
 *   round 1   Q = sum over ranks of M' P      (M' transposed)
 *   g = P Q'     error = M - P (M' P)'
 *
 * Gradients add up over ranks, so P and Q are those of the sum of all M, and g
 * is P P' times it. Each rank keeps what of its own M is outside of P; its part
 * of Q is what it has sent. So all errors and g together are the sum of all M:
 * nothing is lost, whatever P is.
 *
 * Columns of P that others explain are, after rounding, some direction at right
 * angles to them, which is as good as a random one. One that is 0 leaves a
 * column of Q at 0, from which no iteration would come back: it starts from
 * random numbers again, as all of Q does at first, and in every step without
 * `warm_start`. Those are the same on all ranks, which have no other start in
 * common after going on as more or fewer.
 *
 * State:  the error, n floats, and with `warm_start` Q, rank x columns.
 * Packet: floats: round 0: rank x rows; round 1: rank x columns; a column of P
 *         or Q after the other. What would take no less than the gradient
 *         itself is not compressed.
 * Source: Vogels, Karimireddy, Jaggi 2019, "PowerSGD: Practical low-rank
 *         gradient compression for distributed optimization", algorithms 1 and
 *         2.
 * Differs: there the error is M - g / ranks, with the mean of all M in the
 *         place of the sum. The sum over ranks is the same, and so is g; but
 *         by how much a rank's gradient differs from the mean adds up in its
 *         error, without end. P has columns of length 1 to rounding (the
 *         authors add 1e-8 to it before dividing); those of Q are made so for
 *         the next step, whose P then has the size of M and not of its square.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compress/draw.h"
#include "sprat/op.h"

typedef struct powersgd_cfg {
    int rank;
    bool warm_start;
} powersgd_cfg;

#define AT(field) offsetof(powersgd_cfg, field)

static const sp_key keys[] = {
    { "rank", SP_INT, AT(rank), "2", 1, 1024,
      "columns of either factor: more send more, and closer", NULL },
    { "warm_start", SP_BOOL, AT(warm_start), "true", 0, 0,
      "go on from the factors of the step before", NULL },
};

enum { ERROR, START, STATES };

enum {
    BAND = 1 << 16,  /* elements that one thread takes at one time, about: */
    BAND_ROWS = 128, /* not fewer rows, since each band has a Q of its own, */
    BAND_MOST = 512, /* nor more, since they are added up in float */
    RUN = 1 << 12,   /* products that are added up in float, by LANES sums */
    STRIP = 4,       /* rows that stay in the cache for all columns of P */
    LANES = 16
};

/* ---- A slot as a matrix -------------------------------------------------- */

typedef struct shape {
    size_t rows, columns, rank;
    size_t band, bands; /* of so many rows; the last: fewer */
} shape;

static shape shape_of(const sp_slot *s)
{
    const powersgd_cfg *c = s->cfg;
    shape m = { .rows = (size_t)s->dims[0], .rank = (size_t)c->rank };

    m.columns = s->n / m.rows;
    m.band = BAND / m.columns > BAND_ROWS ? BAND / m.columns : BAND_ROWS;
    m.band = m.band < BAND_MOST ? m.band : BAND_MOST;
    m.bands = (m.rows + m.band - 1) / m.band;
    return m;
}

static bool accepts(const sp_slot *s)
{
    const powersgd_cfg *c = s->cfg;

    if (s->ndim < 2)
        return false;
    shape m = shape_of(s);
    return (double)c->rank * (double)(m.rows + m.columns) < (double)s->n;
}

static size_t state_floats(const sp_slot *s, int i)
{
    const powersgd_cfg *c = s->cfg;
    shape m = shape_of(s);

    return i == ERROR ? s->n : c->warm_start ? m.rank * m.columns : 0;
}

static size_t packet_room(const sp_slot *s, int round)
{
    shape m = shape_of(s);

    return m.rank * (round == 0 ? m.rows : m.columns) * sizeof(float);
}

/* The work space, in order. */
typedef struct work {
    float *p;    /* P, once it has come */
    float *q;    /* Q; with `warm_start` the state */
    float *sums; /* a Q of each band but the first */
} work;

static size_t work_bytes(const sp_slot *s)
{
    shape m = shape_of(s);

    return m.rank * (m.rows + m.bands * m.columns) * sizeof(float);
}

static work open_work(const sp_slot *s, const shape *m)
{
    const powersgd_cfg *c = s->cfg;
    work w = { .p = s->work };

    w.q = w.p + m->rank * m->rows;
    w.sums = w.q + m->rank * m->columns;
    if (c->warm_start)
        w.q = s->state[START];
    return w;
}

/* ---- Products ------------------------------------------------------------ */

/* y += factor * (sum over t < count of a[t * step] * x[t]), each x[t] a row of
 * n, one behind the other. */
typedef struct terms {
    const float *x, *a;
    size_t step, count;
    float factor;
} terms;

static void add(float *restrict y, size_t n, const terms *t)
{
    size_t k = 0;

    for (; k + 2 <= t->count; k += 2) {
        const float *restrict x = t->x + k * n, *restrict z = x + n;
        float a = t->factor * t->a[k * t->step];
        float b = t->factor * t->a[(k + 1) * t->step];

        for (size_t j = 0; j < n; j++)
            y[j] += a * x[j] + b * z[j];
    }
    for (; k < t->count; k++) {
        const float *restrict x = t->x + k * n;
        float a = t->factor * t->a[k * t->step];

        for (size_t j = 0; j < n; j++)
            y[j] += a * x[j];
    }
}

/* Of at most RUN elements. */
static double dot_run(const float *restrict x, const float *restrict y,
                      size_t n)
{
    float lanes[LANES] = { 0 }, rest = 0;
    double sum;
    size_t j = 0;

    for (; j + LANES <= n; j += LANES)
        for (size_t i = 0; i < LANES; i++)
            lanes[i] += x[j + i] * y[j + i];
    for (; j < n; j++)
        rest += x[j] * y[j];
    sum = (double)rest;
    for (size_t i = 0; i < LANES; i++)
        sum += (double)lanes[i];
    return sum;
}

static float dot(const float *x, const float *y, size_t n)
{
    double sum = 0;

    for (size_t j = 0; j < n; j += RUN)
        sum += dot_run(x + j, y + j, n - j < RUN ? n - j : RUN);
    return (float)sum;
}

/* What a loop over rows works on. */
typedef struct job {
    shape m;
    const float *grad, *p, *q;
    float *error, *out, *sums;
    float scale;
} job;

/* M in the place of the error, and out = M Q. */
static void left_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    size_t n = j->m.columns;

    for (size_t i = begin; i < end; i++) {
        float *row = j->error + i * n;

        add(row, n,
            &(terms){ .x = j->grad + i * n,
                      .a = &j->scale,
                      .count = 1,
                      .factor = 1 });
        for (size_t k = 0; k < j->m.rank; k++)
            j->out[k * j->m.rows + i] = dot(row, j->q + k * n, n);
    }
}

/* M' P of a band of rows. */
static void right_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    size_t n = j->m.columns, size = j->m.rank * n, band = begin / j->m.band;
    float *out = band == 0 ? j->out : j->sums + (band - 1) * size;

    memset(out, 0, size * sizeof *out);
    for (size_t i = begin; i < end; i += STRIP)
        for (size_t k = 0; k < j->m.rank; k++)
            add(out + k * n, n,
                &(terms){ .x = j->error + i * n,
                          .a = j->p + k * j->m.rows + i,
                          .step = 1,
                          .count = end - i < STRIP ? end - i : STRIP,
                          .factor = 1 });
}

static void add_product(const job *j, size_t i, float factor, float *row)
{
    add(row, j->m.columns,
        &(terms){ .x = j->q,
                  .a = j->p + i,
                  .step = j->m.rows,
                  .count = j->m.rank,
                  .factor = factor });
}

/* error = M - P Q'. */
static void keep_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = begin; i < end; i++)
        add_product(j, i, -1, j->error + i * j->m.columns);
}

/* out = P Q'. */
static void product_rows(void *arg, size_t begin, size_t end)
{
    const job *j = arg;

    for (size_t i = begin; i < end; i++) {
        float *row = j->out + i * j->m.columns;

        memset(row, 0, j->m.columns * sizeof *row);
        add_product(j, i, 1, row);
    }
}

/* ---- Columns ------------------------------------------------------------- */

static double product(const float *x, const float *y, size_t n)
{
    double lanes[LANES] = { 0 }, sum = 0;

    for (size_t i = 0; i < n; i++)
        lanes[i % LANES] += (double)x[i] * (double)y[i];
    for (size_t i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

/* To length 1; 0 stays 0, and what is not finite so. */
static void normalize(float *x, size_t n)
{
    double length = sqrt(product(x, x, n));

    for (size_t i = 0; length != 0 && i < n; i++)
        x[i] = (float)((double)x[i] / length);
}

/* Gram and Schmidt's method. What rounding has left of the others in a column
 * that nearly lies among them is removed by doing it twice. */
static void orthonormalize(float *p, const shape *m)
{
    for (size_t k = 0; k < m->rank; k++) {
        float *x = p + k * m->rows;

        normalize(x, m->rows);
        for (size_t t = 0; t < 2 * k; t++) {
            const float *y = p + t % k * m->rows;
            double share = product(x, y, m->rows);

            for (size_t i = 0; i < m->rows; i++)
                x[i] = (float)((double)x[i] - share * (double)y[i]);
        }
        normalize(x, m->rows);
    }
}

static bool all_zero(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static void draw_column(const sp_slot *s, size_t first, float *x, size_t n)
{
    sp_slot any = *s;

    any.rank = 0;
    for (size_t i = 0; i < n; i += 2) {
        uint32_t r[4];

        sp_draw(&any, first + i, r);
        x[i] = sp_normal(r[0], r[1]);
        if (i + 1 < n)
            x[i + 1] = sp_normal(r[2], r[3]);
    }
}

static void start(const sp_slot *s, const shape *m, float *q)
{
    const powersgd_cfg *c = s->cfg;

    for (size_t k = 0; k < m->rank; k++) {
        float *x = q + k * m->columns;

        if (!c->warm_start || all_zero(x, m->columns))
            draw_column(s, k * m->columns, x, m->columns);
    }
}

/* ---- Rounds -------------------------------------------------------------- */

static void over_rows(const sp_slot *s, const job *j, sp_body body)
{
    sp_parallel_for(s->threads, j->m.rows, j->m.band, body, (void *)j);
}

/* What the bands have come to, together: of a few elements at a time, in
 * double. */
static void add_bands(const job *j)
{
    size_t size = j->m.rank * j->m.columns;

    for (size_t at = 0; at < size; at += LANES) {
        size_t n = size - at < LANES ? size - at : LANES;
        double sum[LANES] = { 0 };

        for (size_t i = 0; i < n; i++)
            sum[i] = (double)j->out[at + i];
        for (size_t b = 1; b < j->m.bands; b++)
            for (size_t i = 0; i < n; i++)
                sum[i] += (double)j->sums[(b - 1) * size + at + i];
        for (size_t i = 0; i < n; i++)
            j->out[at + i] = (float)sum[i];
    }
}

static void encode_right(const sp_slot *s, job *j)
{
    over_rows(s, j, right_rows);
    add_bands(j);
    j->q = j->out;
    over_rows(s, j, keep_rows);
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    shape m = shape_of(s);
    work w = open_work(s, &m);
    job j = { .m = m,
              .grad = grad,
              .p = w.p,
              .q = w.q,
              .error = s->state[ERROR],
              .out = (float *)(void *)p->bytes,
              .sums = w.sums,
              .scale = (float)s->scale };

    p->values = packet_room(s, round);
    if (round == 0) {
        start(s, &m, w.q);
        over_rows(s, &j, left_rows);
    } else {
        encode_right(s, &j);
    }
}

static sp_err decode(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad)
{
    shape m = shape_of(s);
    work w = open_work(s, &m);
    job j = { .m = m, .p = w.p, .q = w.q, .out = grad };

    if (bytes != packet_room(s, round))
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes instead of %zu; it is from a "
                       "rank with other settings",
                       s->name, bytes, packet_room(s, round));
    memcpy(round == 0 ? w.p : w.q, packet, bytes);
    if (round == 0) {
        orthonormalize(w.p, &m);
        return SP_OK;
    }
    over_rows(s, &j, product_rows);
    for (size_t k = 0; k < m.rank; k++)
        normalize(w.q + k * m.columns, m.columns);
    return SP_OK;
}

const sp_compressor sp_compressor_powersgd = {
    .entry = { .name = "powersgd",
               .help = "a product of two factors of low rank; what it misses "
                       "waits",
               .cfg_size = sizeof(powersgd_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .rounds = 2,
    .combine = { SP_SUM, SP_SUM },
    .state_count = STATES,
    .state_names = { "powersgd_error", "powersgd_q" },
    .state_adds = { true, false },
    .residual = "powersgd_error",
    .state_floats = state_floats,
    .accepts = accepts,
    .packet_room = packet_room,
    .work_bytes = work_bytes,
    .encode = encode,
    .decode = decode,
};
