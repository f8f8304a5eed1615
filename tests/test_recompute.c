/* Values that backward computes again: which, when, and that nothing else
 * shows. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plain_ops.h"
#include "sprat/random.h"

static float *data(const sp_tensor *t) { return t->data; }

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
    plain_attr attr = { t->log };
    sp_param *w = op == &plain_scale ? sp_weight(t->g, name, (int[]){ 1, 0 },
                                                 (sp_init){ SP_UNIFORM, 1 })
                                     : NULL;

    return sp_record(t->g, op, name, &attr, sizeof attr,
                     (sp_tensor *[]){ a, b, NULL }, (sp_param *[]){ w, NULL });
}

static void loss(net *t, sp_tensor *x)
{
    sp_output(t->g, "loss", record(t, &plain_sum, "sum", x, NULL));
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
    sp_tensor *b = record(t, &plain_bend, "b",
                          record(t, &plain_scale, "a", t->x, NULL), NULL);
    sp_tensor *c = record(t, &plain_scale, "c", b, NULL);
    sp_tensor *d = record(t, &plain_bend, "d", c, NULL);
    if (output)
        sp_output(t->g, "b", b);
    loss(t, record(t, &plain_scale, "e", d, NULL));
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
            sum_of = record(&t[i], &plain_bend, y[k],
                            record(&t[i], &plain_scale, w[k], x, NULL), sum_of);
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
        sp_tensor *a = record(&t[i], &plain_scale, "a", t[i].x, NULL);
        sp_tensor *b = record(&t[i], &plain_bend, "b", a, NULL);
        sp_tensor *d = record(&t[i], &plain_scale, "d", t[i].x, NULL);
        sp_tensor *c = record(&t[i], &plain_bend, "c", d, b);
        sp_tensor *m = record(&t[i], &plain_mul, "m", b, c);
        for (int k = 0; k < 5; k++)
            m = record(&t[i], &plain_mul, "n", m, m);
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
    static const sp_op *const ops[] = {
        &plain_scale, &plain_bend, &plain_bend,
        &plain_mul,   &plain_take, &plain_twice
    };
    sp_tensor *at[MOST];
    bool used[MOST] = { false };
    int ends = 0, count = 2 + (int)(any(seed, 0) % (MOST - 2));

    begin(t, opt);
    at[0] = t->x;
    for (int i = 1; i < count; i++) {
        char name[] = { (char)('a' + i / 26), (char)('a' + i % 26), '\0' };
        const sp_op *op = i == 1 ? &plain_scale : ops[any(seed, 4 * i + 1) % 6];
        int near = i < 5 ? i : 4,
            a = i - 1 - (int)(any(seed, 4 * i + 2) % near);
        int b = i - 1 - (int)(any(seed, 4 * i + 3) % near);
        if (op == &plain_take && at[a]->shape.c < 8)
            op = &plain_scale;
        bool two = at[a]->shape.c == at[b]->shape.c &&
                   (op == &plain_mul || (op == &plain_bend && b != a));
        if (op == &plain_mul && !two)
            op = &plain_scale;
        at[i] = record(t, op, name, at[a], two ? at[b] : NULL);
        used[a] = true;
        used[b] |= two;
    }
    for (int i = 1; i < count; i++)
        if (!used[i])
            at[ends++] = at[i];
    at[ends] = NULL;
    sp_output(t->g, "loss",
              sp_record(t->g, &plain_sum, "sum", NULL, 0, at, NULL));
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
