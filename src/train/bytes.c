/* What a run has sent: for result.json, and as a table at the end. All of it is
 * counted, since this process began, or the network became one of low rank in
 * it; then with what that has taken. The rank that speaks tells its own, and
 * the sums of each. */
#include <math.h>
#include <stdlib.h>

#include "dist/agree.h"
#include "train/trainer.h"

/* A step's share of a sum. */
static double a_step(const sp_trainer *t, double sum)
{
    double steps = (double)(t->state.step - t->counted);

    return steps > 0 ? sum / steps : NAN;
}

static void write_streams(sp_json *j, const sp_packet_bytes *b)
{
    sp_json_number(j, "headers", b->headers);
    sp_json_number(j, "values", b->values);
    sp_json_number(j, "places", b->places);
    sp_json_number(j, "dense", b->dense);
}

static void write_tensors(sp_json *j, const sp_trainer *t)
{
    const sp_param *p;
    sp_packet_bytes b;

    sp_json_list(j, "tensors");
    for (int i = 0; (p = sp_params_at(t->session.params, i)); i++) {
        if (!sp_exchange_tensor_bytes(t->session.exchange, p, &b))
            continue;
        sp_json_open(j, NULL);
        sp_json_text(j, "name", p->name);
        write_streams(j, &b);
        sp_json_close(j);
    }
    sp_json_close(j);
}

/* Warm-up and what follows, apart. */
static void write_levels(sp_json *j, const sp_exchange *x)
{
    sp_level l;

    sp_json_list(j, "densities");
    for (int i = 0; sp_exchange_level(x, i, &l); i++) {
        sp_json_open(j, NULL);
        sp_json_number(j, "density", l.density);
        sp_json_int(j, "steps", l.steps);
        write_streams(j, &l.bytes);
        sp_json_close(j);
    }
    sp_json_close(j);
}

static void write_ranks(sp_json *j, const sp_trainer *t)
{
    if (!t->ranks_sent)
        return;
    sp_json_list(j, "ranks");
    for (int r = 0; r < sp_comm_ranks(t->job->comm); r++) {
        sp_json_open(j, NULL);
        sp_json_number(j, "packet_bytes", t->ranks_sent[r].packet);
        sp_json_number(j, "mpi_bytes", t->ranks_sent[r].mpi);
        sp_json_number(j, "net_bytes", t->ranks_sent[r].net);
        sp_json_close(j);
    }
    sp_json_close(j);
}

/* What went over MPI since t->counted. */
static sp_ledger since(const sp_trainer *t)
{
    sp_ledger l = *sp_comm_ledger(t->job->comm);

    for (int i = 0; i < SP_USES; i++) {
        l.use[i].calls -= t->before.use[i].calls;
        l.use[i].bytes -= t->before.use[i].bytes;
        l.use[i].net -= t->before.use[i].net;
    }
    return l;
}

static void write_collectives(sp_json *j, const sp_trainer *t)
{
    sp_ledger l = since(t);

    sp_json_open(j, "collectives");
    for (int i = 0; i < SP_USES; i++) {
        const sp_ledger_entry *e = &l.use[i];

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
    const sp_exchange *x = t->session.exchange;
    sp_packet_bytes total;

    if (!x)
        return;
    sp_json_open(j, "bytes");
    sp_json_int(j, "from_step", t->counted);
    sp_json_int(j, "to_step", t->state.step);
    total = sp_exchange_bytes(x);
    write_streams(j, &total);
    write_tensors(j, t);
    write_levels(j, x);
    write_ranks(j, t);
    write_collectives(j, t);
    sp_json_close(j);
}

sp_err sp_trainer_gather_sent(sp_trainer *t)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    sp_comm *c = t->job->comm;
    size_t ranks = (size_t)sp_comm_ranks(c);
    sp_sent own;

    if (!t->session.exchange)
        return SP_OK;
    own = sp_exchange_sent(t->session.exchange);
    own.mpi -= (double)sp_ledger_step_bytes(&t->before);
    own.net -= sp_ledger_step_net(&t->before);
    free(t->ranks_sent);
    t->ranks_sent = calloc(ranks, sizeof *t->ranks_sent);
    SP_TRY(sp_agree(c, t->ranks_sent ? SP_OK
                                     : sp_fail(SP_ENOMEM, "out of memory")));
    return sp_op_wait(c, sp_gather_all(c, on, &own, sizeof own, t->ranks_sent));
}

void sp_trainer_density(sp_trainer *t)
{
    const sp_exchange *x = t->session.exchange;
    double density = x ? sp_exchange_density(x) : t->density;
    const char *how = "in packets";

    if (density == t->density)
        return;
    if (density == 1)
        how = "all dense";
    else if (sp_exchange_sums(x))
        how = "summed dense, which costs less than to gather from all ranks";
    t->density = density;
    sp_console_line(&t->console, "density  %g from step %lld on, %s", density,
                    (long long)t->state.step, how);
}

void sp_trainer_bytes(sp_trainer *t)
{
    const sp_exchange *x = t->session.exchange;
    sp_ledger l = since(t);
    sp_packet_bytes b;

    if (!x || t->state.step == t->counted)
        return;
    b = sp_exchange_bytes(x);
    sp_console_line(&t->console,
                    "bytes    a step, of this rank: %.0f in packets "
                    "(values %.0f, places %.0f, headers %.0f), %.0f dense",
                    a_step(t, b.values + b.places + b.headers),
                    a_step(t, b.values), a_step(t, b.places),
                    a_step(t, b.headers), a_step(t, b.dense));
    for (int i = 0; i < SP_USES; i++) {
        const sp_ledger_entry *e = &l.use[i];

        if (e->calls > 0)
            sp_console_line(&t->console,
                            "         %-9s %8lld calls %16lld bytes to MPI "
                            "%16.0f on the network",
                            sp_use_name((sp_use)i), (long long)e->calls,
                            (long long)e->bytes, e->net);
    }
}
