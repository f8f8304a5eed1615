/* Running a compiled program. Nothing here allocates or fails. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/program.h"
#include "kernels/kernels.h"

static sp_run complete(const sp_graph *g, const sp_run *run)
{
    sp_run r = *run;

    r.threads = g->opt.threads;
    r.kernels = g->kernels;
    return r;
}

static void forward(const sp_step *s, const sp_run *r)
{
    sp_value *v = sp_step_again(s);

    if (v)
        v->t.data = v->data[0];
    sp_lap(r, NULL, SP_FORWARD);
    s->node.op->forward(&s->node, r);
    sp_lap(r, &s->node, SP_FORWARD);
}

/* Compute again what this step's backward is the first to read. From here on
 * the value stands in other memory, until its next forward: the operators in
 * between are those of backward that read it. Callers do not see it, since
 * inputs and outputs are kept. */
static void recompute(const sp_step *reader, const sp_run *r)
{
    for (const sp_step *s = reader->first_again; s; s = s->next_again) {
        sp_value *v = sp_step_again(s);

        v->t.data = v->data[1];
        sp_lap(r, NULL, SP_RECOMPUTE);
        s->node.op->recompute(&s->node, r);
        sp_lap(r, &s->node, SP_RECOMPUTE);
    }
}

static void backward(const sp_step *s, const sp_run *r)
{
    recompute(s, r);
    sp_lap(r, NULL, SP_BACKWARD);
    s->node.op->backward(&s->node, r);
    if (!s->node.op->parts)
        sp_lap(r, &s->node, SP_BACKWARD);
}

void sp_forward(sp_graph *g, const sp_run *run)
{
    sp_run r = complete(g, run);

    for (int i = 0; i < g->steps.count; i++)
        forward(sp_step_at(g, i), &r);
}

double sp_loss(const sp_graph *g, const sp_run *run)
{
    const float *row = g->loss->t.data;
    size_t rows = sp_rows(&g->loss->t, run);
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += row[i];
    return sum * run->weight;
}

/* d(loss)/d(row) is the row's weight. */
static void seed_loss(sp_graph *g, const sp_run *run)
{
    float *grad = g->loss->t.grad;
    size_t rows = sp_rows(&g->loss->t, run);

    for (size_t i = 0; i < rows; i++)
        grad[i] = (float)run->weight;
}

void sp_backward(sp_graph *g, const sp_run *run, sp_ready ready, void *arg)
{
    sp_run r = complete(g, run);

    if (!g->loss->t.grad)
        return;
    seed_loss(g, &r);
    for (int i = g->steps.count - 1; i >= 0; i--) {
        const sp_step *s = sp_step_at(g, i);
        const sp_node *n = &s->node;
        if (!s->reached)
            continue;
        backward(s, &r);
        for (int k = 0; ready && k < n->p_count; k++)
            if (!n->p[k]->buffer && g->final[n->p[k]->index] == i)
                ready(arg, n->p[k]);
    }
}

static bool finite(const float *x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static bool forward_finite(const sp_node *n, const sp_run *r)
{
    for (int k = 0; k < n->y_count; k++)
        if (n->y[k]->dtype == SP_F32 &&
            !finite(n->y[k]->data, sp_elements(n->y[k], r)))
            return false;
    return true;
}

static bool backward_finite(const sp_node *n, const sp_run *r)
{
    for (int k = 0; k < n->x_count; k++)
        if (!finite(n->x[k]->grad, sp_elements(n->x[k], r)))
            return false;
    for (int k = 0; k < n->p_count; k++)
        if (!n->p[k]->buffer && !finite(n->p[k]->grad, n->p[k]->count))
            return false;
    return true;
}

static void found(sp_graph *g, const sp_node *n, const char *pass,
                  const char **where)
{
    snprintf(g->where, sizeof g->where, "%s (%s), %s", n->name, n->op->name,
             pass);
    *where = g->where;
}

void sp_find_nonfinite(sp_graph *g, const sp_run *run, const char **where)
{
    sp_run r = complete(g, run);

    *where = NULL;
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        forward(sp_step_at(g, i), &r);
        if (!forward_finite(n, &r)) {
            found(g, n, "forward", where);
            return;
        }
    }
    if (!g->opt.train || !g->loss->t.grad)
        return;
    seed_loss(g, &r);
    for (int i = g->steps.count - 1; i >= 0; i--) {
        const sp_step *s = sp_step_at(g, i);
        if (!s->reached)
            continue;
        backward(s, &r);
        if (!backward_finite(&s->node, &r)) {
            found(g, &s->node, "backward", where);
            return;
        }
    }
}

sp_memory sp_graph_memory(const sp_graph *g) { return g->memory; }

double sp_graph_macs(const sp_graph *g)
{
    double sum = 0;

    for (int i = 0; i < g->steps.count; i++)
        sum += sp_step_at(g, i)->node.macs;
    return sum;
}

const char *sp_graph_isa(const sp_graph *g)
{
    return g->kernels ? sp_kernels_isa(g->kernels) : "none";
}

sp_tensor *sp_graph_input(const sp_graph *g, const char *name)
{
    for (int i = 0; i < g->values.count; i++) {
        sp_value *v = sp_value_at(g, i);
        if (v->producer < 0 && strcmp(v->t.name, name) == 0)
            return &v->t;
    }
    return NULL;
}

sp_tensor *sp_graph_output(const sp_graph *g, const char *name)
{
    for (int i = 0; i < g->values.count; i++) {
        sp_value *v = sp_value_at(g, i);
        if (v->output && strcmp(v->output, name) == 0)
            return &v->t;
    }
    return NULL;
}
