/* What a step's exchange does between gradients and weights, where ranks are
 * not alike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "ranks_laws.h"
#include "train/step.h"

enum { SAMPLES = 3, OVERRIDES = 9 };

#define CLIP 0.05 /* as `clipped` has it */

/* A session of all ranks, and a batch of this rank's share of the samples. */
typedef struct scene {
    sp_config *config;
    sp_session s;
    sp_loader *loader;
    sp_batch batch;
} scene;

/* Without an exchange for `comm` NULL. All ranks have the same weights. */
static sp_err scene_open(scene *s, const world *w, sp_comm *comm,
                         const char *const *overrides, size_t count)
{
    *s = (scene){ 0 };
    SP_TRY(sp_config_load(&s->config, w->registry, &w->config, 1, overrides,
                          count));
    SP_TRY(sp_session_open(&s->s, s->config,
                           (sp_session_opt){ .train = true,
                                             .data = true,
                                             .comm = comm,
                                             .always_gather = true }));
    SP_TRY(sp_session_batches(&s->s, &s->loader));
    return sp_loader_next(s->loader, &s->batch);
}

static void scene_close(scene *s)
{
    sp_loader_free(s->loader);
    sp_session_close(&s->s);
    sp_config_free(s->config);
}

static const sp_step_at first_step = { .lr = 1 };

/* ---- Clipping by each rank ----------------------------------------------- */

/* All is sent, so that what arrives is the step. */
static const char *const clipped[OVERRIDES] = {
    "train.batch=3",
    "optim.momentum=0",
    "optim.clip=0.05",
    "compress.name=dgc",
    "compress.warmup=[0.999999]",
    "compress.warmup_epochs=1000",
    "compress.masking=false",
};

static const char *const plain[] = { "train.batch=3", "optim.momentum=0" };

/* The rank's own gradient, of its part of the batch: scaled as the rule has it
 * (a threshold of clip x sqrt(n_k / B)), and added up. *scale is this rank's.
 */
static sp_err sum_of_clipped(const world *w, const scene *alone, int rows,
                             double *sum, double *scale)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    size_t n = sp_params_count(alone->s.params);
    const float *g = sp_params_grads(alone->s.params);
    double squares = 0, threshold = CLIP * sqrt((double)rows / SAMPLES);

    for (size_t i = 0; i < n; i++)
        squares += (double)g[i] * (double)g[i];
    *scale = sqrt(squares) > threshold ? threshold / sqrt(squares) : 1;
    for (size_t i = 0; i < n; i++)
        sum[i] = *scale * (double)g[i];
    return sp_op_wait(w->comm, sp_sum_doubles(w->comm, on, sum, n));
}

/* The distance of a step from where it should lead, over the step's length. */
static double miss(const float *before, const float *after, const double *sum,
                   size_t n)
{
    double far = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        double step = (double)before[i] - (double)after[i];

        far += (step - sum[i]) * (step - sum[i]);
        all += sum[i] * sum[i];
    }
    return sqrt(far / all);
}

/* One step of both; the gradient of the one is by itself, the other's are
 * exchanged. */
static sp_err step_both(const world *w, scene *many, scene *alone, double *far)
{
    size_t n = sp_params_count(many->s.params);
    float *before = malloc(n * sizeof *before);
    double *sum = malloc(n * sizeof *sum), scale = 1;
    sp_step_result r;
    sp_err e = before && sum ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        memcpy(before, sp_params_values(many->s.params), n * sizeof *before);
    if (e == SP_OK)
        e = sp_train_step(&many->s, &many->batch, &first_step, &r);
    if (e == SP_OK)
        e = sp_train_step(&alone->s, &many->batch, &first_step, &r);
    if (e == SP_OK)
        e = sum_of_clipped(w, alone, many->batch.n, sum, &scale);
    if (e == SP_OK && many->batch.n > 0 && scale >= 1)
        e = sp_fail(SP_EARG, "nothing to clip");
    if (e == SP_OK)
        *far = miss(before, sp_params_values(many->s.params), sum, n);
    free(before);
    free(sum);
    return e;
}

/* Of 3 samples 2 ranks have 1 and 2, and one of 4 ranks none. */
static void clipping_by_shares(world *w)
{
    scene many, alone = { 0 };
    double far = INFINITY;
    sp_err e = scene_open(&many, w, w->comm, clipped, 7);

    if (e == SP_OK)
        e = scene_open(&alone, w, NULL, plain, 2);
    if (e == SP_OK)
        e = step_both(w, &many, &alone, &far);
    tell(w, "each rank clips by its share of the batch", e, far, 1e-5);
    scene_close(&alone);
    scene_close(&many);
}

/* ---- What one rank cannot merge ------------------------------------------ */

static sp_err damaged(const sp_slot *s, const void *a, size_t a_bytes,
                      const void *b, size_t b_bytes, sp_packet *out)
{
    (void)a;
    (void)a_bytes;
    (void)b;
    (void)b_bytes;
    (void)out;
    return sp_fail(SP_EFORMAT, "packet of %s: damaged", s->name);
}

/* An exchange as the session's, but one in which a rank finds all damaged. */
static sp_err replace_exchange(scene *s, const world *w, sp_compressor *c,
                               int culprit)
{
    const sp_settings *set = &s->s.set;

    *c = *set->compressor;
    if (sp_comm_rank(w->comm) == culprit)
        c->merge = damaged;
    sp_exchange_free(s->s.exchange);
    s->s.exchange = NULL;
    return sp_exchange_new(&s->s.exchange,
                           &(sp_exchange_args){
                               .comm = w->comm,
                               .params = s->s.params,
                               .optim = s->s.optim,
                               .compressor = c,
                               .own = set->compressor_own,
                               .momentum = 0.9,
                               .node = set->dist->hierarchy != 0,
                               .merge = true,
                               .always_gather = true,
                               .threads = 1,
                           });
}

/* The step ends on all ranks with what the culprit has found, and no weight has
 * moved on any. */
static sp_err end_together(scene *s, int culprit)
{
    char who[40];
    size_t bytes = sp_params_count(s->s.params) * sizeof(float);
    float *before = malloc(bytes);
    sp_step_result r;
    sp_err e, found = SP_OK;

    if (!before)
        return sp_fail(SP_ENOMEM, "out of memory");
    snprintf(who, sizeof who, "merging on rank %d (", culprit);
    memcpy(before, sp_params_values(s->s.params), bytes);
    e = sp_train_step(&s->s, &s->batch, &first_step, &r);
    if (e != SP_EFORMAT || !strstr(sp_last_error(), who) ||
        !strstr(sp_last_error(), "): packet of "))
        found = sp_fail(SP_EARG, "ended with %d: %s", (int)e,
                        e == SP_OK ? "" : sp_last_error());
    else if (memcmp(before, sp_params_values(s->s.params), bytes) != 0)
        found = sp_fail(SP_EARG, "a rank has trained on");
    free(before);
    return found;
}

static void damage_ends_all(world *w, const char *name, const char *hierarchy,
                            int culprit)
{
    const char *const overrides[] = { "compress.name=dgc",
                                      "compress.ratio=0.05",
                                      "compress.warmup=[]",
                                      "dist.exchange=merge",
                                      hierarchy,
                                      "dist.ranks_per_node=2" };
    sp_compressor c;
    scene s;
    sp_err e = scene_open(&s, w, w->comm, overrides, 6);

    if (e == SP_OK)
        e = replace_exchange(&s, w, &c, culprit);
    if (e == SP_OK && culprit < sp_comm_ranks(w->comm))
        e = end_together(&s, culprit);
    tell(w, name, e, 0, 0);
    scene_close(&s);
}

void check_exchange(world *w)
{
    clipping_by_shares(w);
    damage_ends_all(w, "what one rank cannot merge ends all",
                    "dist.hierarchy=flat", 1);
    damage_ends_all(w, "what one host cannot merge ends all",
                    "dist.hierarchy=node", 2);
}
