/* A pass over all parameters an epoch, for reports. */
#include "train/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "kernels/elements.h"
#include "train/lines.h"

/* ---- The file ------------------------------------------------------------ */

/* What is kept: names without a line that has them stood before what was cut
 * off. */
typedef struct cut {
    const sp_train_state *at;
    sp_text kept;
    size_t whole;             /* up to the last line with numbers */
    size_t names, names_size; /* the last line with names */
    size_t used, used_size;   /* the last that is up to there */
} cut;

static bool is_names(const sp_json_value *line)
{
    const sp_json_value *kind = sp_json_find(line, "kind");

    return kind && kind->kind == SP_JSON_TEXT &&
           strcmp(kind->text, "names") == 0;
}

static void keep(void *arg, const char *line, size_t n,
                 const sp_json_value *value)
{
    cut *c = arg;

    if (is_names(value)) {
        c->names = c->kept.size;
        c->names_size = n;
        sp_text_put(&c->kept, line, n);
    } else if (sp_line_belongs(value, c->at)) {
        sp_text_put(&c->kept, line, n);
        c->whole = c->kept.size;
        c->used = c->names;
        c->used_size = c->names_size;
    }
}

static sp_err cut_back(sp_tensors *t, const sp_train_state *at)
{
    cut c = { .at = at };
    sp_err e = sp_lines_read(t->path, keep, &c);

    if (e == SP_OK)
        e = sp_text_check(&c.kept);
    if (e == SP_OK && c.used_size > 0) {
        t->names = sp_copy(c.kept.bytes + c.used, c.used_size - 1);
        if (!t->names)
            e = sp_fail(SP_ENOMEM, "out of memory");
    }
    if (e == SP_OK) {
        c.kept.size = c.whole;
        e = sp_lines_keep(t->path, &c.kept);
    }
    sp_text_free(&c.kept);
    return e;
}

sp_err sp_tensors_open(sp_tensors *t, const char *run, const sp_train_state *at)
{
    sp_err e = SP_OK;

    *t = (sp_tensors){ .path = sp_path(run, "tensors.jsonl") };
    if (!t->path)
        e = sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = cut_back(t, at);
    if (e == SP_OK)
        e = sp_file_append(t->path, &t->file);
    if (e != SP_OK)
        sp_tensors_close(t);
    return e;
}

void sp_tensors_close(sp_tensors *t)
{
    if (t->file)
        fclose(t->file);
    free(t->path);
    free(t->names);
    free(t->bytes);
    *t = (sp_tensors){ 0 };
}

/* ---- Numbers ------------------------------------------------------------- */

/* Trained parameter i or the next one that is; NULL past the last. */
static const sp_param *trained(const sp_session *s, int *i)
{
    const sp_param *p = sp_params_at(s->params, *i);

    while (p && p->buffer)
        p = sp_params_at(s->params, ++*i);
    return p;
}

/* All packet bytes of a parameter so far; NAN: nothing is exchanged. */
static double packet_bytes(const sp_session *s, const sp_param *p)
{
    sp_packet_bytes b;

    if (!s->exchange || !sp_exchange_tensor_bytes(s->exchange, p, &b))
        return NAN;
    return b.headers + b.values + b.places + b.dense;
}

sp_err sp_tensors_begin(sp_tensors *t, const sp_session *s, int64_t step)
{
    size_t all = (size_t)sp_params_size(s->params);
    const sp_param *p;
    double *bytes;

    if (!t->file)
        return SP_OK;
    bytes = realloc(t->bytes, (all + 1) * sizeof *bytes);
    if (!bytes)
        return sp_fail(SP_ENOMEM, "out of memory");
    t->bytes = bytes;
    t->step = step;
    for (int i = 0; (p = trained(s, &i)); i++)
        bytes[i] = packet_bytes(s, p);
    return SP_OK;
}

static double zero_share(const float *x, size_t n)
{
    size_t zeros = 0;

    for (size_t i = 0; i < n; i++)
        zeros += x[i] == 0;
    return n > 0 ? (double)zeros / (double)n : 0;
}

/* A list of numbers, of each parameter. */
typedef double (*number)(const sp_tensors *t, const sp_session *s,
                         const sp_param *p, double steps);

static double weight_norm(const sp_tensors *t, const sp_session *s,
                          const sp_param *p, double steps)
{
    (void)t, (void)s, (void)steps;
    return sqrt(sp_sum_squares(p->value, p->count));
}

/* A process that has only evaluated the epoch has seen no gradient. */
static double grad_norm(const sp_tensors *t, const sp_session *s,
                        const sp_param *p, double steps)
{
    (void)t;
    return steps > 0 ? sqrt(sp_optim_squares(s->optim, p)) : NAN;
}

static double zeros(const sp_tensors *t, const sp_session *s, const sp_param *p,
                    double steps)
{
    (void)t, (void)s, (void)steps;
    return zero_share(p->value, p->count);
}

static double packets(const sp_tensors *t, const sp_session *s,
                      const sp_param *p, double steps)
{
    return (packet_bytes(s, p) - t->bytes[p->index]) / steps;
}

static const struct {
    const char *key;
    number of;
} lists[] = {
    { "weight_norm", weight_norm },
    { "grad_norm", grad_norm },
    { "zero_share", zeros },
    { "packet_bytes", packets },
};

/* ---- Lines --------------------------------------------------------------- */

static void write_names(sp_json *j, const sp_session *s)
{
    const sp_param *p;

    sp_json_open(j, NULL);
    sp_json_text(j, "kind", "names");
    sp_json_list(j, "names");
    for (int i = 0; (p = trained(s, &i)); i++)
        sp_json_text(j, NULL, p->name);
    sp_json_close(j);
    sp_json_list(j, "elements");
    for (int i = 0; (p = trained(s, &i)); i++)
        sp_json_int(j, NULL, (int64_t)p->count);
    sp_json_close(j);
    sp_json_close(j);
}

static sp_err put_names(sp_tensors *t, const sp_session *s)
{
    sp_json j = { 0 };
    const char *text;
    sp_err e;

    write_names(&j, s);
    e = sp_json_finish(&j, &text);
    if (e == SP_OK && !(t->names && strcmp(text, t->names) == 0)) {
        free(t->names);
        t->names = sp_copy(text, strlen(text));
        e = t->names ? sp_lines_append(t->file, t->path, &j)
                     : sp_fail(SP_ENOMEM, "out of memory");
    }
    sp_json_free(&j);
    return e;
}

sp_err sp_tensors_epoch(sp_tensors *t, const sp_session *s,
                        const sp_epoch_line *line)
{
    double steps = line->step - (double)t->step;
    sp_json j = { 0 };
    const sp_param *p;
    sp_err e;

    if (!t->file)
        return SP_OK;
    SP_TRY(put_names(t, s));
    sp_json_open(&j, NULL);
    sp_json_text(&j, "kind", "tensors");
    sp_json_number(&j, "epoch", line->epoch);
    sp_json_number(&j, "step", line->step);
    if (!isnan(line->round))
        sp_json_number(&j, "round", line->round);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        sp_json_list(&j, lists[k].key);
        for (int i = 0; (p = trained(s, &i)); i++)
            sp_json_number(&j, NULL, lists[k].of(t, s, p, steps));
        sp_json_close(&j);
    }
    sp_json_close(&j);
    e = sp_lines_append(t->file, t->path, &j);
    sp_json_free(&j);
    return e;
}
