/* Making an exchange: which parameters a compressor takes, and whether what is
 * configured is what would run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/exchange_parts.h"

static sp_err no_memory(void)
{
    return sp_fail(SP_ENOMEM, "exchange: out of memory");
}

static sp_slot slot_of(const sp_exchange_args *a, sp_group among,
                       const sp_param *p)
{
    sp_slot s = {
        .name = p->name,
        .n = p->count,
        .ndim = p->ndim,
        .rank = sp_group_rank(a->comm, among),
        .ranks = sp_group_ranks(a->comm, among),
        .seed = a->seed,
        .scale = 1,
        .ratio = 1,
        .clip = a->clip,
        .cfg = a->own,
        .momentum = a->momentum,
        .nesterov = a->nesterov,
    };

    memcpy(s.dims, p->dims, (size_t)p->ndim * sizeof *s.dims);
    return s;
}

static double round_bytes(const sp_compressor *c, const sp_slot *s, int round)
{
    return c->nominal_bytes ? c->nominal_bytes(s, round)
                            : (double)c->packet_room(s, round);
}

sp_forecast sp_exchange_forecast(const sp_exchange_args *args,
                                 const sp_param *p, int ranks)
{
    const sp_compressor *c = args->compressor;
    sp_slot s = slot_of(args, SP_ALL, p);
    double dense = (double)(s.n * sizeof(float));
    sp_forecast f = { 0 };

    if (c->density)
        s.ratio = c->density(args->own, INFINITY);
    if (!c->encode || (c->accepts && !c->accepts(&s)))
        return (sp_forecast){ dense, sp_cost_sum(ranks, dense) };
    for (int round = 0; round < c->rounds; round++) {
        double bytes = round_bytes(c, &s, round);

        f.packet += bytes;
        f.mpi += c->combine[round] == SP_GATHER ? sp_cost_gather(ranks, bytes)
                                                : sp_cost_sum(ranks, bytes);
    }
    return f;
}

static sp_err list_slots(sp_exchange *x)
{
    size_t all = (size_t)sp_params_size(x->args.params);

    x->params = calloc(all + 1, sizeof(sp_param *));
    x->slot_of = calloc(all + 1, sizeof *x->slot_of);
    x->taken = calloc(all + 1, sizeof *x->taken);
    x->packed = calloc(all + 1, sizeof *x->packed);
    x->packed_grads = calloc(all + 1, sizeof(float *));
    x->own = calloc(all + 1, sizeof(float *));
    x->dense_bytes = calloc(all + 1, sizeof *x->dense_bytes);
    if (!x->params || !x->slot_of || !x->taken || !x->packed ||
        !x->packed_grads || !x->own || !x->dense_bytes)
        return no_memory();
    for (size_t i = 0; i < all; i++) {
        sp_param *p = sp_params_at(x->args.params, (int)i);

        x->slot_of[i] = -1;
        if (p->buffer)
            continue;
        x->slot_of[i] = (int)x->count;
        x->params[x->count++] = p;
    }
    return SP_OK;
}

size_t sp_exchange_state_floats(const sp_exchange *x, const sp_slot *s, int i)
{
    return sp_exchange_rule(x)->state_floats
               ? sp_exchange_rule(x)->state_floats(s, i)
               : s->n;
}

static sp_err make_state(sp_exchange *x, size_t at, sp_slot *s)
{
    size_t sum = 0;

    for (int i = 0; i < sp_exchange_rule(x)->state_count; i++)
        sum += sp_exchange_state_floats(x, s, i);
    x->own[at] = calloc(sum + 1, sizeof(float));
    if (!x->own[at])
        return sp_fail(SP_ENOMEM,
                       "compressor %s: there is no memory for the %zu numbers "
                       "that it keeps of %s",
                       sp_exchange_rule(x)->entry.name, sum, s->name);
    for (size_t i = 0, first = 0; i < (size_t)sp_exchange_rule(x)->state_count;
         i++) {
        s->state[i] = x->own[at] + first;
        first += sp_exchange_state_floats(x, s, (int)i);
    }
    return SP_OK;
}

static sp_err take_slots(sp_exchange *x)
{
    for (size_t i = 0; i < x->count; i++) {
        sp_slot s = slot_of(&x->args, x->among, x->params[i]);

        x->taken[i] = -1;
        if (sp_exchange_rule(x)->accepts && !sp_exchange_rule(x)->accepts(&s))
            continue;
        x->taken[i] = (int)x->packed_count;
        if (x->leads)
            SP_TRY(make_state(x, x->packed_count, &s));
        x->packed_grads[x->packed_count] = x->params[i]->grad;
        x->packed[x->packed_count++] = s;
    }
    return SP_OK;
}

/* All of the store may travel dense. */
static sp_err make_dense(sp_exchange *x, sp_group group, sp_use use,
                         bool reduce, sp_dense **out)
{
    sp_dense_args a = { .comm = x->args.comm,
                        .on = { group, SP_CHANNEL_MAIN, use },
                        .reduce = reduce,
                        .most = x->count };

    return sp_dense_new(out, &a);
}

void sp_exchange_set_ratio(sp_exchange *x, double ratio)
{
    x->ratio = ratio;
    for (size_t i = 0; i < x->packed_count; i++)
        x->packed[i].ratio = ratio;
}

/* What is configured is what runs. */
static sp_err check_use(sp_exchange *x)
{
    const sp_compressor *c = sp_exchange_rule(x);
    double dense = 0;

    if (!c->encode)
        return SP_OK; /* "none" */
    for (size_t i = 0; i < x->packed_count; i++)
        dense += 4.0 * (double)x->packed[i].n;
    if (x->packed_count == 0)
        return sp_fail(SP_ECONFIG,
                       "compress.name: %s takes none of this network's "
                       "parameters: choose another, or none",
                       c->entry.name);
    if (!x->leads)
        return SP_OK;
    sp_exchange_set_ratio(x,
                          c->density ? c->density(x->args.own, INFINITY) : 1);
    SP_TRY(sp_packets_resize(x->packets));
    if (sp_packets_dense(x->packets))
        return sp_fail(SP_ECONFIG,
                       "compress.name: %s would compress nothing on %d ranks "
                       "as it is set: gathering up to %.0f bytes of packets "
                       "from each costs more than summing %.0f of gradients; "
                       "%s, or choose none",
                       c->entry.name, x->packed[0].ranks,
                       sp_packets_most(x->packets), dense,
                       c->density ? "lower its density" : "take fewer ranks");
    if (sp_packets_most(x->packets) >= dense)
        return sp_fail(SP_ECONFIG,
                       "compress.name: %s would compress nothing as it is set: "
                       "up to %.0f bytes in packets for %.0f of gradients; "
                       "%s, or none",
                       c->entry.name, sp_packets_most(x->packets), dense,
                       c->density ? "lower its density" : "choose another");
    return SP_OK;
}

static sp_err check_merge(const sp_exchange *x)
{
    const sp_compressor *c = sp_exchange_rule(x);

    if (!x->args.merge || !c->encode ||
        (c->merge && (!c->merges || c->merges(x->args.own))))
        return SP_OK;
    return sp_fail(SP_ECONFIG,
                   "dist.exchange: packets of %s%s cannot be merged on the "
                   "way: set dist.exchange=gather",
                   c->entry.name, c->merge ? ", as it is set," : "");
}

static sp_err open_all(sp_exchange *x)
{
    const sp_exchange_args *a = &x->args;

    SP_TRY(check_merge(x));
    SP_TRY(list_slots(x));
    SP_TRY(take_slots(x));
    if (a->node)
        SP_TRY(make_dense(x, SP_NODE, SP_USE_NODE, true, &x->node));
    if (!x->leads)
        return SP_OK;
    SP_TRY(make_dense(x, x->among, SP_USE_DENSE, false, &x->dense));
    if (x->packed_count == 0 || !sp_exchange_rule(x)->encode)
        return check_use(x);
    SP_TRY(sp_packets_new(&x->packets, &(sp_packets_args){
                                           .comm = a->comm,
                                           .group = x->among,
                                           .compressor = a->compressor,
                                           .slots = x->packed,
                                           .grads = x->packed_grads,
                                           .count = x->packed_count,
                                           .merge = a->merge,
                                           .always_gather = a->always_gather,
                                           .window = a->window,
                                           .threads = a->threads,
                                       }));
    return check_use(x);
}

sp_err sp_exchange_new(sp_exchange **out, const sp_exchange_args *args)
{
    sp_exchange *x = calloc(1, sizeof *x);
    sp_err e;

    if (!x)
        return no_memory();
    x->args = *args;
    x->args.node = args->node && sp_comm_ranks(args->comm) > 1;
    x->among = x->args.node ? SP_LEADERS : SP_ALL;
    x->leads = !x->args.node || sp_group_rank(args->comm, SP_LEADERS) >= 0;
    x->until_dense = true;
    x->ratio = -1; /* of no step yet */
    e = open_all(x);
    x->ratio = -1;
    if (e != SP_OK)
        sp_exchange_free(x);
    else
        *out = x;
    return e;
}

void sp_exchange_free(sp_exchange *x)
{
    if (!x)
        return;
    for (size_t i = 0; x->own && i < x->packed_count; i++)
        free(x->own[i]);
    sp_packets_free(x->packets);
    sp_dense_free(x->dense);
    sp_dense_free(x->node);
    free(x->params);
    free(x->slot_of);
    free(x->taken);
    free(x->packed);
    free(x->packed_grads);
    free(x->own);
    free(x->dense_bytes);
    free(x);
}
