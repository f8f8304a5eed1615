#include "convert/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "convert/state_dict.h"
#include "graph/program.h"

enum { MISTAKES = 20 /* told of one file; more say no more */ };

/* What wrappers of PyTorch put before all names. */
static const char *const wrappers[] = { "module.", "_orig_mod.", "model." };

/* Layers that torchvision numbers in another way: its VGG has no dropout before
 * the first of the fully connected ones. */
static const struct renamed {
    const char *ours, *theirs;
} renamed[] = {
    { "classifier.1.", "classifier.0." },
    { "classifier.4.", "classifier.3." },
};

/* ---- Names --------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool all_begin_with(const sp_foreign *f, const char *start)
{
    for (size_t i = 0; i < f->count; i++)
        if (!begins_with(f->arrays[i].name, start))
            return false;
    return true;
}

static void find_prefix(sp_match *m)
{
    char longer[sizeof m->prefix];
    size_t i = 0;

    while (i < sizeof wrappers / sizeof *wrappers) {
        int n = snprintf(longer, sizeof longer, "%s%s", m->prefix, wrappers[i]);
        if ((size_t)n < sizeof longer && all_begin_with(m->file, longer)) {
            memcpy(m->prefix, longer, sizeof longer);
            i = 0;
        } else {
            i++;
        }
    }
}

/* An array's name without what stands before all. */
static const char *bare(const sp_match *m, const sp_foreign_array *a)
{
    return a->name + strlen(m->prefix);
}

const sp_foreign_array *sp_match_find(const sp_match *m, const char *name)
{
    char full[sizeof m->prefix + SP_MATCH_NAME];

    snprintf(full, sizeof full, "%s%s", m->prefix, name);
    return sp_foreign_find(m->file, full);
}

/* The array of a parameter by its name, or by torchvision's. */
static const sp_foreign_array *find(const sp_match *m, const char *name)
{
    const sp_foreign_array *a = sp_match_find(m, name);
    char other[SP_MATCH_NAME];

    for (size_t i = 0; !a && i < sizeof renamed / sizeof *renamed; i++)
        if (begins_with(name, renamed[i].ours)) {
            snprintf(other, sizeof other, "%s%s", renamed[i].theirs,
                     name + strlen(renamed[i].ours));
            a = sp_match_find(m, other);
        }
    return a;
}

static void use(sp_match *m, const sp_foreign_array *a)
{
    m->used[a - m->file->arrays] = true;
}

static bool is_used(const sp_match *m, const sp_foreign_array *a)
{
    return m->used[a - m->file->arrays];
}

/* ---- Mistakes ------------------------------------------------------------ */

/* What is told of them. */
typedef struct report {
    sp_text text;
    int count;
    const char *reshaped; /* the first parameter of another shape */
} report;

static const char *next_param(const void *params, size_t i)
{
    const sp_param *p = sp_params_at(params, (int)i);

    return p ? p->name : NULL;
}

/* Candidates for what is missing are those that nothing else is: an empty name
 * is near to none. */
static const char *next_missing(const void *match, size_t i)
{
    const sp_match *m = match;
    const sp_param *p = sp_params_at(m->params, (int)i);

    return !p ? NULL : m->of[i] ? "" : p->name;
}

static const char *next_unused(const void *match, size_t i)
{
    const sp_match *m = match;

    if (i >= m->file->count)
        return NULL;
    return m->used[i] ? "" : bare(m, &m->file->arrays[i]);
}

static bool begin_mistake(report *r, const char *name)
{
    if (r->count++ >= MISTAKES)
        return false;
    sp_text_add(&r->text, "\n  %.200s: ", name);
    return true;
}

static void add_near(report *r, const char *near)
{
    if (near)
        sp_text_add(&r->text, "; the nearest is %.200s", near);
}

static bool same_shape(const sp_foreign_array *a, const sp_param *p)
{
    if (a->ndim != p->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != p->dims[i])
            return false;
    return true;
}

static void reshaped(report *r, const sp_foreign_array *a, const sp_param *p)
{
    if (!r->reshaped)
        r->reshaped = p->name;
    if (!begin_mistake(r, p->name))
        return;
    for (int i = 0; i < a->ndim; i++)
        sp_text_add(&r->text, "%s%lld", i ? "x" : "", (long long)a->dims[i]);
    sp_text_add(&r->text, "%s, the network's is ",
                a->ndim ? "" : "a single number");
    for (int i = 0; i < p->ndim; i++)
        sp_text_add(&r->text, "%s%d", i ? "x" : "", p->dims[i]);
}

/* ---- Parameters ---------------------------------------------------------- */

static void match_params(sp_match *m, report *r)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(m->params, i)); i++) {
        const sp_foreign_array *a = find(m, p->name);

        if (a)
            use(m, a);
        if (sp_layer_listed(m->except, p->name) ||
            (a && sp_layer_listed(m->except, bare(m, a))))
            continue;
        if (a && !same_shape(a, p))
            reshaped(r, a, p);
        m->of[i] = a;
    }
    for (int i = 0; (p = sp_params_at(m->params, i)); i++)
        if (!m->of[i] && !sp_layer_listed(m->except, p->name) &&
            !find(m, p->name) && begin_mistake(r, p->name)) {
            sp_text_add(&r->text, "is not in the file");
            add_near(r, sp_nearest(p->name, next_unused, m));
        }
}

/* ---- What is left over --------------------------------------------------- */

static const sp_node *find_node(const sp_graph *g, const char *op,
                                const char *name)
{
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        if (strcmp(n->op->name, op) == 0 && (!name || !strcmp(n->name, name)))
            return n;
    }
    return NULL;
}

/* The batch norm that reads what a node gives, or NULL. */
static const sp_node *find_norm(const sp_graph *g, const sp_node *before)
{
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        if (strcmp(n->op->name, "normalize") == 0 && n->x[0] == before->y[0])
            return n;
    }
    return NULL;
}

/* LAYER.bias of a convolution that has none, before a batch norm: subtracted
 * from the running mean it does the same. */
static const sp_param *mean_behind(const sp_match *m, const char *name)
{
    static const char end[] = ".bias";
    char layer[SP_MATCH_NAME];
    const sp_node *conv, *norm;

    if (!sp_ends_with(name, end) || strlen(name) >= sizeof layer)
        return NULL;
    snprintf(layer, sizeof layer, "%.*s",
             (int)(strlen(name) - (sizeof end - 1)), name);
    conv = find_node(m->graph, "convolve", layer);
    norm = conv && conv->p_count == 1 ? find_norm(m->graph, conv) : NULL;
    return norm ? norm->p[2] : NULL;
}

/* NAME.bias_hh_... of a recurrent layer with one bias, which may as well have
 * the sum. */
static const sp_param *bias_beside(const sp_match *m, const char *name)
{
    const char *stem = strstr(name, "bias_hh_l");
    char other[SP_MATCH_NAME];

    if (!stem || strlen(name) >= sizeof other)
        return NULL;
    snprintf(other, sizeof other, "%.*sbias_ih%s", (int)(stem - name), name,
             stem + strlen("bias_hh"));
    return sp_params_find(m->params, other);
}

static bool fold(sp_match *m, const sp_foreign_array *a, const sp_param *p)
{
    if (!p || a->ndim != 1 || (size_t)a->dims[0] != p->count)
        return false;
    m->folded[p->index] = a;
    return true;
}

/* Whether it is what a tied layer's weights are called. */
static bool is_tied(const sp_match *m, const char *name)
{
    const sp_node *n;
    char tied[SP_MATCH_NAME];

    for (int i = 0; (n = sp_tied_node(m->graph, i)); i++) {
        snprintf(tied, sizeof tied, "%s.weight", n->name);
        if (strcmp(tied, name) == 0)
            return true;
    }
    return false;
}

static void match_rest(sp_match *m, report *r)
{
    for (size_t i = 0; i < m->file->count; i++) {
        const sp_foreign_array *a = &m->file->arrays[i];
        const char *name = bare(m, a);

        if (is_used(m, a) || sp_ends_with(name, "num_batches_tracked") ||
            sp_layer_listed(m->except, name) || is_tied(m, name) ||
            fold(m, a, mean_behind(m, name)) ||
            fold(m, a, bias_beside(m, name)))
            continue;
        if (begin_mistake(r, name)) {
            sp_text_add(&r->text, "is not in the network");
            add_near(r, sp_nearest(name, next_missing, m));
        }
    }
}

/* ---- Both ---------------------------------------------------------------- */

static bool names_something(const sp_match *m, const char *word)
{
    for (int i = 0; sp_params_at(m->params, i); i++)
        if (sp_layer_listed(word, sp_params_at(m->params, i)->name))
            return true;
    for (size_t i = 0; i < m->file->count; i++)
        if (sp_layer_listed(word, bare(m, &m->file->arrays[i])))
            return true;
    return false;
}

static sp_err check_except(const sp_match *m)
{
    char word[SP_MATCH_NAME];

    for (const char *p = m->except + strspn(m->except, " "); *p;) {
        size_t n = strcspn(p, " ");
        const char *near;
        if (n >= sizeof word)
            return sp_fail(SP_EARG, "%.40s...: no layer has such a long name",
                           p);
        memcpy(word, p, n);
        word[n] = '\0';
        if (!names_something(m, word)) {
            near = sp_nearest(word, next_param, m->params);
            return sp_fail(SP_EARG,
                           "%s: to start it anew, but neither the network nor "
                           "%s has it%s%s",
                           word, m->file->path, near ? "; the nearest is " : "",
                           near ? near : "");
        }
        p += n + strspn(p + n, " ");
    }
    return SP_OK;
}

static sp_err finish(const sp_match *m, report *r)
{
    sp_err e = sp_text_check(&r->text);
    const char *dot = r->reshaped ? strrchr(r->reshaped, '.') : NULL;

    if (e != SP_OK || r->count == 0)
        return e;
    if (r->count > MISTAKES)
        sp_text_add(&r->text, "\n  and %d more", r->count - MISTAKES);
    if (dot)
        sp_text_add(&r->text, "\n  to start such layers anew: --except %.*s",
                    (int)(dot - r->reshaped), r->reshaped);
    return sp_fail(SP_EFORMAT, "%s: this %s does not fit the network:%s",
                   m->file->path, m->file->kind, sp_text_string(&r->text));
}

sp_err sp_match_open(sp_match *m)
{
    size_t params = (size_t)sp_params_size(m->params) + 1;
    report r = { 0 };
    sp_err e;

    m->prefix[0] = '\0';
    m->used = calloc(m->file->count + 1, sizeof *m->used);
    m->of = calloc(params, sizeof *m->of);
    m->folded = calloc(params, sizeof *m->folded);
    e = m->used && m->of && m->folded ? SP_OK
                                      : sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK) {
        find_prefix(m);
        e = check_except(m);
    }
    if (e == SP_OK) {
        match_params(m, &r);
        match_rest(m, &r);
        e = finish(m, &r);
    }
    sp_text_free(&r.text);
    if (e != SP_OK)
        sp_match_close(m);
    return e;
}

void sp_match_close(sp_match *m)
{
    free(m->used);
    free(m->of);
    free(m->folded);
    m->used = NULL;
    m->of = m->folded = NULL;
}
