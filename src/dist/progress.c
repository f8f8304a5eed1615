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
    size_t room;   /* of one of them */
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

sp_err sp_progress_begin(sp_pending *p)
{
    struct sp_progress *u = calloc(1, sizeof *u);

    if (!u)
        return sp_fail(SP_ENOMEM, "out of memory for an exchange");
    p->under = u;
    begin_round(u);
    return SP_OK;
}

void sp_progress_free(sp_pending *p)
{
    if (p->under)
        free(p->under->scratch);
    free(p->under);
    p->under = NULL;
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
    bool same = c->nodes && c->leader[peer] == c->leader[c->rank];

    p->count.calls++;
    p->count.bytes += (int64_t)bytes;
    if (!same)
        p->count.net += (double)bytes;
}

/* Room for what is to be added: no piece is larger than a rank's part. */
static sp_err make_scratch(const sp_team *t, sp_pending *p)
{
    struct sp_progress *u = p->under;
    size_t part = (p->n / (size_t)p->ranks + 1) * p->unit;

    if (u->scratch)
        return SP_OK;
    u->room = part < t->comm->piece ? part : t->comm->piece;
    u->scratch = malloc(WINDOW * u->room);
    if (!u->scratch)
        return sp_fail(SP_ENOMEM, "out of memory for a sum over ranks");
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
        SP_TRY(make_scratch(t, p));
    q->at = s->move.at;
    q->scratch =
        adds ? p->under->scratch + s->begun % WINDOW * p->under->room : NULL;
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
    int bytes;

    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != q->bytes)
        return sp_fail(SP_EPEER,
                       "rank %d (%s) sent %d bytes where %d were due: the "
                       "ranks do not run the same program",
                       q->peer, t->comm->hosts[q->peer], bytes, q->bytes);
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
