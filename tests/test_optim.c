#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "sprat/op.h"
#include "sprat/random.h"

extern const sp_optimizer sp_optimizer_sgd, sp_optimizer_adam,
    sp_optimizer_adamw;

/* The settings of any of them, filled through its keys. */
typedef union settings {
    double align;
    char bytes[4 * sizeof(double)];
} settings;

static void set(const sp_optimizer *o, settings *own, const char *key,
                const void *value)
{
    ck_assert_uint_le(o->entry.cfg_size, sizeof *own);
    for (size_t i = 0; i < o->entry.key_count; i++) {
        const sp_key *k = &o->entry.keys[i];
        size_t size = k->kind == SP_BOOL ? sizeof(bool) : sizeof(double);
        if (strcmp(k->name, key) == 0) {
            memcpy(own->bytes + k->offset, value, size);
            return;
        }
    }
    ck_abort_msg("%s has no key %s", o->entry.name, key);
}

/* A rule with settings. */
typedef struct rule {
    const sp_optimizer *optimizer;
    double momentum; /* or beta1 */
    bool nesterov;
    double beta2, eps;
} rule;

static const rule rules[] = {
    { &sp_optimizer_sgd, 0, false, 0, 0 },
    { &sp_optimizer_sgd, 0.9, false, 0, 0 },
    { &sp_optimizer_sgd, 0.9, true, 0, 0 },
    { &sp_optimizer_adam, 0.8, false, 0.95, 1e-3 },
    { &sp_optimizer_adamw, 0.8, false, 0.95, 1e-3 },
};
enum { RULES = sizeof rules / sizeof *rules, STEPS = 6 };

static settings fill(const rule *r)
{
    settings own = { 0 };

    if (r->optimizer == &sp_optimizer_sgd) {
        set(r->optimizer, &own, "momentum", &r->momentum);
        set(r->optimizer, &own, "nesterov", &r->nesterov);
        return own;
    }
    set(r->optimizer, &own, "beta1", &r->momentum);
    set(r->optimizer, &own, "beta2", &r->beta2);
    set(r->optimizer, &own, "eps", &r->eps);
    return own;
}

/* ---- One rule against formulas and PyTorch ------------------------------- */

/* The gradient of step t at element i. */
static float gradient(int t, size_t i)
{
    uint32_t r[4];

    sp_random((uint64_t)t, SP_FOR_TEST, 5, i, r);
    return 4 * sp_unit(r[0]) - 2;
}

/* sum over k <= t of decay^(t-k) * x[k]: an average that forgets, written as
 * the sum it is instead of the recursion. */
static double remembered(const double *x, int t, double decay)
{
    double sum = 0;

    for (int k = 0; k <= t; k++)
        sum += pow(decay, t - k) * x[k];
    return sum;
}

/* What the rule makes of weight w after STEPS gradients of element i. */
static double expected(const rule *r, size_t i, double w, double lr,
                       double decay)
{
    double g[STEPS], square[STEPS];
    bool sgd = r->optimizer == &sp_optimizer_sgd;
    bool apart = r->optimizer == &sp_optimizer_adamw;

    for (int t = 0; t < STEPS; t++) {
        g[t] = (double)gradient(t, i) + (apart ? 0 : decay * w);
        square[t] = g[t] * g[t];
        if (apart)
            w -= lr * decay * w;
        if (sgd) {
            double buf = remembered(g, t, r->momentum);
            w -= lr * (r->nesterov ? g[t] + r->momentum * buf : buf);
            continue;
        }
        /* The weights of a moment add up to 1 - beta^(t+1). */
        double ones[STEPS] = { 1, 1, 1, 1, 1, 1 };
        double mean =
            remembered(g, t, r->momentum) / remembered(ones, t, r->momentum);
        double power =
            remembered(square, t, r->beta2) / remembered(ones, t, r->beta2);
        w -= lr * mean / (sqrt(power) + r->eps);
    }
    return w;
}

START_TEST(rule_follows_its_formula)
{
    enum { N = 37 };
    const rule *r = &rules[_i];
    settings own = fill(r);
    float value[N], grad[N], state[SP_MAX_STATE][N] = { { 0 } };
    sp_update u = { .n = N,
                    .value = value,
                    .grad = grad,
                    .scale = 1,
                    .lr = 0.1f,
                    .decay = 0.01f,
                    .own = &own };

    for (int s = 0; s < SP_MAX_STATE; s++)
        u.state[s] = state[s];
    for (size_t i = 0; i < N; i++)
        value[i] = gradient(99, i);
    for (u.step = 0; u.step < STEPS; u.step++) {
        for (size_t i = 0; i < N; i++)
            grad[i] = gradient((int)u.step, i);
        r->optimizer->update(&u);
    }
    for (size_t i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)value[i],
                                expected(r, i, (double)gradient(99, i),
                                         (double)0.1f, (double)0.01f),
                                3e-6);
}
END_TEST

/* Weights after three steps of PyTorch 1.13 in float64 at rate 0.1 with decay
 * 0.01 (AdamW: 0.1). */
START_TEST(rule_follows_pytorch)
{
    static const double want[RULES][4] = {
        { 0.922127949, -1.169480898, -0.9256237005, 3.066033972 },
        { 0.811609749, -0.745944498, -1.696067801, 3.038004372 },
        { 0.7528697082, -0.04180166638, -2.900294571, 3.100336732 },
        { 0.7396956737, -1.710101207, 0.2075411102, 2.961885306 },
        { 0.7143617137, -1.653868006, 0.1956692846, 2.890494271 },
    };
    static const float base[4] = { 0.5f, -1, 2, 0.25f };
    static const float slope[4] = { 1, 1, -1, 1 };
    const rule *r = &rules[_i];
    bool apart = r->optimizer == &sp_optimizer_adamw;
    settings own = fill(r);
    float value[4] = { 1, -2, 0.5f, 3 }, grad[4];
    float state[SP_MAX_STATE][4] = { { 0 } };
    sp_update u = { .n = 4,
                    .value = value,
                    .grad = grad,
                    .scale = 1,
                    .lr = 0.1f,
                    .decay = apart ? 0.1f : 0.01f,
                    .own = &own };

    for (int s = 0; s < SP_MAX_STATE; s++)
        u.state[s] = state[s];
    for (u.step = 0; u.step < 3; u.step++) {
        float t = (float)u.step;
        for (int i = 0; i < 4; i++)
            grad[i] = base[i] * (1 + t) - 0.75f * t * slope[i];
        r->optimizer->update(&u);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol((double)value[i], want[_i][i], 2e-6);
}
END_TEST

START_TEST(nesterov_needs_momentum)
{
    rule r = { &sp_optimizer_sgd, 0, true, 0, 0 };
    settings own = fill(&r);

    ck_assert_int_eq(sp_optimizer_check(r.optimizer, &own), SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "optim.momentum"));
    for (int i = 0; i < RULES; i++) {
        own = fill(&rules[i]);
        ck_assert_int_eq(sp_optimizer_check(rules[i].optimizer, &own), SP_OK);
    }
}
END_TEST

/* ---- At work on a store ---------------------------------------------------
 */

/* An operation that has the parameters of the tests and computes nothing. */
static sp_err touch_shape(sp_node *n)
{
    n->y[0]->shape = n->x[0]->shape;
    return SP_OK;
}

static void touch_run(const sp_node *n, const sp_run *r)
{
    (void)n;
    (void)r;
}

static const sp_op touch = { .name = "touch",
                             .shape = touch_shape,
                             .forward = touch_run,
                             .backward = touch_run };

/* A store with a matrix of several parts, a buffer, a vector and an optimizer
 * over it. */
typedef struct bench {
    sp_params *params;
    sp_graph *graph;
    sp_param *matrix, *buffer, *vector;
    settings own;
    sp_optim_cfg cfg;
    sp_optim *optim;
} bench;

static void record(bench *b)
{
    static const int matrix[] = { 300, 217, 0 }, vector[] = { 33, 0 };
    sp_init init = { SP_UNIFORM, 0.5f };
    sp_shape one = { .n = 1, .c = 1 };

    b->params = sp_params_new();
    b->graph = sp_graph_new(b->params, (sp_graph_opt){ .train = true });
    b->matrix = sp_weight(b->graph, "matrix", matrix, init);
    b->buffer = sp_buffer(b->graph, "buffer", vector, init);
    b->vector = sp_weight(b->graph, "vector", vector, init);
    sp_tensor *x[] = { sp_input(b->graph, "x", one, SP_F32), NULL };
    sp_param *p[] = { b->matrix, b->vector, NULL };
    sp_output(b->graph, "loss",
              sp_record(b->graph, &touch, "touch", NULL, 0, x, p));
}

static void start(bench *b, const rule *r, int threads)
{
    record(b);
    if (sp_compile(b->graph) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    sp_params_init(b->params, 3);
    b->own = fill(r);
    sp_optim_args args = { .params = b->params,
                           .rule = r->optimizer,
                           .own = &b->own,
                           .cfg = &b->cfg,
                           .threads = threads };
    if (sp_optim_new(&b->optim, &args) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

static void stop(bench *b)
{
    sp_optim_free(b->optim);
    sp_graph_free(b->graph);
    sp_params_free(b->params);
}

static void set_gradients(bench *b, int t)
{
    for (size_t i = 0; i < sp_params_count(b->params); i++)
        sp_params_grads(b->params)[i] = gradient(t, i);
}

START_TEST(threads_do_not_change_bits)
{
    bench b[2] = { { .cfg = { .weight_decay = 0.1, .clip = 100 } } };
    size_t bytes;

    b[1].cfg = b[0].cfg;
    for (int k = 0; k < 2; k++) {
        start(&b[k], &rules[_i], k == 0 ? 1 : 3);
        for (int t = 0; t < 3; t++) {
            set_gradients(&b[k], t);
            sp_optim_update(b[k].optim, 0.1, sp_optim_norm(b[k].optim), t);
        }
    }
    bytes = sp_params_count(b[0].params) * sizeof(float);
    ck_assert(sp_optim_norm(b[0].optim) == sp_optim_norm(b[1].optim));
    ck_assert_mem_eq(sp_params_values(b[0].params),
                     sp_params_values(b[1].params), bytes);
    for (int s = 0; s < rules[_i].optimizer->state_count; s++)
        ck_assert_mem_eq(sp_optim_state(b[0].optim, b[0].matrix, s),
                         sp_optim_state(b[1].optim, b[1].matrix, s), bytes);
    stop(&b[0]);
    stop(&b[1]);
}
END_TEST

START_TEST(norm_is_that_of_all_gradients)
{
    bench b = { .cfg = { 0 } };
    double sum = 0;

    start(&b, &rules[0], 2);
    set_gradients(&b, 0);
    for (size_t i = 0; i < sp_params_count(b.params); i++)
        sum += (double)gradient(0, i) * (double)gradient(0, i);
    ck_assert_double_eq_tol(sp_optim_norm(b.optim) / sqrt(sum), 1, 1e-12);
    b.matrix->grad[1000] = 3e38f; /* its square is no float */
    ck_assert_double_eq_tol(sp_optim_norm(b.optim) / (double)3e38f, 1, 1e-12);
    b.vector->grad[32] = -INFINITY;
    ck_assert(!isfinite(sp_optim_norm(b.optim)));
    b.vector->grad[32] = 0;
    b.matrix->grad[300 * 217 - 1] = NAN;
    ck_assert(!isfinite(sp_optim_norm(b.optim)));
    stop(&b);
}
END_TEST

/* With rate 1 and neither momentum nor decay the step is the gradient. */
START_TEST(clipping_limits_the_norm_of_the_step)
{
    bench b = { .cfg = { .clip = 2 } };
    double sum = 0;

    start(&b, &rules[0], 1);
    memset(sp_params_values(b.params), 0,
           sp_params_count(b.params) * sizeof(float));
    set_gradients(&b, 0);
    sp_optim_update(b.optim, 1, sp_optim_norm(b.optim), 0);
    for (size_t i = 0; i < sp_params_count(b.params); i++) {
        double w = (double)sp_params_values(b.params)[i];
        sum += w * w;
    }
    ck_assert_double_eq_tol(sqrt(sum), 2, 1e-5);
    stop(&b);
}
END_TEST

START_TEST(clipping_leaves_short_gradients_alone)
{
    bench b = { .cfg = { .clip = 2 } };

    start(&b, &rules[0], 1);
    memset(sp_params_grads(b.params), 0,
           sp_params_count(b.params) * sizeof(float));
    b.matrix->value[0] = b.vector->value[0] = 0;
    b.matrix->grad[0] = 0.75f;
    b.vector->grad[0] = -1.5f;
    sp_optim_update(b.optim, 1, sp_optim_norm(b.optim), 0);
    ck_assert_float_eq(b.matrix->value[0], -0.75f);
    ck_assert_float_eq(b.vector->value[0], 1.5f);
    stop(&b);
}
END_TEST

START_TEST(decay_acts_where_it_was_asked_for)
{
    bench b = { .cfg = { .weight_decay = 0.25,
                         .decay = _i ? SP_DECAY_MATRICES : SP_DECAY_ALL } };
    float m, v, kept;

    start(&b, &rules[0], 1);
    memset(sp_params_grads(b.params), 0,
           sp_params_count(b.params) * sizeof(float));
    m = b.matrix->value[77];
    v = b.vector->value[7];
    kept = b.buffer->value[7];
    sp_optim_update(b.optim, 0.5, sp_optim_norm(b.optim), 0);
    ck_assert_float_eq_tol(b.matrix->value[77], 0.875f * m, 1e-7f);
    ck_assert_float_eq_tol(b.vector->value[7], _i ? v : 0.875f * v, 1e-7f);
    ck_assert_float_eq(b.buffer->value[7], kept);
    stop(&b);
}
END_TEST

/* Another optimizer with the same states goes on as the first would have. */
START_TEST(copied_states_continue_the_run)
{
    bench b[2] = { { .cfg = { .weight_decay = 0.1 } } };
    size_t bytes;

    b[1].cfg = b[0].cfg;
    start(&b[0], &rules[_i], 1);
    start(&b[1], &rules[_i], 1);
    bytes = sp_params_count(b[0].params) * sizeof(float);
    for (int t = 0; t < 4; t++) {
        if (t == 2) {
            memcpy(sp_params_values(b[1].params), sp_params_values(b[0].params),
                   bytes);
            for (int s = 0; s < rules[_i].optimizer->state_count; s++) {
                memcpy(sp_optim_state(b[1].optim, b[1].matrix, s),
                       sp_optim_state(b[0].optim, b[0].matrix, s),
                       b[0].matrix->count * sizeof(float));
                memcpy(sp_optim_state(b[1].optim, b[1].vector, s),
                       sp_optim_state(b[0].optim, b[0].vector, s),
                       b[0].vector->count * sizeof(float));
            }
        }
        for (int k = t < 2 ? 0 : 1; k >= 0; k--) {
            set_gradients(&b[k], t);
            sp_optim_update(b[k].optim, 0.1, sp_optim_norm(b[k].optim), t);
        }
    }
    ck_assert_mem_eq(sp_params_values(b[0].params),
                     sp_params_values(b[1].params), bytes);
    stop(&b[0]);
    stop(&b[1]);
}
END_TEST

START_TEST(a_store_without_gradients_is_refused)
{
    bench b = { .cfg = { 0 } };
    sp_optim_args args = { .rule = &sp_optimizer_sgd,
                           .own = &b.own,
                           .cfg = &b.cfg };

    record(&b);
    args.params = b.params;
    ck_assert_int_eq(sp_optim_new(&b.optim, &args), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "compile"));
    stop(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("optim");
    TCase *tc = tcase_create("optim");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, rule_follows_its_formula, 0, RULES);
    tcase_add_loop_test(tc, rule_follows_pytorch, 0, RULES);
    tcase_add_test(tc, nesterov_needs_momentum);
    tcase_add_loop_test(tc, threads_do_not_change_bits, 0, RULES);
    tcase_add_test(tc, norm_is_that_of_all_gradients);
    tcase_add_test(tc, clipping_limits_the_norm_of_the_step);
    tcase_add_test(tc, clipping_leaves_short_gradients_alone);
    tcase_add_loop_test(tc, decay_acts_where_it_was_asked_for, 0, 2);
    tcase_add_loop_test(tc, copied_states_continue_the_run, 0, RULES);
    tcase_add_test(tc, a_store_without_gradients_is_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
