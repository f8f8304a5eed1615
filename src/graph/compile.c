/* Compiling: what the loss reaches, which gradient is written first and which
 * is final when, and where every buffer stands. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/lives.h"
#include "kernels/kernels.h"

static sp_value *value_of(sp_tensor *t) { return (sp_value *)t; }

/* Whether a gradient with respect to a value is of use to anyone; those of
 * earlier values are known. */
static bool wants_grad(const sp_graph *g, const sp_value *v, const bool *wanted)
{
    if (v->t.dtype != SP_F32)
        return false;
    if (v->producer < 0)
        return g->opt.input_grads;

    const sp_node *n = &sp_step_at(g, v->producer)->node;
    bool any = false;
    for (int i = 0; i < n->p_count; i++)
        any |= !n->p[i]->buffer;
    for (int i = 0; i < n->x_count; i++)
        any |= wanted[n->x[i]->index];
    return any && n->op->backward;
}

/* Walk back from the loss: mark the steps and values that get gradients, the
 * first writer of each (the last step that reads it) and the last of each
 * parameter (the first step that uses it). */
static void mark_reached(sp_graph *g, bool *wanted)
{
    for (int i = 0; i < g->values.count; i++)
        wanted[i] = wants_grad(g, sp_value_at(g, i), wanted);
    for (int i = 0; i < g->params->list.count; i++)
        g->final[i] = -1;
    g->loss->reached = wanted[g->loss->t.index];
    for (int i = g->steps.count - 1; i >= 0; i--) {
        sp_step *s = sp_step_at(g, i);
        sp_node *n = &s->node;
        for (int k = 0; k < n->y_count; k++)
            s->reached |= value_of(n->y[k])->reached;
        if (!s->reached)
            continue;
        for (int k = 0; k < n->x_count; k++) {
            sp_value *v = value_of(n->x[k]);
            n->x_add |= (unsigned)v->reached << k;
            v->reached |= wanted[v->t.index];
        }
        for (int k = 0; k < n->p_count; k++) {
            int p = n->p[k]->index;
            n->p_add |= (unsigned)(g->final[p] >= 0) << k;
            g->final[p] = i;
        }
    }
}

static sp_err check_reached(sp_graph *g)
{
    for (int i = 0; i < g->params->list.count; i++) {
        const sp_param *p = sp_params_at(g->params, i);
        if (!p->buffer && g->final[i] < 0)
            return sp_fail(SP_EARG,
                           "parameter %s: the loss does not depend on it",
                           p->name);
    }
    return SP_OK;
}

static sp_err prepare_backward(sp_graph *g)
{
    if (!g->loss)
        return sp_fail(SP_EARG, "a training program needs an output 'loss'");

    bool *wanted = malloc(((size_t)g->values.count + 1) * sizeof *wanted);
    g->final = malloc(((size_t)g->params->list.count + 1) * sizeof *g->final);
    if (!wanted || !g->final) {
        free(wanted);
        return sp_fail(SP_ENOMEM, "compiling: out of memory");
    }
    mark_reached(g, wanted);
    free(wanted);
    return check_reached(g);
}

static sp_err allocate(sp_graph *g, const sp_blocks *b)
{
    if (!g->opt.no_planner) {
        g->planned = sp_block_alloc(g->memory.planned);
        if (!g->planned)
            return sp_fail(SP_ENOMEM,
                           "activations: no memory for %zu MiB; a smaller "
                           "train.%s needs less",
                           g->memory.planned >> 20,
                           g->opt.train ? "micro_batch" : "eval_batch");
    } else {
        g->own = calloc((size_t)b->count + 1, sizeof *g->own);
        for (int i = 0; g->own && i < b->count; i++, g->own_count++)
            if (!(g->own[i] = sp_block_alloc(b->at[i].size)))
                break;
        if (!g->own || g->own_count < b->count)
            return sp_fail(SP_ENOMEM,
                           "activations without planner: no memory for %zu "
                           "MiB; leave train.planner on",
                           g->memory.unplanned >> 20);
    }
    g->scratch = sp_block_alloc(g->memory.scratch);
    if (!g->scratch)
        return sp_fail(SP_ENOMEM, "work space: no memory for %zu MiB",
                       g->memory.scratch >> 20);
    return SP_OK;
}

static void *place(const sp_graph *g, const sp_blocks *b, int block)
{
    if (block < 0)
        return NULL;
    return g->opt.no_planner ? g->own[block]
                             : (char *)g->planned + b->at[block].offset;
}

static void set_pointers(sp_graph *g, const sp_blocks *b)
{
    for (int i = 0; i < g->values.count; i++) {
        sp_value *v = sp_value_at(g, i);
        v->data[0] = place(g, b, v->block);
        v->data[1] = v->again ? place(g, b, v->again_block) : v->data[0];
        v->t.data = v->data[0];
        v->t.grad = place(g, b, v->grad_block);
        if (v->producer < 0)
            memset(v->t.data, 0, sp_count(v->t.shape) * 4);
    }
    for (int i = 0; i < g->steps.count; i++) {
        sp_step *s = sp_step_at(g, i);
        s->node.saved_data = place(g, b, s->saved_block);
        s->node.scratch_data = g->scratch;
    }
}

/* Place every block; *need becomes the bytes that takes. */
static sp_err place_all(sp_blocks *b, size_t *need)
{
    if (sp_plan(b->at, b->count, need) != 0)
        return sp_fail(SP_ENOMEM, "planning: out of memory");
    return SP_OK;
}

/* Compute values again where that needs less memory. The planner does not
 * always find the shortest plan, so what it finds decides. */
static sp_err plan_recompute(sp_graph *g, sp_blocks *b, size_t *need)
{
    size_t kept = *need;

    SP_TRY(sp_recompute_choose(g, b));
    sp_recompute_apply(g, b);
    SP_TRY(place_all(b, need));
    if (*need < kept)
        return SP_OK;
    sp_recompute_undo(g, b);
    return place_all(b, need);
}

static sp_err plan_memory(sp_graph *g, sp_blocks *b)
{
    sp_memory *m = &g->memory;

    sp_lives(g, b);
    if (b->unplanned > SIZE_MAX / 4) /* sums of offsets and sizes must fit */
        return sp_fail(SP_ENOMEM,
                       "activations: more bytes than memory has addresses; "
                       "smaller images or a smaller train.%s need less",
                       g->opt.train ? "micro_batch" : "eval_batch");
    for (int i = 0; i < g->steps.count; i++) {
        size_t scratch = sp_step_at(g, i)->node.scratch;
        if (scratch > m->scratch)
            m->scratch = scratch;
    }
    if (!g->opt.no_planner)
        sp_lives_in_place(g, b);
    SP_TRY(place_all(b, &m->planned));
    if (g->opt.train && g->opt.recompute)
        SP_TRY(plan_recompute(g, b, &m->planned));
    m->lower_bound = sp_plan_lower_bound(b->at, b->count, sp_end_time(g) + 1);
    m->unplanned = b->unplanned;
    if (g->opt.no_planner)
        m->planned = m->unplanned;
    if (g->opt.no_memory)
        return SP_OK;
    SP_TRY(allocate(g, b));
    SP_TRY(sp_params_seal(g->params, g->opt.train));
    set_pointers(g, b);
    return SP_OK;
}

sp_err sp_compile(sp_graph *g)
{
    if (g->err != SP_OK)
        return sp_fail(g->err, "%s", g->error);
    if (g->scope[0])
        return sp_fail(SP_EARG, "scope '%s' was not closed by sp_pop()",
                       g->scope);
    if (g->steps.count == 0)
        return sp_fail(SP_EARG, "an empty program cannot be compiled");
    SP_TRY(sp_states_check(g));
    SP_TRY(sp_tiles_end(g));
    if (g->opt.train)
        SP_TRY(prepare_backward(g));

    size_t room = (size_t)sp_lives_most(g) + 1;
    sp_blocks b = { .at = malloc(room * sizeof *b.at) };
    if (!b.at)
        return sp_fail(SP_ENOMEM, "compiling: out of memory");
    sp_err e = plan_memory(g, &b);
    free(b.at);
    if (e == SP_OK) /* for calls that come too late */
        sp_graph_fail(g, SP_EARG,
                      "the program is compiled: record another graph");
    return e;
}
