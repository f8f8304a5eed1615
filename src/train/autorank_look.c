/* Looking at the stable ranks of a session's layers. */
#include "train/autorank_look.h"

#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "nn/factorize.h"
#include "train/layer_work.h"

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

sp_err sp_autorank_list(const sp_params *low, sp_autorank *out)
{
    const sp_param *p;
    sp_err e = sp_autorank_room(out, sp_params_size(low));

    out->count = 0;
    for (int i = 0; e == SP_OK && (p = sp_params_at(low, i)); i++)
        if (sp_is_right_factor(p))
            e = describe(p, &out->layers[out->count++]);
    if (e != SP_OK)
        sp_autorank_free(out);
    return e;
}

/* ---- Their stable ranks -------------------------------------------------- */

typedef struct look {
    const sp_param **whole;
    const sp_autorank *a;
    int *owner;
    double *out;
} look;

static sp_err look_at(void *arg, size_t i)
{
    const look *k = arg;

    return sp_stable_rank(k->whole[i], k->a->layers[i].blocks, &k->out[i]);
}

/* Layers of other ranks count as 0, so that a sum has the bits of the one that
 * is none. */
static sp_err look_at_all(const sp_session *s, look *k)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };
    size_t count = (size_t)k->a->count;
    sp_layer_work work = { .comm = s->comm,
                           .threads = s->threads,
                           .whole = k->whole,
                           .count = count,
                           .one = look_at,
                           .arg = k,
                           .failed = "has no stable rank" };

    for (size_t i = 0; i < count; i++) {
        k->whole[i] = sp_params_find(s->params, k->a->layers[i].whole);
        k->out[i] = 0;
    }
    SP_TRY(sp_layer_work_do(&work, k->owner));
    return sp_op_wait(s->comm, sp_sum_doubles(s->comm, on, k->out, count));
}

sp_err sp_autorank_look(const sp_session *s, const sp_autorank *a, double *out)
{
    size_t most = (size_t)a->count + 1;
    look k = { .whole = calloc(most, sizeof *k.whole),
               .a = a,
               .owner = calloc(most, sizeof *k.owner),
               .out = out };
    sp_err e =
        sp_agree(s->comm, k.whole && k.owner
                              ? SP_OK
                              : sp_fail(SP_ENOMEM, "autorank: out of memory"));

    if (e == SP_OK)
        e = look_at_all(s, &k);
    free(k.whole);
    free(k.owner);
    return e;
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

static sp_err take_over(const sp_manifest *m, const sp_autorank *layers,
                        sp_autorank *out)
{
    if (m->state.epoch == 0 && m->state.batch == 0)
        return SP_OK;
    if (!looked_at(m))
        return sp_fail(SP_ECONFIG,
                       "lowrank.rank: auto has to look at the ranks from the "
                       "first step on, but the epochs up to here were trained "
                       "without: use rank: ratio, or begin anew");
    SP_TRY(check_same(&m->autorank, layers));
    return sp_autorank_copy(out, &m->autorank);
}

sp_err sp_autorank_resume(const sp_session *s, const sp_manifest *m,
                          const sp_autorank *layers, sp_autorank *out)
{
    sp_err e = SP_OK;

    *out = (sp_autorank){ 0 };
    if (s->low && m->autorank.chosen)
        e = sp_autorank_copy(out, &m->autorank);
    else if (!s->low && layers->count > 0)
        e = sp_settings_locate(s->set.config, take_over(m, layers, out));
    e = sp_agree(s->comm, e);
    if (e != SP_OK)
        sp_autorank_free(out);
    return e;
}
