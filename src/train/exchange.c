/* A step's exchange, put together from dense sums and packets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "train/console.h"
#include "train/exchange_parts.h"

/* Whether all gradients must be there before one may leave. */
static bool waits(const sp_exchange *x)
{
    return x->args.node || sp_exchange_clips(x);
}

/* ---- From dense to packets ----------------------------------------------- */

bool sp_exchange_clips(const sp_exchange *x)
{
    const sp_compressor *c = sp_exchange_rule(x);

    return x->compressing && c->clips && c->clips(x->args.own, x->args.clip);
}

static bool owns_momentum(const sp_exchange *x)
{
    return sp_exchange_rule(x)->owns_momentum &&
           sp_exchange_rule(x)->owns_momentum(x->args.own);
}

/* From here on the compressor applies momentum. What the optimizer has gathered
 * goes over to the ranks, that of the decay with it: momentum is linear, and
 * what the optimizer gathers of decay from now on adds to it. */
static void hand_over(sp_exchange *x)
{
    x->until_dense = false;
    if (!owns_momentum(x))
        return;
    for (size_t i = 0; i < x->count; i++) {
        const sp_param *p = x->params[i];
        float *momentum = sp_optim_state(x->args.optim, p, 0);

        if (x->taken[i] < 0)
            continue;
        if (x->leads && sp_exchange_rule(x)->take_over)
            sp_exchange_rule(x)->take_over(&x->packed[x->taken[i]], momentum);
        memset(momentum, 0, p->count * sizeof *momentum);
    }
}

/* The weight of a host is that of its ranks. */
static sp_err share(sp_exchange *x, double weight)
{
    sp_on on = { SP_NODE, SP_CHANNEL_MAIN, SP_USE_NODE };

    x->weight = weight;
    return x->args.node
               ? sp_op_wait(x->args.comm,
                            sp_sum_doubles(x->args.comm, on, &x->weight, 1))
               : SP_OK;
}

/* For a step at another density than the one before. */
static sp_err change_ratio(sp_exchange *x, double ratio)
{
    if (!x->until_dense && ratio >= 1 && sp_exchange_rule(x)->density)
        return sp_fail(SP_ECONFIG,
                       "compress.warmup: the density is 1 again, after "
                       "gradients were compressed: what was not yet sent would "
                       "never be; leave the warm-up as it was");
    x->compressing = sp_exchange_rule(x)->encode &&
                     (!sp_exchange_rule(x)->density || ratio < 1);
    sp_exchange_set_ratio(x, ratio);
    if (x->compressing && x->packets)
        SP_TRY(sp_packets_resize(x->packets));
    if (x->compressing && x->until_dense)
        hand_over(x);
    for (size_t i = 0; owns_momentum(x) && i < x->count; i++)
        if (x->taken[i] >= 0)
            sp_optim_correct(x->args.optim, x->params[i], x->compressing);
    if (x->level_count < SP_LEVELS)
        x->levels[x->level_count++] = (sp_level){
            .density = ratio,
            .steps = x->steps,
            .bytes = sp_exchange_bytes(x),
        };
    return SP_OK;
}

sp_err sp_exchange_begin(sp_exchange *x, int64_t step, double progress,
                         double weight)
{
    double ratio = sp_exchange_rule(x)->density
                       ? sp_exchange_rule(x)->density(x->args.own, progress)
                       : 1;

    SP_TRY(share(x, weight));
    for (size_t i = 0; i < x->packed_count; i++) {
        x->packed[i].step = step;
        x->packed[i].weight = x->weight;
        x->packed[i].scale = 1;
    }
    x->squares = 0;
    return ratio == x->ratio ? SP_OK
                             : sp_agree(x->args.comm, change_ratio(x, ratio));
}

/* ---- A step -------------------------------------------------------------- */

static void scale_by(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}

static void leave(sp_exchange *x, size_t i)
{
    const sp_param *p = x->params[i];

    if (x->compressing && x->taken[i] >= 0) {
        sp_packets_add(x->packets, (size_t)x->taken[i]);
        return;
    }
    x->dense_bytes[i] += (double)(p->count * sizeof(float));
    sp_dense_add(x->dense, p->grad, p->count);
}

void sp_exchange_ready(void *exchange, sp_param *p)
{
    sp_exchange *x = exchange;

    if (x->args.node) {
        sp_dense_add(x->node, p->grad, p->count);
        return;
    }
    x->squares += sp_optim_squares(x->args.optim, p);
    if (!waits(x))
        leave(x, (size_t)x->slot_of[p->index]);
}

/* Clip by the norm of all gradients of this rank: what travels dense here,
 * what is packed by its slot's scale. */
static void clip(sp_exchange *x, double norm)
{
    double scale = sp_exchange_rule(x)->clip_scale(&x->packed[0], norm);

    for (size_t i = 0; i < x->count; i++)
        if (x->taken[i] >= 0)
            x->packed[x->taken[i]].scale = scale;
        else
            scale_by(x->params[i]->grad, x->params[i]->count, (float)scale);
}

/* All gradients are there: let those that have waited leave, the last first,
 * and take what comes. */
static sp_err exchange(sp_exchange *x, double norm)
{
    sp_err e, dense;

    if (sp_exchange_clips(x))
        clip(x, norm);
    for (size_t i = x->count; waits(x) && i > 0; i--)
        leave(x, i - 1);
    sp_dense_flush(x->dense);
    e = x->compressing ? sp_packets_wait(x->packets) : SP_OK;
    if (e == SP_EPEER)
        return e;
    dense = sp_dense_wait(x->dense);
    return e == SP_OK ? dense : e;
}

/* The leader's gradients are the sums: they become those of its host. */
static sp_err share_within_node(sp_exchange *x)
{
    sp_on on = { SP_NODE, SP_CHANNEL_GATHER, SP_USE_NODE };
    float *grads = sp_params_grads(x->args.params);

    return sp_op_wait(
        x->args.comm,
        sp_broadcast(x->args.comm, on, 0, grads,
                     sp_params_count(x->args.params) * sizeof *grads));
}

static sp_pending *add_status(const sp_exchange *x, sp_status *status)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_STATUS };

    return sp_sum_doubles(x->args.comm, on, &status->loss,
                          sizeof *status / sizeof(double));
}

/* Ranks that merge may have met different packets: what has failed on one is
 * told to all before any goes on. */
static sp_err exchange_merging(sp_exchange *x, double norm, sp_status *status)
{
    sp_err e = x->leads ? exchange(x, norm) : SP_OK;

    if (e == SP_EPEER)
        return e;
    status->failed += e != SP_OK;
    SP_TRY(sp_op_wait(x->args.comm, add_status(x, status)));
    return e == SP_OK ? SP_OK : sp_agree(x->args.comm, e);
}

/* Gathered packets are the same on all ranks, and so is what fails. */
static sp_err exchange_alike(sp_exchange *x, double norm, sp_status *status)
{
    sp_pending *told = add_status(x, status);
    sp_err e = x->leads ? exchange(x, norm) : SP_OK;

    if (e == SP_EPEER)
        return e;
    SP_TRY(sp_op_wait(x->args.comm, told));
    return status->not_finite > 0 ? SP_OK : e;
}

static sp_err finish(sp_exchange *x, sp_status *status)
{
    double norm = sqrt(x->squares);

    if (x->args.node)
        SP_TRY(sp_dense_wait(x->node));
    if (x->args.node && x->leads)
        norm = sp_optim_norm(x->args.optim);
    status->not_finite += !isfinite(norm);
    SP_TRY(x->args.merge ? exchange_merging(x, norm, status)
                         : exchange_alike(x, norm, status));
    return x->args.node && status->failed == 0 ? share_within_node(x) : SP_OK;
}

sp_err sp_exchange_end(sp_exchange *x, sp_status *status)
{
    double start = sp_now();
    double busy = x->packets ? sp_packets_seconds(x->packets) : 0;
    sp_err e = finish(x, status);

    x->steps++;
    x->waited += sp_now() - start;
    if (x->packets)
        x->waited -= sp_packets_seconds(x->packets) - busy;
    return e;
}

/* ---- State --------------------------------------------------------------- */

bool sp_exchange_dense(const sp_exchange *x) { return x->until_dense; }

void sp_exchange_set_dense(sp_exchange *x, bool dense)
{
    x->until_dense = dense;
}

float *sp_exchange_state(const sp_exchange *x, const sp_param *p, int i,
                         size_t *n, const char **name, bool *adds)
{
    int slot = p->buffer ? -1 : x->slot_of[p->index];
    int taken = slot < 0 ? -1 : x->taken[slot];

    if (taken < 0 || !x->leads || i >= sp_exchange_rule(x)->state_count)
        return NULL;
    *n = sp_exchange_state_floats(x, &x->packed[taken], i);
    *name = sp_exchange_rule(x)->state_names[i];
    *adds = sp_exchange_rule(x)->state_adds[i];
    return x->packed[taken].state[i];
}
