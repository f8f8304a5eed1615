/* What can be said of a switch before step 0. */
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "dist/agree.h"
#include "nn/factorize.h"
#include "train/autorank_look.h"
#include "train/shared.h"
#include "train/switch.h"
#include "train/switch_state.h"

/* ---- From the start ------------------------------------------------------ */

/* The first factor of the program; NULL: it has none. */
static const sp_param *first_factor(const sp_params *params)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(params, i)); i++)
        if (sp_is_right_factor(p))
            return p;
    return NULL;
}

static sp_err find_factor(const char *path, const sp_params *params, bool *has)
{
    const sp_param *u = first_factor(params);
    sp_st_file *f = NULL;

    SP_TRY(sp_st_open(&f, path));
    *has = u && sp_st_find(f, u->name);
    sp_st_close(f);
    return SP_OK;
}

sp_err sp_switch_from_start(const sp_config *c, sp_comm *comm, bool *low)
{
    const sp_model_cfg *model = sp_config_section(c, "model");
    sp_session s;
    sp_err e;

    *low = sp_lowrank_from_start(sp_config_own(c, "lowrank"));
    if (!*low || !model->init[0])
        return SP_OK;
    SP_TRY(sp_session_open(
        &s, c,
        (sp_session_opt){
            .train = true, .no_memory = true, .low = true, .comm = comm }));
    e = sp_agree(comm, find_factor(model->init, s.params, low));
    if (e == SP_OK) /* or ranks with another file would take another way */
        e = sp_shared_bytes(comm, SP_USE_CHECK, low, sizeof *low);
    sp_session_close(&s);
    return e;
}

/* ---- Two programs that go together --------------------------------------- */

static bool same_shape(const sp_param *a, const sp_param *b)
{
    return a->buffer == b->buffer && a->ndim == b->ndim &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) == 0;
}

/* What p, of low rank, comes from. */
static sp_err check_source(const sp_params *full, const sp_param *p)
{
    const sp_param *from = sp_switch_source(full, p);

    if (!from && p->whole)
        return sp_fail(SP_EARG,
                       "model: of low rank it has %s for %s, which it does not "
                       "have at full rank: the name that sp_factors_of() or "
                       "sp_stands_for() is given must be that of its parameter",
                       p->name, p->whole);
    if (!from) /* a norm between factors */
        return SP_OK;
    if (sp_is_right_factor(p))
        return from->buffer ? sp_fail(SP_EARG,
                                      "model: %s is no trained parameter, and "
                                      "cannot be factorized",
                                      from->name)
                            : sp_factors_check(from, p);
    if (p->left || same_shape(from, p))
        return SP_OK;
    return sp_fail(SP_ESHAPE,
                   "model: %s of low rank is of another shape, or trained and "
                   "the other not, than %s of full rank that it stands for",
                   p->name, from->name);
}

/* Whether p, of full rank, is the source of something. */
static bool has_place(const sp_params *low, const sp_param *p)
{
    const sp_param *q;

    for (int i = 0; (q = sp_params_at(low, i)); i++)
        if (strcmp(q->whole ? q->whole : q->name, p->name) == 0)
            return true;
    return false;
}

sp_err sp_switch_fits(const sp_params *full, const sp_params *low)
{
    const sp_param *p;

    for (int i = 0; (p = sp_params_at(low, i)); i++)
        SP_TRY(check_source(full, p));
    for (int i = 0; (p = sp_params_at(full, i)); i++)
        if (!has_place(low, p))
            return sp_fail(SP_EARG,
                           "model: %s of full rank has no place in the program "
                           "of low rank, and would be lost: a parameter of "
                           "another name there needs sp_stands_for()",
                           p->name);
    return SP_OK;
}

/* ---- The check ----------------------------------------------------------- */

static sp_err check_low(const sp_session *full, const sp_session *low,
                        sp_autorank *layers)
{
    SP_TRY(sp_switch_fits(full->params, low->params));
    if (layers && low->set.lowrank->rank == SP_RANK_AUTO)
        return sp_autorank_list(low->params, layers);
    return SP_OK;
}

sp_err sp_switch_check(const sp_session *s, sp_autorank *layers,
                       sp_text *warnings)
{
    const sp_lowrank_cfg *cfg = s->set.lowrank;
    sp_session low;
    sp_err e;

    if (layers)
        *layers = (sp_autorank){ 0 };
    if (cfg && s->low && warnings)
        sp_lowrank_warn(cfg, s->params, warnings);
    if (!cfg || s->low)
        return SP_OK;
    SP_TRY(sp_session_open(
        &low, s->set.config,
        (sp_session_opt){ .train = true,
                          .no_memory = true,
                          .exchange = cfg->rank == SP_RANK_RATIO,
                          .no_init = true,
                          .low = true,
                          .from = s,
                          .comm = s->comm }));
    e = sp_agree(s->comm, check_low(s, &low, layers));
    if (e == SP_OK && warnings)
        sp_lowrank_warn(cfg, low.params, warnings);
    if (e != SP_OK && layers)
        sp_autorank_free(layers);
    sp_session_close(&low);
    return e;
}
