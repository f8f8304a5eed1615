/* Which values are not kept from forward to backward but computed again.
 *
 * A value is needed from its step to its last reader in forward, and from its
 * first to its last reader in backward; in between lies a gap in which other
 * buffers may have its memory, if its operator can write it again at the gap's
 * end. That must lengthen no other life: all that the operator reads has to be
 * there at that time anyway. So a batch norm is computed again from its input,
 * which its own backward reads later; one with a sum only where the added value
 * is still there, which in a chain of residual sums holds for every second.
 *
 * Of those, the ones stay kept that may be kept without more bytes at the
 * time when most are live: computing them again would save nothing.
 */
#include <stdlib.h>

#include "graph/lives.h"

/* Bytes that are live at each time. */
typedef struct profile {
    size_t *live;
    int times;
} profile;

/* Add a value's bytes over its gap, or take them away. */
static void add_gap(profile *p, const sp_value *v, size_t bytes, bool take)
{
    for (int t = v->last_forward + 1; t < v->first_back; t++)
        p->live[t] += take ? 0 - bytes : bytes;
}

static size_t most(const profile *p, int from, int to)
{
    size_t top = 0;

    for (int t = from; t < to; t++)
        top = p->live[t] > top ? p->live[t] : top;
    return top;
}

/* Whether a value can be read at a time of backward. */
static bool is_there(const sp_value *v, int time)
{
    if (v->producer < 0 || v->output)
        return true;
    return time <= v->last_back && (!v->again || v->first_back <= time);
}

static bool can_recompute(const sp_step *s)
{
    const sp_node *n = &s->node;
    const sp_value *v = sp_step_again(s);

    if (!v || v->output || !s->reached || v->last_back == 0)
        return false;
    for (int k = 0; k < n->x_count; k++)
        if ((n->recompute_x >> k & 1) &&
            !is_there((const sp_value *)n->x[k], v->first_back))
            return false;
    return true;
}

/* Mark all that can be computed again, in their order, since each may depend on
 * those before it; then take the mark off those that cost nothing to keep. */
static void choose(sp_graph *g, const sp_blocks *b, profile *p)
{
    size_t top;

    for (int i = 0; i < g->steps.count; i++) {
        sp_value *v = sp_step_again(sp_step_at(g, i));
        if (!can_recompute(sp_step_at(g, i)))
            continue;
        v->again = true;
        add_gap(p, v, b->at[v->block].size, true);
    }
    top = most(p, 0, p->times);
    for (int i = g->steps.count - 1; i >= 0; i--) {
        sp_value *v = sp_step_again(sp_step_at(g, i));
        size_t bytes = v && v->again ? b->at[v->block].size : 0;
        if (bytes == 0 ||
            bytes + most(p, v->last_forward + 1, v->first_back) > top)
            continue;
        v->again = false;
        add_gap(p, v, bytes, false);
    }
}

sp_err sp_recompute_choose(sp_graph *g, const sp_blocks *b)
{
    profile p = { .times = sp_end_time(g) + 1 };

    p.live = sp_plan_profile(b->at, b->count, p.times);
    if (!p.live)
        return sp_fail(SP_ENOMEM, "planning: out of memory");
    choose(g, b, &p);
    free(p.live);
    return SP_OK;
}

void sp_recompute_apply(sp_graph *g, sp_blocks *b)
{
    for (int i = g->steps.count - 1; i >= 0; i--) {
        sp_step *s = sp_step_at(g, i), *reader;
        sp_value *v = sp_step_again(s);
        if (!v || !v->again)
            continue;
        b->at[v->block].last = v->last_forward;
        v->again_block =
            sp_lives_add(b, b->at[v->block].size, v->first_back, v->last_back);
        reader = sp_step_at(g, sp_backward_time(g, v->first_back));
        s->next_again = reader->first_again;
        reader->first_again = s;
    }
}

void sp_recompute_undo(sp_graph *g, sp_blocks *b)
{
    for (int i = 0; i < g->steps.count; i++) {
        sp_step *s = sp_step_at(g, i);
        sp_value *v = sp_step_again(s);
        s->first_again = NULL;
        if (!v || !v->again)
            continue;
        b->at[v->block].last = v->last_back;
        b->unplanned -= b->at[--b->count].size; /* apply() added them last */
        v->again = false;
    }
}
