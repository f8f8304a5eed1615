/* Deep gradient compression: only the largest of the accumulated gradients are
 * sent, with the momentum that they would have had.
 *
 *   g  = scale * gradient, scale = min(1, thr / norm) with thr below
 *   heavy ball   u = m * u + g         v = v + u
 *   Nesterov     u = m * (u + g)       v = v + u + g
 *   uncorrected                        v = v + g
 *   send the largest |v|; there v = 0 and (masking) u = 0
 *
 * What arrives is the sum over ranks, and the step of plain SGD. Vanilla SGD is
 * momentum 0: then u is g, and is not kept.
 *
 * The norm of the sum may be `optim.clip`, and each rank clips its own part to
 *   thr = clip * sqrt(n_k / B)
 * before it is added to anything: gradients are sums over a rank's n_k of B
 * samples, whose squared norms add up if they are independent. For N equal
 * shares that is N^(-1/2) * clip. A rank without samples has no gradient and
 * goes on sending what it has not yet sent.
 *
 * The density falls in steps: entry i of `warmup` for the i-th equal part of
 * `warmup_epochs`, but none below `ratio`; then `ratio`.
 *
 * State:  u, the momentum, and v, the residual, n floats each; u not without
 *         momentum or its correction.
 * Packet: compress/wire.h.
 * Source: Lin, Han, Mao, Wang, Dally 2018, "Deep gradient compression",
 *         equation 7 and appendix B (momentum), sections 3.2 (clipping), 3.3
 *         (masking, warm-up) and 5 (selection, encoding).
 * Differs: of values sent as halfs, the error of rounding stays in v.
 */
#include <math.h>
#include <stddef.h>

#include "compress/sparse.h"

typedef struct dgc_cfg {
    sp_sparse_cfg sparse;
    sp_list warmup;
    double warmup_epochs;
    bool momentum_correction, clipping, masking;
} dgc_cfg;

#define AT(field) offsetof(dgc_cfg, field)

static const sp_key keys[] = {
    { "ratio", SP_FLOAT, AT(sparse.ratio), "0.001", 1e-6, 1,
      "density: share of a parameter's gradients that is sent", NULL },
    { "warmup", SP_LIST, AT(warmup), "[0.25, 0.0625, 0.015625, 0.004]", 1e-6, 1,
      "densities before that, falling, none below it; 1: dense; []: no warm-up",
      NULL },
    { "warmup_epochs", SP_FLOAT, AT(warmup_epochs), "4", 0, 1e6,
      "epochs over which `warmup` is spread evenly; may be part of one", NULL },
    { "momentum_correction", SP_BOOL, AT(momentum_correction), "true", 0, 0,
      "accumulate momentum instead of gradients", NULL },
    { "clipping", SP_BOOL, AT(clipping), "true", 0, 0,
      "each rank clips its own gradient (see optim.clip), not all their sum",
      NULL },
    { "masking", SP_BOOL, AT(masking), "true", 0, 0,
      "forget momentum where gradients were sent", NULL },
    { "index", SP_CHOICE, AT(sparse.index), "run16", 0, 0,
      "places of what is sent: run lengths of 16 bits or indices of 32",
      "run16|index32" },
    { "values", SP_CHOICE, AT(sparse.values), "float", 0, 0,
      "fp16: half-precision values; what rounding takes is sent later",
      "float|fp16" },
    { "sample", SP_FLOAT, AT(sparse.sample), "0.01", 1e-4, 1,
      "share of a parameter that is looked at for its threshold", NULL },
};

enum { MOMENTUM, RESIDUAL, STATES };

static sp_err check_warmup(const dgc_cfg *c)
{
    for (int i = 1; i < c->warmup.count; i++)
        if (!(c->warmup.value[i] < c->warmup.value[i - 1]))
            return sp_fail(SP_ECONFIG,
                           "compress.warmup: density %g is followed by %g: "
                           "let them fall",
                           c->warmup.value[i - 1], c->warmup.value[i]);
    if (c->warmup.count > 0 && c->warmup.value[0] <= c->sparse.ratio)
        return sp_fail(SP_ECONFIG,
                       "compress.warmup: none of its densities, %g at most, is "
                       "above compress.ratio, %g: raise them, or set warmup: "
                       "[] for none",
                       c->warmup.value[0], c->sparse.ratio);
    if (c->warmup.count > 0 && c->warmup_epochs == 0)
        return sp_fail(SP_ECONFIG,
                       "compress.warmup_epochs: 0 leaves no time for the %d "
                       "densities of compress.warmup: say for how long, or "
                       "warmup: [] for none",
                       c->warmup.count);
    return SP_OK;
}

static sp_err check(const void *own, const sp_compress_use *use)
{
    const dgc_cfg *c = own;

    SP_TRY(sp_sparse_check(&c->sparse));
    SP_TRY(check_warmup(c));
    if (c->momentum_correction && !use->has_momentum)
        return sp_fail(SP_ECONFIG,
                       "compress.name: dgc corrects the momentum of SGD, but "
                       "optim.name is %s: set optim.name=sgd, or "
                       "compress.momentum_correction=false",
                       use->optimizer);
    return SP_OK;
}

static double density(const void *own, double progress)
{
    const dgc_cfg *c = own;
    int count = c->warmup.count, i;

    if (count == 0 || !(progress < c->warmup_epochs))
        return c->sparse.ratio;
    i = (int)(progress * count / c->warmup_epochs);
    return fmax(c->warmup.value[i < count ? i : count - 1], c->sparse.ratio);
}

static double settled(const void *own)
{
    const dgc_cfg *c = own;

    return c->warmup.count > 0 ? c->warmup_epochs : 0;
}

static bool owns_momentum(const void *own)
{
    const dgc_cfg *c = own;

    return c->momentum_correction;
}

static bool clips(const void *own, double clip)
{
    const dgc_cfg *c = own;

    return c->clipping && clip > 0;
}

static double clip_scale(const sp_slot *s, double norm)
{
    double threshold = s->clip * sqrt(s->weight);

    return norm > threshold ? threshold / norm : 1;
}

static bool keeps_momentum(const sp_slot *s)
{
    const dgc_cfg *c = s->cfg;

    return c->momentum_correction && s->momentum > 0;
}

static size_t state_floats(const sp_slot *s, int i)
{
    return i == RESIDUAL || keeps_momentum(s) ? s->n : 0;
}

/* The ranks' momenta add up to the optimizer's. */
static void take_over(const sp_slot *s, const float *momentum)
{
    float share = (float)(s->weight * (s->nesterov ? s->momentum : 1));
    float *u = s->state[MOMENTUM];

    for (size_t i = 0; keeps_momentum(s) && i < s->n; i++)
        u[i] = share * momentum[i];
}

static void heavy_ball(const sp_sparse_part *p)
{
    const float *restrict g = p->grad;
    float *restrict u = p->momentum, *restrict v = p->residual;

    for (size_t i = 0; i < p->n; i++) {
        u[i] = p->share * u[i] + p->scale * g[i];
        v[i] += u[i];
    }
}

static void nesterov(const sp_sparse_part *p)
{
    const float *restrict grad = p->grad;
    float *restrict u = p->momentum, *restrict v = p->residual;

    for (size_t i = 0; i < p->n; i++) {
        float g = p->scale * grad[i];

        u[i] = p->share * (u[i] + g);
        v[i] += u[i] + g;
    }
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    const dgc_cfg *c = s->cfg;
    sp_sparse_rule rule = { sp_sparse_add, NULL, s->state[RESIDUAL], false };

    (void)round;
    if (keeps_momentum(s)) {
        rule.add = s->nesterov ? nesterov : heavy_ball;
        rule.momentum = s->state[MOMENTUM];
        rule.masking = c->masking;
    }
    sp_sparse_encode(s, &rule, grad, p);
}

const sp_compressor sp_compressor_dgc = {
    .entry = { .name = "dgc",
               .help = "deep gradient compression: the largest gradients, with "
                       "their momentum",
               .cfg_size = sizeof(dgc_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .rounds = 1,
    .combine = { SP_GATHER },
    .state_count = STATES,
    .state_names = { "dgc_momentum", "dgc_residual" },
    .state_adds = { true, true },
    .residual = "dgc_residual",
    .state_floats = state_floats,
    .check = check,
    .density = density,
    .settled = settled,
    .owns_momentum = owns_momentum,
    .clips = clips,
    .clip_scale = clip_scale,
    .accepts = sp_sparse_accepts,
    .packet_room = sp_sparse_room,
    .nominal_bytes = sp_sparse_nominal,
    .work_bytes = sp_sparse_work,
    .take_over = take_over,
    .encode = encode,
    .decode = sp_sparse_decode,
    .merge = sp_sparse_merge,
    .merges = sp_sparse_merges,
};
