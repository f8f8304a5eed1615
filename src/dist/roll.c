/* The roll call: when a rank has waited too long, all tell how many operations
 * they have begun. A rank that computes for ever answers, since its thread for
 * MPI does; a process that is stopped, or a host that is gone, does not. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dist/thread.h"

enum {
    ROLL_TAG = 0,
    ASKS = SP_LANES, /* place of whether an answer is wanted */
    WORDS,
    NAMED = 8 /* ranks in a message, at most */
};

#define GRACE 2.0 /* seconds to answer in */

typedef struct note {
    int64_t words[WORDS]; /* operations begun in each lane */
} note;

struct sp_roll {
    double asked; /* 0: not yet */
    note *heard, *told;
    bool *here;
    MPI_Request *telling;
};

sp_err sp_roll_new(sp_team *t)
{
    size_t ranks = (size_t)t->comm->ranks;
    sp_roll *r = calloc(1, sizeof *r);

    if (!r)
        return sp_fail(SP_ENOMEM, "out of memory");
    t->roll = r;
    r->heard = calloc(ranks, sizeof *r->heard);
    r->told = calloc(ranks, sizeof *r->told);
    r->here = calloc(ranks, sizeof *r->here);
    r->telling = calloc(ranks, sizeof *r->telling);
    if (!r->heard || !r->told || !r->here || !r->telling)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (size_t i = 0; i < ranks; i++)
        r->telling[i] = MPI_REQUEST_NULL;
    return SP_OK;
}

void sp_roll_free(sp_roll *r)
{
    if (!r)
        return;
    free(r->heard);
    free(r->told);
    free(r->here);
    free(r->telling);
    free(r);
}

/* Unless what it was told last is still on its way. */
static sp_err tell(sp_team *t, int peer, bool ask)
{
    sp_roll *r = t->roll;
    int done, code = MPI_Test(&r->telling[peer], &done, MPI_STATUS_IGNORE);

    if (code == MPI_SUCCESS && done) {
        memcpy(r->told[peer].words, t->numbers, sizeof t->numbers);
        r->told[peer].words[ASKS] = ask;
        code = MPI_Isend(r->told[peer].words, WORDS, MPI_INT64_T, peer,
                         ROLL_TAG, t->world, &r->telling[peer]);
    }
    return code == MPI_SUCCESS ? SP_OK : sp_mpi_fail("a roll call", code);
}

sp_err sp_roll_ask(sp_team *t)
{
    if (t->roll->asked != 0)
        return SP_OK;
    t->roll->asked = sp_now();
    for (int peer = 0; peer < t->comm->ranks; peer++)
        if (peer != t->comm->rank)
            SP_TRY(tell(t, peer, true));
    return SP_OK;
}

sp_err sp_roll_answer(sp_team *t)
{
    sp_roll *r = t->roll;

    for (;;) {
        MPI_Status status;
        int there = 0, from;
        int code =
            MPI_Iprobe(MPI_ANY_SOURCE, ROLL_TAG, t->world, &there, &status);

        if (code == MPI_SUCCESS && !there)
            return SP_OK;
        from = status.MPI_SOURCE;
        /* It is there already, so this does not wait. */
        if (code == MPI_SUCCESS)
            code = MPI_Recv(r->heard[from].words, WORDS, MPI_INT64_T, from,
                            ROLL_TAG, t->world, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return sp_mpi_fail("a roll call", code);
        r->here[from] = true;
        if (r->heard[from].words[ASKS])
            SP_TRY(tell(t, from, false));
    }
}

/* Whether a rank has been heard, and what it was told has left. */
static bool through(sp_roll *r, int peer)
{
    int done = 1;

    return r->here[peer] && (MPI_Test(&r->telling[peer], &done,
                                      MPI_STATUS_IGNORE) != MPI_SUCCESS ||
                             done);
}

bool sp_roll_complete(const sp_team *t)
{
    if (sp_now() > t->roll->asked + GRACE)
        return true;
    for (int peer = 0; peer < t->comm->ranks; peer++)
        if (peer != t->comm->rank && !through(t->roll, peer))
            return false;
    return true;
}

/* What keeps this rank from going on: one of a group's, to `out`. */
static void name(const sp_team *t, const sp_pending *p, int rank, sp_text *out)
{
    const sp_roll *r = t->roll;
    int64_t begun = r->heard[rank].words[sp_lane(p->on)];
    char text[SP_RANK_NAME];

    sp_text_add(out, "%s%s, ", out->size ? "; " : "",
                sp_rank_name(t->comm, SP_ALL, rank, text));
    if (!r->here[rank])
        sp_text_add(out, "which has not answered");
    else if (p->script->swaps)
        sp_text_add(out, "which answers, but has not done its part");
    else
        sp_text_add(out, "which is still at operation %lld of %lld",
                    (long long)begun, (long long)p->number + 1);
}

static bool late(const sp_team *t, const sp_pending *p, int rank)
{
    const sp_roll *r = t->roll;

    return rank != t->comm->rank &&
           (!r->here[rank] || p->script->swaps ||
            r->heard[rank].words[sp_lane(p->on)] <= p->number);
}

/* Others may have been there, and gone, meanwhile. */
static void tell_stopped(const sp_team *t, sp_text *out)
{
    if (t->stopped > 0)
        sp_text_add(out,
                    "; this process itself did not run for %.0f s in between: "
                    "it was stopped, or its host had no time for it",
                    t->stopped);
}

sp_err sp_roll_blame(const sp_team *t, const sp_pending *p, double waited)
{
    const sp_members *m = &t->comm->group[p->on.group];
    const char *use = sp_use_name(p->on.use);
    sp_text names = { 0 };
    int others = 0;

    for (int i = 0; i < m->ranks; i++) {
        if ((p->script->swaps && i != p->peer) || !late(t, p, m->world[i]))
            continue;
        if (others++ < NAMED)
            name(t, p, m->world[i], &names);
    }
    if (others > NAMED)
        sp_text_add(&names, "; and %d more", others - NAMED);
    if (!others)
        sp_text_add(&names,
                    "; all ranks are there, but what they send does not "
                    "arrive: see whether the network is stalled, or raise "
                    "dist.timeout_s");
    tell_stopped(t, &names);
    sp_fail(SP_EPEER, "%s: waited %g s%s%s", use, waited, others ? " for " : "",
            sp_text_string(&names));
    sp_text_free(&names);
    return SP_EPEER;
}
