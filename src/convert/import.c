/* From another program's weights to a file for `model.init`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/outputs.h"
#include "base/text.h"
#include "convert/match.h"
#include "convert/state_dict.h"
#include "sprat/convert.h"
#include "train/weights.h"

static sp_err check_finite(const sp_foreign *f, const sp_foreign_array *a,
                           const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return sp_fail(SP_ENUMERIC,
                           "%s: %s: number %zu is not finite: these weights "
                           "are of no use",
                           f->path, a->name, i);
    return SP_OK;
}

static sp_err read_finite(const sp_foreign *f, const sp_foreign_array *a,
                          float *out, size_t count)
{
    SP_TRY(sp_foreign_read(f, a, out));
    return check_finite(f, a, out, count);
}

/* Read an array of p's size, besides p's own. The caller frees *out. */
static sp_err read_beside(const sp_foreign *f, const sp_foreign_array *a,
                          const sp_param *p, float **out)
{
    float *x = malloc((p->count + 1) * sizeof *x);
    sp_err e = x ? read_finite(f, a, x, p->count)
                 : sp_fail(SP_ENOMEM, "%s: out of memory", f->path);

    if (e != SP_OK)
        free(x);
    else
        *out = x;
    return e;
}

/* A mean takes a bias in by its negative, another bias by the sum. */
static sp_err fold(const sp_match *m, sp_param *p)
{
    const float sign = p->buffer ? -1.0f : 1.0f;
    float *x;

    SP_TRY(read_beside(m->file, m->folded[p->index], p, &x));
    for (size_t i = 0; i < p->count; i++)
        p->value[i] += sign * x[i];
    free(x);
    return SP_OK;
}

static sp_err read_params(const sp_match *m, sp_import_result *out)
{
    sp_param *p;

    for (int i = 0; (p = sp_params_at(m->params, i)); i++) {
        if (!m->of[i]) {
            out->anew++;
            continue;
        }
        out->imported++;
        SP_TRY(read_finite(m->file, m->of[i], p->value, p->count));
        if (m->folded[i]) {
            SP_TRY(fold(m, p));
            out->folded++;
        }
    }
    return SP_OK;
}

/* Under the name of a tied layer there must be what it is tied to. */
static sp_err check_tied(const sp_match *m, const sp_node *n)
{
    const sp_param *p = n->p[0];
    char name[SP_MATCH_NAME];
    const sp_foreign_array *a;
    float *x = NULL;
    bool same;

    snprintf(name, sizeof name, "%s.weight", n->name);
    a = sp_match_find(m, name);
    if (!a || !m->of[p->index])
        return SP_OK;
    same = a->ndim == 2 && a->dims[0] == p->dims[0] && a->dims[1] == p->dims[1];
    if (same) {
        SP_TRY(read_beside(m->file, a, p, &x));
        same = memcmp(x, p->value, p->count * sizeof *x) == 0;
        free(x);
    }
    if (same)
        return SP_OK;
    return sp_fail(SP_EFORMAT,
                   "%s: %s is not %s, but in this network they are one: "
                   "configure one that has both",
                   m->file->path, name, p->name);
}

static sp_err read_all(const sp_match *m, sp_import_result *out)
{
    const sp_node *n;

    *out = (sp_import_result){ 0 };
    SP_TRY(read_params(m, out));
    for (int i = 0; (n = sp_tied_node(m->graph, i)); i++)
        SP_TRY(check_tied(m, n));
    return SP_OK;
}

/* Commas may stand between the names, too. */
static sp_err copy_list(const char *list, char **out)
{
    *out = sp_copy(list ? list : "", list ? strlen(list) : 0);
    if (!*out)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (char *p = *out; *p; p++)
        if (*p == ',')
            *p = ' ';
    return SP_OK;
}

static sp_err import(sp_session *s, const sp_foreign *f, const sp_import_opt *o,
                     sp_import_result *out)
{
    sp_match m = { .file = f, .graph = s->eval.graph, .params = s->params };
    char *except;
    sp_err e;

    SP_TRY(copy_list(o->except, &except));
    m.except = except;
    e = sp_match_open(&m);
    if (e == SP_OK)
        e = read_all(&m, out);
    if (e == SP_OK)
        e = sp_weights_save(o->out, s->params, NULL);
    sp_match_close(&m);
    free(except);
    return e;
}

/* A name that promises another kind of file would mislead who reads it. */
static sp_err check_name(const char *out)
{
    static const char *const others[] = { ".npz", ".npy", ".pth", ".pt",
                                          ".onnx" };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sp_ends_with(out, others[i]))
            return sp_fail(SP_EARG,
                           "%s: what is written is a safetensors file: let its "
                           "name end in .safetensors",
                           out);
    return SP_OK;
}

sp_err sp_import(const sp_config *c, const sp_import_opt *o,
                 sp_import_result *out)
{
    sp_session_opt opt = {
        .eval = true, .no_init = true, .eval_rows = 1, .eval_steps = 1
    };
    sp_session s = { 0 };
    sp_foreign f;
    sp_err e;

    SP_TRY(check_name(o->out));
    SP_TRY(sp_output_check(o->out, &o->file, 1));
    SP_TRY(sp_foreign_open(&f, o->file));
    e = sp_session_open(&s, c, opt);
    if (e == SP_OK)
        e = import(&s, &f, o, out);
    sp_session_close(&s);
    sp_foreign_close(&f);
    return e;
}
