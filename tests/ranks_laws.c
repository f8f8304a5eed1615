/* Laws of training on several ranks, checked on as many as a launcher has
 * started; every rank trains with the others and, beside that, alone.
 *   ranks_laws CONFIG      status 0: all hold; each is named as it is checked
 */
#include "ranks_laws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "train/step.h"
#include "train/trainer.h"

enum { MOST = 12 /* overrides */, STEPS = 9 };

/* What training leaves. */
typedef struct weights {
    size_t n;
    float *x;
} weights;

static sp_err steps(sp_session *s, sp_loader *l, weights *out)
{
    double batches = (double)sp_loader_batches(l);
    sp_step_result r;
    sp_batch b;

    for (int i = 0; i < STEPS; i++) {
        sp_step_at at = { .step = i, .progress = i / batches, .lr = 0.1 };

        do {
            SP_TRY(sp_loader_next(l, &b));
        } while (b.end);
        SP_TRY(sp_train_step(s, &b, &at, &r));
    }
    out->n = sp_params_count(s->params);
    out->x = malloc(out->n * sizeof *out->x);
    if (!out->x)
        return sp_fail(SP_ENOMEM, "out of memory");
    memcpy(out->x, sp_params_values(s->params), out->n * sizeof *out->x);
    return SP_OK;
}

/* How packets travel: as they do by themselves, or by a way of their own. */
typedef struct path {
    const char *name;
    bool always_gather;
    int window;
    const char *exchange; /* a setting; NULL: none */
} path;

static const path paths[] = {
    { "", false, 0, NULL },
    { ", gathered", true, 0, NULL },
    { ", in windows of 1", true, 1, NULL },
    { ", in windows of 2", true, 2, NULL },
    { ", merged", true, 0, "dist.exchange=merge" },
};

static sp_err train(const world *w, const path *way, sp_comm *comm,
                    const char *const *overrides, weights *out)
{
    sp_session_opt opt = { .train = true,
                           .data = true,
                           .comm = comm,
                           .always_gather = way->always_gather,
                           .window = way->window };
    const char *all[MOST + 1];
    sp_session s = { 0 };
    sp_loader *l = NULL;
    sp_config *c = NULL;
    size_t count = 0;
    sp_err e;

    for (; overrides[count]; count++)
        all[count] = overrides[count];
    if (way->exchange)
        all[count++] = way->exchange;
    e = sp_config_load(&c, w->registry, &w->config, 1, all, count);
    if (e == SP_OK)
        e = sp_session_open(&s, c, opt);
    if (e == SP_OK)
        e = sp_session_batches(&s, &l);
    if (e == SP_OK)
        e = steps(&s, l, out);
    sp_loader_free(l);
    sp_session_close(&s);
    sp_config_free(c);
    return e;
}

/* The distance of both over the length of one. */
static double distance(const weights *a, const weights *b)
{
    double sum = 0, all = 0;

    if (a->n != b->n)
        return INFINITY;
    for (size_t i = 0; i < a->n; i++) {
        double d = (double)a->x[i] - (double)b->x[i];
        sum += d * d;
        all += (double)b->x[i] * (double)b->x[i];
    }
    return sqrt(sum / all);
}

void tell(world *w, const char *name, sp_err e, double far, double limit)
{
    bool holds = e == SP_OK && far <= limit;

    e = sp_agree(w->comm,
                 holds ? SP_OK
                 : e   ? e
                       : sp_fail(SP_ENUMERIC, "%g, at most %g", far, limit));
    w->failed += e != SP_OK;
    if (sp_comm_rank(w->comm) == 0)
        printf("%s %s%s%s\n", e == SP_OK ? "ok  " : "FAIL", name,
               e == SP_OK ? "" : ": ", e == SP_OK ? "" : sp_last_error());
}

/* Training with `many` on all ranks leads to where `one` leads on one. */
typedef struct law {
    const char *name;
    const char *many[MOST], *one[MOST];
    double limit;
    bool both;     /* `one` is on all ranks, too */
    bool all_ways; /* all is sent */
} law;

#define DGC                                            \
    "compress.name=dgc", "compress.warmup=[0.999999]", \
        "compress.warmup_epochs=1000", "compress.masking=false"

static const law laws[] = {
    { "ranks of b = one rank of n*b", { NULL }, { NULL }, 2e-6, false, false },
    { "unequal shares",
      { "train.batch=7", NULL },
      { "train.batch=7", NULL },
      2e-6,
      false,
      false },
    { "fewer samples than ranks",
      { "train.batch=3", NULL },
      { "train.batch=3", NULL },
      2e-6,
      false,
      false },
    { "micro-batches",
      { "train.micro_batch=2", NULL },
      { NULL },
      2e-6,
      false,
      false },
    { "clipping of the sum",
      { "optim.clip=0.05", NULL },
      { "optim.clip=0.05", NULL },
      2e-6,
      false,
      false },
    { "dgc sending all = heavy ball",
      { DGC, NULL },
      { NULL },
      2e-5,
      false,
      true },
    { "dgc sending all = heavy ball with decay",
      { DGC, "optim.weight_decay=0.01", NULL },
      { "optim.weight_decay=0.01", NULL },
      2e-5,
      false,
      true },
    { "dgc sending all = Nesterov with decay",
      { DGC, "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      { "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      2e-5,
      false,
      true },
    { "dgc sending all = SGD without momentum",
      { DGC, "optim.momentum=0", NULL },
      { "optim.momentum=0", NULL },
      2e-5,
      false,
      true },
    { "dgc without correction sending all = heavy ball",
      { DGC, "compress.momentum_correction=false", NULL },
      { NULL },
      2e-5,
      false,
      true },
    { "from dense to sparse, the momentum goes over",
      { "compress.name=dgc", "compress.warmup=[1,0.999999,0.999998,0.999997]",
        "compress.warmup_epochs=2.8", "compress.masking=false",
        "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      { "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      2e-5,
      false,
      true },
    { "fp16 = floats, to its rounding",
      { "compress.name=fp16", NULL },
      { NULL },
      2e-3,
      false,
      false },
    { "powersgd of ranks = of one rank with all samples",
      { "compress.name=powersgd", NULL },
      { "compress.name=powersgd", NULL },
      2e-5,
      false,
      false },
    { "powersgd of unequal shares, without a warm start",
      { "train.batch=7", "compress.name=powersgd", "compress.rank=3",
        "compress.warm_start=false", NULL },
      { "train.batch=7", "compress.name=powersgd", "compress.rank=3",
        "compress.warm_start=false", NULL },
      2e-5,
      false,
      false },
    { "hosts of two ranks = ranks",
      { "dist.hierarchy=node", "dist.ranks_per_node=2", NULL },
      { NULL },
      2e-6,
      false,
      false },
    { "dgc of hosts sending all = heavy ball",
      { DGC, "dist.hierarchy=node", "dist.ranks_per_node=2", NULL },
      { NULL },
      2e-5,
      false,
      true },
    { "merging = gathering",
      { "compress.name=dgc", "compress.ratio=0.05", "compress.warmup=[]",
        "dist.exchange=merge", NULL },
      { "compress.name=dgc", "compress.ratio=0.05", "compress.warmup=[]",
        NULL },
      2e-5,
      true,
      false },
    { "batch norm over all ranks",
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "dist.sync_bn=true", NULL },
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]", NULL },
      2e-4,
      false,
      false },
    { "batch norm over more ranks than samples",
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "train.batch=3", "dist.sync_bn=true", NULL },
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "train.batch=3", NULL },
      2e-3,
      false,
      false },
};

/* What is compressed and all sent is so by whatever way it travels. */
static void check_law(world *w, const law *l)
{
    bool sends_all = l->all_ways;
    size_t ways = sends_all ? sizeof paths / sizeof *paths : 1;
    weights one = { 0 };
    sp_err e = train(w, &paths[0], l->both ? w->comm : NULL, l->one, &one);

    for (size_t i = 0; i < ways; i++) {
        weights many = { 0 };
        char name[128];

        snprintf(name, sizeof name, "%s%s", l->name, paths[i].name);
        if (e == SP_OK)
            e = train(w, &paths[i], w->comm, l->many, &many);
        tell(w, name, e, e == SP_OK ? distance(&many, &one) : INFINITY,
             l->limit);
        free(many.x);
    }
    free(one.x);
}

int main(int argc, char **argv)
{
    world w = { .registry = sp_registry_new() };

    if (argc != 2 || !w.registry || sp_comm_open(&w.comm) != SP_OK) {
        fprintf(stderr, "ranks_laws: %s\n",
                argc == 2 ? sp_last_error() : "usage: ranks_laws CONFIG");
        return 2;
    }
    w.config = argv[1];
    sp_comm_timeout(w.comm, 60);
    check_packets(&w);
    check_exchange(&w);
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
        check_law(&w, &laws[i]);
    sp_comm_close(w.comm);
    sp_registry_free(w.registry);
    return w.failed ? 1 : 0;
}
