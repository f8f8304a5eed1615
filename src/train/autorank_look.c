/* Looking at the stable ranks of a session's layers. */
#include "train/autorank_look.h"

#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "nn/factorize.h"

/* ---- Layers -------------------------------------------------------------- */

static sp_err describe(const sp_param *u, sp_autorank_layer *l)
{
    sp_factors_shape s = sp_factors_shape_of(u);

    *l = (sp_autorank_layer){
        .whole = sp_copy(u->whole, strlen(u->whole)),
        .blocks = s.blocks,
        .rows = s.rows,
        .columns = s.columns,
    };
    return l->whole ? SP_OK : sp_fail(SP_ENOMEM, "autorank: out of memory");
}

static sp_err list_layers(const sp_params *params, sp_autorank *out)
{
    const sp_param *p;
    sp_err e = sp_autorank_room(out, sp_params_size(params));

    out->count = 0;
    for (int i = 0; e == SP_OK && (p = sp_params_at(params, i)); i++)
        if (sp_is_right_factor(p))
            e = describe(p, &out->layers[out->count++]);
    if (e != SP_OK)
        sp_autorank_free(out);
    return e;
}

sp_err sp_autorank_list(const sp_config *c, sp_comm *comm, sp_autorank *out)
{
    sp_session s;
    sp_err e;

    SP_TRY(sp_session_open(
        &s, c,
        (sp_session_opt){
            .train = true, .no_memory = true, .low = true, .comm = comm }));
    e = sp_agree(comm, list_layers(s.params, out));
    sp_session_close(&s);
    return e;
}

/* ---- Their stable ranks -------------------------------------------------- */

typedef struct look {
    const sp_params *params;
    const sp_autorank *a;
    int rank, ranks; /* this rank has every ranks-th layer, from `rank` on */
    double *out;
    sp_err *e;
} look;

static void look_at(void *arg, size_t begin, size_t end)
{
    const look *k = arg;

    for (size_t n = begin; n < end; n++) {
        size_t i = n * (size_t)k->ranks + (size_t)k->rank;
        const sp_autorank_layer *l = &k->a->layers[i];
        k->e[i] = sp_stable_rank(sp_params_find(k->params, l->whole), l->blocks,
                                 &k->out[i]);
    }
}

/* Texts of errors are a thread's own. */
static sp_err first_error(const look *k)
{
    for (int i = 0; i < k->a->count; i++)
        if (k->e[i] != SP_OK)
            return sp_fail(k->e[i], "%s: its stable rank cannot be told: %s",
                           k->a->layers[i].whole,
                           k->e[i] == SP_ENUMERIC
                               ? "not all of its weights are finite"
                               : sp_strerror(k->e[i]));
    return SP_OK;
}

/* Layers of other ranks count as 0, so that a sum has the bits of the one that
 * is none. */
sp_err sp_autorank_look(const sp_session *s, const sp_autorank *a, double *out)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };
    size_t count = (size_t)a->count, own = 0;
    look k = { .params = s->params,
               .a = a,
               .rank = sp_comm_rank(s->comm),
               .ranks = sp_comm_ranks(s->comm),
               .out = out,
               .e = calloc(count + 1, sizeof *k.e) };
    sp_err e = k.e ? SP_OK : sp_fail(SP_ENOMEM, "autorank: out of memory");

    memset(out, 0, count * sizeof *out);
    if (count > (size_t)k.rank)
        own = (count - (size_t)k.rank - 1) / (size_t)k.ranks + 1;
    if (e == SP_OK) {
        sp_parallel_for(s->threads, own, 1, look_at, &k);
        e = first_error(&k);
    }
    free(k.e);
    SP_TRY(sp_agree(s->comm, e));
    return sp_op_wait(s->comm, sp_sum_doubles(s->comm, on, out, count));
}

/* ---- Going on ------------------------------------------------------------ */

static sp_err check_same(const sp_autorank *then, const sp_autorank *now)
{
    bool same = then->count == now->count;

    for (int i = 0; same && i < now->count; i++) {
        const sp_autorank_layer *a = &then->layers[i], *b = &now->layers[i];
        same = strcmp(a->whole, b->whole) == 0 && a->blocks == b->blocks &&
               a->rows == b->rows && a->columns == b->columns;
    }
    if (same)
        return SP_OK;
    return sp_fail(SP_ECONFIG, "lowrank.rank: auto has looked at other layers "
                               "so far than it would have to now: leave "
                               "lowrank.full and lowrank.gates as they were");
}

/* At the end of an epoch a checkpoint is saved before the ranks are looked
 * at. */
static bool looked_at(const sp_manifest *m)
{
    const sp_train_state *s = &m->state;
    int epochs = m->autorank.epochs;

    return m->autorank.count > 0 &&
           (epochs == s->epoch || (s->batch == 0 && epochs == s->epoch - 1));
}

static sp_err take_over(const sp_config *c, sp_comm *comm, const sp_manifest *m,
                        sp_autorank *out)
{
    sp_autorank now;
    sp_err e;

    if (m->state.epoch == 0 && m->state.batch == 0)
        return SP_OK;
    if (!looked_at(m))
        return sp_fail(SP_ECONFIG,
                       "lowrank.rank: auto has to look at the ranks from the "
                       "first step on, but the epochs up to here were trained "
                       "without: use rank: ratio, or begin anew");
    SP_TRY(sp_autorank_list(c, comm, &now));
    e = check_same(&m->autorank, &now);
    sp_autorank_free(&now);
    return e == SP_OK ? sp_autorank_copy(out, &m->autorank) : e;
}

sp_err sp_autorank_resume(const sp_config *c, sp_comm *comm,
                          const sp_manifest *m, sp_autorank *out)
{
    const sp_lowrank_cfg *cfg = sp_config_own(c, "lowrank");

    *out = (sp_autorank){ 0 };
    if (m->low)
        return m->autorank.chosen
                   ? sp_agree(comm, sp_autorank_copy(out, &m->autorank))
                   : SP_OK;
    if (!cfg || cfg->rank != SP_RANK_AUTO)
        return SP_OK;
    return sp_agree(comm, sp_settings_locate(c, take_over(c, comm, m, out)));
}
