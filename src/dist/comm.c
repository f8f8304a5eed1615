/* Joining the other ranks, and who belongs with whom. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dist/team.h"

enum { TIMEOUT = 600 };

static sp_err make_tables(sp_comm *c)
{
    size_t ranks = (size_t)c->ranks;

    for (int g = 0; g < SP_GROUPS; g++) {
        c->group[g].world = calloc(ranks, sizeof(int));
        if (!c->group[g].world)
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    c->lowest = calloc(ranks, sizeof *c->lowest);
    c->leader = calloc(ranks, sizeof *c->leader);
    c->hosts = calloc(ranks, sizeof *c->hosts);
    if (!c->lowest || !c->leader || !c->hosts)
        return sp_fail(SP_ENOMEM, "out of memory");
    return SP_OK;
}

static void member(sp_comm *c, sp_group g, int rank)
{
    sp_members *m = &c->group[g];

    if (rank == c->rank)
        m->rank = m->ranks;
    m->world[m->ranks++] = rank;
}

/* Who is in which group, by the leaders of all ranks. */
static void make_groups(sp_comm *c)
{
    for (int g = 0; g < SP_GROUPS; g++) {
        c->group[g].rank = -1;
        c->group[g].ranks = 0;
    }
    for (int r = 0; r < c->ranks; r++) {
        member(c, SP_ALL, r);
        if (c->leader[r] == c->leader[c->rank])
            member(c, SP_NODE, r);
        if (c->leader[r] == r)
            member(c, SP_LEADERS, r);
    }
}

/* Hosts' names, and who shares memory with whom. */
static sp_err meet(sp_comm *c, int lowest)
{
    typedef struct card {
        char host[SP_HOST_ROOM];
        int32_t lowest;
    } card;
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    card own = { .lowest = lowest };
    card *all = calloc((size_t)c->ranks, sizeof *all);
    sp_err e;

    if (!all)
        return sp_fail(SP_ENOMEM, "out of memory");
    make_groups(c); /* each a node of its own */
    memcpy(own.host, c->host, sizeof own.host);
    e = sp_op_wait(c, sp_gather_all(c, on, &own, sizeof own, all));
    for (int r = 0; e == SP_OK && r < c->ranks; r++) {
        memcpy(c->hosts[r], all[r].host, SP_HOST_ROOM);
        c->lowest[r] = c->leader[r] = all[r].lowest;
    }
    /* That was counted before it was known who is on this host. */
    for (int r = 0; e == SP_OK && r < c->ranks; r++)
        if (r != c->rank && c->leader[r] == c->leader[c->rank])
            c->ledger.use[on.use].net -= sizeof own;
    make_groups(c);
    free(all);
    return e;
}

static void free_comm(sp_comm *c)
{
    for (int g = 0; g < SP_GROUPS; g++)
        free(c->group[g].world);
    free(c->lowest);
    free(c->leader);
    free(c->hosts);
    free(c);
}

static sp_err open_comm(sp_comm *c)
{
    const char *variable;
    int expected = sp_launched(&variable), lowest = 0;

    if (expected != 1)
        SP_TRY(sp_team_open(c, expected, variable, &lowest));
    SP_TRY(make_tables(c));
    for (int r = 0; r < c->ranks; r++)
        c->leader[r] = r;
    return meet(c, lowest);
}

sp_err sp_comm_open(sp_comm **out)
{
    sp_comm *c = calloc(1, sizeof *c);
    sp_err e;

    *out = NULL;
    if (!c)
        return sp_fail(SP_ENOMEM, "out of memory");
    c->ranks = 1;
    c->timeout = TIMEOUT;
    c->piece = SP_PIECE;
    if (gethostname(c->host, sizeof c->host - 1) != 0 || !*c->host)
        snprintf(c->host, sizeof c->host, "unnamed");
    e = open_comm(c);
    if (e == SP_OK)
        *out = c;
    else if (!c->team) /* whose thread would go on using it */
        free_comm(c);
    return e;
}

void sp_comm_close(sp_comm *c)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };

    if (!c)
        return;
    if (c->team) {
        if (sp_op_wait(c, sp_barrier(c, on)) != SP_OK) {
            fprintf(stderr, "sprat: %s\n", sp_last_error());
            sp_comm_abort(c, 1);
        }
        c->carrier->close(c->team);
    }
    free_comm(c);
}

void sp_comm_abort(sp_comm *c, int status)
{
    fflush(NULL);
    if (c && c->team)
        c->carrier->abort(c->team, status);
    _exit(status);
}

int sp_comm_rank(const sp_comm *c) { return c ? c->rank : 0; }

int sp_comm_ranks(const sp_comm *c) { return c ? c->ranks : 1; }

int sp_group_rank(const sp_comm *c, sp_group g)
{
    return c ? c->group[g].rank : 0;
}

int sp_group_ranks(const sp_comm *c, sp_group g)
{
    return c ? c->group[g].ranks : 1;
}

sp_err sp_comm_nodes(sp_comm *c, int ranks_per_node)
{
    if (ranks_per_node < 0)
        return sp_fail(SP_EARG,
                       "%d ranks a node: 1 or more, or 0 for those "
                       "that share memory",
                       ranks_per_node);
    if (!c)
        return SP_OK;
    for (int r = 0; r < c->ranks; r++)
        c->leader[r] = ranks_per_node ? r - r % ranks_per_node : c->lowest[r];
    make_groups(c);
    return SP_OK;
}

void sp_comm_timeout(sp_comm *c, double seconds)
{
    if (c)
        c->timeout = seconds;
}

void sp_comm_follow(sp_comm *c, const sp_comm_watch *w)
{
    if (c)
        c->watch = w;
}

void sp_comm_piece(sp_comm *c, size_t bytes)
{
    assert(bytes <= SP_PIECE && "scratch is made for no more");
    c->piece = bytes;
}

const char *sp_comm_host(const sp_comm *c) { return c ? c->host : "this host"; }

const char *sp_rank_name(const sp_comm *c, sp_group g, int rank,
                         char out[SP_RANK_NAME])
{
    int world = c ? c->group[g].world[rank] : rank;

    snprintf(out, SP_RANK_NAME, "rank %d (%s)", world,
             c ? c->hosts[world] : sp_comm_host(c));
    return out;
}

const sp_ledger *sp_comm_ledger(const sp_comm *c)
{
    static const sp_ledger nothing = { { { 0, 0, 0 } } };

    return c ? &c->ledger : &nothing;
}
