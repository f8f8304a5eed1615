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

size_t sp_sparse_usual(const sp_slot *s, int round)
{
    sp_wire w = wire_of(s);

    (void)round;
    return sp_wire_usual(&w, plan_of(s).take);
}

/* Indices, then values. */
size_t sp_sparse_work(const sp_slot *s)
{
    return plan_of(s).room * (sizeof(uint32_t) + sizeof(float));
}

void sp_sparse_encode(const sp_slot *s, float *unsent, float *momentum,
                      sp_packet *p)
{
    sp_wire w = wire_of(s);
    sp_select plan = plan_of(s);
    uint32_t *index = s->work, draw[4];
    float *value = (float *)(void *)(index + plan.room);
    size_t k;

    sp_draw(s, 0, draw);
    k = sp_select_largest(&plan, unsent, draw[0], index, value);
    for (size_t i = 0; i < k; i++)
        value[i] = unsent[index[i]];
    k = sp_wire_write(&w, index, value, k, p);
    for (size_t i = 0; i < k; i++)
        unsent[index[i]] -= value[i];
    for (size_t i = 0; momentum && i < k; i++)
        momentum[index[i]] = 0;
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
