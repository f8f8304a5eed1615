/* Operations as messages under way: each has some pieces posted to be received
 * and some to be sent, and looks at the oldest of them, so that what is summed
 * is summed in order. */
#include <stdlib.h>

#include "dist/thread.h"

enum { WINDOW = 16 }; /* pieces under way in one direction */

typedef struct piece {
    MPI_Request request;
    char *at;      /* where what arrives belongs */
    char *scratch; /* where it arrives, if it is to be added */
    int bytes, peer;
} piece;

typedef struct side {
    int next;     /* message to take up */
    sp_move move; /* whose pieces go now */
    bool more;    /* there may be another */
    unsigned begun, ended;
    piece pieces[WINDOW];
} side;

struct sp_progress {
    int round;
    side sides[SP_WAYS];
    char *scratch; /* WINDOW pieces, if anything is added */
    int slot;      /* which of its lane's that is */
};

sp_err sp_mpi_fail(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int n;

    MPI_Error_string(code, text, &n);
    return sp_fail(SP_EPEER, "%s failed: %s", call, text);
}

static void begin_round(struct sp_progress *u)
{
    for (int way = 0; way < SP_WAYS; way++) {
        side *s = &u->sides[way];

        s->next = 0;
        s->move.bytes = 0;
        s->more = true;
    }
}

sp_pending *sp_progress_new(void)
{
    sp_pending *p = calloc(1, sizeof *p);
    struct sp_progress *u = calloc(1, sizeof *u);

    if (!p || !u) {
        free(p);
        free(u);
        return NULL;
    }
    p->under = u;
    return p;
}

void sp_progress_free(sp_pending *p)
{
    free(p->under);
    free(p);
}

void sp_progress_begin(sp_pending *p)
{
    struct sp_progress *u = p->under;

    u->round = 0;
    u->scratch = NULL;
    for (int way = 0; way < SP_WAYS; way++)
        u->sides[way].begun = u->sides[way].ended = 0;
    begin_round(u);
}

void sp_progress_end(sp_team *t, sp_pending *p)
{
    if (p->under->scratch)
        t->scratch_used[sp_lane(p->on)] &= ~(1u << p->under->slot);
}

/* Let s->move be what is to go next; false: nothing in this round. */
static bool take_up(const sp_pending *p, int round, sp_way way, side *s)
{
    while (s->more && s->move.bytes == 0)
        s->more = p->script->move(p, round, way, s->next++, &s->move);
    return s->more;
}

static int tag_of(const sp_team *t, const sp_pending *p)
{
    int lane = sp_lane(p->on) + (p->script->swaps ? SP_LANES : 0);

    return (int)(1 + lane + 2 * SP_LANES * (p->number % t->tags));
}

/* Count a piece that is handed over to be sent. */
static void count(const sp_comm *c, sp_pending *p, int peer, size_t bytes)
{
    p->count.calls++;
    p->count.bytes += (int64_t)bytes;
    if (c->leader[peer] != c->leader[c->rank])
        p->count.net += (double)bytes;
}

/* Room for what is to be added. A lane's operations that may be under way at
 * once get theirs together: of memory that none uses the system gives none. */
static sp_err find_scratch(sp_team *t, sp_pending *p)
{
    const size_t room = (size_t)WINDOW * SP_PIECE;
    struct sp_progress *u = p->under;
    int lane = sp_lane(p->on);

    if (u->scratch)
        return SP_OK;
    if (!t->scratch[lane])
        t->scratch[lane] = malloc(SP_ACTIVE * room);
    if (!t->scratch[lane])
        return sp_fail(SP_ENOMEM, "out of memory for a sum over ranks");
    u->slot = 0;
    while (t->scratch_used[lane] >> u->slot & 1)
        u->slot++;
    t->scratch_used[lane] |= 1u << u->slot;
    u->scratch = t->scratch[lane] + (size_t)u->slot * room;
    return SP_OK;
}

static sp_err post(sp_team *t, sp_pending *p, sp_way way)
{
    side *s = &p->under->sides[way];
    piece *q = &s->pieces[s->begun % WINDOW];
    size_t bytes =
        s->move.bytes < t->comm->piece ? s->move.bytes : t->comm->piece;
    int peer = t->comm->group[p->on.group].world[s->move.peer];
    bool adds = way == SP_RECEIVE && p->add && p->under->round == 0;
    int tag = tag_of(t, p), code;

    if (adds)
        SP_TRY(find_scratch(t, p));
    q->at = s->move.at;
    q->scratch = adds ? p->under->scratch + s->begun % WINDOW * SP_PIECE : NULL;
    q->bytes = (int)bytes;
    q->peer = peer;
    if (way == SP_SEND) {
        count(t->comm, p, peer, bytes);
        code = MPI_Isend(q->at, q->bytes, MPI_BYTE, peer, tag, t->world,
                         &q->request);
    } else {
        code = MPI_Irecv(adds ? q->scratch : q->at, q->bytes, MPI_BYTE, peer,
                         tag, t->world, &q->request);
    }
    if (code != MPI_SUCCESS)
        return sp_mpi_fail(way == SP_SEND ? "MPI_Isend" : "MPI_Irecv", code);
    s->begun++;
    s->move.at += bytes;
    s->move.bytes -= bytes;
    return SP_OK;
}

/* Fill the window. */
static sp_err post_all(sp_team *t, sp_pending *p, sp_way way, bool *moved)
{
    side *s = &p->under->sides[way];

    while (s->begun - s->ended < WINDOW &&
           take_up(p, p->under->round, way, s)) {
        SP_TRY(post(t, p, way));
        *moved = true;
    }
    return SP_OK;
}

static sp_err arrived(const sp_team *t, const sp_pending *p, const piece *q,
                      const MPI_Status *status)
{
    char name[SP_RANK_NAME];
    int bytes;

    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != q->bytes)
        return sp_fail(SP_EPEER,
                       "%s sent %d bytes where %d were due: the ranks do not "
                       "run the same program",
                       sp_rank_name(t->comm, SP_ALL, q->peer, name), bytes,
                       q->bytes);
    if (q->scratch)
        p->add((size_t)bytes, q->scratch, q->at);
    return SP_OK;
}

/* Take out what has gone or come, the oldest first. */
static sp_err test_all(sp_team *t, sp_pending *p, sp_way way, bool *moved)
{
    side *s = &p->under->sides[way];

    while (s->ended < s->begun) {
        piece *q = &s->pieces[s->ended % WINDOW];
        MPI_Status status;
        int done = 0, code = MPI_Test(&q->request, &done, &status);

        if (code != MPI_SUCCESS)
            return sp_mpi_fail("MPI_Test", code);
        if (!done)
            break;
        if (way == SP_RECEIVE)
            SP_TRY(arrived(t, p, q, &status));
        s->ended++;
        *moved = true;
    }
    return SP_OK;
}

static bool idle(const side *s) { return !s->more && s->begun == s->ended; }

sp_err sp_progress(sp_team *t, sp_pending *p, bool *moved, bool *over)
{
    struct sp_progress *u = p->under;
    int rounds = p->script->rounds(p->ranks);

    for (;;) {
        SP_TRY(test_all(t, p, SP_RECEIVE, moved));
        SP_TRY(test_all(t, p, SP_SEND, moved));
        SP_TRY(post_all(t, p, SP_RECEIVE, moved));
        SP_TRY(post_all(t, p, SP_SEND, moved));
        if (!idle(&u->sides[SP_RECEIVE]) || !idle(&u->sides[SP_SEND]))
            return SP_OK;
        if (++u->round == rounds) {
            *over = true;
            return SP_OK;
        }
        begin_round(u);
    }
}
