#include "graph/lives.h"

#include <stdint.h>

static sp_value *value_of(sp_tensor *t) { return (sp_value *)t; }

static size_t bytes_of(const sp_value *v)
{
    return sp_count(v->t.shape) * 4; /* both dtypes */
}

/* A value has one block, or two when it is computed again, and a gradient. */
int sp_lives_most(const sp_graph *g)
{
    return 3 * g->values.count + g->steps.count;
}

int sp_lives_add(sp_blocks *b, size_t size, int first, int last)
{
    size = (size + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN;
    b->at[b->count] = (sp_block){ size, first, last, 0 };
    b->unplanned =
        size > SIZE_MAX - b->unplanned ? SIZE_MAX : b->unplanned + size;
    return b->count++;
}

static void read_in_backward(sp_value *v, int time)
{
    if (v->last_back == 0 || time < v->first_back)
        v->first_back = time;
    if (time > v->last_back)
        v->last_back = time;
}

/* Note when every value is read. Steps come in order: the last in forward is
 * the first in backward. */
static void note_reads(sp_graph *g)
{
    for (int i = 0; i < g->steps.count; i++) {
        const sp_step *s = sp_step_at(g, i);
        const sp_node *n = &s->node;
        int back = sp_backward_time(g, i);
        for (int k = 0; k < n->x_count; k++) {
            value_of(n->x[k])->last_forward = i;
            if (s->reached && (n->keep_x >> k & 1))
                read_in_backward(value_of(n->x[k]), back);
        }
        for (int k = 0; k < n->y_count; k++) {
            value_of(n->y[k])->last_forward = i; /* written */
            if (s->reached && (n->keep_y >> k & 1))
                read_in_backward(value_of(n->y[k]), back);
        }
    }
}

/* Every value lives from its step to its last reader. */
static void add_values(sp_graph *g, sp_blocks *b)
{
    note_reads(g);
    for (int i = 0; i < g->values.count; i++) {
        sp_value *v = sp_value_at(g, i);
        bool callers = v->producer < 0 || v->output;
        int last =
            v->last_back > v->last_forward ? v->last_back : v->last_forward;
        v->block =
            sp_lives_add(b, bytes_of(v), v->producer < 0 ? 0 : v->producer,
                         callers ? sp_end_time(g) : last);
    }
    for (int i = 0; i < g->steps.count; i++) {
        sp_step *s = sp_step_at(g, i);
        if (s->node.saved)
            s->saved_block = sp_lives_add(
                b, s->node.saved, i, s->reached ? sp_backward_time(g, i) : i);
    }
}

/* Every gradient lives from its first writer to its value's own step. */
static void add_grads(sp_graph *g, sp_blocks *b)
{
    for (int i = g->steps.count - 1; i >= 0; i--) {
        const sp_step *s = sp_step_at(g, i);
        for (int k = 0; s->reached && k < s->node.x_count; k++) {
            sp_value *v = value_of(s->node.x[k]);
            int last = v->producer < 0 ? sp_end_time(g)
                                       : sp_backward_time(g, v->producer);
            if (v->reached && v->grad_block < 0)
                v->grad_block =
                    sp_lives_add(b, bytes_of(v), sp_backward_time(g, i), last);
        }
    }
    if (g->loss && g->loss->reached) /* written before the first step */
        g->loss->grad_block =
            sp_lives_add(b, bytes_of(g->loss), g->steps.count,
                         sp_backward_time(g, g->loss->producer));
}

void sp_lives(sp_graph *g, sp_blocks *b)
{
    add_values(g, b);
    if (g->opt.train)
        add_grads(g, b);
}

/* Let block *to, which begins at `time`, stand where block `from` ends then. */
static bool join(sp_blocks *b, int from, int *to, int time)
{
    sp_block *old = &b->at[from], *new = &b->at[*to];

    if (old->last != time || new->first != time || old->size != new->size)
        return false;
    old->last = new->last;
    *new = (sp_block){ 0, new->first, new->first, 0 };
    *to = from;
    return true;
}

/* What may be computed again is left alone: its life has a gap. */
static bool may_end(const sp_graph *g, const sp_value *v)
{
    return v->producer >= 0 &&
           !(g->opt.recompute && sp_step_again(sp_step_at(g, v->producer)));
}

void sp_lives_in_place(sp_graph *g, sp_blocks *b)
{
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        sp_value *x = n->x_count > 0 ? value_of(n->x[0]) : NULL;
        if (n->inplace && x && x->producer >= 0)
            join(b, x->block, &value_of(n->y[0])->block, i);
    }
    for (int i = g->steps.count - 1; i >= 0; i--) {
        const sp_node *n = &sp_step_at(g, i)->node;
        sp_value *x = n->x_count > 0 ? value_of(n->x[0]) : NULL;
        if (n->grad_inplace && x && x->grad_block >= 0 && may_end(g, x))
            join(b, x->block, &x->grad_block, sp_backward_time(g, i));
    }
}
