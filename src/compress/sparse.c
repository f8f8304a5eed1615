#include "compress/sparse.h"

#include "compress/draw.h"
#include "compress/select.h"
#include "compress/wire.h"

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

/* Block by block, so that peaks are found while it is in the cache. */
static void accumulate(const sp_slot *s, const sp_sparse_rule *rule,
                       const float *grad, uint32_t *peak)
{
    for (size_t i = 0; i < s->n; i += SP_SELECT_BLOCK) {
        size_t rest = s->n - i;
        sp_sparse_part part = {
            .n = rest < SP_SELECT_BLOCK ? rest : SP_SELECT_BLOCK,
            .grad = grad + i,
            .momentum = rule->momentum ? rule->momentum + i : NULL,
            .unsent = rule->unsent + i,
            .share = (float)s->momentum,
            .scale = (float)s->scale,
        };
        rule->add(&part);
        peak[i / SP_SELECT_BLOCK] = sp_select_peak(part.unsent, part.n);
    }
}

void sp_sparse_encode(const sp_slot *s, const sp_sparse_rule *rule,
                      const float *grad, sp_packet *p)
{
    sp_wire wire = wire_of(s);
    sp_select plan = plan_of(s);
    work w = open_work(s, &plan);
    uint32_t draw[4];
    size_t k;

    accumulate(s, rule, grad, w.peak);
    sp_draw(s, 0, draw);
    k = sp_select_largest(&plan, rule->unsent,
                          &(sp_select_work){ w.peak, w.value, draw[0] },
                          w.index);
    for (size_t i = 0; i < k; i++)
        w.value[i] = rule->unsent[w.index[i]];
    k = sp_wire_write(&wire, w.index, w.value, k, p);
    for (size_t i = 0; i < k; i++)
        rule->unsent[w.index[i]] -= w.value[i];
    for (size_t i = 0; rule->masking && i < k; i++)
        rule->momentum[w.index[i]] = 0;
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
