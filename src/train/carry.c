#include "train/carry.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const sp_carry *c, const sp_carried *s)
{
    return (size_t)c->rows * (size_t)s->c * sizeof(float);
}

sp_err sp_carry_open(sp_carry *c, sp_graph *g, int rows)
{
    int count = 0;

    while (sp_graph_state(g, count))
        count++;
    *c = (sp_carry){ .graph = g, .rows = rows };
    c->at = calloc((size_t)count + 1, sizeof *c->at);
    for (int i = 0; c->at && i < count; i++) {
        sp_carried *s = &c->at[c->count++];
        const sp_tensor *t = sp_graph_state(g, i)->now;

        s->name = t->name;
        s->c = t->shape.c;
        s->now = calloc(bytes_of(c, s), 1);
        s->next = calloc(bytes_of(c, s), 1);
        if (!s->now || !s->next)
            break;
    }
    if (c->at && (count == 0 || c->at[count - 1].next))
        return SP_OK;
    sp_carry_close(c);
    return sp_fail(SP_ENOMEM, "hidden states of %d rows: out of memory", rows);
}

void sp_carry_close(sp_carry *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->at[i].now);
        free(c->at[i].next);
    }
    free(c->at);
    *c = (sp_carry){ 0 };
}

void sp_carry_reset(sp_carry *c)
{
    for (int i = 0; i < c->count; i++)
        memset(c->at[i].now, 0, bytes_of(c, &c->at[i]));
}

/* Floats of n rows. */
static size_t floats(const sp_carried *s, int n)
{
    return (size_t)n * (size_t)s->c;
}

void sp_carry_put(const sp_carry *c, int first, int n)
{
    for (int i = 0; i < c->count; i++) {
        const sp_carried *s = &c->at[i];

        memcpy(sp_graph_state(c->graph, i)->now->data,
               s->now + floats(s, first), floats(s, n) * sizeof(float));
    }
}

void sp_carry_forward(sp_carry *c, const sp_run *run, int first)
{
    sp_carry_put(c, first, run->n);
    sp_forward(c->graph, run);
    for (int i = 0; i < c->count; i++) {
        sp_carried *s = &c->at[i];

        memcpy(s->next + floats(s, first),
               sp_graph_state(c->graph, i)->next->data,
               floats(s, run->n) * sizeof(float));
    }
}

void sp_carry_advance(sp_carry *c)
{
    for (int i = 0; i < c->count; i++) {
        sp_carried *s = &c->at[i];
        float *done = s->now;

        s->now = s->next;
        s->next = done;
    }
}
