/* When layers are stable, and of which rank they are then. */
#include "train/autorank.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The moving average is that of about so many epochs: the newest counts 2 of 16
 * parts. */
static const double window = 15;
/* The mean slope of a stable layer at most, in ranks an epoch; and its factors
 * for each of two layers that are left, and for a single one. */
static const double threshold = 0.1, of_two = 2.5, of_one = 5;

sp_err sp_autorank_room(sp_autorank *a, int count)
{
    *a = (sp_autorank){ .count = count };
    a->layers = calloc((size_t)count + 1, sizeof *a->layers);
    return a->layers ? SP_OK : sp_fail(SP_ENOMEM, "autorank: out of memory");
}

sp_err sp_autorank_copy(sp_autorank *to, const sp_autorank *from)
{
    SP_TRY(sp_autorank_room(to, from->count));
    to->epochs = from->epochs;
    to->chosen = from->chosen;
    for (int i = 0; i < from->count; i++) {
        const char *whole = from->layers[i].whole;

        to->layers[i] = from->layers[i];
        to->layers[i].whole = sp_copy(whole, strlen(whole));
        if (!to->layers[i].whole) {
            sp_autorank_free(to);
            return sp_fail(SP_ENOMEM, "autorank: out of memory");
        }
    }
    return SP_OK;
}

void sp_autorank_free(sp_autorank *a)
{
    for (int i = 0; a->layers && i < a->count; i++)
        free(a->layers[i].whole);
    free(a->layers);
    *a = (sp_autorank){ 0 };
}

/* ---- The rule ------------------------------------------------------------ */

static int full_rank(const sp_autorank_layer *l)
{
    return l->rows < l->columns ? l->rows : l->columns;
}

int sp_autorank_estimate(const sp_autorank_layer *l)
{
    double rank = ceil(l->scale * l->stable_rank);

    return (int)fmax(1, fmin(rank, full_rank(l)));
}

bool sp_autorank_pays(const sp_autorank_layer *l)
{
    double rows = l->rows, columns = l->columns;

    return sp_autorank_estimate(l) * (rows + columns) < rows * columns;
}

int sp_autorank_left(const sp_autorank *a)
{
    int left = 0;

    for (int i = 0; i < a->count; i++)
        left += !a->layers[i].stable;
    return left;
}

/* Weights of zeros alone have no rank to scale by. */
void sp_autorank_start(sp_autorank *a, const double *stable_ranks)
{
    for (int i = 0; i < a->count; i++) {
        sp_autorank_layer *l = &a->layers[i];

        l->stable_rank = l->points[0] = stable_ranks[i];
        l->scale = stable_ranks[i] > 0 ? full_rank(l) / stable_ranks[i] : 1;
    }
}

/* The first one is that of the start. */
static int points_of(int epochs)
{
    return epochs < SP_AUTORANK_SLOPES ? epochs + 1 : SP_AUTORANK_POINTS;
}

/* Add a stable rank to the average behind `epochs` before. */
static void add_point(sp_autorank_layer *l, double stable_rank, int epochs)
{
    double weight = 2 / (window + 1), *x = l->points;
    int n = points_of(epochs);

    l->stable_rank = stable_rank;
    stable_rank = weight * stable_rank + (1 - weight) * x[n - 1];
    if (n == SP_AUTORANK_POINTS)
        memmove(x, x + 1, (size_t)--n * sizeof *x);
    x[n] = stable_rank;
}

static double mean_slope(const sp_autorank_layer *l)
{
    const double *x = l->points;
    int last = SP_AUTORANK_POINTS - 1;
    double sum = fabs(x[last] - x[last - 1]);

    for (int i = 1; i < last; i++)
        sum += fabs(x[i + 1] - x[i - 1]) / 2;
    return sum / SP_AUTORANK_SLOPES;
}

static double limit(int left)
{
    return threshold * (left == 2 ? of_two : left == 1 ? of_one : 1);
}

void sp_autorank_add(sp_autorank *a, const double *stable_ranks, int warmup)
{
    int left = sp_autorank_left(a);
    bool judged;

    for (int i = 0; i < a->count; i++)
        add_point(&a->layers[i], stable_ranks[i], a->epochs);
    a->epochs++;
    judged = a->epochs >= SP_AUTORANK_SLOPES && a->epochs >= warmup;
    for (int i = 0; judged && i < a->count; i++) {
        sp_autorank_layer *l = &a->layers[i];
        l->stable = l->stable || mean_slope(l) <= limit(left);
    }
}

bool sp_autorank_choose(sp_autorank *a)
{
    bool pays = false;

    if (sp_autorank_left(a) > 0)
        return false;
    for (int i = 0; i < a->count; i++)
        pays |= sp_autorank_pays(&a->layers[i]);
    for (int i = 0; pays && i < a->count; i++) {
        sp_autorank_layer *l = &a->layers[i];
        l->rank = sp_autorank_pays(l) ? sp_autorank_estimate(l) : 0;
    }
    a->chosen = pays;
    return pays;
}

/* Layers are asked for by their names, but for recurrent ones, whose matrices
 * are; weights are called LAYER.weight. */
const sp_autorank_layer *sp_autorank_find(const sp_autorank *a,
                                          const char *layer)
{
    size_t n = strlen(layer);

    for (int i = 0; i < a->count; i++) {
        const char *whole = a->layers[i].whole;
        if (strncmp(whole, layer, n) == 0 &&
            (whole[n] == '\0' || strcmp(whole + n, ".weight") == 0))
            return &a->layers[i];
    }
    return NULL;
}

/* ---- In checkpoints ------------------------------------------------------ */

static void write_layer(sp_json *j, const sp_autorank_layer *l, int points)
{
    sp_json_open(j, NULL);
    sp_json_text(j, "whole", l->whole);
    sp_json_int(j, "blocks", l->blocks);
    sp_json_int(j, "rows", l->rows);
    sp_json_int(j, "columns", l->columns);
    sp_json_number(j, "scale", l->scale);
    sp_json_number(j, "stable_rank", l->stable_rank);
    sp_json_bool(j, "stable", l->stable);
    sp_json_int(j, "rank", l->rank);
    sp_json_list(j, "points");
    for (int i = 0; i < points; i++)
        sp_json_number(j, NULL, l->points[i]);
    sp_json_close(j);
    sp_json_close(j);
}

void sp_autorank_write(sp_json *j, const sp_autorank *a)
{
    if (a->count == 0)
        return;
    sp_json_open(j, "autorank");
    sp_json_int(j, "epochs", a->epochs);
    sp_json_bool(j, "chosen", a->chosen);
    sp_json_list(j, "layers");
    for (int i = 0; i < a->count; i++)
        write_layer(j, &a->layers[i], points_of(a->epochs));
    sp_json_close(j);
    sp_json_close(j);
}

static sp_err get_count(const sp_json_value *object, const char *key, int least,
                        int *out)
{
    int64_t value;

    SP_TRY(sp_json_get_int(object, key, &value));
    if (value < least || value > INT_MAX)
        return sp_fail(SP_EFORMAT, "%s: autorank: %s is %lld, outside %d to %d",
                       object->where, key, (long long)value, least, INT_MAX);
    *out = (int)value;
    return SP_OK;
}

static sp_err get_positive(const sp_json_value *object, const char *key,
                           double *out)
{
    SP_TRY(sp_json_get_number(object, key, out));
    if (*out >= 0)
        return SP_OK;
    return sp_fail(SP_EFORMAT, "%s: autorank: %s is %g, below 0", object->where,
                   key, *out);
}

static sp_err read_points(const sp_json_value *object, sp_autorank_layer *l,
                          int points)
{
    const sp_json_value *list, *v;
    int i = 0;

    SP_TRY(sp_json_get(object, "points", SP_JSON_LIST, &list));
    if (list->count != (size_t)points)
        return sp_fail(SP_EFORMAT, "%s: autorank: %s has %zu points, not %d",
                       object->where, l->whole, list->count, points);
    for (v = list->first; v; v = v->next) {
        if (v->kind != SP_JSON_NUMBER)
            return sp_fail(SP_EFORMAT,
                           "%s: autorank: a point of %s is no number",
                           object->where, l->whole);
        l->points[i++] = v->number;
    }
    return SP_OK;
}

static sp_err read_layer(const sp_json_value *object, sp_autorank_layer *l,
                         int points)
{
    const char *whole;

    SP_TRY(sp_json_get_text(object, "whole", &whole));
    l->whole = sp_copy(whole, strlen(whole));
    if (!l->whole)
        return sp_fail(SP_ENOMEM, "autorank: out of memory");
    SP_TRY(get_count(object, "blocks", 1, &l->blocks));
    SP_TRY(get_count(object, "rows", 1, &l->rows));
    SP_TRY(get_count(object, "columns", 1, &l->columns));
    SP_TRY(get_positive(object, "scale", &l->scale));
    SP_TRY(get_positive(object, "stable_rank", &l->stable_rank));
    SP_TRY(sp_json_get_bool(object, "stable", &l->stable));
    SP_TRY(get_count(object, "rank", 0, &l->rank));
    return read_points(object, l, points);
}

static sp_err read_layers(const sp_json_value *ranks, sp_autorank *a)
{
    const sp_json_value *list, *v;
    int epochs = 0, i = 0;
    bool chosen;

    SP_TRY(get_count(ranks, "epochs", 0, &epochs));
    SP_TRY(sp_json_get_bool(ranks, "chosen", &chosen));
    SP_TRY(sp_json_get(ranks, "layers", SP_JSON_LIST, &list));
    SP_TRY(sp_autorank_room(a, (int)list->count));
    a->epochs = epochs;
    a->chosen = chosen;
    for (v = list->first; v; v = v->next)
        SP_TRY(read_layer(v, &a->layers[i++], points_of(epochs)));
    return SP_OK;
}

sp_err sp_autorank_read(const sp_json_value *object, sp_autorank *a)
{
    const sp_json_value *ranks;
    sp_err e;

    *a = (sp_autorank){ 0 };
    if (!sp_json_find(object, "autorank"))
        return SP_OK;
    SP_TRY(sp_json_get(object, "autorank", SP_JSON_OBJECT, &ranks));
    e = read_layers(ranks, a);
    if (e != SP_OK)
        sp_autorank_free(a);
    return e;
}
