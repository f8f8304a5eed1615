#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"
#include "kernels/kernels.h"
#include "sprat/random.h"

bool sp_pointers_add(sp_pointers *p, void *item)
{
    if (p->count == p->room) {
        int room = p->room ? 2 * p->room : 64;
        void **at = realloc(p->at, (size_t)room * sizeof *at);
        if (!at)
            return false;
        p->at = at;
        p->room = room;
    }
    p->at[p->count++] = item;
    return true;
}

sp_params *sp_params_new(void) { return calloc(1, sizeof(sp_params)); }

void sp_params_free(sp_params *p)
{
    if (!p)
        return;
    free(p->values);
    free(p->grads);
    free(p->buffers);
    free(p->list.at);
    sp_arena_free(&p->arena);
    free(p);
}

int sp_params_size(const sp_params *p) { return p->list.count; }

sp_param *sp_params_at(const sp_params *p, int i)
{
    return i >= 0 && i < p->list.count ? p->list.at[i] : NULL;
}

sp_param *sp_params_find(const sp_params *p, const char *name)
{
    for (int i = 0; i < p->list.count; i++)
        if (strcmp(sp_params_at(p, i)->name, name) == 0)
            return p->list.at[i];
    return NULL;
}

/* Elements of the trained parameters or of the buffers, with at most
 * `max_ndim` dimensions. */
static size_t count(const sp_params *p, bool buffer, int max_ndim)
{
    size_t n = 0;

    for (int i = 0; i < p->list.count; i++) {
        const sp_param *q = sp_params_at(p, i);
        if (q->buffer == buffer && q->ndim <= max_ndim)
            n += q->count;
    }
    return n;
}

size_t sp_params_count(const sp_params *p)
{
    return count(p, false, SP_MAX_DIMS);
}

size_t sp_params_count_1d(const sp_params *p) { return count(p, false, 1); }

float *sp_params_values(const sp_params *p) { return p->values; }

float *sp_params_grads(const sp_params *p) { return p->grads; }

sp_err sp_params_seal(sp_params *p, bool grads)
{
    size_t trained = sp_params_count(p) * sizeof(float);
    size_t buffers = count(p, true, SP_MAX_DIMS) * sizeof(float);

    if (!p->values)
        p->values = sp_block_alloc(trained);
    if (!p->buffers)
        p->buffers = sp_block_alloc(buffers);
    if (grads && !p->grads)
        p->grads = sp_block_alloc(trained);
    if (!p->values || !p->buffers || (grads && !p->grads))
        return sp_fail(SP_ENOMEM, "parameters: no memory for %zu MiB",
                       (trained * 2 + buffers) >> 20);
    for (int i = 0; i < p->list.count; i++) {
        sp_param *q = sp_params_at(p, i);
        q->value = (q->buffer ? p->buffers : p->values) + q->offset;
        q->grad = q->buffer || !p->grads ? NULL : p->grads + q->offset;
    }
    p->sealed = true;
    return SP_OK;
}

static float init_value(const sp_init *init, uint64_t seed, uint64_t name,
                        size_t i)
{
    uint32_t r[4];

    switch (init->kind) {
    case SP_UNIFORM:
        sp_random(seed, SP_FOR_INIT, name, i / 4, r);
        return init->a * (2.0f * sp_unit(r[i % 4]) - 1.0f);
    case SP_NORMAL:
        sp_random(seed, SP_FOR_INIT, name, i / 2, r);
        return init->a * sp_normal(r[i % 2 * 2], r[i % 2 * 2 + 1]);
    default:
        return init->a;
    }
}

void sp_params_init(sp_params *p, uint64_t seed)
{
    assert(p->sealed);
    for (int i = 0; i < p->list.count; i++) {
        sp_param *q = sp_params_at(p, i);
        uint64_t name = sp_name_hash(q->name);
        for (size_t k = 0; k < q->count; k++)
            q->value[k] = init_value(&q->init, seed, name, k);
    }
}
