/* Laws of training on several ranks, checked on as many as a launcher has
 * started; every rank trains with the others and, beside that, alone.
 *   ranks_laws CONFIG      status 0: all hold; each is named as it is checked
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "sprat/random.h"
#include "train/packets.h"
#include "train/step.h"
#include "train/trainer.h"

enum { MOST = 12 /* overrides */, STEPS = 9 };

typedef struct world {
    sp_comm *comm;
    sp_registry *registry;
    const char *config;
    int failed;
} world;

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

static sp_err train(const world *w, sp_comm *comm, const char *const *overrides,
                    weights *out)
{
    sp_session s = { 0 };
    sp_loader *l = NULL;
    sp_config *c = NULL;
    size_t count = 0;
    sp_err e;

    while (overrides[count])
        count++;
    e = sp_config_load(&c, w->registry, &w->config, 1, overrides, count);
    if (e == SP_OK)
        e = sp_session_open(
            &s, c,
            (sp_session_opt){ .train = true, .data = true, .comm = comm });
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

static void tell(world *w, const char *name, sp_err e, double far, double limit)
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
    bool both; /* `one` is on all ranks, too */
} law;

#define DGC                                            \
    "compress.name=dgc", "compress.warmup=[0.999999]", \
        "compress.warmup_epochs=1000", "compress.masking=false"

static const law laws[] = {
    { "ranks of b = one rank of n*b", { NULL }, { NULL }, 2e-6, false },
    { "unequal shares",
      { "train.batch=7", NULL },
      { "train.batch=7", NULL },
      2e-6,
      false },
    { "fewer samples than ranks",
      { "train.batch=3", NULL },
      { "train.batch=3", NULL },
      2e-6,
      false },
    { "micro-batches", { "train.micro_batch=2", NULL }, { NULL }, 2e-6, false },
    { "clipping of the sum",
      { "optim.clip=0.05", NULL },
      { "optim.clip=0.05", NULL },
      2e-6,
      false },
    { "dgc sending all = heavy ball", { DGC, NULL }, { NULL }, 2e-5, false },
    { "dgc sending all = heavy ball with decay",
      { DGC, "optim.weight_decay=0.01", NULL },
      { "optim.weight_decay=0.01", NULL },
      2e-5,
      false },
    { "dgc sending all = Nesterov with decay",
      { DGC, "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      { "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      2e-5,
      false },
    { "dgc sending all = SGD without momentum",
      { DGC, "optim.momentum=0", NULL },
      { "optim.momentum=0", NULL },
      2e-5,
      false },
    { "dgc without correction sending all = heavy ball",
      { DGC, "compress.momentum_correction=false", NULL },
      { NULL },
      2e-5,
      false },
    { "from dense to sparse, the momentum goes over",
      { "compress.name=dgc", "compress.warmup=[1,0.999999,0.999998,0.999997]",
        "compress.warmup_epochs=2.8", "compress.masking=false",
        "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      { "optim.nesterov=true", "optim.weight_decay=0.01", NULL },
      2e-5,
      false },
    { "fp16 = floats, to its rounding",
      { "compress.name=fp16", NULL },
      { NULL },
      2e-3,
      false },
    { "hosts of two ranks = ranks",
      { "dist.hierarchy=node", "dist.ranks_per_node=2", NULL },
      { NULL },
      2e-6,
      false },
    { "dgc of hosts sending all = heavy ball",
      { DGC, "dist.hierarchy=node", "dist.ranks_per_node=2", NULL },
      { NULL },
      2e-5,
      false },
    { "merging = gathering",
      { "compress.name=dgc", "compress.ratio=0.05", "compress.warmup=[]",
        "dist.exchange=merge", NULL },
      { "compress.name=dgc", "compress.ratio=0.05", "compress.warmup=[]",
        NULL },
      2e-5,
      true },
    { "batch norm over all ranks",
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "dist.sync_bn=true", NULL },
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]", NULL },
      2e-4,
      false },
    { "batch norm over more ranks than samples",
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "train.batch=3", "dist.sync_bn=true", NULL },
      { "model.name=resnet", "model.depth=8", "data.shape=[8,8,3]",
        "train.batch=3", NULL },
      2e-3,
      false },
};

static void check_law(world *w, const law *l)
{
    weights many = { 0 }, one = { 0 };
    sp_err e = train(w, w->comm, l->many, &many);

    if (e == SP_OK)
        e = train(w, l->both ? w->comm : NULL, l->one, &one);
    tell(w, l->name, e, e == SP_OK ? distance(&many, &one) : INFINITY,
         l->limit);
    free(many.x);
    free(one.x);
}

/* ---- Packets ------------------------------------------------------------- */

enum { SLOTS = 3 };

static const size_t slot_sizes[SLOTS] = { 1, 700, 70000 };

/* Gradients of a rank at a step: numbers that are easy to make anew; of the
 * last slot all zero in one step. */
static void fill(float *x, int slot, int step, int rank)
{
    for (size_t i = 0; i < slot_sizes[slot]; i++) {
        uint32_t r[4];

        sp_random(7, SP_FOR_TEST, (uint64_t)(step * 100 + slot * 10 + rank), i,
                  r);
        x[i] = step == 1 && slot == 2 ? 0 : sp_unit(r[0]) - 0.5f;
    }
}

/* All slots of one rank, with their own memory. */
typedef struct side {
    sp_slot slots[SLOTS];
    float *grads[SLOTS], *state[SLOTS], *work[SLOTS];
} side;

static void side_free(side *s)
{
    for (int i = 0; i < SLOTS; i++) {
        free(s->grads[i]);
        free(s->state[i]);
        free(s->work[i]);
    }
}

static bool side_open(side *s, const sp_compressor *c, const void *own,
                      int rank, int ranks)
{
    *s = (side){ 0 };
    for (int i = 0; i < SLOTS; i++) {
        sp_slot *q = &s->slots[i];

        *q = (sp_slot){ .name = "slot",
                        .n = slot_sizes[i],
                        .ndim = 2,
                        .dims = { 1, (int)slot_sizes[i] },
                        .rank = rank,
                        .ranks = ranks,
                        .weight = 1.0 / ranks,
                        .scale = 1,
                        .ratio = 0.01,
                        .momentum = 0.9,
                        .cfg = own };
        s->grads[i] = calloc(q->n, sizeof(float));
        s->state[i] = calloc(2 * q->n, sizeof(float));
        s->work[i] = aligned_alloc(64, (c->work_bytes(q) / 64 + 1) * 64);
        if (!s->grads[i] || !s->state[i] || !s->work[i])
            return false;
        q->state[0] = s->state[i];
        q->state[1] = s->state[i] + q->n;
        q->work = s->work[i];
    }
    return true;
}

/* The sum that all ranks' packets should give, of sides that are all here. */
static sp_err add_all(const sp_compressor *c, side *sides, int ranks, int slot,
                      int step, float *sum)
{
    uint8_t *bytes = malloc(c->packet_room(&sides[0].slots[slot], 0));
    sp_err e = bytes ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    memset(sum, 0, slot_sizes[slot] * sizeof *sum);
    for (int r = 0; e == SP_OK && r < ranks; r++) {
        sp_packet p = { .bytes = bytes };

        fill(sides[r].grads[slot], slot, step, r);
        sides[r].slots[slot].step = step;
        c->encode(&sides[r].slots[slot], 0, sides[r].grads[slot], &p);
        e = c->decode(&sides[r].slots[slot], 0, bytes, sp_packet_size(&p), sum);
    }
    free(bytes);
    return e;
}

static sp_err pass_packets(sp_packets *p, const sp_compressor *c, side *own,
                           side *sides, int ranks, double *far)
{
    int rank = own->slots[0].rank;
    float *sum = malloc(slot_sizes[SLOTS - 1] * sizeof *sum);
    sp_err e = sum ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    for (int step = 0; e == SP_OK && step < 4; step++) {
        for (int i = 0; i < SLOTS; i++) {
            own->slots[i].step = step;
            fill(own->grads[i], i, step, rank);
            sp_packets_add(p, (size_t)i);
        }
        e = sp_packets_wait(p);
        for (int i = 0; e == SP_OK && i < SLOTS; i++) {
            e = add_all(c, sides, ranks, i, step, sum);
            if (memcmp(sum, own->grads[i], slot_sizes[i] * sizeof *sum) != 0)
                *far = 1;
        }
    }
    free(sum);
    return e;
}

/* What arrives has the bits of all ranks' packets decoded in their order, from
 * encoders that run here beside: nothing is lost, or depends on who was
 * first. */
static void check_packets(world *w)
{
    const char *const set[] = { "compress.name=dgc", "compress.index=run16" };
    int ranks = sp_comm_ranks(w->comm);
    side own, sides[16];
    sp_packets *p = NULL;
    sp_config *c = NULL;
    double far = 0;
    const sp_compressor *dgc;
    sp_err e = sp_config_load(&c, w->registry, &w->config, 1, set, 2);

    if (e != SP_OK || ranks > 16) {
        tell(w, "packets", e, 1, 0);
        return;
    }
    dgc = (const sp_compressor *)sp_config_entry(c, "compress");
    if (!side_open(&own, dgc, sp_config_own(c, "compress"),
                   sp_comm_rank(w->comm), ranks))
        e = sp_fail(SP_ENOMEM, "out of memory");
    for (int r = 0; r < ranks; r++)
        if (!side_open(&sides[r], dgc, sp_config_own(c, "compress"), r, ranks))
            e = sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = sp_packets_new(&p, &(sp_packets_args){ .comm = w->comm,
                                                   .group = SP_ALL,
                                                   .compressor = dgc,
                                                   .slots = own.slots,
                                                   .grads = own.grads,
                                                   .count = SLOTS,
                                                   .threads = 1 });
    if (e == SP_OK)
        e = pass_packets(p, dgc, &own, sides, ranks, &far);
    tell(w, "packets arrive as they were sent, in order", e, far, 0);
    sp_packets_free(p);
    side_free(&own);
    for (int r = 0; r < ranks; r++)
        side_free(&sides[r]);
    sp_config_free(c);
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
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
        check_law(&w, &laws[i]);
    sp_comm_close(w.comm);
    sp_registry_free(w.registry);
    return w.failed ? 1 : 0;
}
