#include "convert/state_dict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"

enum { NAME_ROOM = 320 };

static sp_err no_memory(void) { return sp_fail(SP_ENOMEM, "out of memory"); }

static bool named(const sp_param *p, const char *layer)
{
    char name[NAME_ROOM];

    snprintf(name, sizeof name, "%s.weight", layer);
    return strcmp(p->name, name) == 0;
}

/* Whether another layer before step i is the one that p is called after. */
static bool has_owner(const sp_graph *g, int i, const sp_param *p)
{
    for (int k = 0; k < i; k++) {
        const sp_node *n = &sp_step_at(g, k)->node;
        if (n->p_count > 0 && n->p[0] == p && named(p, n->name))
            return true;
    }
    return false;
}

const sp_node *sp_tied_node(const sp_graph *g, int i)
{
    for (int k = 0; k < g->steps.count; k++) {
        const sp_node *n = &sp_step_at(g, k)->node;
        if (strcmp(n->op->name, "matmul") == 0 && !named(n->p[0], n->name) &&
            has_owner(g, k, n->p[0]) && i-- == 0)
            return n;
    }
    return NULL;
}

/* Add an array under a name of its own. */
static sp_err add(sp_state_dict *d, const char *name, const sp_st_tensor *like,
                  const void *data)
{
    sp_st_tensor *t = &d->tensors[d->count];

    *t = *like;
    t->name = sp_arena_text(&d->arena, name);
    t->data = data;
    if (!t->name || !data)
        return no_memory();
    d->count++;
    return SP_OK;
}

static sp_err add_param(sp_state_dict *d, const sp_param *p)
{
    sp_st_tensor t = { .type = SP_ST_F32, .ndim = p->ndim };

    for (int i = 0; i < p->ndim; i++)
        t.dims[i] = p->dims[i];
    return add(d, p->name, &t, p->value);
}

/* Behind the last buffer of a batch norm, its counter. */
static sp_err add_counter(sp_state_dict *d, const sp_param *p, int64_t steps)
{
    static const char end[] = "running_var";
    size_t n = strlen(p->name), k = sizeof end - 1;
    sp_st_tensor t = { .type = SP_ST_I64 };
    char name[NAME_ROOM];

    if (!p->buffer || n < k || strcmp(p->name + n - k, end) != 0)
        return SP_OK;
    snprintf(name, sizeof name, "%.*snum_batches_tracked", (int)(n - k),
             p->name);
    return add(d, name, &t, sp_arena_copy(&d->arena, &steps, sizeof steps));
}

/* Behind a recurrent layer's only bias, the second. */
static sp_err add_bias(sp_state_dict *d, const sp_params *all,
                       const sp_param *p)
{
    const char *stem = strstr(p->name, "bias_ih_l");
    sp_st_tensor t = { .type = SP_ST_F32, .ndim = 1 };
    char name[NAME_ROOM];

    if (!stem || p->ndim != 1)
        return SP_OK;
    snprintf(name, sizeof name, "%.*sbias_hh%s", (int)(stem - p->name), p->name,
             stem + strlen("bias_ih"));
    if (sp_params_find(all, name))
        return SP_OK;
    t.dims[0] = p->dims[0];
    return add(d, name, &t,
               sp_arena_alloc(&d->arena, p->count * sizeof(float)));
}

static sp_err add_tied(sp_state_dict *d, const sp_graph *g)
{
    const sp_node *n;
    char name[NAME_ROOM];

    for (int i = 0; (n = sp_tied_node(g, i)); i++) {
        const sp_param *p = n->p[0];
        sp_st_tensor t = { .type = SP_ST_F32,
                           .ndim = 2,
                           .dims = { p->dims[0], p->dims[1] } };
        snprintf(name, sizeof name, "%s.weight", n->name);
        SP_TRY(add(d, name, &t, p->value));
    }
    return SP_OK;
}

static sp_err list(sp_state_dict *d, const sp_session *s, int64_t steps)
{
    const sp_graph *g = s->eval.graph;
    size_t most =
        2 * (size_t)sp_params_size(s->params) + (size_t)g->steps.count;

    d->tensors = calloc(most + 1, sizeof *d->tensors);
    if (!d->tensors)
        return no_memory();
    for (int i = 0; sp_params_at(s->params, i); i++) {
        const sp_param *p = sp_params_at(s->params, i);
        SP_TRY(add_param(d, p));
        SP_TRY(add_counter(d, p, steps));
        SP_TRY(add_bias(d, s->params, p));
    }
    return add_tied(d, g);
}

sp_err sp_state_dict_open(sp_state_dict *d, const sp_session *s, int64_t steps)
{
    sp_err e;

    *d = (sp_state_dict){ 0 };
    e = list(d, s, steps);
    if (e != SP_OK)
        sp_state_dict_close(d);
    return e;
}

void sp_state_dict_close(sp_state_dict *d)
{
    free(d->tensors);
    sp_arena_free(&d->arena);
    *d = (sp_state_dict){ 0 };
}
