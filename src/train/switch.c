/* The switch from full to low rank. */
#include "train/switch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "nn/factorize.h"
#include "train/console.h"

bool sp_switch_from_start(const sp_config *c)
{
    const sp_lowrank_cfg *cfg = sp_config_own(c, "lowrank");
    const sp_model_cfg *model = sp_config_section(c, "model");

    return cfg && cfg->rank == SP_RANK_RATIO && cfg->warmup_epochs == 0 &&
           !model->init[0];
}

sp_err sp_switch_check(const sp_config *c, sp_comm *comm)
{
    sp_session s;

    if (!sp_config_own(c, "lowrank") || sp_switch_from_start(c))
        return SP_OK;
    SP_TRY(sp_session_open(
        &s, c,
        (sp_session_opt){
            .train = true, .no_memory = true, .low = true, .comm = comm }));
    sp_session_close(&s);
    return SP_OK;
}

/* ---- Weights ------------------------------------------------------------- */

/* A layer to factorize. */
typedef struct task {
    const sp_param *whole;
    sp_param *u;
    int owner; /* the rank that does it */
    double lost;
    sp_err e;
} task;

typedef struct tasks {
    task *all;
    size_t count;
    int rank; /* this one */
} tasks;

static const sp_param *source_of(const sp_params *from, const sp_param *p)
{
    return sp_params_find(from, p->whole ? p->whole : p->name);
}

/* Operations of a factorization, but for a constant. */
static double cost_of(const sp_param *whole)
{
    double rows = whole->dims[0], columns = (double)whole->count / rows;

    return rows * columns * fmin(rows, columns);
}

/* Give each layer to the rank that has least to do so far. */
static sp_err share_out(tasks *t, int ranks)
{
    double *load = calloc((size_t)ranks, sizeof *load);

    if (!load)
        return sp_fail(SP_ENOMEM, "switch: out of memory");
    for (size_t i = 0; i < t->count; i++) {
        int least = 0;

        for (int r = 1; r < ranks; r++)
            if (load[r] < load[least])
                least = r;
        t->all[i].owner = least;
        load[least] += cost_of(t->all[i].whole);
    }
    free(load);
    return SP_OK;
}

static sp_err list_tasks(tasks *t, const sp_params *from, const sp_params *to)
{
    sp_param *p;

    t->all = calloc((size_t)sp_params_size(to) + 1, sizeof *t->all);
    if (!t->all)
        return sp_fail(SP_ENOMEM, "switch: out of memory");
    for (int i = 0; (p = sp_params_at(to, i)); i++)
        if (sp_is_right_factor(p))
            t->all[t->count++] = (task){ .whole = source_of(from, p), .u = p };
    return SP_OK;
}

static void factorize(void *arg, size_t begin, size_t end)
{
    tasks *t = arg;

    for (size_t i = begin; i < end; i++) {
        task *k = &t->all[i];
        if (k->owner == t->rank)
            k->e = sp_factorize(k->whole, k->u, &k->lost);
    }
}

/* Texts of errors are a thread's own. */
static sp_err first_error(const tasks *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->all[i].e != SP_OK)
            return sp_fail(t->all[i].e, "%s cannot be factorized: %s",
                           t->all[i].whole->name,
                           t->all[i].e == SP_ENUMERIC
                               ? "not all of its weights are finite"
                               : sp_strerror(t->all[i].e));
    return SP_OK;
}

static sp_err share(sp_comm *c, const tasks *t)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };

    for (size_t i = 0; i < t->count; i++) {
        task *k = &t->all[i];
        sp_param *u = k->u, *v = u->other;

        SP_TRY(sp_op_wait(c, sp_broadcast(c, on, k->owner, u->value,
                                          u->count * sizeof *u->value)));
        SP_TRY(sp_op_wait(c, sp_broadcast(c, on, k->owner, v->value,
                                          v->count * sizeof *v->value)));
        SP_TRY(sp_op_wait(
            c, sp_broadcast(c, on, k->owner, &k->lost, sizeof k->lost)));
    }
    return SP_OK;
}

static void tell(const tasks *t, double seconds, sp_text *told)
{
    for (size_t i = 0; i < t->count; i++) {
        const task *k = &t->all[i];
        const sp_param *u = k->u, *v = u->other;

        sp_text_add(told, "switch   %-32s %5d x %-5zu rank %4d  %.2f %% lost\n",
                    k->whole->name, v->dims[0],
                    k->whole->count / (size_t)v->dims[0], v->dims[1],
                    100 * k->lost);
    }
    sp_text_add(told,
                "switch   %zu layer%s factorized in %.2f s; lost are shares "
                "of the squared norm\n",
                t->count, t->count == 1 ? "" : "s", seconds);
}

/* What both have in common keeps its value; what only the program of low rank
 * has, its first one. */
static void copy_values(const sp_params *from, const sp_params *to)
{
    sp_param *p;

    for (int i = 0; (p = sp_params_at(to, i)); i++) {
        const sp_param *old = p->other ? NULL : source_of(from, p);
        if (old)
            memcpy(p->value, old->value, p->count * sizeof *p->value);
    }
}

static sp_err carry_values(const sp_session *from, sp_session *to,
                           sp_text *told)
{
    tasks t = { .rank = sp_comm_rank(to->comm) };
    double start = sp_now();
    sp_err e = list_tasks(&t, from->params, to->params);

    if (e == SP_OK)
        e = share_out(&t, sp_comm_ranks(to->comm));
    if (e == SP_OK) {
        copy_values(from->params, to->params);
        sp_parallel_for(to->threads, t.count, 1, factorize, &t);
        e = first_error(&t);
    }
    e = sp_agree(to->comm, e);
    if (e == SP_OK)
        e = share(to->comm, &t);
    if (e == SP_OK)
        tell(&t, sp_now() - start, told);
    free(t.all);
    return e;
}

/* ---- What was gathered over the steps ------------------------------------ */

/* Squared norms of what compressors keep: all, and what factors cannot hold. */
typedef struct loss {
    double all, lost;
} loss;

/* An array of the old parameter, such as its momentum, as that of the new: of
 * u, both factors'. `left` is that of v. */
static void carry_array(const float *from, const sp_param *p, float *to,
                        float *left)
{
    if (p->other)
        sp_factors_project(p, from, to, left);
    else
        memcpy(to, from, p->count * sizeof *to);
}

static void carry_momentum(const sp_session *from, sp_session *to)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(to->params, i)); i++) {
        const sp_param *old = source_of(from->params, p);
        const float *state;

        if (p->buffer || !old || p->left)
            continue;
        state = sp_optim_state(from->optim, old, 0);
        carry_array(state, p, sp_optim_state(to->optim, p, 0),
                    p->other ? sp_optim_state(to->optim, p->other, 0) : NULL);
    }
}

static bool keeps_back(const sp_session *s)
{
    return s->exchange && s->set.compressor->residual;
}

/* Array i of the compressor for a parameter, if it has the parameter's shape.
 * Others, as factors that go on from step to step, begin anew. *residual: it is
 * what was not sent yet. */
static float *kept(const sp_session *s, const sp_param *p, int i,
                   bool *residual)
{
    const char *unsent = s->set.compressor->residual, *name;
    size_t n;
    bool adds;
    float *state = sp_exchange_state(s->exchange, p, i, &n, &name, &adds);

    if (!state || n != p->count)
        return NULL;
    *residual = unsent && strcmp(name, unsent) == 0;
    return state;
}

static void carry_kept_of(const sp_session *from, const sp_param *old,
                          const sp_session *s, const sp_param *p, loss *sum)
{
    const sp_lowrank_cfg *cfg = s->set.lowrank;
    bool residual, unused;

    for (int i = 0; i < SP_MAX_SLOT_STATE; i++) {
        const float *state = kept(from, old, i, &residual);
        bool carried =
            state && (residual ? cfg->residual == SP_RESIDUAL_PROJECT
                               : cfg->at_switch == SP_AT_SWITCH_PROJECT);
        float *at = carried ? kept(s, p, i, &unused) : NULL;
        float *left = at && p->other ? kept(s, p->other, i, &unused) : NULL;
        double squares = 0;

        for (size_t k = 0; carried && residual && k < old->count; k++)
            squares += (double)state[k] * (double)state[k];
        sum->all += squares;
        if (!at || (p->other && !left)) {
            sum->lost += squares; /* it travels dense now: there is no place */
            continue;
        }
        carry_array(state, p, at, left);
        if (residual && p->other)
            sum->lost += squares * sp_factors_lost(p, state);
    }
}

/* Each rank's own. */
static sp_err carry_kept(const sp_session *from, sp_session *to, sp_text *told)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };
    const sp_param *p;
    loss sum = { 0 };

    for (int i = 0; (p = sp_params_at(to->params, i)); i++) {
        const sp_param *old = source_of(from->params, p);
        if (!p->buffer && !p->left && old)
            carry_kept_of(from, old, to, p, &sum);
    }
    if (!keeps_back(to) || to->set.lowrank->residual != SP_RESIDUAL_PROJECT)
        return SP_OK;
    SP_TRY(sp_op_wait(to->comm, sp_sum_doubles(to->comm, on, &sum.all, 2)));
    sp_text_add(told,
                "switch   %.2f %% of the squared norm of what was not sent yet "
                "is lost by projecting it\n",
                sum.all > 0 ? 100 * sum.lost / sum.all : 0.0);
    return SP_OK;
}

/* Apply what compressors have kept back, as one step without momentum: one
 * dense exchange. */
static sp_err flush(sp_session *s, double lr, sp_text *told)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_DENSE };
    size_t count = sp_params_count(s->params);
    float *grads = sp_params_grads(s->params);
    float *values = sp_params_values(s->params);
    double squares = 0;
    const sp_param *p;
    bool residual;

    memset(grads, 0, count * sizeof *grads);
    for (int k = 0; (p = sp_params_at(s->params, k)); k++)
        for (int i = 0; !p->buffer && i < SP_MAX_SLOT_STATE; i++) {
            const float *state = kept(s, p, i, &residual);
            for (size_t n = 0; state && residual && n < p->count; n++)
                p->grad[n] += state[n];
        }
    SP_TRY(sp_op_wait(s->comm, sp_sum_floats(s->comm, on, grads, count)));
    for (size_t i = 0; i < count; i++) {
        squares += (double)grads[i] * (double)grads[i];
        values[i] -= (float)lr * grads[i];
    }
    sp_text_add(told,
                "switch   what was not sent yet is applied: a gradient of norm "
                "%.4g\n",
                sqrt(squares));
    return SP_OK;
}

/* ---- The switch ---------------------------------------------------------- */

static sp_err carry_state(const sp_session *from, sp_session *to, sp_text *told)
{
    const sp_lowrank_cfg *cfg = to->set.lowrank;

    if (to->exchange)
        sp_exchange_set_dense(to->exchange, sp_exchange_dense(from->exchange));
    if (cfg->at_switch == SP_AT_SWITCH_PROJECT)
        carry_momentum(from, to);
    return to->exchange ? carry_kept(from, to, told) : SP_OK;
}

/* `to` takes the place of `from`, and its data, which loaders read all the
 * time: up to here they were from's to close. */
static void take_place(sp_session *from, sp_session *to)
{
    const struct sp_watch *watch = from->watch;

    to->borrowed = false;
    from->borrowed = true;
    sp_session_close(from);
    *from = *to;
    from->watch = watch;
    if (from->across.sum)
        from->across.arg = from;
}

sp_err sp_switch(sp_session *s, double lr, const sp_autorank *chosen,
                 sp_text *told)
{
    sp_session low;
    sp_err e = SP_OK;

    if (keeps_back(s) && s->set.lowrank->residual == SP_RESIDUAL_FLUSH)
        SP_TRY(flush(s, lr, told));
    SP_TRY(sp_session_open(&low, s->set.config,
                           (sp_session_opt){ .train = true,
                                             .eval = s->eval.graph != NULL,
                                             .no_init = true,
                                             .low = true,
                                             .chosen = chosen,
                                             .from = s,
                                             .comm = s->comm }));
    e = carry_values(s, &low, told);
    if (e == SP_OK)
        e = carry_state(s, &low, told);
    if (e == SP_OK)
        e = sp_agree(low.comm, sp_text_check(told));
    if (e != SP_OK)
        sp_session_close(&low);
    else
        take_place(s, &low);
    return e;
}
