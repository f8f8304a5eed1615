#include "compress/sparse.h"

#include <math.h>

#include "compress/draw.h"
#include "compress/select.h"
#include "compress/wire.h"
#include "sprat/op.h"

enum {
    PART = 4096,   /* blocks that one thread takes at one time */
    ENTRIES = 4096 /* and so many of those that are sent */
};

sp_err sp_sparse_check(const sp_sparse_cfg *c)
{
    if (c->ratio >= 1)
        return sp_fail(SP_ECONFIG,
                       "compress.ratio: %g sends everything: set it below 1 "
                       "(0.001 is usual), or compress.name=none",
                       c->ratio);
    return SP_OK;
}

bool sp_sparse_accepts(const sp_slot *s)
{
    return s->ndim > 1 && sp_wire_fits(s->n);
}

static sp_wire wire_of(const sp_slot *s)
{
    const sp_sparse_cfg *c = s->cfg;

    return (sp_wire){ .n = s->n,
                      .places = (sp_places)c->index,
                      .values = (sp_values)c->values,
                      .name = s->name };
}

static sp_select plan_of(const sp_slot *s)
{
    const sp_sparse_cfg *c = s->cfg;

    return sp_select_plan(s->n, s->ratio, c->sample);
}

size_t sp_sparse_room(const sp_slot *s, int round)
{
    sp_wire w = wire_of(s);

    (void)round;
    return sp_wire_room(&w, plan_of(s).take);
}

double sp_sparse_nominal(const sp_slot *s, int round)
{
    sp_wire w = wire_of(s);

    (void)round;
    return s->ratio * (double)s->n * (double)sp_wire_entry_bytes(&w);
}

/* The work space, in order. */
typedef struct work {
    uint32_t *index; /* plan.room */
    uint32_t *peak;  /* plan.blocks */
    float *value;    /* plan.room */
} work;

size_t sp_sparse_work(const sp_slot *s)
{
    sp_select plan = plan_of(s);

    return (2 * plan.room + plan.blocks) * sizeof(uint32_t);
}

static work open_work(const sp_slot *s, const sp_select *plan)
{
    uint32_t *at = s->work;

    return (work){ .index = at,
                   .peak = at + plan->room,
                   .value = (float *)(void *)(at + plan->room + plan->blocks) };
}

void sp_sparse_add(const sp_sparse_part *p)
{
    const float *restrict g = p->grad;
    float *restrict v = p->residual;

    for (size_t i = 0; i < p->n; i++)
        v[i] += p->scale * g[i];
}

typedef struct sums {
    const sp_slot *s;
    const sp_sparse_rule *rule;
    const float *grad;
    uint32_t *peak;
} sums;

/* Block by block, so that peaks are found while it is in the cache. */
static void accumulate(void *arg, size_t begin, size_t end)
{
    const sums *a = arg;
    const sp_slot *s = a->s;
    const sp_sparse_rule *rule = a->rule;

    for (size_t b = begin; b < end; b++) {
        size_t i = b * SP_SELECT_BLOCK, rest = s->n - i;
        sp_sparse_part part = {
            .n = rest < SP_SELECT_BLOCK ? rest : SP_SELECT_BLOCK,
            .grad = a->grad + i,
            .momentum = rule->momentum ? rule->momentum + i : NULL,
            .residual = rule->residual + i,
            .share = (float)s->momentum,
            .scale = (float)s->scale,
        };
        rule->add(&part);
        a->peak[b] = sp_select_peak(part.residual, part.n);
    }
}

/* Entries that are sent: where, and what the receiver reads. */
typedef struct sending {
    const sp_sparse_rule *rule;
    const uint32_t *index;
    float *value;
} sending;

static void read_values(void *arg, size_t begin, size_t end)
{
    const sending *a = arg;

    for (size_t i = begin; i < end; i++)
        a->value[i] = a->rule->residual[a->index[i]];
}

static void take_out(void *arg, size_t begin, size_t end)
{
    const sending *a = arg;

    for (size_t i = begin; i < end; i++)
        a->rule->residual[a->index[i]] -= a->value[i];
    for (size_t i = begin; a->rule->masking && i < end; i++)
        a->rule->momentum[a->index[i]] = 0;
}

void sp_sparse_encode(const sp_slot *s, const sp_sparse_rule *rule,
                      const float *grad, sp_packet *p)
{
    sp_wire wire = wire_of(s);
    sp_select plan = plan_of(s);
    work w = open_work(s, &plan);
    sums sum = { s, rule, grad, w.peak };
    sending sent = { rule, w.index, w.value };
    uint32_t draw[4];
    size_t k;

    sp_parallel_for(s->threads, plan.blocks, PART, accumulate, &sum);
    if (!sp_select_finite(&plan, w.peak)) {
        sp_wire_write_not_finite(&wire, p);
        return;
    }
    sp_draw(s, 0, draw);
    k = sp_select_largest(
        &plan, rule->residual,
        &(sp_select_work){ w.peak, w.value, draw[0], s->threads }, w.index);
    sp_parallel_for(s->threads, k, ENTRIES, read_values, &sent);
    k = sp_wire_write(&wire, w.index, w.value, k, p);
    sp_parallel_for(s->threads, k, ENTRIES, take_out, &sent);
}

sp_err sp_sparse_decode(const sp_slot *s, int round, const void *packet,
                        size_t bytes, float *grad)
{
    sp_wire w = wire_of(s);
    sp_wire_reader r;
    sp_wire_entry e;
    bool more;

    (void)round;
    SP_TRY(sp_wire_open(&r, &w, packet, bytes));
    if (r.not_finite)
        grad[0] = NAN;
    for (;;) {
        SP_TRY(sp_wire_next(&r, &e, &more));
        if (!more)
            return SP_OK;
        grad[e.index] += e.value;
    }
}

sp_err sp_sparse_merge(const sp_slot *s, const void *a, size_t a_bytes,
                       const void *b, size_t b_bytes, sp_packet *out)
{
    sp_wire w = wire_of(s);

    return sp_wire_merge(&w, a, a_bytes, b, b_bytes, out);
}

/* The sum of two halfs is not one. */
bool sp_sparse_merges(const void *own)
{
    const sp_sparse_cfg *c = own;

    return c->values == SP_FLOATS;
}
