/* Values that backward computes again, with operators so plain that memory can
 * be counted by hand:
 *   scale: y = w x                 dx = w dy, dw = sum x dy
 *   bend:  y = sin x + other       dx = cos x dy, dother = dy; computed again
 *   mul:   y = a b                 da = b dy, db = a dy
 *   take:  the first five sevenths of the channels
 *   twice: y = 2 x, in place
 *   sum:   a row's loss, over all channels of all inputs
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/op.h"
#include "sprat/random.h"

static float *data(const sp_tensor *t) { return t->data; }

/* Add to a gradient, or store it, as the program says. */
static void give(const sp_node *n, int i, size_t at, float g)
{
    float *dx = n->x[i]->grad;

    if (dx)
        dx[at] = (sp_beta(n, i) != 0 ? dx[at] : 0) + g;
}

static sp_err same_shape(sp_node *n)
{
    n->y[0]->shape = n->x[0]->shape;
    return SP_OK;
}

static sp_err scale_shape(sp_node *n)
{
    n->keep_x = 1;
    return same_shape(n);
}

static void scale_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = n->p[0]->value[0] * data(n->x[0])[i];
}

static void scale_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;
    float dw = sp_param_beta(n, 0, r) != 0 ? n->p[0]->grad[0] : 0;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        dw += data(n->x[0])[i] * dy[i];
        give(n, 0, i, n->p[0]->value[0] * dy[i]);
    }
    n->p[0]->grad[0] = dw;
}

static const sp_op scale = { .name = "scale",
                             .shape = scale_shape,
                             .forward = scale_forward,
                             .backward = scale_backward };

/* Where a bend notes that it was computed again. */
typedef struct bend_attr {
    char *log;
} bend_attr;

static sp_err bend_shape(sp_node *n)
{
    n->keep_x = 1;
    n->recompute_x = n->x_count > 1 ? 3 : 1;
    return same_shape(n);
}

static void bend_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] =
            sinf(data(n->x[0])[i]) + (n->x_count > 1 ? data(n->x[1])[i] : 0);
}

static void bend_recompute(const sp_node *n, const sp_run *r)
{
    char *log = ((const bend_attr *)n->attr)->log;

    if (log)
        strcat(strcat(log, n->name), " ");
    bend_forward(n, r);
}

static void bend_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        give(n, 0, i, cosf(data(n->x[0])[i]) * dy[i]);
        if (n->x_count > 1)
            give(n, 1, i, dy[i]);
    }
}

static const sp_op bend = { .name = "bend",
                            .shape = bend_shape,
                            .forward = bend_forward,
                            .backward = bend_backward,
                            .recompute = bend_recompute };

static sp_err mul_shape(sp_node *n)
{
    n->keep_x = 3;
    return same_shape(n);
}

static void mul_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = data(n->x[0])[i] * data(n->x[1])[i];
}

static void mul_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++) {
        give(n, 0, i, data(n->x[1])[i] * dy[i]);
        give(n, 1, i, data(n->x[0])[i] * dy[i]);
    }
}

static const sp_op mul = { .name = "mul",
                           .shape = mul_shape,
                           .forward = mul_forward,
                           .backward = mul_backward };

static sp_err take_shape(sp_node *n)
{
    same_shape(n);
    n->y[0]->shape.c = 1 + n->x[0]->shape.c * 5 / 7;
    return SP_OK;
}

static void take_forward(const sp_node *n, const sp_run *r)
{
    size_t from = (size_t)n->x[0]->shape.c, to = (size_t)n->y[0]->shape.c;

    for (size_t i = 0; i < sp_elements(n->y[0], r); i++)
        data(n->y[0])[i] = data(n->x[0])[i / to * from + i % to];
}

static void take_backward(const sp_node *n, const sp_run *r)
{
    size_t from = (size_t)n->x[0]->shape.c, to = (size_t)n->y[0]->shape.c;
    const float *dy = n->y[0]->grad;

    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        give(n, 0, i, i % from < to ? dy[i / from * to + i % from] : 0);
}

static const sp_op take = { .name = "take",
                            .shape = take_shape,
                            .forward = take_forward,
                            .backward = take_backward };

static sp_err twice_shape(sp_node *n)
{
    n->inplace = true;
    return same_shape(n);
}

static void twice_forward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        data(n->y[0])[i] = 2 * data(n->x[0])[i];
}

static void twice_backward(const sp_node *n, const sp_run *r)
{
    for (size_t i = 0; i < sp_elements(n->x[0], r); i++)
        give(n, 0, i, 2 * ((float *)n->y[0]->grad)[i]);
}

static const sp_op twice = { .name = "twice",
                             .shape = twice_shape,
                             .forward = twice_forward,
                             .backward = twice_backward };

static sp_err sum_shape(sp_node *n)
{
    n->y[0]->shape = (sp_shape){ .n = n->x[0]->shape.n };
    return SP_OK;
}

static void sum_forward(const sp_node *n, const sp_run *r)
{
    for (int i = 0; i < r->n; i++)
        data(n->y[0])[i] = 0;
    for (int k = 0; k < n->x_count; k++)
        for (size_t i = 0; i < sp_elements(n->x[k], r); i++)
            data(n->y[0])[i / (size_t)n->x[k]->shape.c] += data(n->x[k])[i];
}

static void sum_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    for (int k = 0; k < n->x_count; k++)
        for (size_t i = 0; i < sp_elements(n->x[k], r); i++)
            give(n, k, i, dy[i / (size_t)n->x[k]->shape.c]);
}

static const sp_op sum = { .name = "sum",
                           .shape = sum_shape,
                           .forward = sum_forward,
                           .backward = sum_backward };

/* ---- Programs ------------------------------------------------------------ */

/* S bytes is a value of ROWS rows of C channels. */
enum { ROWS = 4, C = 224, S = ROWS * C * 4, MOST = 32 };

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
    char log[256]; /* the names of what was computed again */
} net;

static void begin(net *t, sp_graph_opt opt)
{
    opt.train = true;
    *t = (net){ .p = sp_params_new() };
    t->g = sp_graph_new(t->p, opt);
    t->x = sp_input(t->g, "x", (sp_shape){ .n = ROWS, .c = C }, SP_F32);
}

static void compile(net *t)
{
    ck_assert_msg(sp_compile(t->g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t->p, 3);
    for (size_t i = 0; i < sp_count(t->x->shape); i++)
        data(t->x)[i] = 0.01f * (float)(i % 400) - 2;
}

static void end(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static sp_tensor *record(net *t, const sp_op *op, const char *name,
                         sp_tensor *a, sp_tensor *b)
{
    bend_attr attr = { t->log };
    sp_param *w = op == &scale ? sp_weight(t->g, name, (int[]){ 1, 0 },
                                           (sp_init){ SP_UNIFORM, 1 })
                               : NULL;

    return sp_record(t->g, op, name, &attr, sizeof attr,
                     (sp_tensor *[]){ a, b, NULL }, (sp_param *[]){ w, NULL });
}

static void loss(net *t, sp_tensor *x)
{
    sp_output(t->g, "loss", record(t, &sum, "sum", x, NULL));
}

static const sp_run whole = {
    .n = ROWS, .t = 1, .train = true, .weight = 1.0 / ROWS
};

static void step(net *t, const sp_run *run)
{
    t->log[0] = '\0';
    sp_forward(t->g, run);
    sp_backward(t->g, run, NULL, NULL);
}

static void same_grads(const net *a, const net *b, uint64_t program)
{
    const float *x = sp_params_grads(a->p), *y = sp_params_grads(b->p);

    for (size_t i = 0; i < sp_params_count(a->p); i++)
        ck_assert_msg(x[i] == y[i], "program %d: d/d%s is %g and %g",
                      (int)program, sp_params_at(a->p, (int)i)->name,
                      (double)x[i], (double)y[i]);
}

static size_t planned(const net *t) { return sp_graph_memory(t->g).planned; }

/* x, a = scale x, b = bend a, c = scale b, d = bend c, e = scale d, loss. */
static void chain(net *t, sp_graph_opt opt, bool output)
{
    begin(t, opt);
    sp_tensor *b =
        record(t, &bend, "b", record(t, &scale, "a", t->x, NULL), NULL);
    sp_tensor *c = record(t, &scale, "c", b, NULL);
    sp_tensor *d = record(t, &bend, "d", c, NULL);
    if (output)
        sp_output(t->g, "b", b);
    loss(t, record(t, &scale, "e", d, NULL));
    compile(t);
}

/* Most is live when e goes backward: x a b c d, the gradients of d and e, and
 * the loss. Without b that is one value less; d is read then, and nothing is
 * gained by not keeping it until then. */
START_TEST(what_lowers_the_peak_is_computed_again)
{
    net a, b;

    chain(&a, (sp_graph_opt){ .recompute = true }, false);
    chain(&b, (sp_graph_opt){ 0 }, false);
    ck_assert_uint_eq(planned(&b), 7 * S + SP_ALIGN);
    ck_assert_uint_eq(planned(&a), 6 * S + SP_ALIGN);
    ck_assert_uint_eq(sp_graph_memory(a.g).lower_bound, 6 * S + SP_ALIGN);
    for (int i = 0; i < 2; i++) {
        step(&a, &whole);
        step(&b, &whole);
        ck_assert_str_eq(a.log, "b ");
        ck_assert_str_eq(b.log, "");
        same_grads(&a, &b, 0);
        ck_assert(sp_loss(a.g, &whole) == sp_loss(b.g, &whole));
    }
    end(&a);
    end(&b);
}
END_TEST

/* A caller may read an output after the step. */
START_TEST(outputs_are_kept)
{
    net a;

    chain(&a, (sp_graph_opt){ .recompute = true }, true);
    step(&a, &whole);
    ck_assert_ptr_null(strstr(a.log, "b"));
    ck_assert_float_eq(data(sp_graph_output(a.g, "b"))[1],
                       sinf(sp_params_find(a.p, "a")->value[0] * data(a.x)[1]));
    end(&a);
}
END_TEST

START_TEST(evaluation_computes_nothing_again)
{
    net a;

    chain(&a, (sp_graph_opt){ .recompute = true }, false);
    sp_forward(a.g, &whole);
    ck_assert_str_eq(a.log, "");
    end(&a);
}
END_TEST

/* y0 = bend scale x;  y_k = bend (scale y_k-1) + y_k-1. Backward reads every y
 * but the last; y_k can be had from y_k-1 where that is kept. */
START_TEST(every_second_sum_is_computed_again)
{
    static const char *const y[] = { "y0", "y1", "y2", "y3", "y4", "y5", "y6" };
    static const char *const w[] = { "w0", "w1", "w2", "w3", "w4", "w5", "w6" };
    net t[2];

    for (int i = 0; i < 2; i++) {
        begin(&t[i], (sp_graph_opt){ .recompute = i });
        sp_tensor *x = t[i].x, *sum_of = NULL;
        for (int k = 0; k < 7; k++, x = sum_of)
            sum_of = record(&t[i], &bend, y[k],
                            record(&t[i], &scale, w[k], x, NULL), sum_of);
        loss(&t[i], x);
        compile(&t[i]);
        step(&t[i], &whole);
    }
    ck_assert_str_eq(t[1].log, "y4 y2 y0 ");
    ck_assert_uint_eq(planned(&t[0]) - planned(&t[1]), 3 * S);
    same_grads(&t[0], &t[1], 0);
    end(&t[0]);
    end(&t[1]);
}
END_TEST

/* mul reads both b and c = bend .. + b in backward: c needs b first. What comes
 * behind makes the peak, in which both gaps lie. */
START_TEST(dependent_values_come_in_order)
{
    net t[2];

    for (int i = 0; i < 2; i++) {
        begin(&t[i], (sp_graph_opt){ .recompute = i });
        sp_tensor *a = record(&t[i], &scale, "a", t[i].x, NULL);
        sp_tensor *b = record(&t[i], &bend, "b", a, NULL);
        sp_tensor *d = record(&t[i], &scale, "d", t[i].x, NULL);
        sp_tensor *c = record(&t[i], &bend, "c", d, b);
        sp_tensor *m = record(&t[i], &mul, "m", b, c);
        for (int k = 0; k < 5; k++)
            m = record(&t[i], &mul, "n", m, m);
        loss(&t[i], m);
        compile(&t[i]);
        step(&t[i], &whole);
    }
    ck_assert_str_eq(t[1].log, "b c ");
    ck_assert_uint_eq(planned(&t[0]) - planned(&t[1]), 2 * S);
    same_grads(&t[0], &t[1], 0);
    end(&t[0]);
    end(&t[1]);
}
END_TEST

/* ---- Laws ---------------------------------------------------------------- */

static unsigned any(uint64_t seed, uint64_t i)
{
    uint32_t r[4];

    sp_random(seed, SP_FOR_TEST, 8, i, r);
    return r[0] >> 8;
}

/* A program of any shape: operators on any earlier values; what none reads
 * makes the loss. */
static void build(net *t, uint64_t seed, sp_graph_opt opt)
{
    static const sp_op *const ops[] = { &scale, &bend, &bend,
                                        &mul,   &take, &twice };
    sp_tensor *at[MOST];
    bool used[MOST] = { false };
    int ends = 0, count = 2 + (int)(any(seed, 0) % (MOST - 2));

    begin(t, opt);
    at[0] = t->x;
    for (int i = 1; i < count; i++) {
        char name[] = { (char)('a' + i / 26), (char)('a' + i % 26), '\0' };
        const sp_op *op = i == 1 ? &scale : ops[any(seed, 4 * i + 1) % 6];
        int near = i < 5 ? i : 4,
            a = i - 1 - (int)(any(seed, 4 * i + 2) % near);
        int b = i - 1 - (int)(any(seed, 4 * i + 3) % near);
        if (op == &take && at[a]->shape.c < 8)
            op = &scale;
        bool two = at[a]->shape.c == at[b]->shape.c &&
                   (op == &mul || (op == &bend && b != a));
        if (op == &mul && !two)
            op = &scale;
        at[i] = record(t, op, name, at[a], two ? at[b] : NULL);
        used[a] = true;
        used[b] |= two;
    }
    for (int i = 1; i < count; i++)
        if (!used[i])
            at[ends++] = at[i];
    at[ends] = NULL;
    sp_output(t->g, "loss", sp_record(t->g, &sum, "sum", NULL, 0, at, NULL));
    compile(t);
}

/* Computing again changes no bit and never needs more memory, and forward works
 * as before afterwards; the same without the plan and in the search for values
 * that are not finite. */
static void check_program(uint64_t seed)
{
    net a, b, c;
    const char *where;
    sp_run part = whole;

    build(&a, seed, (sp_graph_opt){ 0 });
    build(&b, seed, (sp_graph_opt){ .recompute = true });
    build(&c, seed, (sp_graph_opt){ .recompute = true, .no_planner = true });
    for (int i = 0; i < 3; i++) {
        part.n = ROWS - i;
        part.add = i > 0;
        step(&a, &part);
        step(&b, &part);
        step(&c, &part);
        same_grads(&a, &b, seed);
        same_grads(&a, &c, seed);
    }
    step(&a, &whole);
    sp_find_nonfinite(b.g, &whole, &where);
    ck_assert_ptr_null(where);
    same_grads(&a, &b, seed);
    ck_assert_msg(planned(&b) <= planned(&a) &&
                      sp_graph_memory(b.g).lower_bound <=
                          sp_graph_memory(a.g).lower_bound,
                  "program %d: %zu bytes, %zu when values are kept", (int)seed,
                  planned(&b), planned(&a));
    if (planned(&b) == planned(&a)) /* for nothing, nothing */
        ck_assert_str_eq(b.log, "");
    end(&a);
    end(&b);
    end(&c);
}

/* Among the programs is 2166, for which the planner finds a longer plan with
 * shorter lives. */
enum {
    PROGRAMS = 25,
    FIRST_GROUP = 2100 / PROGRAMS,
    END_GROUP = 2200 / PROGRAMS
};

START_TEST(any_program_has_the_same_gradients)
{
    for (int i = 0; i < PROGRAMS; i++)
        check_program((uint64_t)(_i * PROGRAMS + i));
}
END_TEST

START_TEST(gradients_match_differences)
{
    sp_gradcheck_result worst;
    net t;

    chain(&t, (sp_graph_opt){ .recompute = true, .input_grads = true }, false);
    sp_gradcheck(t.g, &whole, 1e-2, 8, &worst);
    ck_assert_uint_eq(worst.checked, 8 + 3);
    ck_assert_msg(worst.error < 2e-3, "d/d%s: %g, differences say %g",
                  worst.name, worst.analytic, worst.numeric);
    ck_assert_ptr_nonnull(strstr(t.log, "b "));
    end(&t);
}
END_TEST

START_TEST(what_is_not_finite_is_found_behind_it)
{
    const char *where;
    net t;

    chain(&t, (sp_graph_opt){ .recompute = true }, false);
    sp_params_find(t.p, "a")->value[0] = INFINITY; /* sin is no number */
    sp_find_nonfinite(t.g, &whole, &where);
    ck_assert_str_eq(where, "a (scale), forward");
    sp_params_find(t.p, "a")->value[0] = 1e30f;
    sp_params_find(t.p, "c")->value[0] = 1e30f;
    sp_params_find(t.p, "e")->value[0] = 1e30f;
    t.log[0] = '\0';
    sp_find_nonfinite(t.g, &whole, &where); /* 1e30 1e30 / 4 cos d cos c .. */
    ck_assert_str_eq(where, "c (scale), backward");
    ck_assert_str_eq(t.log, "b ");
    end(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recompute");
    TCase *tc = tcase_create("recompute");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, what_lowers_the_peak_is_computed_again);
    tcase_add_test(tc, outputs_are_kept);
    tcase_add_test(tc, evaluation_computes_nothing_again);
    tcase_add_test(tc, every_second_sum_is_computed_again);
    tcase_add_test(tc, dependent_values_come_in_order);
    tcase_add_loop_test(tc, any_program_has_the_same_gradients, FIRST_GROUP,
                        END_GROUP);
    tcase_add_test(tc, gradients_match_differences);
    tcase_add_test(tc, what_is_not_finite_is_found_behind_it);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
