/* The switch from full to low rank. */
#include "train/switch.h"

#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "nn/factorize.h"
#include "train/console.h"
#include "train/layer_work.h"
#include "train/switch_state.h"

/* ---- Weights ------------------------------------------------------------- */

/* The layers to factorize. */
typedef struct tasks {
    size_t count;
    const sp_param **whole; /* what each is factorized from, ... */
    sp_param **u;           /* ... its right factor, ... */
    int *owner;             /* ... the rank that does it, ... */
    double *lost;           /* ... and the share of the squared norm */
} tasks;

static void close_tasks(tasks *t)
{
    free(t->whole);
    free(t->u);
    free(t->owner);
    free(t->lost);
}

static sp_err open_tasks(tasks *t, const sp_params *from, const sp_params *to)
{
    size_t most = (size_t)sp_params_size(to) + 1;
    sp_param *p;

    *t = (tasks){ .whole = calloc(most, sizeof *t->whole),
                  .u = calloc(most, sizeof *t->u),
                  .owner = calloc(most, sizeof *t->owner),
                  .lost = calloc(most, sizeof *t->lost) };
    if (!t->whole || !t->u || !t->owner || !t->lost)
        return sp_fail(SP_ENOMEM, "switch: out of memory");
    for (int i = 0; (p = sp_params_at(to, i)); i++)
        if (sp_is_right_factor(p)) {
            t->whole[t->count] = sp_switch_source(from, p);
            t->u[t->count++] = p;
        }
    return SP_OK;
}

static sp_err factorize(void *arg, size_t i)
{
    const tasks *t = arg;

    return sp_factorize(t->whole[i], t->u[i], &t->lost[i]);
}

static sp_err share(sp_comm *c, const tasks *t)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SWITCH };

    for (size_t i = 0; i < t->count; i++) {
        sp_param *u = t->u[i], *v = u->other;
        int owner = t->owner[i];

        SP_TRY(sp_op_wait(c, sp_broadcast(c, on, owner, u->value,
                                          u->count * sizeof *u->value)));
        SP_TRY(sp_op_wait(c, sp_broadcast(c, on, owner, v->value,
                                          v->count * sizeof *v->value)));
        SP_TRY(sp_op_wait(
            c, sp_broadcast(c, on, owner, &t->lost[i], sizeof t->lost[i])));
    }
    return SP_OK;
}

static void tell(const tasks *t, double seconds, sp_text *told)
{
    for (size_t i = 0; i < t->count; i++) {
        const sp_param *v = t->u[i]->other, *whole = t->whole[i];

        sp_text_add(told, "switch   %-32s %5d x %-5zu rank %4d  %.2f %% lost\n",
                    whole->name, v->dims[0], whole->count / (size_t)v->dims[0],
                    v->dims[1], 100 * t->lost[i]);
    }
    sp_text_add(told,
                "switch   %zu layer%s factorized in %.2f s; lost are shares "
                "of the squared norm\n",
                t->count, t->count == 1 ? "" : "s", seconds);
}

/* What both have in common keeps its value; what only the program of low rank
 * has, its first one. */
static void copy_values(const sp_params *from, const sp_params *to)
{
    sp_param *p;

    for (int i = 0; (p = sp_params_at(to, i)); i++) {
        const sp_param *old = p->other ? NULL : sp_switch_source(from, p);
        if (old)
            memcpy(p->value, old->value, p->count * sizeof *p->value);
    }
}

static sp_err carry_tasks(const sp_session *from, sp_session *to, tasks *t,
                          sp_text *told)
{
    sp_layer_work work = { .comm = to->comm,
                           .threads = to->threads,
                           .whole = t->whole,
                           .count = t->count,
                           .one = factorize,
                           .arg = t,
                           .failed = "cannot be factorized" };
    double start = sp_now();

    copy_values(from->params, to->params);
    SP_TRY(sp_layer_work_do(&work, t->owner));
    SP_TRY(share(to->comm, t));
    tell(t, sp_now() - start, told);
    return SP_OK;
}

static sp_err carry_values(const sp_session *from, sp_session *to,
                           sp_text *told)
{
    tasks t = { 0 };
    sp_err e = sp_switch_fits(from->params, to->params);

    if (e == SP_OK)
        e = open_tasks(&t, from->params, to->params);
    e = sp_agree(to->comm, e);
    if (e == SP_OK)
        e = carry_tasks(from, to, &t, told);
    close_tasks(&t);
    return e;
}

/* ---- The switch ---------------------------------------------------------- */

/* `to` takes the place of `from`, and its data, which loaders read all the
 * time: up to here they were from's to close. */
static void take_place(sp_session *from, sp_session *to)
{
    const struct sp_watch *watch = from->watch;

    to->borrowed = false;
    from->borrowed = true;
    sp_session_close(from);
    *from = *to;
    from->watch = watch;
    if (from->across.sum)
        from->across.arg = from;
}

sp_err sp_switch(sp_session *s, double lr, const sp_autorank *chosen,
                 sp_text *told)
{
    sp_session low;
    sp_err e = SP_OK;

    SP_TRY(sp_switch_flush(s, lr, told));
    SP_TRY(sp_session_open(&low, s->set.config,
                           (sp_session_opt){ .train = true,
                                             .eval = s->eval.graph != NULL,
                                             .no_init = true,
                                             .low = true,
                                             .chosen = chosen,
                                             .from = s,
                                             .comm = s->comm }));
    e = carry_values(s, &low, told);
    if (e == SP_OK)
        e = sp_switch_carry(s, &low, told);
    if (e == SP_OK)
        e = sp_agree(low.comm, sp_text_check(told));
    if (e != SP_OK)
        sp_session_close(&low);
    else
        take_place(s, &low);
    return e;
}
