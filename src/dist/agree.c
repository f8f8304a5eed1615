/* Agreement: how ranks fare, and whether they have the same texts. */
#include "dist/agree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "dist/team.h"

enum {
    NAMED = 8,  /* ranks in a message, at most */
    SHOWN = 200 /* bytes of a line */
};

static const sp_on check = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };

/* ---- How they fare ----------------------------------------------------- */

typedef struct state {
    int32_t e;
    uint32_t bytes; /* of the text, with its end */
} state;

/* The error of rank `first` reaches all; `text` has its bytes there. */
static sp_err hand_round(sp_comm *c, int first, state its, char *text)
{
    char name[SP_RANK_NAME];

    SP_TRY(sp_op_wait(c, sp_broadcast(c, check, first, text, its.bytes)));
    text[its.bytes - 1] = '\0';
    c->agreed = true;
    if (c->rank == first)
        return sp_fail((sp_err)its.e, "%s", text);
    return sp_fail((sp_err)its.e, "%s: %s",
                   sp_rank_name(c, SP_ALL, first, name), text);
}

static sp_err first_error(sp_comm *c, state *all, char *own)
{
    int first = 0;
    char *text;
    sp_err e;

    while (first < c->ranks && all[first].e == SP_OK)
        first++;
    if (first == c->ranks)
        return SP_OK;
    if (c->rank == first)
        return hand_round(c, first, all[first], own);
    text = malloc(all[first].bytes);
    if (!text)
        return sp_fail(SP_ENOMEM, "out of memory");
    e = hand_round(c, first, all[first], text);
    free(text);
    return e;
}

sp_err sp_agree(sp_comm *c, sp_err e)
{
    const char *said = e == SP_OK ? "" : sp_last_error();
    state own = { (int32_t)e, (uint32_t)strlen(said) + 1 };
    state *all;
    char *text;

    if (sp_comm_ranks(c) == 1)
        return e;
    text = sp_copy(said, own.bytes - 1); /* before other errors replace it */
    all = calloc((size_t)c->ranks, sizeof *all);
    if (text && all)
        e = sp_op_wait(c, sp_gather_all(c, check, &own, sizeof own, all));
    else
        e = sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = first_error(c, all, text);
    free(all);
    free(text);
    return e;
}

bool sp_agreed(const sp_comm *c) { return sp_comm_ranks(c) == 1 || c->agreed; }

/* ---- Texts ------------------------------------------------------------- */

/* The text of rank `whose`, to be freed. */
static sp_err fetch(sp_comm *c, int whose, const char *own, char **out)
{
    uint64_t bytes = strlen(own);
    sp_err e;

    SP_TRY(sp_op_wait(c, sp_broadcast(c, check, whose, &bytes, sizeof bytes)));
    *out = c->rank == whose ? sp_copy(own, bytes) : calloc(1, bytes + 1);
    if (!*out)
        return sp_fail(SP_ENOMEM, "out of memory");
    e = sp_op_wait(c, sp_broadcast(c, check, whose, *out, bytes));
    if (e != SP_OK) {
        free(*out);
        *out = NULL;
    }
    return e;
}

static int line_length(const char *line)
{
    size_t n = strcspn(line, "\n");

    return n < SHOWN ? (int)n : SHOWN;
}

/* Move both to the start of the first line that differs. */
static void skip_common(const char **a, const char **b)
{
    for (;;) {
        size_t n = strcspn(*a, "\n");

        if (!**a || n != strcspn(*b, "\n") || strncmp(*a, *b, n) != 0 ||
            (*a)[n] != (*b)[n])
            return;
        *a += n + ((*a)[n] == '\n');
        *b += n + ((*b)[n] == '\n');
    }
}

/* "rank 2 differs", "ranks 1, 3 and 4 differ". */
static void list_ranks(const bool *differs, int ranks, sp_text *out)
{
    int number = 0, listed = 0;

    for (int r = 0; r < ranks; r++)
        number += differs[r];
    sp_text_add(out, number == 1 ? "rank" : "ranks");
    for (int r = 0; r < ranks && listed < NAMED; r++) {
        if (!differs[r])
            continue;
        listed++;
        sp_text_add(out, "%s %d",
                    listed == 1                           ? ""
                    : listed == number && number <= NAMED ? " and"
                                                          : ",",
                    r);
    }
    if (number > NAMED)
        sp_text_add(out, " and %d more", number - NAMED);
    sp_text_add(out, number == 1 ? " differs" : " differ");
}

typedef struct difference {
    sp_comm *comm;
    const char *what;
    const bool *differs;
    int rank; /* the lowest that differs */
} difference;

static void show_line(sp_text *out, const difference *d, int rank,
                      const char *line)
{
    char name[SP_RANK_NAME];

    sp_rank_name(d->comm, SP_ALL, rank, name);
    if (*line)
        sp_text_add(out, "\"%.*s\" on %s", line_length(line), line, name);
    else
        sp_text_add(out, "no such line on %s", name);
}

/* Say what differs, by both texts. */
static sp_err tell(const difference *d, const char *zero, const char *other)
{
    sp_text t = { 0 };
    const char *a = zero, *b = other;
    sp_err e;

    skip_common(&a, &b);
    sp_text_add(&t, "%s: ", d->what);
    list_ranks(d->differs, d->comm->ranks, &t);
    sp_text_add(&t, " from rank 0: ");
    show_line(&t, d, 0, a);
    sp_text_add(&t, ", ");
    show_line(&t, d, d->rank, b);
    e = sp_text_check(&t);
    if (e == SP_OK) {
        e = sp_fail(SP_EPEER, "%s", sp_text_string(&t));
        d->comm->agreed = true;
    }
    sp_text_free(&t);
    return e;
}

static sp_err compare(const difference *d, const char *text)
{
    char *zero = NULL, *other = NULL;
    sp_err e = fetch(d->comm, 0, text, &zero);

    if (e == SP_OK)
        e = fetch(d->comm, d->rank, text, &other);
    if (e == SP_OK)
        e = tell(d, zero, other);
    free(zero);
    free(other);
    return e;
}

static sp_err by_hash(sp_comm *c, const char *what, const char *text,
                      char (*hashes)[SP_HASH_HEX], bool *differs)
{
    difference d = { .comm = c, .what = what, .differs = differs };
    char own[SP_HASH_HEX];
    sp_hash h;

    sp_hash_start(&h);
    sp_hash_add(&h, text, strlen(text));
    sp_hash_end(&h, own);
    SP_TRY(sp_op_wait(c, sp_gather_all(c, check, own, sizeof own, hashes)));
    for (int r = c->ranks - 1; r > 0; r--) {
        differs[r] = memcmp(hashes[r], hashes[0], SP_HASH_HEX) != 0;
        if (differs[r])
            d.rank = r;
    }
    return d.rank ? compare(&d, text) : SP_OK;
}

sp_err sp_agree_text(sp_comm *c, const char *what, const char *text)
{
    size_t ranks = (size_t)sp_comm_ranks(c);
    char(*hashes)[SP_HASH_HEX];
    bool *differs;
    sp_err e;

    if (ranks == 1)
        return SP_OK;
    hashes = calloc(ranks, sizeof *hashes);
    differs = calloc(ranks, sizeof *differs);
    if (hashes && differs)
        e = by_hash(c, what, text, hashes, differs);
    else
        e = sp_fail(SP_ENOMEM, "out of memory");
    free(hashes);
    free(differs);
    return e;
}
