/* Recording: calls append values and nodes; the first mistake sticks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"
#include "kernels/kernels.h"

static int or_one(int v) { return v == 0 ? 1 : v; }

static sp_shape normal(sp_shape s)
{
    return (sp_shape){ or_one(s.t), or_one(s.n), or_one(s.h), or_one(s.w),
                       or_one(s.c) };
}

size_t sp_count(sp_shape s)
{
    s = normal(s);
    return (size_t)s.t * (size_t)s.n * (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

/* Say which there are. */
static void refuse_isa(sp_graph *g, const char *isa)
{
    char has[64] = "";
    const sp_kernels *k;

    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        size_t at = strlen(has);
        snprintf(has + at, sizeof has - at, "%s%s", i ? ", " : "",
                 sp_kernels_isa(k));
    }
    sp_graph_fail(g, SP_EARG, "isa '%s' is not on this processor, which has %s",
                  isa, has);
}

sp_graph *sp_graph_new(sp_params *p, sp_graph_opt opt)
{
    sp_graph *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->params = p;
    g->opt = opt;
    g->opt.threads = opt.threads > 1 ? opt.threads : 1;
    if (opt.winograd == SP_WINOGRAD_AUTO && !opt.reference)
        g->tiles = opt.tiles;
    g->dummy.t.shape = normal((sp_shape){ 0 });
    g->dummy.t.name = "";
    g->kernels = sp_kernels_find(opt.isa);
    if (!g->kernels)
        refuse_isa(g, opt.isa);
    return g;
}

void sp_graph_free(sp_graph *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->own_count; i++)
        free(g->own[i]);
    free(g->own);
    free(g->planned);
    free(g->scratch);
    free(g->final);
    free(g->values.at);
    free(g->steps.at);
    free(g->states.at);
    sp_arena_free(&g->arena);
    free(g);
}

void sp_graph_fail(sp_graph *g, sp_err e, const char *fmt, ...)
{
    va_list args;

    if (g->err != SP_OK)
        return;
    g->err = e;
    va_start(args, fmt);
    vsnprintf(g->error, sizeof g->error, fmt, args);
    va_end(args);
}

static void no_memory(sp_graph *g)
{
    sp_graph_fail(g, SP_ENOMEM, "recording: out of memory");
}

void sp_push(sp_graph *g, const char *name)
{
    size_t used = strlen(g->scope), more = strlen(name);

    if (used + more + 2 > sizeof g->scope) {
        sp_graph_fail(g, SP_EARG, "scope '%s%s' is longer than %zu bytes",
                      g->scope, name, sizeof g->scope);
        return;
    }
    memcpy(g->scope + used, name, more);
    memcpy(g->scope + used + more, ".", 2);
    g->scope_at[g->scopes++] = (int)used;
}

void sp_pop(sp_graph *g)
{
    if (g->scopes == 0)
        sp_graph_fail(g, SP_EARG, "sp_pop() without its sp_push()");
    else
        g->scope[g->scope_at[--g->scopes]] = '\0';
}

char *sp_full_name(sp_graph *g, const char *name)
{
    size_t scope = strlen(g->scope), more = strlen(name) + 1;
    char *text = sp_arena_alloc(&g->arena, scope + more);

    if (!text) {
        no_memory(g);
        return NULL;
    }
    memcpy(text, g->scope, scope);
    memcpy(text + scope, name, more);
    return text;
}

static sp_value *new_value(sp_graph *g, const char *name, int producer)
{
    sp_value *v = sp_arena_alloc(&g->arena, sizeof *v);

    if (!v || !sp_pointers_add(&g->values, v)) {
        no_memory(g);
        return NULL;
    }
    v->t.index = g->values.count - 1;
    v->t.name = name;
    v->producer = producer;
    v->block = v->grad_block = -1;
    return v;
}

sp_tensor *sp_input(sp_graph *g, const char *name, sp_shape s, sp_dtype type)
{
    s = normal(s);
    if (s.t < 1 || s.n < 1 || s.h < 1 || s.w < 1 || s.c < 1)
        sp_graph_fail(g, SP_ESHAPE, "input %s: sizes must be positive", name);
    if (g->err != SP_OK)
        return &g->dummy.t;

    char *text = sp_full_name(g, name);
    sp_value *v = text ? new_value(g, text, -1) : NULL;
    if (!v)
        return &g->dummy.t;
    v->t.shape = s;
    v->t.dtype = type;
    return &v->t;
}

void sp_output(sp_graph *g, const char *name, sp_tensor *x)
{
    if (g->err != SP_OK)
        return;

    sp_value *v = (sp_value *)x;
    v->output = sp_arena_text(&g->arena, name);
    if (!v->output)
        no_memory(g);
    if (strcmp(name, "loss") != 0)
        return;
    if (x->shape.h * x->shape.w * x->shape.c != 1 || x->dtype != SP_F32)
        sp_graph_fail(g, SP_ESHAPE, "loss %s: one float a row is needed",
                      x->name);
    g->loss = v;
}

static sp_param *new_param(sp_graph *g, const char *name, int ndim,
                           const int *dims)
{
    sp_params *s = g->params;
    sp_param *p = sp_arena_alloc(&s->arena, sizeof *p);

    if (!p || !(p->name = sp_arena_text(&s->arena, name)) ||
        !sp_pointers_add(&s->list, p)) {
        no_memory(g);
        return NULL;
    }
    p->index = s->list.count - 1;
    p->ndim = ndim;
    p->count = 1;
    for (int i = 0; i < ndim; i++) {
        p->dims[i] = dims[i];
        p->count *= (size_t)dims[i];
    }
    return p;
}

static sp_param *param(sp_graph *g, const char *name, const int *dims,
                       sp_init init, bool buffer)
{
    char *text = g->err == SP_OK ? sp_full_name(g, name) : NULL;
    int ndim = 0;

    if (!text)
        return &g->dummy_param;
    while (ndim < SP_MAX_DIMS && dims[ndim] != 0)
        if (dims[ndim++] < 0)
            sp_graph_fail(g, SP_ESHAPE, "%s: negative size", text);

    sp_param *p = sp_params_find(g->params, text);
    if (p) {
        if (p->ndim != ndim ||
            memcmp(p->dims, dims, (size_t)ndim * sizeof *dims) != 0)
            sp_graph_fail(g, SP_ESHAPE, "%s: recorded before with other sizes",
                          text);
        if (p->buffer != buffer)
            sp_graph_fail(g, SP_EARG,
                          "%s: a buffer in one place, trained in another",
                          text);
        return p;
    }
    if (g->params->sealed)
        sp_graph_fail(g, SP_EARG,
                      "%s: not in the parameter store this program is "
                      "recorded over",
                      text);
    if (g->err != SP_OK || !(p = new_param(g, text, ndim, dims)))
        return &g->dummy_param;
    p->init = init;
    p->buffer = buffer;
    for (int i = 0; i < p->index; i++) {
        const sp_param *q = sp_params_at(g->params, i);
        if (q->buffer == buffer)
            p->offset = q->offset + q->count;
    }
    return p;
}

sp_param *sp_weight(sp_graph *g, const char *name, const int *dims,
                    sp_init init)
{
    return param(g, name, dims, init, false);
}

sp_param *sp_buffer(sp_graph *g, const char *name, const int *dims,
                    sp_init init)
{
    return param(g, name, dims, init, true);
}

sp_param *sp_weight_named(sp_graph *g, const char *full_name)
{
    sp_param *p = sp_params_find(g->params, full_name);

    if (p && !p->buffer)
        return p;
    sp_graph_fail(g, SP_EARG,
                  "there is no trained parameter %s to be shared; it must be "
                  "recorded before",
                  full_name);
    return &g->dummy_param;
}

/* Copy a list that ends with NULL; *count is set. */
static void *copy_list(sp_graph *g, const void *list, int *count)
{
    void *const *at = list;

    for (*count = 0; at && at[*count]; (*count)++)
        ;
    if (*count > 32) /* what x_add and p_add can mark */
        sp_graph_fail(g, SP_EARG, "an operator takes at most 32 inputs");
    return sp_arena_copy(&g->arena, list, (size_t)*count * sizeof *at);
}

static sp_step *new_step(sp_graph *g, const sp_op *op, const char *name)
{
    sp_step *s = sp_arena_alloc(&g->arena, sizeof *s);
    char *text = sp_full_name(g, name);

    if (!s || !text || !sp_pointers_add(&g->steps, s)) {
        no_memory(g);
        return NULL;
    }
    s->node.graph = g;
    s->node.op = op;
    s->node.name = text;
    s->node.train = g->opt.train;
    s->node.reference = g->opt.reference;
    s->node.kernels = g->kernels;
    s->node.threads = g->opt.threads;
    s->saved_block = -1;
    return s;
}

/* Let the op check its inputs, and check what it says of its outputs. */
static void infer_shape(sp_graph *g, sp_node *n)
{
    sp_err e = n->op->shape(n);

    if (e != SP_OK) {
        sp_graph_fail(g, e, "%s", sp_last_error());
        return;
    }
    for (int i = 0; i < n->y_count; i++) {
        sp_shape s = n->y[i]->shape = normal(n->y[i]->shape);
        if (s.t < 1 || s.n < 1 || s.h < 1 || s.w < 1 || s.c < 1)
            sp_graph_fail(g, SP_ESHAPE,
                          "%s (%s): the result would be %d x %d pixels of %d "
                          "channels",
                          n->name, n->op->name, s.h, s.w, s.c);
    }
}

void sp_record_many(sp_graph *g, const sp_op *op, const char *name,
                    const void *attr, size_t attr_size, sp_tensor *const *x,
                    sp_param *const *p, sp_tensor **y, int y_count)
{
    for (int i = 0; i < y_count; i++)
        y[i] = &g->dummy.t;
    if (y_count > SP_MAX_OUT)
        sp_graph_fail(g, SP_EARG, "%s: an operator has at most %d outputs",
                      op->name, SP_MAX_OUT);

    sp_step *s = g->err == SP_OK ? new_step(g, op, name) : NULL;
    if (!s)
        return;
    sp_node *n = &s->node;
    n->x = copy_list(g, x, &n->x_count);
    n->p = copy_list(g, p, &n->p_count);
    n->attr = sp_arena_copy(&g->arena, attr, attr_size);
    n->y_count = y_count;
    for (int i = 0; i < y_count; i++) {
        sp_value *v = new_value(g, n->name, g->steps.count - 1);
        if (!v)
            return;
        n->y[i] = &v->t;
    }
    if (!n->x || !n->p || !n->attr)
        no_memory(g);
    if (g->err == SP_OK)
        infer_shape(g, n);
    for (int i = 0; i < y_count && g->err == SP_OK; i++)
        y[i] = n->y[i];
}

sp_tensor *sp_record(sp_graph *g, const sp_op *op, const char *name,
                     const void *attr, size_t attr_size, sp_tensor *const *x,
                     sp_param *const *p)
{
    sp_tensor *y;

    sp_record_many(g, op, name, attr, attr_size, x, p, &y, 1);
    return y;
}
