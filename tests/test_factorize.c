/* From full to low rank: layers of both kinds over two stores, and what arrays
 * of one are for the other. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/factorize.h"
#include "sprat/nn.h"

/* A layer behind an input, under a loss. */
typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
} net;

typedef sp_tensor *(*layer)(sp_graph *g, sp_tensor *x);

static sp_tensor *plain(sp_graph *g, sp_tensor *x)
{
    return sp_conv(g, "c", x, (sp_conv_opt){ .out = 6 });
}

static sp_tensor *narrowing(sp_graph *g, sp_tensor *x)
{
    return sp_conv(g, "c", x,
                   (sp_conv_opt){ .out = 40, .stride = 2, .bias = true });
}

static sp_tensor *large_kernel(sp_graph *g, sp_tensor *x)
{
    return sp_conv(
        g, "c", x,
        (sp_conv_opt){ .out = 5, .kernel = 5, .stride = 3, .pad = SP_NO_PAD });
}

static sp_tensor *point(sp_graph *g, sp_tensor *x)
{
    return sp_conv(g, "c", x,
                   (sp_conv_opt){ .out = 9, .kernel = 1, .bias = true });
}

static sp_tensor *point_stride(sp_graph *g, sp_tensor *x)
{
    return sp_conv(g, "c", x,
                   (sp_conv_opt){ .out = 9, .kernel = 1, .stride = 2 });
}

static sp_tensor *point_pad(sp_graph *g, sp_tensor *x)
{
    return sp_conv(
        g, "c", x,
        (sp_conv_opt){ .out = 3, .kernel = 1, .stride = 2, .pad = 1 });
}

static sp_tensor *over_images(sp_graph *g, sp_tensor *x)
{
    return sp_linear(g, "fc", x, (sp_linear_opt){ .out = 12 });
}

static sp_tensor *without_bias(sp_graph *g, sp_tensor *x)
{
    return sp_linear(
        g, "fc", sp_global_pool(g, x),
        (sp_linear_opt){ .out = 30, .normal = true, .no_bias = true });
}

/* Two of them, in scopes. */
static sp_tensor *deep(sp_graph *g, sp_tensor *x)
{
    sp_push(g, "layer1");
    x = sp_relu(g, plain(g, x));
    sp_push(g, "0");
    x = narrowing(g, x);
    sp_pop(g);
    sp_pop(g);
    return over_images(g, x);
}

static const layer layers[] = { plain,       narrowing,    large_kernel,
                                point,       point_stride, point_pad,
                                over_images, without_bias, deep };

static const sp_shape image = { .n = 3, .h = 9, .w = 8, .c = 4 };

/* A graph without a rule is of full rank. */
static net open_net(layer l, const sp_rank_rule *ranks)
{
    net t = { .p = sp_params_new() };

    t.g = sp_graph_new(t.p, (sp_graph_opt){ .train = true, .ranks = ranks });
    t.x = sp_input(t.g, "x", image, SP_F32);
    t.y = l(t.g, t.x);
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss", sp_project(t.g, t.y));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 7);
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

/* `arg` divides the smaller side. */
static int part_of(void *arg, const char *name, int rows, int columns)
{
    (void)name;
    return (rows < columns ? rows : columns) / *(int *)arg;
}

static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* Set the values of `low` to those of `full`, as a switch would; gives the
 * largest share that is lost. */
static double carry(const net *full, const net *low)
{
    double worst = 0;
    sp_param *p;

    for (int i = 0; (p = sp_params_at(low->p, i)); i++) {
        const sp_param *from =
            sp_params_find(full->p, p->whole ? p->whole : p->name);
        double lost;

        ck_assert_msg(from != NULL, "no %s", p->whole ? p->whole : p->name);
        if (p->other && !p->left) {
            ck_assert_msg(sp_factorize(from, p, &lost) == SP_OK, "%s",
                          sp_last_error());
            worst = fmax(worst, lost);
        } else if (!p->other) {
            memcpy(p->value, from->value, p->count * sizeof(float));
        }
    }
    return worst;
}

static void run(const net *t)
{
    sp_run r = { .n = image.n, .t = 1, .train = true, .weight = 1 };

    fill(t->x->data, sp_count(image), 3);
    sp_forward(t->g, &r);
}

static double largest_of(const float *x, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

START_TEST(full_rank_keeps_the_function)
{
    int whole = 1;
    sp_rank_rule rule = { .rank = part_of, .arg = &whole };
    net a = open_net(layers[_i], NULL), b = open_net(layers[_i], &rule);
    size_t n = sp_count(a.y->shape);
    const float *y = a.y->data, *z = b.y->data;

    ck_assert_double_le(carry(&a, &b), 1e-12);
    ck_assert_int_gt(sp_params_size(b.p), sp_params_size(a.p));
    ck_assert_uint_eq(sp_count(b.y->shape), n);
    run(&a);
    run(&b);
    ck_assert_double_gt(largest_of(y, n), 0.1);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_le(fabs((double)y[i] - (double)z[i]),
                            1e-5 * largest_of(y, n));
    close_net(&a);
    close_net(&b);
}
END_TEST

/* The layer of full rank with v u for its weights is the layer of low rank. */
START_TEST(low_rank_is_the_product_of_its_factors)
{
    int divisor = 2;
    sp_rank_rule rule = { .rank = part_of, .arg = &divisor };
    net a = open_net(layers[_i], NULL), b = open_net(layers[_i], &rule);
    size_t n = sp_count(a.y->shape);
    const float *y = a.y->data, *z = b.y->data;
    sp_param *p;

    ck_assert_double_gt(carry(&a, &b), 1e-3);
    for (int i = 0; (p = sp_params_at(b.p, i)); i++)
        if (p->other && !p->left)
            sp_factors_product(p, sp_params_find(a.p, p->whole)->value);
    run(&a);
    run(&b);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_le(fabs((double)y[i] - (double)z[i]),
                            1e-5 * largest_of(y, n));
    close_net(&a);
    close_net(&b);
}
END_TEST

/* A parameter of `blocks` blocks of 5 rows and 8 columns, and its factors of
 * rank 2. */
typedef struct pair {
    sp_params *p;
    sp_graph *g;
    sp_param *w, *u, *v;
    int blocks;
} pair;

enum { ROWS = 5, COLUMNS = 8, RANK = 2, MOST = 3 * ROWS * COLUMNS };

static pair open_pair(int blocks)
{
    static const sp_init start = { SP_UNIFORM, 1.0f };
    pair t = { .p = sp_params_new(), .blocks = blocks };
    sp_tensor *x, *y, *z;

    t.g = sp_graph_new(t.p, (sp_graph_opt){ 0 });
    t.w = sp_weight(t.g, "w", (int[]){ blocks * ROWS, COLUMNS, 0 }, start);
    t.u = sp_weight(t.g, "u", (int[]){ blocks * RANK, COLUMNS, 0 }, start);
    t.v = sp_weight(t.g, "v", (int[]){ blocks * ROWS, RANK, 0 }, start);
    sp_factors_of(t.g, "w", t.u, t.v);
    x = sp_input(t.g, "x", (sp_shape){ .n = 1, .c = COLUMNS }, SP_F32);
    z = sp_input(t.g, "z", (sp_shape){ .n = 1, .c = RANK }, SP_F32);
    y = sp_matmul(t.g, "w", x, t.w, NULL);
    sp_output(t.g, "u", sp_matmul(t.g, "u", x, t.u, NULL));
    sp_output(t.g, "y", sp_add(t.g, y, sp_matmul(t.g, "v", z, t.v, NULL)));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 5);
    return t;
}

static void close_pair(pair *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* d/de <g, (v + e dv)(u + e du)> = <gv, dv> + <gu, du>, at e = 0: with e = 1
 * and with -1 the second-order part is the same. */
START_TEST(projections_are_gradients_of_the_factors)
{
    pair t = open_pair(_i);
    float g[MOST], gu[MOST], gv[MOST], du[MOST], dv[MOST], a[MOST], b[MOST];
    size_t n = t.w->count, nu = t.u->count, nv = t.v->count;

    fill(g, n, 1);
    fill(du, nu, 2);
    fill(dv, nv, 3);
    sp_factors_project(t.u, g, gu, gv);
    double want = dot(gu, du, nu) + dot(gv, dv, nv);
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (size_t i = 0; i < nu; i++)
            t.u->value[i] += (float)(sign > 0 ? 1 : -2) * du[i];
        for (size_t i = 0; i < nv; i++)
            t.v->value[i] += (float)(sign > 0 ? 1 : -2) * dv[i];
        sp_factors_product(t.u, sign > 0 ? a : b);
    }
    ck_assert_double_eq_tol((dot(g, a, n) - dot(g, b, n)) / 2, want, 1e-4);
    close_pair(&t);
}
END_TEST

START_TEST(every_block_is_factorized_by_itself)
{
    pair t = open_pair(_i), one = open_pair(1);
    double lost, all = 0, left = 0, part;

    ck_assert_int_eq(sp_factorize(t.w, t.u, &lost), SP_OK);
    for (int b = 0; b < _i; b++) {
        const float *w = t.w->value + b * ROWS * COLUMNS;
        double squares = dot(w, w, ROWS * COLUMNS);
        memcpy(one.w->value, w, ROWS * COLUMNS * sizeof *w);
        ck_assert_int_eq(sp_factorize(one.w, one.u, &part), SP_OK);
        ck_assert_mem_eq(one.u->value, t.u->value + b * RANK * COLUMNS,
                         RANK * COLUMNS * sizeof(float));
        ck_assert_mem_eq(one.v->value, t.v->value + b * ROWS * RANK,
                         ROWS * RANK * sizeof(float));
        all += squares;
        left += part * squares;
    }
    ck_assert_double_eq_tol(lost, left / all, 1e-12);
    ck_assert_double_gt(lost, 0.01);
    close_pair(&one);
    close_pair(&t);
}
END_TEST

static double lost_of(const sp_param *u, const float *g)
{
    double lost;

    if (sp_factors_lost(u, g, &lost) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return lost;
}

/* A change of the product to first order is within; a matrix from outside of
 * both is not; their sum is in between. */
START_TEST(what_projecting_loses_is_told)
{
    pair t = open_pair(_i);
    float in[MOST], out[MOST], gu[MOST], gv[MOST];
    size_t n = t.w->count;
    double lost;

    sp_factors_product(t.u, in);
    ck_assert_double_eq_tol(lost_of(t.u, in), 0, 1e-9);
    ck_assert_int_eq(sp_factorize(t.w, t.u, &lost), SP_OK);
    sp_factors_product(t.u, in);
    for (size_t i = 0; i < n; i++)
        out[i] = t.w->value[i] - in[i];
    ck_assert_double_eq_tol(lost_of(t.u, out), 1, 1e-6);
    sp_factors_project(t.u, out, gu, gv);
    ck_assert_double_le(largest_of(gu, t.u->count), 1e-5);
    ck_assert_double_le(largest_of(gv, t.v->count), 1e-5);
    ck_assert_double_eq_tol(lost_of(t.u, t.w->value), lost, 1e-6);
    memset(out, 0, sizeof out);
    ck_assert_double_eq(lost_of(t.u, out), 0);
    out[0] = NAN;
    ck_assert_int_eq(sp_factors_lost(t.u, out, &lost), SP_ENUMERIC);
    close_pair(&t);
}
END_TEST

START_TEST(stable_ranks)
{
    pair t = open_pair(2);
    double rank = -1;

    memset(t.w->value, 0, t.w->count * sizeof(float));
    ck_assert_int_eq(sp_stable_rank(t.w, 2, &rank), SP_OK);
    ck_assert_double_eq(rank, 0);
    for (int i = 0; i < ROWS; i++)
        t.w->value[i * COLUMNS + i] = 2;
    t.w->value[ROWS * COLUMNS] = 3;
    ck_assert_int_eq(sp_stable_rank(t.w, 2, &rank), SP_OK);
    ck_assert_double_eq_tol(rank, ROWS, 1e-12);
    /* Rows (2 0 ...) and (3 0 ...) are one direction. */
    ck_assert_int_eq(sp_stable_rank(t.w, 1, &rank), SP_OK);
    ck_assert_double_eq_tol(rank, (4.0 * ROWS + 9) / 13, 1e-12);
    ck_assert_int_eq(sp_stable_rank(t.w, 3, &rank), SP_ESHAPE);
    ck_assert_int_eq(sp_stable_rank(t.w, 0, &rank), SP_ESHAPE);
    t.w->value[7] = INFINITY;
    ck_assert_int_eq(sp_stable_rank(t.w, 2, &rank), SP_ENUMERIC);
    close_pair(&t);
}
END_TEST

START_TEST(factors_of_something_else_are_refused)
{
    pair t = open_pair(1), other = open_pair(2);
    double lost;

    ck_assert_int_eq(sp_factorize(t.w, t.v, &lost), SP_ESHAPE);
    ck_assert_int_eq(sp_factorize(t.u, t.u, &lost), SP_ESHAPE);
    ck_assert_int_eq(sp_factorize(t.w, t.w, &lost), SP_ESHAPE);
    ck_assert_int_eq(sp_factorize(other.w, t.u, &lost), SP_ESHAPE);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "10 x 8"));
    t.w->value[3] = NAN;
    ck_assert_int_eq(sp_factorize(t.w, t.u, &lost), SP_ENUMERIC);
    close_pair(&t);
    close_pair(&other);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("factorize");
    TCase *tc = tcase_create("factorize");
    SRunner *all = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, full_rank_keeps_the_function, 0, COUNT(layers));
    tcase_add_loop_test(tc, low_rank_is_the_product_of_its_factors, 0,
                        COUNT(layers));
    tcase_add_loop_test(tc, projections_are_gradients_of_the_factors, 1, 4);
    tcase_add_loop_test(tc, every_block_is_factorized_by_itself, 1, 4);
    tcase_add_loop_test(tc, what_projecting_loses_is_told, 1, 4);
    tcase_add_test(tc, stable_ranks);
    tcase_add_test(tc, factors_of_something_else_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(all, CK_NORMAL);
    failed = srunner_ntests_failed(all);
    srunner_free(all);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
