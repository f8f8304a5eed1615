/* Stochastic gradient descent with momentum.
 *
 *   g   = scale * gradient + decay * w      (or what decay pulls on, for w)
 *   buf = momentum * buf + g
 *   w  -= lr * buf                      heavy ball
 *   w  -= lr * (g + momentum * buf)     Nesterov
 *
 * Source: Sutskever, Martens, Dahl, Hinton 2013, "On the importance of
 *         initialization and momentum in deep learning".
 * Differs: PyTorch's form, in which the rate multiplies the whole buffer: a
 *          change of the rate acts on past gradients too, and decay is part of
 *          the gradient. Where momentum was applied to the gradient before
 *          it was exchanged, the decay keeps a momentum of its own, which comes
 *          to the same by linearity (Lin et al. 2018's code).
 */
#include <stddef.h>

#include "sprat/optim.h"

typedef struct sgd_cfg {
    double momentum;
    bool nesterov;
} sgd_cfg;

#define AT(field) offsetof(sgd_cfg, field)

static const sp_key keys[] = {
    { "momentum", SP_FLOAT, AT(momentum), "0.9", 0, 1,
      "share of the last step that is kept", NULL },
    { "nesterov", SP_BOOL, AT(nesterov), "false", 0, 0,
      "look one step ahead (Nesterov's momentum)", NULL },
};

static sp_err check(const void *own)
{
    const sgd_cfg *c = own;

    if (c->nesterov && c->momentum == 0)
        return sp_fail(SP_ECONFIG, "optim.nesterov needs optim.momentum above "
                                   "0: set it (0.9 is usual) or say "
                                   "nesterov: false");
    return SP_OK;
}

/* buf = momentum * buf + decay * w
 * w  -= lr * (gradient + buf), or with Nesterov decay * w + momentum * buf */
static void update_corrected(const sp_update *u)
{
    const sgd_cfg *c = u->own;
    float m = (float)c->momentum, ahead = c->nesterov ? m : 1.0f;
    float own = c->nesterov ? 1.0f : 0.0f;
    float scale = u->scale, decay = u->decay, lr = u->lr;
    float *restrict w = u->value, *restrict buf = u->state[0];
    const float *restrict grad = u->grad, *restrict pull = u->pull;

    for (size_t i = 0; i < u->n; i++) {
        float g = decay * (pull ? pull[i] : w[i]);
        float b = m * buf[i] + g;

        buf[i] = b;
        w[i] -= lr * (scale * grad[i] + own * g + ahead * b);
    }
}

static void update(const sp_update *u)
{
    const sgd_cfg *c = u->own;
    float m = (float)c->momentum, ahead = c->nesterov ? m : 1.0f;
    float own = c->nesterov ? 1.0f : 0.0f;
    float scale = u->scale, decay = u->decay, lr = u->lr;
    float *restrict w = u->value, *restrict buf = u->state[0];
    const float *restrict grad = u->grad, *restrict pull = u->pull;

    if (u->corrected) {
        update_corrected(u);
        return;
    }
    for (size_t i = 0; i < u->n; i++) {
        float g = scale * grad[i] + decay * (pull ? pull[i] : w[i]);
        float b = m * buf[i] + g;

        buf[i] = b;
        w[i] -= lr * (own * g + ahead * b);
    }
}

static void momentum(const void *own, double *momentum, bool *nesterov)
{
    const sgd_cfg *c = own;

    *momentum = c->momentum;
    *nesterov = c->nesterov;
}

const sp_optimizer sp_optimizer_sgd = {
    .entry = { .name = "sgd",
               .help = "stochastic gradient descent, heavy-ball or Nesterov "
                       "momentum",
               .cfg_size = sizeof(sgd_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .state_count = 1,
    .state_names = { "momentum_buffer" },
    .pulls = true,
    .check = check,
    .update = update,
    .momentum = momentum,
};
