/* An optimizer at work: parts of parameters, gradient norm, clipping. */
#include "optim/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/elements.h"
#include "sprat/op.h"

/* Floats in a part: large enough to drown the cost of handing it to a thread,
 * small enough that every network has many. */
enum { GRAIN = 16384 };

/* A stretch of one parameter, the unit of work. */
typedef struct part {
    size_t begin, count; /* in the blocks of the store */
    int index;           /* of the parameter */
    bool decays;
} part;

struct sp_optim {
    sp_optim_args args;
    float *state[SP_MAX_STATE]; /* blocks laid out as the store's */
    part *parts;
    size_t part_count;
    double *sums;       /* of squares, one a part */
    size_t *first;      /* part of each parameter, by its index */
    bool *corrected;    /* of each parameter, by its index */
    const float **pull; /* of each parameter, by its index; or NULL */
};

/* ---- Making -------------------------------------------------------------- */

static size_t count_parts(const sp_params *params)
{
    const sp_param *p;
    size_t count = 0;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        if (!p->buffer)
            count += (p->count + GRAIN - 1) / GRAIN;
    return count;
}

static void cut(sp_optim *o, const sp_params *params)
{
    bool all = o->args.cfg->decay == SP_DECAY_ALL;
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++) {
        if (p->buffer)
            continue;
        o->first[i] = o->part_count;
        for (size_t at = 0; at < p->count; at += GRAIN) {
            size_t left = p->count - at;

            o->parts[o->part_count++] = (part){
                .begin = p->offset + at,
                .count = left < GRAIN ? left : GRAIN,
                .index = i,
                .decays = all || p->ndim > 1,
            };
        }
    }
}

static sp_err allocate(sp_optim *o)
{
    sp_params *params = o->args.params;
    size_t count = sp_params_count(params), parts = count_parts(params);
    size_t bytes = (count * sizeof(float) + SP_ALIGN) / SP_ALIGN * SP_ALIGN;
    size_t all = (size_t)sp_params_size(params);

    o->first = malloc((all + 1) * sizeof *o->first);
    o->corrected = calloc(all + 1, sizeof *o->corrected);
    o->pull = calloc(all + 1, sizeof *o->pull);
    o->parts = malloc((parts + 1) * sizeof *o->parts);
    o->sums = malloc((parts + 1) * sizeof *o->sums);
    for (int i = 0; i < o->args.rule->state_count; i++) {
        o->state[i] = aligned_alloc(SP_ALIGN, bytes);
        if (o->state[i])
            memset(o->state[i], 0, bytes);
    }
    for (int i = 0; i < o->args.rule->state_count; i++)
        if (!o->state[i])
            return sp_fail(SP_ENOMEM,
                           "optimizer %s: %d arrays of %zu bytes cannot be "
                           "had",
                           o->args.rule->entry.name, o->args.rule->state_count,
                           bytes);
    if (!o->parts || !o->sums || !o->first || !o->corrected || !o->pull)
        return sp_fail(SP_ENOMEM, "optimizer %s: out of memory",
                       o->args.rule->entry.name);
    cut(o, params);
    return SP_OK;
}

sp_err sp_optim_new(sp_optim **out, const sp_optim_args *args)
{
    sp_optim *o;
    sp_err e;

    SP_TRY(sp_optimizer_check(args->rule, args->own));
    if (!sp_params_values(args->params) || !sp_params_grads(args->params))
        return sp_fail(SP_EARG,
                       "optimizer %s: the parameters have no gradients yet; "
                       "compile a training program over them first",
                       args->rule->entry.name);
    o = calloc(1, sizeof *o);
    if (!o)
        return sp_fail(SP_ENOMEM, "optimizer %s: out of memory",
                       args->rule->entry.name);
    o->args = *args;
    e = allocate(o);
    if (e != SP_OK)
        sp_optim_free(o);
    else
        *out = o;
    return e;
}

void sp_optim_free(sp_optim *o)
{
    if (!o)
        return;
    for (int i = 0; i < SP_MAX_STATE; i++)
        free(o->state[i]);
    free(o->parts);
    free(o->sums);
    free(o->first);
    free(o->corrected);
    free(o->pull);
    free(o);
}

sp_err sp_optimizer_check(const sp_optimizer *rule, const void *own)
{
    return rule->check ? rule->check(own) : SP_OK;
}

float *sp_optim_state(const sp_optim *o, const sp_param *p, int i)
{
    return o->state[i] + p->offset;
}

const sp_optimizer *sp_optim_rule(const sp_optim *o) { return o->args.rule; }

/* ---- Gradient norm ------------------------------------------------------- */

static void sum_parts(void *arg, size_t begin, size_t end)
{
    const sp_optim *o = arg;
    const float *grads = sp_params_grads(o->args.params);

    for (size_t i = begin; i < end; i++)
        o->sums[i] =
            sp_sum_squares(grads + o->parts[i].begin, o->parts[i].count);
}

double sp_optim_norm(const sp_optim *o)
{
    double sum = 0;

    sp_parallel_for(o->args.threads, o->part_count, 1, sum_parts, (void *)o);
    for (size_t i = 0; i < o->part_count; i++)
        sum += o->sums[i];
    return sqrt(sum);
}

double sp_optim_squares(const sp_optim *o, const sp_param *p)
{
    size_t first = o->first[p->index];
    size_t count = (p->count + GRAIN - 1) / GRAIN;
    struct sp_optim some = *o;
    double sum = 0;

    some.parts += first;
    some.sums += first;
    sp_parallel_for(o->args.threads, count, 1, sum_parts, &some);
    for (size_t i = 0; i < count; i++)
        sum += some.sums[i];
    return sum;
}

/* ---- Update -------------------------------------------------------------- */

typedef struct update_args {
    const sp_optim *o;
    sp_update common;
} update_args;

static void update_parts(void *arg, size_t begin, size_t end)
{
    const update_args *a = arg;
    const sp_optim *o = a->o;
    const sp_params *params = o->args.params;

    for (size_t i = begin; i < end; i++) {
        const part *p = &o->parts[i];
        sp_update u = a->common;

        u.n = p->count;
        u.value = sp_params_values(params) + p->begin;
        u.grad = sp_params_grads(params) + p->begin;
        for (int s = 0; s < o->args.rule->state_count; s++)
            u.state[s] = o->state[s] + p->begin;
        u.corrected = o->corrected[p->index];
        if (o->pull[p->index])
            u.pull = o->pull[p->index] +
                     (p->begin - o->parts[o->first[p->index]].begin);
        u.decay = p->decays ? (float)o->args.cfg->weight_decay : 0.0f;
        o->args.rule->update(&u);
    }
}

void sp_optim_update(sp_optim *o, double lr, double norm, int64_t step)
{
    double clip = o->args.cfg->clip;
    update_args a = {
        .o = o,
        .common = { .scale =
                        clip > 0 && norm > clip ? (float)(clip / norm) : 1.0f,
                    .lr = (float)lr,
                    .step = step,
                    .own = o->args.own },
    };

    sp_parallel_for(o->args.threads, o->part_count, 1, update_parts, &a);
}

void sp_optim_correct(sp_optim *o, const sp_param *p, bool corrected)
{
    o->corrected[p->index] = corrected;
}

void sp_optim_pull(sp_optim *o, const sp_param *p, const float *pull)
{
    o->pull[p->index] = pull;
}
