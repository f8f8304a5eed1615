/* Layers of low rank, while they are recorded: who is one, and which two
 * parameters make up one of full rank. */
#include <math.h>
#include <string.h>

#include "graph/program.h"

/* ---- Layers by name ------------------------------------------------------ */

/* Whether `name` starts with the `size` letters at `entry`, and these end where
 * one of its parts does. */
static bool starts(const char *name, const char *entry, size_t size)
{
    return strncmp(name, entry, size) == 0 &&
           (name[size] == '\0' || name[size] == '.');
}

/* Whether an entry of a list means the layer. */
static bool matches(const char *entry, size_t size, const char *layer)
{
    if (entry[0] != '.')
        return starts(layer, entry, size);
    for (const char *at = layer; at; at = strchr(at, '.')) {
        at += *at == '.';
        if (size > 1 && starts(at, entry + 1, size - 1))
            return true;
    }
    return false;
}

bool sp_layer_listed(const char *list, const char *layer)
{
    while (*list) {
        size_t size = strcspn(list, " ");
        if (size > 0 && matches(list, size, layer))
            return true;
        list += size + (list[size] == ' ');
    }
    return false;
}

/* ---- Ranks --------------------------------------------------------------- */

sp_rank_rule sp_graph_ranks(const sp_graph *g)
{
    return g->opt.ranks ? *g->opt.ranks : (sp_rank_rule){ 0 };
}

int sp_layer_rank(sp_graph *g, const char *name, int asked, int rows,
                  int columns)
{
    sp_rank_rule rule = sp_graph_ranks(g);
    char *layer = g->err == SP_OK ? sp_full_name(g, name) : NULL;
    int rank = asked, most = rows < columns ? rows : columns;

    if (!layer)
        return 0;
    if (rank == 0 && rule.rank)
        rank = rule.rank(rule.arg, layer, rows, columns);
    if (rank >= 0 && rank <= most)
        return rank;
    sp_graph_fail(g, SP_EARG,
                  "%s: its weights are %d x %d, so their rank can be from 1 to "
                  "%d, or 0 for all of them; asked for is %d",
                  layer, rows, columns, most, rank);
    return 0;
}

/* ---- Factors ------------------------------------------------------------- */

static bool fit(const sp_param *u, const sp_param *v)
{
    int rank;

    if (u->ndim < 2 || v->ndim < 2 || u->count == 0 || v->count == 0)
        return false;
    rank = (int)(v->count / (size_t)v->dims[0]);
    return u->dims[0] % rank == 0 && v->dims[0] % (u->dims[0] / rank) == 0;
}

/* Set p->whole, which another program over the store may have done before. */
static bool name_whole(sp_graph *g, sp_param *p, const char *whole)
{
    if (!p->whole) {
        p->whole = sp_arena_text(&g->params->arena, whole);
        if (!p->whole)
            sp_graph_fail(g, SP_ENOMEM, "recording: out of memory");
    } else if (strcmp(p->whole, whole) != 0) {
        sp_graph_fail(g, SP_EARG, "%s: %s belongs to %s already", whole,
                      p->name, p->whole);
    }
    return g->err == SP_OK;
}

static bool free_for(const sp_param *p, const sp_param *other, bool left)
{
    return !p->other || (p->other == other && p->left == left);
}

void sp_stands_for(sp_graph *g, const char *whole, sp_param *p)
{
    char *full = g->err == SP_OK ? sp_full_name(g, whole) : NULL;

    if (full)
        name_whole(g, p, full);
}

void sp_factors_of(sp_graph *g, const char *whole, sp_param *u, sp_param *v)
{
    char *full = g->err == SP_OK ? sp_full_name(g, whole) : NULL;

    if (!full)
        return;
    if (u == v || !fit(u, v)) {
        sp_graph_fail(g, SP_ESHAPE,
                      "%s: %s and %s are no factors of a product: the first "
                      "needs as many rows as the second has columns, or that "
                      "many for each of its blocks of rows",
                      full, u->name, v->name);
        return;
    }
    if (!free_for(u, v, false) || !free_for(v, u, true)) {
        sp_graph_fail(g, SP_EARG, "%s: %s or %s has another factor already",
                      full, u->name, v->name);
        return;
    }
    if (!name_whole(g, u, full) || !name_whole(g, v, full))
        return;
    u->other = v;
    v->other = u;
    v->left = true;
}

sp_init sp_factor_init(sp_init whole, int rank)
{
    double a = fabs((double)whole.a), r = rank;

    switch (whole.kind) {
    case SP_NORMAL:
        a = sqrt(a) / pow(r, 0.25);
        break;
    case SP_UNIFORM:
        a = sqrt(a) * pow(3 / r, 0.25);
        break;
    default:
        a = sqrt(a / r);
    }
    return (sp_init){ whole.kind, (float)a };
}
