/* Momentum and residuals, from a program of full rank to one of low rank. */
#include "train/switch_state.h"

#include <math.h>
#include <string.h>

#include "dist/agree.h"
#include "kernels/elements.h"
#include "nn/factorize.h"

const sp_param *sp_switch_source(const sp_params *full, const sp_param *p)
{
    return sp_params_find(full, p->whole ? p->whole : p->name);
}

/* An array of the old parameter, such as its momentum, as that of the new: of
 * u, both factors'; `to_v` is the other one's. */
static void carry_array(const float *from, const sp_param *p, float *to,
                        float *to_v)
{
    if (p->other)
        sp_factors_project(p, from, to, to_v);
    else
        memcpy(to, from, p->count * sizeof *to);
}

static void carry_momentum(const sp_session *full, sp_session *low)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(low->params, i)); i++) {
        const sp_param *old = sp_switch_source(full->params, p);
        const float *state;

        if (p->buffer || !old || p->left)
            continue;
        state = sp_optim_state(full->optim, old, 0);
        carry_array(state, p, sp_optim_state(low->optim, p, 0),
                    p->other ? sp_optim_state(low->optim, p->other, 0) : NULL);
    }
}

/* ---- What compressors keep ----------------------------------------------- */

/* An array that a compressor keeps for a parameter. */
typedef struct array {
    float *values; /* NULL: there is none of the parameter's shape */
    const char *name;
    bool unsent; /* it is what was not sent yet */
} array;

/* Array i. Of another shape than the parameter's are factors that go on from
 * step to step: they begin anew. */
static array kept(const sp_session *s, const sp_param *p, int i)
{
    const char *unsent = s->set.compressor->residual;
    array a = { 0 };
    size_t n;
    bool adds;

    a.values = sp_exchange_state(s->exchange, p, i, &n, &a.name, &adds);
    if (!a.values || n != p->count)
        return (array){ 0 };
    a.unsent = unsent && strcmp(a.name, unsent) == 0;
    return a;
}

/* Squared norms of what was not sent yet: all, and what is lost of it. */
typedef struct unsent {
    double all, lost;
} unsent;

/* A layer whose arrays are carried. */
typedef struct layer {
    const sp_session *full, *low;
    const sp_param *old, *p; /* of each */
} layer;

/* There is no place for it: what takes the parameter's place travels dense. */
static void tell_dropped(const layer *l, const array *a, sp_text *told)
{
    sp_text_add(told,
                "switch   %s: %s is dropped: what takes its place is not "
                "compressed%s\n",
                l->old->name, a->name,
                a->unsent ? "; lowrank.residual=flush would apply it" : "");
}

static sp_err carry_one(const layer *l, int i, unsent *sum, sp_text *told)
{
    const sp_lowrank_cfg *cfg = l->low->set.lowrank;
    array a = kept(l->full, l->old, i), u, v = { 0 };
    double squares = 0, lost = 1;

    if (!a.values || (a.unsent ? cfg->residual != SP_RESIDUAL_PROJECT
                               : cfg->at_switch != SP_AT_SWITCH_PROJECT))
        return SP_OK;
    if (a.unsent)
        squares = sp_sum_squares(a.values, l->old->count);
    u = kept(l->low, l->p, i);
    if (l->p->other)
        v = kept(l->low, l->p->other, i);
    if (!u.values || (l->p->other && !v.values)) {
        tell_dropped(l, &a, told);
    } else {
        carry_array(a.values, l->p, u.values, v.values);
        lost = 0;
        if (a.unsent && l->p->other)
            SP_TRY(sp_factors_lost(l->p, a.values, &lost));
    }
    sum->all += squares;
    sum->lost += squares * lost;
    return SP_OK;
}

/* Of all parameters, on this rank. */
static sp_err carry_all(const sp_session *full, const sp_session *low,
                        unsent *sum, sp_text *told)
{
    layer l = { .full = full, .low = low };

    for (int i = 0; (l.p = sp_params_at(low->params, i)); i++) {
        l.old = sp_switch_source(full->params, l.p);
        for (int k = 0; k < SP_MAX_SLOT_STATE; k++)
            if (l.old && !l.p->buffer && !l.p->left)
                SP_TRY(carry_one(&l, k, sum, told));
    }
    return SP_OK;
}

/* Each rank's own. */
static sp_err carry_kept(const sp_session *full, const sp_session *low,
                         sp_text *told)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };
    unsent sum = { 0 };

    SP_TRY(sp_agree(low->comm, carry_all(full, low, &sum, told)));
    if (!low->set.compressor->residual ||
        low->set.lowrank->residual != SP_RESIDUAL_PROJECT)
        return SP_OK;
    SP_TRY(sp_op_wait(low->comm, sp_sum_doubles(low->comm, on, &sum.all, 2)));
    sp_text_add(told,
                "switch   %.2f %% of the squared norm of what was not sent yet "
                "is lost by projecting it\n",
                sum.all > 0 ? 100 * sum.lost / sum.all : 0.0);
    return SP_OK;
}

sp_err sp_switch_carry(const sp_session *full, sp_session *low, sp_text *told)
{
    if (low->exchange)
        sp_exchange_set_dense(low->exchange, sp_exchange_dense(full->exchange));
    if (low->set.lowrank->at_switch == SP_AT_SWITCH_PROJECT)
        carry_momentum(full, low);
    return low->exchange ? carry_kept(full, low, told) : SP_OK;
}

/* ---- The flush ----------------------------------------------------------- */

/* Into the gradients, which are zero. */
static void gather_unsent(const sp_session *s)
{
    const sp_param *p;

    for (int k = 0; (p = sp_params_at(s->params, k)); k++)
        for (int i = 0; !p->buffer && i < SP_MAX_SLOT_STATE; i++) {
            array a = kept(s, p, i);
            for (size_t n = 0; a.unsent && n < p->count; n++)
                p->grad[n] += a.values[n];
        }
}

sp_err sp_switch_flush(sp_session *s, double lr, sp_text *told)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };
    size_t count = sp_params_count(s->params);
    float *grads = sp_params_grads(s->params);
    float *values = sp_params_values(s->params);
    double squares = 0;

    if (!s->exchange || !s->set.compressor->residual ||
        s->set.lowrank->residual != SP_RESIDUAL_FLUSH)
        return SP_OK;
    memset(grads, 0, count * sizeof *grads);
    gather_unsent(s);
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
