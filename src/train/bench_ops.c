#include "train/bench_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/console.h"

/* Groups of arrays. */
enum {
    X = 1,       /* inputs */
    KEPT = 2,    /* inputs and outputs that backward reads */
    Y = 4,       /* outputs */
    DY = 8,      /* their gradients */
    DX = 16,     /* gradients of inputs */
    MATRIX = 32, /* parameters of several dimensions */
    VECTOR = 64, /* and of one, buffers too */
    SAVED = 128, /* what forward leaves for backward */
    DMATRIX = 256,
    DVECTOR = 512
};

/* What a pass has to go through, and how many products it computes. */
static const struct {
    const char *name;
    int products;
    unsigned reads, writes;
} passes[] = {
    [SP_FORWARD] = { "forward", 1, X | MATRIX | VECTOR, Y | SAVED },
    [SP_RECOMPUTE] = { "recompute", 1, X | MATRIX | VECTOR | SAVED, Y },
    [SP_BACKWARD] = { "backward", 2, KEPT | DY | MATRIX | VECTOR | SAVED,
                      DX | DMATRIX | DVECTOR },
    [SP_BACKWARD_INPUT] = { "backward input", 1, DY | MATRIX, DX },
    [SP_BACKWARD_WEIGHT] = { "backward weights", 1, KEPT | DY, DMATRIX },
    [SP_BACKWARD_BIAS] = { "backward bias", 0, DY, DVECTOR },
};

/* Floats, and integers as wide as they. */
static double bytes_of(const sp_tensor *x, const sp_run *r)
{
    return (double)sizeof(float) * (double)sp_elements(x, r);
}

/* Inputs and outputs. Sums over the batch need a reading of their own before
 * the first input, and in backward all that is read, can be used. */
static double value_bytes(const sp_node *n, const sp_run *r, sp_pass pass)
{
    unsigned reads = passes[pass].reads, writes = passes[pass].writes;
    bool sums = n->statistics && r->train && pass != SP_RECOMPUTE;
    double twice = sums ? 2 : 1, sum = 0;

    for (int i = 0; i < n->x_count; i++) {
        double bytes = bytes_of(n->x[i], r);
        if (reads & X)
            sum += i == 0 ? twice * bytes : bytes;
        if (reads & KEPT && n->keep_x >> i & 1)
            sum += twice * bytes;
        if (writes & DX && n->x[i]->grad)
            sum += bytes * (sp_beta(n, i) != 0.0f ? 2 : 1);
    }
    for (int i = 0; i < n->y_count; i++) {
        double bytes = bytes_of(n->y[i], r);
        if (writes & Y)
            sum += bytes;
        if (reads & KEPT && n->keep_y >> i & 1)
            sum += twice * bytes;
        if (reads & DY)
            sum += twice * bytes;
    }
    return sum;
}

static double param_bytes(const sp_node *n, const sp_run *r, sp_pass pass)
{
    double sum = 0;

    for (int i = 0; i < n->p_count; i++) {
        const sp_param *p = n->p[i];
        double bytes = (double)sizeof(float) * (double)p->count;
        bool matrix = p->ndim > 1;
        if (passes[pass].reads & (matrix ? MATRIX : VECTOR))
            sum += bytes;
        if (passes[pass].writes & (matrix ? DMATRIX : DVECTOR) && !p->buffer)
            sum += bytes * (sp_param_beta(n, i, r) != 0.0f ? 2 : 1);
    }
    return sum;
}

static void count_work(sp_op_row *row, const sp_run *r)
{
    const sp_node *n = row->node;
    unsigned uses = passes[row->pass].reads | passes[row->pass].writes;

    row->flops += 2 * n->macs * passes[row->pass].products *
                  (double)sp_images(n->x[0], r);
    row->bytes += value_bytes(n, r, row->pass) + param_bytes(n, r, row->pass) +
                  (uses & SAVED ? (double)n->saved : 0);
}

static sp_op_row *add_row(sp_op_clock *c, const sp_node *n, sp_pass pass)
{
    sp_op_row row = { .node = n, .pass = pass };

    if (c->count == c->room) {
        int room = c->room ? 2 * c->room : 64;
        sp_op_row *more = realloc(c->rows, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        c->rows = more;
        c->room = room;
    }
    row.ms = calloc((size_t)c->steps, sizeof *row.ms);
    if (!row.ms)
        return NULL;
    c->rows[c->count] = row;
    return &c->rows[c->count++];
}

/* Steps are alike: it is the one behind the last, but in the first step. */
static sp_op_row *find_row(sp_op_clock *c, const sp_node *n, sp_pass pass)
{
    for (int i = 0; i < c->count; i++) {
        int at = (c->at + i) % c->count;
        if (c->rows[at].node == n && c->rows[at].pass == pass) {
            c->at = at + 1;
            return &c->rows[at];
        }
    }
    return add_row(c, n, pass);
}

static void lap(void *arg, const sp_run *r, const sp_node *n, sp_pass pass)
{
    sp_op_clock *c = arg;
    double ms = 1e3 * (sp_now() - c->last);
    sp_op_row *row = n ? find_row(c, n, pass) : NULL;

    if (n && !row)
        c->lost = true;
    if (row && c->step >= 0)
        row->ms[c->step] += ms;
    if (row && c->step == -1)
        count_work(row, r);
    c->last = sp_now();
}

void sp_op_clock_open(sp_op_clock *c, int steps)
{
    *c = (sp_op_clock){ .steps = steps, .watch = { .lap = lap, .arg = c } };
}

void sp_op_clock_close(sp_op_clock *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->rows[i].ms);
    free(c->rows);
    *c = (sp_op_clock){ 0 };
}

double sp_op_clock_sum(const sp_op_clock *c, int step)
{
    double sum = 0;

    for (int i = 0; i < c->count; i++)
        sum += c->rows[i].ms[step];
    return sum;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int sp_median_step(const double *ms, double *sorted, int n)
{
    int i = 0;

    memcpy(sorted, ms, (size_t)n * sizeof *ms);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    while (i < n - 1 && ms[i] != sorted[(n - 1) / 2])
        i++;
    return i;
}

sp_err sp_op_clock_read(const sp_op_clock *c, int step, sp_bench_op *out)
{
    bool lost = c->lost;

    for (int i = 0; i < c->count; i++) {
        const sp_op_row *row = &c->rows[i];
        const sp_op *op = row->node->op;
        const char *name = row->node->name;
        out[i] = (sp_bench_op){
            .name = sp_copy(name, strlen(name)),
            .op = op->name,
            .pass = passes[row->pass].name,
            .algorithm =
                op->algorithm ? op->algorithm(row->node, row->pass) : NULL,
            .ms = row->ms[step],
            .flops = row->flops,
            .bytes = row->bytes,
        };
        lost = lost || !out[i].name;
    }
    return lost ? sp_fail(SP_ENOMEM, "bench: out of memory") : SP_OK;
}
