/* Decay of products of factors: what it pulls on, and that optimizers follow
 * it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"
#include "train/frobenius.h"

extern const sp_optimizer sp_optimizer_sgd, sp_optimizer_adam,
    sp_optimizer_adamw;

/* SGD without momentum at rate 1 without gradient: a step is the decay. */
typedef struct sgd_own {
    double momentum;
    bool nesterov;
} sgd_own;

static const sgd_own plain = { 0, false };
static const sp_optim_cfg all_decay = { .lr = 1, .weight_decay = 1 };

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_optim *o;
    sp_frobenius *f;
} net;

typedef enum kind { LINEAR, LARGE, POINTS, GATES, JOINED, KINDS } kind;

static sp_tensor *record(sp_graph *g, kind k)
{
    sp_shape rows = { .n = 2, .c = k == LARGE ? 400 : 7 };
    sp_shape image = { .n = 2, .h = 3, .w = 3, .c = 5 };

    switch (k) {
    case LINEAR:
        return sp_linear(g, "fc", sp_input(g, "x", rows, SP_F32),
                         (sp_linear_opt){ .out = 6, .rank = 3 });
    case LARGE: /* a factor of several of the optimizer's parts */
        return sp_linear(g, "fc", sp_input(g, "x", rows, SP_F32),
                         (sp_linear_opt){ .out = 50, .rank = 45 });
    case POINTS:
        return sp_conv(g, "conv", sp_input(g, "x", image, SP_F32),
                       (sp_conv_opt){ .out = 8, .rank = 4 });
    default:
        rows.t = 3;
        return sp_rnn(
            g, "rnn", sp_input(g, "x", rows, SP_F32),
            (sp_rnn_opt){ .hidden = 5, .rank = 2, .joined = k == JOINED });
    }
}

static net open_net(kind k, int threads)
{
    net t = { .p = sp_params_new() };
    sp_conv_how how = { .kernels = sp_kernels_find("auto"),
                        .threads = threads };

    t.g = sp_graph_new(t.p, (sp_graph_opt){ .train = true });
    sp_output(t.g, "loss", sp_project(t.g, record(t.g, k)));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 3);
    memset(sp_params_grads(t.p), 0, sp_params_count(t.p) * sizeof(float));
    ck_assert_int_eq(
        sp_optim_new(&t.o, &(sp_optim_args){ .params = t.p,
                                             .rule = &sp_optimizer_sgd,
                                             .own = &plain,
                                             .cfg = &all_decay,
                                             .threads = threads }),
        SP_OK);
    ck_assert_int_eq(sp_frobenius_new(&t.f, t.p, t.o, how), SP_OK);
    return t;
}

static void close_net(net *t)
{
    sp_optim_free(t->o);
    sp_frobenius_free(t->f);
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

/* Half the squared norm of the products of one pair of factors, block by
 * block. */
static double penalty(const sp_param *u)
{
    const sp_param *v = u->other;
    size_t rank = v->count / (size_t)v->dims[0];
    size_t blocks = (size_t)u->dims[0] / rank;
    size_t columns = u->count / (size_t)u->dims[0];
    size_t rows = (size_t)v->dims[0] / blocks;
    double sum = 0;

    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++) {
                double x = 0;
                for (size_t k = 0; k < rank; k++)
                    x += (double)v->value[(b * rows + i) * rank + k] *
                         (double)u->value[(b * rank + k) * columns + j];
                sum += x * x / 2;
            }
    return sum;
}

/* Some elements of a factor, the last one too: central differences, of a
 * polynomial of the second degree in each element, so that they are exact up to
 * rounding. */
static void check_pull(sp_param *p, const sp_param *u, const float *before)
{
    static const float h = 0.25f;
    size_t step = p->count / 12 + 1;

    for (size_t i = p->count - 1; i < p->count; i -= step) {
        float x = p->value[i];
        double above, below;

        p->value[i] = x + h;
        above = penalty(u);
        p->value[i] = x - h;
        below = penalty(u);
        p->value[i] = x;
        ck_assert_double_eq_tol((double)x - (double)before[i],
                                (above - below) / (2 * (double)h), 2e-5);
    }
}

START_TEST(the_pull_is_the_gradient_of_half_the_squared_norm)
{
    net t = open_net((kind)_i, 2);
    size_t count = sp_params_count(t.p);
    float *values = sp_params_values(t.p);
    float *first = malloc(count * sizeof *first);
    float *stepped = malloc(count * sizeof *stepped);
    int pairs = 0;

    memcpy(first, values, count * sizeof *first);
    sp_frobenius_fill(t.f);
    sp_optim_update(t.o, 1, 0, 0);
    memcpy(stepped, values, count * sizeof *first);
    memcpy(values, first, count * sizeof *first);
    for (int i = 0; sp_params_at(t.p, i); i++) {
        sp_param *p = sp_params_at(t.p, i);

        if (p->other) {
            check_pull(p, p->left ? p->other : p, stepped + p->offset);
            pairs++;
        } else { /* decay of the values: all of them are gone */
            for (size_t k = 0; k < p->count; k++)
                ck_assert_float_eq(stepped[p->offset + k], 0);
        }
    }
    ck_assert_int_eq(pairs, _i == GATES || _i == JOINED ? 4 : 2);
    free(first);
    free(stepped);
    close_net(&t);
}
END_TEST

START_TEST(threads_do_not_change_the_bits)
{
    net one = open_net(LARGE, 1), some = open_net(LARGE, 3);

    for (int step = 0; step < 2; step++) {
        sp_frobenius_fill(one.f);
        sp_optim_update(one.o, 0.01, 0, step);
        sp_frobenius_fill(some.f);
        sp_optim_update(some.o, 0.01, 0, step);
    }
    ck_assert_mem_eq(sp_params_values(one.p), sp_params_values(some.p),
                     sp_params_count(one.p) * sizeof(float));
    close_net(&one);
    close_net(&some);
}
END_TEST

/* ---- Rules --------------------------------------------------------------- */

typedef struct moments_own {
    double beta1, beta2, eps;
} moments_own;

static const sgd_own heavy = { 0.9, false }, ahead = { 0.9, true };
static const moments_own moments = { 0.8, 0.95, 1e-3 };

static const struct {
    const sp_optimizer *rule;
    const void *own;
    bool corrected;
} rules[] = {
    { &sp_optimizer_sgd, &plain, false },
    { &sp_optimizer_sgd, &heavy, false },
    { &sp_optimizer_sgd, &ahead, false },
    { &sp_optimizer_sgd, &heavy, true },
    { &sp_optimizer_sgd, &ahead, true },
    { &sp_optimizer_adam, &moments, false },
    { &sp_optimizer_adamw, &moments, false },
};
enum { RULES = sizeof rules / sizeof *rules, N = 21, STEPS = 4 };

/* Some steps of a rule with decay 0.1, pulled by `share` times the values. */
static void run_rule(int i, bool pulled, float share, float value[N])
{
    float grad[N], pull[N], state[SP_MAX_STATE][N] = { { 0 } };
    sp_update u = { .n = N,
                    .value = value,
                    .grad = grad,
                    .scale = 0.5f,
                    .lr = 0.1f,
                    .decay = 0.1f,
                    .corrected = rules[i].corrected,
                    .own = rules[i].own };

    for (int s = 0; s < SP_MAX_STATE; s++)
        u.state[s] = state[s];
    u.pull = pulled ? pull : NULL;
    for (int k = 0; k < N; k++)
        value[k] = sinf((float)k);
    for (u.step = 0; u.step < STEPS; u.step++) {
        for (int k = 0; k < N; k++) {
            grad[k] = cosf((float)(k + 3 * u.step));
            pull[k] = share * value[k];
        }
        rules[i].rule->update(&u);
    }
}

START_TEST(a_pull_on_the_values_is_plain_decay)
{
    float plain_step[N], pulled[N];

    ck_assert(rules[_i].rule->pulls);
    run_rule(_i, false, 1, plain_step);
    run_rule(_i, true, 1, pulled);
    for (int k = 0; k < N; k++)
        ck_assert_float_eq_tol(plain_step[k], pulled[k], 1e-6f);
}
END_TEST

/* One step of SGD without momentum, by hand. */
START_TEST(a_step_goes_along_the_pull)
{
    float value[3] = { 1, -2, 0.5f }, grad[3] = { 0.25f, 0.5f, -1 };
    float pull[3] = { -4, 2, 8 }, state[3] = { 0 };
    sp_update u = { .n = 3,
                    .value = value,
                    .grad = grad,
                    .state = { state },
                    .scale = 0.5f,
                    .lr = 0.125f,
                    .decay = 0.5f,
                    .pull = pull,
                    .own = &plain };
    static const double want[3] = { 1 - 0.125 * (0.125 - 2),
                                    -2 - 0.125 * (0.25 + 1),
                                    0.5 - 0.125 * (-0.5 + 4) };

    sp_optimizer_sgd.update(&u);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq((double)value[k], want[k]);
}
END_TEST

/* w - lr * decay * pull, and no gradient. */
START_TEST(decay_that_stays_out_of_the_moments_goes_along_the_pull)
{
    float value[2] = { 1, -2 }, grad[2] = { 0 }, pull[2] = { -4, 2 };
    float mean[2] = { 0 }, square[2] = { 0 };
    sp_update u = { .n = 2,
                    .value = value,
                    .grad = grad,
                    .state = { mean, square },
                    .scale = 1,
                    .lr = 0.125f,
                    .decay = 0.5f,
                    .pull = pull,
                    .own = &moments };

    sp_optimizer_adamw.update(&u);
    ck_assert_double_eq((double)value[0], 1.25);
    ck_assert_double_eq((double)value[1], -2.125);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("frobenius");
    TCase *t = tcase_create("frobenius");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_loop_test(t, the_pull_is_the_gradient_of_half_the_squared_norm, 0,
                        KINDS);
    tcase_add_test(t, threads_do_not_change_the_bits);
    tcase_add_loop_test(t, a_pull_on_the_values_is_plain_decay, 0, RULES);
    tcase_add_test(t, a_step_goes_along_the_pull);
    tcase_add_test(t, decay_that_stays_out_of_the_moments_goes_along_the_pull);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
