/* What a run has sent: for result.json, and as a table at the end. All of it is
 * counted, since this process began; the rank that speaks tells its own. */
#include <math.h>

#include "train/trainer.h"

/* A step's share of a sum. */
static double a_step(const sp_trainer *t, double sum)
{
    double steps = (double)(t->state.step - t->first);

    return steps > 0 ? sum / steps : NAN;
}

static void write_packets(sp_json *j, const sp_trainer *t)
{
    const sp_exchange *x = t->session.exchange;
    sp_packet_bytes b = sp_exchange_bytes(x), one;
    const sp_param *p;

    sp_json_number(j, "headers", b.headers);
    sp_json_number(j, "values", b.values);
    sp_json_number(j, "places", b.places);
    sp_json_number(j, "dense", b.dense);
    sp_json_list(j, "tensors");
    for (int i = 0; (p = sp_params_at(t->session.params, i)); i++) {
        if (!sp_exchange_tensor_bytes(x, p, &one))
            continue;
        sp_json_open(j, NULL);
        sp_json_text(j, "name", p->name);
        sp_json_number(j, "headers", one.headers);
        sp_json_number(j, "values", one.values);
        sp_json_number(j, "places", one.places);
        sp_json_number(j, "dense", one.dense);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void write_collectives(sp_json *j, const sp_ledger *l)
{
    sp_json_open(j, "collectives");
    for (int i = 0; i < SP_USES; i++) {
        const sp_ledger_entry *e = &l->use[i];

        if (e->calls == 0)
            continue;
        sp_json_open(j, sp_use_name((sp_use)i));
        sp_json_int(j, "calls", e->calls);
        sp_json_int(j, "mpi_bytes", e->bytes);
        sp_json_number(j, "net_bytes", e->net);
        sp_json_close(j);
    }
    sp_json_close(j);
}

void sp_trainer_write_bytes(const sp_trainer *t, sp_json *j)
{
    if (!t->session.exchange)
        return;
    sp_json_open(j, "bytes");
    sp_json_int(j, "from_step", t->first);
    sp_json_int(j, "to_step", t->state.step);
    write_packets(j, t);
    write_collectives(j, sp_comm_ledger(t->job->comm));
    sp_json_close(j);
}

void sp_trainer_bytes(sp_trainer *t)
{
    const sp_exchange *x = t->session.exchange;
    const sp_ledger *l = sp_comm_ledger(t->job->comm);
    sp_packet_bytes b;

    if (!x || t->state.step == t->first)
        return;
    b = sp_exchange_bytes(x);
    sp_report_line(&t->report,
                   "sent     a step, by this rank: %.0f bytes in packets "
                   "(values %.0f, places %.0f, headers %.0f), %.0f dense",
                   a_step(t, b.values + b.places + b.headers),
                   a_step(t, b.values), a_step(t, b.places),
                   a_step(t, b.headers), a_step(t, b.dense));
    for (int i = 0; i < SP_USES; i++) {
        const sp_ledger_entry *e = &l->use[i];

        if (e->calls > 0)
            sp_report_line(&t->report,
                           "         %-9s %8lld calls %16lld bytes to MPI "
                           "%16.0f on the network",
                           sp_use_name((sp_use)i), (long long)e->calls,
                           (long long)e->bytes, e->net);
    }
}
