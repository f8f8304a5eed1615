/* What is told of an exchange: bytes, density, time. */
#include <stdlib.h>

#include "base/text.h"
#include "train/exchange_parts.h"

sp_packet_bytes sp_exchange_bytes(const sp_exchange *x)
{
    sp_packet_bytes sum = { 0 };

    if (x->packets)
        sum = sp_packets_sums(x->packets);
    for (size_t i = 0; i < x->count; i++)
        sum.dense += x->dense_bytes[i];
    return sum;
}

sp_sent sp_exchange_sent(const sp_exchange *x)
{
    const sp_ledger *l = sp_comm_ledger(x->args.comm);
    sp_packet_bytes b = sp_exchange_bytes(x);

    return (sp_sent){ b.headers + b.values + b.places + b.dense,
                      (double)sp_ledger_step_bytes(l), sp_ledger_step_net(l) };
}

bool sp_exchange_tensor_bytes(const sp_exchange *x, const sp_param *p,
                              sp_packet_bytes *out)
{
    int i = x->slot_of[p->index];

    if (i < 0)
        return false;
    *out = (sp_packet_bytes){ 0 };
    if (x->packets && x->taken[i] >= 0)
        *out = sp_packets_slot_sums(x->packets, (size_t)x->taken[i]);
    out->dense += x->dense_bytes[i];
    return true;
}

void sp_exchange_seconds(const sp_exchange *x, double *compress, double *wait)
{
    *compress = x->packets ? sp_packets_seconds(x->packets) : 0;
    *wait = x->waited;
}

void sp_exchange_trace(sp_exchange *x, sp_trace *trace)
{
    if (x->packets)
        sp_packets_trace(x->packets, trace);
}

double sp_exchange_density(const sp_exchange *x)
{
    if (!sp_exchange_rule(x)->density || x->ratio < 0)
        return 0;
    return x->ratio;
}

bool sp_exchange_sums(const sp_exchange *x)
{
    return x->compressing && x->packets && sp_packets_dense(x->packets);
}

bool sp_exchange_level(const sp_exchange *x, int i, sp_level *out)
{
    sp_packet_bytes now = sp_exchange_bytes(x);
    sp_level next = { .steps = x->steps, .bytes = now };

    if (i >= x->level_count)
        return false;
    *out = x->levels[i];
    if (i + 1 < x->level_count)
        next = x->levels[i + 1];
    out->steps = next.steps - out->steps;
    out->bytes = (sp_packet_bytes){
        next.bytes.headers - out->bytes.headers,
        next.bytes.values - out->bytes.values,
        next.bytes.places - out->bytes.places,
        next.bytes.dense - out->bytes.dense,
    };
    return true;
}

static const char *coming_together(const sp_exchange *x)
{
    if (x->args.compressor->combine[0] != SP_GATHER)
        return "; packets are summed";
    return x->args.merge ? "; packets are merged on the way"
                         : "; packets are gathered";
}

char *sp_exchange_describe(const sp_exchange *x)
{
    const sp_exchange_args *a = &x->args;
    int ranks = sp_comm_ranks(a->comm);
    sp_text t = { 0 };

    sp_text_add(&t, "%s", a->compressor->entry.name);
    if (x->packed_count > 0 && a->compressor->encode)
        sp_text_add(&t, ", %zu of %zu parameters in packets, the others dense",
                    x->packed_count, x->count);
    if (ranks > 1 && a->node)
        sp_text_add(&t, "; the ranks of a host add theirs first, %d hosts",
                    x->leads ? sp_group_ranks(a->comm, SP_LEADERS) : 0);
    if (ranks > 1 && x->packed_count > 0 && a->compressor->encode)
        sp_text_add(&t, "%s", coming_together(x));
    return t.bytes;
}
