/* The step that Adam and AdamW share. */
#include "optim/moments.h"

#include <math.h>
#include <stddef.h>

#define AT(field) offsetof(sp_moments_cfg, field)

/* A beta of 1 would never leave its start and divide by 0. */
#define BETA_MAX 0.999999999

const sp_key sp_moment_keys[SP_MOMENT_KEYS] = {
    { "beta1", SP_FLOAT, AT(beta1), "0.9", 0, BETA_MAX,
      "decay of the mean gradient per step", NULL },
    { "beta2", SP_FLOAT, AT(beta2), "0.999", 0, BETA_MAX,
      "decay of the mean square per step", NULL },
    { "eps", SP_FLOAT, AT(eps), "1e-8", 1e-30, 1,
      "added to the root of the mean square", NULL },
};

void sp_moments_update(const sp_update *u, float coupled, float shrink)
{
    const sp_moments_cfg *c = u->own;
    double t = (double)u->step + 1;
    double unbias1 = 1 - pow(c->beta1, t), unbias2 = 1 - pow(c->beta2, t);
    float b1 = (float)c->beta1, a1 = (float)(1 - c->beta1);
    float b2 = (float)c->beta2, a2 = (float)(1 - c->beta2);
    float rate = (float)((double)u->lr / unbias1);
    float unroot = (float)(1 / sqrt(unbias2)), eps = (float)c->eps;
    float *restrict w = u->value;
    float *restrict mean = u->state[0], *restrict square = u->state[1];
    const float *restrict grad = u->grad, *restrict pull = u->pull;
    float scale = u->scale, apart = u->lr * (u->decay - coupled);

    for (size_t i = 0; i < u->n; i++) {
        float g = scale * grad[i] + coupled * (pull ? pull[i] : w[i]);
        float m = b1 * mean[i] + a1 * g;
        float s = b2 * square[i] + a2 * g * g;
        float kept = pull ? w[i] - apart * pull[i] : shrink * w[i];

        mean[i] = m;
        square[i] = s;
        w[i] = kept - rate * m / (sqrtf(s) * unroot + eps);
    }
}
