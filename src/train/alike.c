/* Texts and fingerprints, compared over ranks. */
#include "train/alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "data/fingerprint.h"
#include "dist/agree.h"
#include "train/config_text.h"
#include "train/program.h"
#include "train/shared.h"

enum { HOST_ROOM = 64, LISTED = 8 /* ranks in a message; more say no more */ };

/* Where one rank's parameters begin to differ, and whose they are. */
typedef struct finding {
    uint64_t place; /* of the parameter; their number: nowhere */
    char host[HOST_ROOM];
} finding;

static size_t count_trained(const sp_params *p)
{
    size_t n = 0;

    for (int i = 0; sp_params_at(p, i); i++)
        n += !sp_params_at(p, i)->buffer;
    return n;
}

static void take_fingerprints(const sp_params *p, uint64_t *out)
{
    for (int i = 0; sp_params_at(p, i); i++) {
        const sp_param *q = sp_params_at(p, i);

        if (!q->buffer)
            *out++ = sp_fingerprint(0, q->value, q->count * sizeof(float));
    }
}

/* The name of trained parameter `n`. */
static const char *name_of(const sp_params *p, size_t n)
{
    int i = 0;

    while (sp_params_at(p, i)->buffer || n-- > 0)
        i++;
    return sp_params_at(p, i)->name;
}

/* "layer1.0.conv1.weight differs on rank 3 (node7) from rank 0 (node1)" */
static sp_err tell(const sp_params *p, const finding *all, int ranks,
                   uint64_t place)
{
    sp_text on = { 0 };
    int count = 0;
    sp_err e;

    for (int r = 0; r < ranks; r++) {
        if (all[r].place != place)
            continue;
        if (count++ < LISTED)
            sp_text_add(&on, "%s %d (%s)", count > 1 ? "," : "", r,
                        all[r].host);
    }
    if (count > LISTED)
        sp_text_add(&on, " and %d more", count - LISTED);
    e = sp_text_check(&on);
    if (e == SP_OK)
        e = sp_fail(SP_EPEER,
                    "%s differs on rank%s%s from rank 0 (%s): the ranks no "
                    "longer train one network; resume from a checkpoint, and "
                    "look at the memory and the build of the hosts named",
                    name_of(p, (size_t)place), count > 1 ? "s" : "",
                    sp_text_string(&on), all[0].host);
    sp_text_free(&on);
    return e;
}

/* Compare this rank's fingerprints with rank 0's, and what all find. */
static sp_err compare(const sp_params *p, sp_comm *c, const uint64_t *own,
                      const uint64_t *first, size_t n, finding *all)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    int ranks = sp_comm_ranks(c);
    finding mine = { 0 };
    uint64_t place = n;

    while (mine.place < n && own[mine.place] == first[mine.place])
        mine.place++;
    snprintf(mine.host, sizeof mine.host, "%s", sp_comm_host(c));
    SP_TRY(sp_op_wait(c, sp_gather_all(c, on, &mine, sizeof mine, all)));
    for (int r = 0; r < ranks; r++)
        if (all[r].place < place)
            place = all[r].place;
    return place == n ? SP_OK : tell(p, all, ranks, place);
}

sp_err sp_params_agree(const sp_params *p, sp_comm *c)
{
    size_t n = count_trained(p), ranks = (size_t)sp_comm_ranks(c);
    uint64_t *own, *first;
    finding *all;
    sp_err e;

    if (ranks == 1)
        return SP_OK;
    own = malloc((n + 1) * sizeof *own);
    first = malloc((n + 1) * sizeof *first);
    all = malloc(ranks * sizeof *all);
    e = sp_agree(c, own && first && all
                        ? SP_OK
                        : sp_fail(SP_ENOMEM, "fingerprints: out of memory"));
    if (e == SP_OK) {
        take_fingerprints(p, own);
        memcpy(first, own, n * sizeof *first);
        e = sp_shared_bytes(c, SP_USE_CHECK, first, n * sizeof *first);
    }
    if (e == SP_OK)
        e = compare(p, c, own, first, n, all);
    free(own);
    free(first);
    free(all);
    return e;
}

sp_err sp_data_agree(const sp_dataset *d, sp_comm *c)
{
    sp_text text = { 0 };
    sp_err e;

    if (sp_comm_ranks(c) == 1)
        return SP_OK;
    e = sp_agree(c, sp_dataset_fingerprint(d, &text));
    if (e == SP_OK)
        e = sp_agree_text(c, "the data at data.root", sp_text_string(&text));
    sp_text_free(&text);
    return e;
}

sp_err sp_config_agree(const sp_config *c, sp_comm *comm)
{
    char *text = NULL;
    sp_err e;

    if (sp_comm_ranks(comm) == 1)
        return SP_OK;
    e = sp_agree(comm, sp_config_values(c, &text));
    if (e == SP_OK)
        e = sp_agree_text(comm, "the configuration", text);
    free(text);
    return e;
}

static sp_err agree_program(sp_comm *c)
{
    sp_text text = { 0 };
    sp_err e = sp_program_tell(&text);

    e = sp_agree(c, e == SP_OK ? sp_text_check(&text) : e);
    if (e == SP_OK)
        e = sp_agree_text(c, "the program", sp_text_string(&text));
    sp_text_free(&text);
    return e;
}

sp_err sp_session_agree(const sp_session *s)
{
    if (sp_comm_ranks(s->comm) == 1)
        return SP_OK;
    SP_TRY(agree_program(s->comm));
    if (s->data)
        SP_TRY(sp_data_agree(s->data, s->comm));
    return sp_params_agree(s->params, s->comm);
}
