/* Batch norm against PyTorch's float64 values, against plain double loops over
 * many parts, and at its edges. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "sprat/nn.h"
#include "sprat/op.h"
#include "sprat/random.h"

/* A loss with a given gradient: y = sum over the row of x * weight. */
typedef struct weigh_attr {
    const float *weight;
} weigh_attr;

static sp_err weigh_shape(sp_node *n)
{
    n->y[0]->shape = (sp_shape){ .n = n->x[0]->shape.n };
    return SP_OK;
}

static void weigh_forward(const sp_node *n, const sp_run *r)
{
    memset(n->y[0]->data, 0, (size_t)r->n * sizeof(float));
}

static void weigh_backward(const sp_node *n, const sp_run *r)
{
    size_t count = sp_rows(n->x[0], r) * (size_t)n->x[0]->shape.c;

    memcpy(n->x[0]->grad, ((const weigh_attr *)n->attr)->weight,
           count * sizeof(float));
}

static const sp_op weigh = { .name = "weigh",
                             .shape = weigh_shape,
                             .forward = weigh_forward,
                             .backward = weigh_backward };

/* A batch norm of one input under a loss with the gradient `dy`. */
typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *add, *y;
    sp_param *gamma, *beta, *mean, *var;
} net;

static net open_net(sp_shape s, bool relu, bool add, const float *dy,
                    sp_graph_opt opt)
{
    net t = { .p = sp_params_new() };
    weigh_attr a = { dy };

    opt.input_grads = opt.train = true;
    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", s, SP_F32);
    t.add = add ? sp_input(t.g, "add", s, SP_F32) : NULL;
    int dims[] = { t.x->shape.c, 0 };
    t.gamma = sp_weight(t.g, "gamma", dims, (sp_init){ SP_CONSTANT, 1 });
    t.beta = sp_weight(t.g, "beta", dims, (sp_init){ SP_CONSTANT, 0 });
    t.mean = sp_buffer(t.g, "mean", dims, (sp_init){ SP_CONSTANT, 0 });
    t.var = sp_buffer(t.g, "var", dims, (sp_init){ SP_CONSTANT, 1 });
    t.y = sp_normalize(t.g, "bn", t.x,
                       (sp_normalize_params){ t.gamma, t.beta, t.mean, t.var },
                       (sp_normalize_opt){ .add = t.add, .relu = relu });
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss",
              sp_record(t.g, &weigh, "weigh", &a, sizeof a,
                        (sp_tensor *[]){ t.y, NULL }, NULL));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 1);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static void step(net *t, int n)
{
    sp_run run = { .n = n, .t = 1, .train = true, .weight = 1 };

    sp_forward(t->g, &run);
    sp_backward(t->g, &run, NULL, NULL);
}

static void close_to(const char *what, const void *got, const double *want,
                     size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)((const float *)got)[i] - want[i]) <=
                          tolerance,
                      "%s[%zu] is %.9g, not %.9g", what, i,
                      (double)((const float *)got)[i], want[i]);
}

static void set(sp_param *p, float a, float b)
{
    p->value[0] = a;
    p->value[1] = b;
}

/* The values below are torch.nn.BatchNorm2d's in float64. */
static const sp_shape small = { .n = 3, .h = 1, .w = 2, .c = 2 };

static net open_small(float *dy)
{
    for (int i = 0; i < 12; i++)
        dy[i] = (float)(i * 3 % 5) - 2;

    net t = open_net(small, true, true, dy, (sp_graph_opt){ 0 });
    for (int i = 0; i < 12; i++) {
        ((float *)t.x->data)[i] = (float)(i * 7 % 11) / 4 - 1;
        ((float *)t.add->data)[i] = (float)(i * 5 % 7) / 4 - 0.75f;
    }
    set(t.gamma, 1.5f, -0.5f);
    set(t.beta, 0.25f, 0.5f);
    set(t.mean, 1, -2);
    set(t.var, 4, 0.25f);
    return t;
}

START_TEST(training_agrees_with_pytorch)
{
    const double y[] = { 0,          0.75831750, 0,          0,
                         2.07506039, 1.23336499, 2.56360554, 0,
                         0,          0.11330801, 0,          2.02338399 };
    const double dx[] = { 0.38607414,  -0.53938167, -0.17494826, 0.11383770,
                          -0.73597065, 1.07876334,  0.68773383,  -0.00813126,
                          0.19906667,  0.06505011,  -0.36195572, -0.71013822 };
    const double dadd[] = { 0, 1, 0, 0, 0, -2, 1, 0, 0, 0, 0, 1 };
    const double dgamma[] = { 1.70907036, 0.87005699 }, dbeta[] = { 1, 0 };
    const double mean[] = { 0.89583333, -1.76666667 };
    const double var[] = { 3.66854167, 0.31416667 };
    float dy[12];
    net t = open_small(dy);

    step(&t, 3);
    close_to("y", t.y->data, y, 12, 1e-6);
    close_to("dx", t.x->grad, dx, 12, 1e-6);
    close_to("dadd", t.add->grad, dadd, 12, 1e-6);
    close_to("dgamma", t.gamma->grad, dgamma, 2, 1e-6);
    close_to("dbeta", t.beta->grad, dbeta, 2, 1e-6);
    close_to("running mean", t.mean->value, mean, 2, 1e-6);
    close_to("running var", t.var->value, var, 2, 1e-6);
    close_net(&t);
}
END_TEST

START_TEST(evaluation_agrees_with_pytorch)
{
    const double y[] = { 0,          0, 0, 0, 0.69000385, 0,
                         0.27736498, 0, 0, 0, 0,          0.56610470 };
    float dy[12];
    net t = open_small(dy);
    sp_run run = { .n = 3, .t = 1, .weight = 1 };

    /* The statistics after the one training step. */
    set(t.mean, 0.89583333f, -1.76666667f);
    set(t.var, 3.66854167f, 0.31416667f);
    sp_forward(t.g, &run);
    close_to("y", t.y->data, y, 12, 1e-6);
    ck_assert_float_eq(t.mean->value[0], 0.89583333f);
    close_net(&t);
}
END_TEST

enum { ROWS = 3001, MOST_CHANNELS = 20 };

static float normal(size_t i, uint64_t what)
{
    uint32_t word[4];

    sp_random(1, SP_FOR_TEST, what, i, word);
    return sp_normal(word[0], word[1]);
}

/* dx, dgamma and dbeta of channel k by the formula, in double. */
static void plain(const net *t, const float *dy, int c, int k, double *sums,
                  double *worst)
{
    const float *x = t->x->data, *y = t->y->data, *dx = t->x->grad;
    double mean = 0, var = 0, dz = 0, dot = 0, invstd;

    for (size_t i = (size_t)k; i < (size_t)(ROWS * c); i += (size_t)c)
        mean += (double)x[i] / ROWS;
    for (size_t i = (size_t)k; i < (size_t)(ROWS * c); i += (size_t)c)
        var += ((double)x[i] - mean) * ((double)x[i] - mean) / ROWS;
    invstd = 1 / sqrt(var + 1e-5);
    for (size_t i = (size_t)k; i < (size_t)(ROWS * c); i += (size_t)c) {
        double d = y[i] > 0 ? (double)dy[i] : 0;
        dz += d;
        dot += d * ((double)x[i] - mean) * invstd;
    }
    for (size_t i = (size_t)k; i < (size_t)(ROWS * c); i += (size_t)c) {
        double xhat = ((double)x[i] - mean) * invstd;
        double d = y[i] > 0 ? (double)dy[i] : 0;
        double want = invstd * (d - dz / ROWS - xhat * dot / ROWS);
        *worst = fmax(*worst, fabs((double)dx[i] - want));
        *worst = fmax(*worst, fabs((double)y[i] - fmax(xhat, 0)));
    }
    sums[0] = dot;
    sums[1] = dz;
}

/* Many parts, channel counts that no vector divides, and a mean a thousand
 * times the deviation, which sums of squares in float would not survive. */
START_TEST(many_rows_agree_with_double)
{
    static const int channels[] = { 1, 3, 16, MOST_CHANNELS };
    int c = channels[_i];
    float *dy = malloc(sizeof *dy * ROWS * MOST_CHANNELS);

    ck_assert_ptr_nonnull(dy);
    for (size_t i = 0; i < (size_t)(ROWS * c); i++)
        dy[i] = normal(i, 1);
    for (int k = 0; sp_kernels_at(k); k++) {
        sp_graph_opt opt = { .isa = sp_kernels_isa(sp_kernels_at(k)),
                             .threads = 2 };
        net t = open_net((sp_shape){ .n = ROWS, .c = c }, true, false, dy, opt);
        for (size_t i = 0; i < (size_t)(ROWS * c); i++)
            ((float *)t.x->data)[i] = 1000 + normal(i, 2);
        step(&t, ROWS);
        for (int ch = 0; ch < c; ch++) {
            double sums[2], worst = 0;
            plain(&t, dy, c, ch, sums, &worst);
            ck_assert_msg(worst < 1e-4, "%s: off by %g", opt.isa, worst);
            ck_assert_float_eq_tol(t.gamma->grad[ch], (float)sums[0], 1e-2f);
            ck_assert_float_eq_tol(t.beta->grad[ch], (float)sums[1], 1e-3f);
        }
        close_net(&t);
    }
    free(dy);
}
END_TEST

START_TEST(capacity_is_not_the_batch)
{
    float dy[12];
    net t = open_small(dy), u;
    sp_run run = { .n = 2, .t = 1, .train = true, .weight = 1 };
    sp_shape two = small;

    step(&t, 2);
    two.n = 2;
    u = open_net(two, true, true, dy, (sp_graph_opt){ 0 });
    memcpy(u.x->data, t.x->data, 8 * sizeof(float));
    memcpy(u.add->data, t.add->data, 8 * sizeof(float));
    set(u.gamma, 1.5f, -0.5f);
    set(u.beta, 0.25f, 0.5f);
    sp_forward(u.g, &run);
    sp_backward(u.g, &run, NULL, NULL);
    ck_assert_mem_eq(u.y->data, t.y->data, 8 * sizeof(float));
    ck_assert_mem_eq(u.x->grad, t.x->grad, 8 * sizeof(float));
    close_net(&t);
    close_net(&u);
}
END_TEST

START_TEST(no_rows_leave_statistics_alone)
{
    float dy[12];
    net t = open_small(dy);

    step(&t, 0);
    ck_assert_float_eq(t.mean->value[0], 1);
    ck_assert_float_eq(t.var->value[1], 0.25f);
    ck_assert_float_eq(t.gamma->grad[0], 0);
    close_net(&t);
}
END_TEST

START_TEST(one_row_gives_beta)
{
    const float dy[] = { 1, 1 };
    net t = open_net((sp_shape){ .n = 1, .c = 2 }, false, false, dy,
                     (sp_graph_opt){ 0 });

    ((float *)t.x->data)[0] = 5;
    set(t.beta, 3, -4);
    step(&t, 1);
    ck_assert_float_eq(((float *)t.y->data)[0], 3);
    ck_assert_float_eq(((float *)t.y->data)[1], -4);
    ck_assert_float_eq(((float *)t.x->grad)[0], 0);
    ck_assert_float_eq_tol(t.mean->value[0], 0.5f, 1e-6f);
    ck_assert_float_eq_tol(t.var->value[0], 0.9f, 1e-6f);
    close_net(&t);
}
END_TEST

START_TEST(what_is_not_a_number_stays)
{
    float dy[12];
    net t = open_small(dy);

    ((float *)t.x->data)[4] = NAN;
    step(&t, 3);
    ck_assert_float_nan(((float *)t.y->data)[4]);
    close_net(&t);
}
END_TEST

/* Convolutions between norms, with sums around: what they read in backward are
 * norms' outputs. */
static sp_graph *open_chain(sp_params *p, bool recompute)
{
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true,
                                                  .input_grads = true,
                                                  .recompute = recompute });
    sp_tensor *x =
        sp_input(g, "x", (sp_shape){ .n = 2, .h = 3, .w = 5, .c = 16 }, SP_F32);
    sp_tensor *y = sp_norm(g, "bn0", x, (sp_norm_opt){ 0 });
    char name[] = "co1";

    for (char i = '1'; i <= '4'; i++) {
        name[2] = i;
        sp_tensor *z = sp_conv(g, name, y, (sp_conv_opt){ .out = 16 });
        memcpy(name, "bn", 2);
        y = sp_norm(g, name, z, (sp_norm_opt){ .add = i > '1' ? y : NULL });
        memcpy(name, "co", 2);
    }
    sp_output(g, "loss", sp_project(g, y));
    ck_assert_msg(sp_compile(g) == SP_OK, "%s", sp_last_error());
    sp_params_init(p, 3);
    for (size_t i = 0; i < sp_count(x->shape); i++)
        ((float *)x->data)[i] = normal(i, 3);
    return g;
}

START_TEST(gradients_match_differences_when_computed_again)
{
    sp_run run = { .n = 2, .t = 1, .train = true, .weight = 1 };
    sp_params *p = sp_params_new(), *q = sp_params_new();
    sp_graph *g = open_chain(p, true), *kept = open_chain(q, false);
    sp_gradcheck_result worst;

    ck_assert_uint_lt(sp_graph_memory(g).planned,
                      sp_graph_memory(kept).planned);
    sp_gradcheck(g, &run, 4e-3, 24, &worst);
    ck_assert_uint_gt(worst.checked, 200);
    ck_assert_msg(worst.error < 2e-3, "d/d%s[%zu]: %g, differences say %g",
                  worst.name, worst.element, worst.analytic, worst.numeric);
    sp_graph_free(g);
    sp_graph_free(kept);
    sp_params_free(p);
    sp_params_free(q);
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_refused)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 1, .c = 4 }, SP_F32);
    sp_tensor *a = sp_input(g, "a", (sp_shape){ .n = 1, .c = 3 }, SP_F32);

    sp_norm(g, "bn", x, (sp_norm_opt){ .add = a });
    ck_assert_int_eq(sp_compile(g), SP_ESHAPE);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "to be added"));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("normalize");
    TCase *tc = tcase_create("normalize");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, training_agrees_with_pytorch);
    tcase_add_test(tc, evaluation_agrees_with_pytorch);
    tcase_add_loop_test(tc, many_rows_agree_with_double, 0, 4);
    tcase_add_test(tc, capacity_is_not_the_batch);
    tcase_add_test(tc, no_rows_leave_statistics_alone);
    tcase_add_test(tc, one_row_gives_beta);
    tcase_add_test(tc, what_is_not_a_number_stays);
    tcase_add_test(tc, gradients_match_differences_when_computed_again);
    tcase_add_test(tc, sizes_that_do_not_fit_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
