/* The engine, with two operators of its own so that their formulas are plain:
 *   scale: y = w x  with one weight;   dx = w dy,  dw = sum x dy
 *   sum:   y_row = sum of the inputs' rows over all channels
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/op.h"

static sp_err scale_shape(sp_node *n)
{
    n->y[0]->shape = n->x[0]->shape;
    n->keep_x = 1;
    n->macs = n->x[0]->shape.c;
    return SP_OK;
}

static size_t elements(const sp_tensor *x, const sp_run *r)
{
    return sp_rows(x, r) * (size_t)x->shape.c;
}

static void scale_forward(const sp_node *n, const sp_run *r)
{
    const float *x = n->x[0]->data;
    float *y = n->y[0]->data;

    for (size_t i = 0; i < elements(n->x[0], r); i++)
        y[i] = n->p[0]->value[0] * x[i];
}

static void scale_backward(const sp_node *n, const sp_run *r)
{
    const float *x = n->x[0]->data, *dy = n->y[0]->grad;
    float *dx = n->x[0]->grad, *dw = n->p[0]->grad;
    float dot = 0;

    for (size_t i = 0; i < elements(n->x[0], r); i++) {
        dot += x[i] * dy[i];
        if (dx)
            dx[i] =
                (sp_beta(n, 0) != 0 ? dx[i] : 0) + n->p[0]->value[0] * dy[i];
    }
    *dw = (sp_param_beta(n, 0, r) != 0 ? *dw : 0) + dot;
}

static const sp_op scale = { .name = "scale",
                             .shape = scale_shape,
                             .forward = scale_forward,
                             .backward = scale_backward };

static sp_err sum_shape(sp_node *n)
{
    if (n->x[0]->shape.c > 8)
        return sp_fail(SP_ESHAPE, "%s: more than 8 channels", n->name);
    n->y[0]->shape = (sp_shape){ .n = n->x[0]->shape.n, .c = 1 };
    return SP_OK;
}

static void sum_forward(const sp_node *n, const sp_run *r)
{
    float *y = n->y[0]->data;
    size_t c = (size_t)n->x[0]->shape.c;

    for (size_t i = 0; i < sp_rows(n->y[0], r); i++) {
        y[i] = 0;
        for (int k = 0; k < n->x_count; k++)
            for (size_t j = 0; j < c; j++)
                y[i] += ((float *)n->x[k]->data)[i * c + j];
    }
}

static void sum_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;
    size_t c = (size_t)n->x[0]->shape.c;

    for (int k = 0; k < n->x_count; k++)
        for (size_t i = 0; i < elements(n->x[k], r); i++) {
            float *dx = n->x[k]->grad;
            if (dx)
                dx[i] = (sp_beta(n, k) != 0 ? dx[i] : 0) + dy[i / c];
        }
}

/* A scale whose gradient lacks the weight's factor. */
static void wrong_backward(const sp_node *n, const sp_run *r)
{
    const float *dy = n->y[0]->grad;

    n->p[0]->grad[0] = 0;
    for (size_t i = 0; i < elements(n->x[0], r); i++)
        n->p[0]->grad[0] += dy[i];
}

static const sp_op wrong = { .name = "wrong",
                             .shape = scale_shape,
                             .forward = scale_forward,
                             .backward = wrong_backward };

static const sp_op sum = { .name = "sum",
                           .shape = sum_shape,
                           .forward = sum_forward,
                           .backward = sum_backward };

static sp_tensor *scaled(sp_graph *g, const char *name, sp_tensor *x)
{
    sp_param *w =
        sp_weight(g, name, (int[]){ 1, 0 }, (sp_init){ SP_CONSTANT, 2 });

    return sp_record(g, &scale, name, NULL, 0, (sp_tensor *[]){ x, NULL },
                     (sp_param *[]){ w, NULL });
}

static sp_tensor *summed(sp_graph *g, sp_tensor *a, sp_tensor *b)
{
    return sp_record(g, &sum, "sum", NULL, 0, (sp_tensor *[]){ a, b, NULL },
                     NULL);
}

typedef struct sp_fixture {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x;
} sp_fixture;

/* loss_row = sum_c a x + b a x, weights a = b = 2: x feeds a, whose result
 * is read twice. */
static sp_fixture diamond(sp_graph_opt opt)
{
    sp_fixture f = { .p = sp_params_new() };

    f.g = sp_graph_new(f.p, opt);
    f.x = sp_input(f.g, "x", (sp_shape){ .n = 4, .c = 3 }, SP_F32);
    sp_tensor *a = scaled(f.g, "a", f.x);
    sp_output(f.g, "loss", summed(f.g, a, scaled(f.g, "b", a)));
    ck_assert_msg(sp_compile(f.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(f.p, 1);
    for (int i = 0; i < 12; i++)
        ((float *)f.x->data)[i] = (float)i;
    return f;
}

static void done(sp_fixture f)
{
    sp_graph_free(f.g);
    sp_params_free(f.p);
}

static const sp_run four = { .n = 4, .t = 1, .train = true, .weight = 0.25 };

/* By hand: sum x = 66; loss = (2 + 4) * 66 / 4; da = (1 + b) * 66 / 4,
 * db = a * 66 / 4; dx = a (1 + b) / 4. */
START_TEST(diamond_by_hand)
{
    sp_fixture f = diamond(
        (sp_graph_opt){ .train = true, .no_planner = _i, .input_grads = true });

    sp_forward(f.g, &four);
    ck_assert_double_eq(sp_loss(f.g, &four), 99);
    sp_backward(f.g, &four, NULL, NULL);
    ck_assert_float_eq(sp_params_find(f.p, "a")->grad[0], 49.5f);
    ck_assert_float_eq(sp_params_find(f.p, "b")->grad[0], 33);
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(((float *)f.x->grad)[i], 1.5f);
    ck_assert_double_eq(sp_graph_macs(f.g), 6);
    done(f);
}
END_TEST

START_TEST(fewer_rows_and_none)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });
    sp_run r = four;

    r.n = 1; /* x = 0 1 2 */
    sp_forward(f.g, &r);
    ck_assert_double_eq(sp_loss(f.g, &r), 6 * 3 * 0.25);
    sp_backward(f.g, &r, NULL, NULL);
    ck_assert_float_eq(sp_params_find(f.p, "b")->grad[0], 1.5f);
    r.n = 0;
    sp_forward(f.g, &r);
    ck_assert_double_eq(sp_loss(f.g, &r), 0);
    sp_backward(f.g, &r, NULL, NULL);
    ck_assert_float_eq(sp_params_find(f.p, "b")->grad[0], 0);
    done(f);
}
END_TEST

/* Two halves added are the whole. */
START_TEST(micro_batches_add_up)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });
    float *x = f.x->data, *grads = sp_params_grads(f.p), whole[2];
    sp_run r = four;

    sp_forward(f.g, &four);
    sp_backward(f.g, &four, NULL, NULL);
    memcpy(whole, grads, sizeof whole);
    r.n = 2;
    sp_forward(f.g, &r);
    sp_backward(f.g, &r, NULL, NULL);
    memmove(x, x + 6, 6 * sizeof *x);
    r.add = true;
    r.row = 2;
    sp_forward(f.g, &r);
    sp_backward(f.g, &r, NULL, NULL);
    ck_assert_float_eq(grads[0], whole[0]);
    ck_assert_float_eq(grads[1], whole[1]);
    done(f);
}
END_TEST

static void note_ready(void *arg, sp_param *p)
{
    strcat(strcat(arg, p->name), isfinite(p->grad[0]) ? " " : "? ");
}

/* The last used parameter is ready first; a tied one after its first use. */
START_TEST(gradients_become_ready_in_order)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });
    char order[32] = "";

    sp_forward(f.g, &four);
    sp_backward(f.g, &four, note_ready, order);
    ck_assert_str_eq(order, "b a ");
    done(f);
}
END_TEST

/* a used twice: y = a a x; dy/da = 2 a x. */
START_TEST(tied_parameter)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 1, .c = 1 }, SP_F32);
    sp_run r = { .n = 1, .t = 1, .train = true, .weight = 1 };
    char order[32] = "";

    x = scaled(g, "a", scaled(g, "a", x));
    sp_output(g, "loss", x);
    ck_assert_int_eq(sp_compile(g), SP_OK);
    ck_assert_uint_eq(sp_params_count(p), 1);
    sp_params_init(p, 1);
    *(float *)sp_graph_input(g, "x")->data = 5;
    sp_forward(g, &r);
    sp_backward(g, &r, note_ready, order);
    ck_assert_float_eq(sp_params_grads(p)[0], 20);
    ck_assert_str_eq(order, "a ");
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(evaluation_shares_the_store)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });
    sp_graph *g = sp_graph_new(f.p, (sp_graph_opt){ 0 });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 9, .c = 3 }, SP_F32);
    sp_run r = { .n = 2, .t = 1, .weight = 1 };

    sp_params_find(f.p, "a")->value[0] = 3;
    sp_output(g, "loss", scaled(g, "a", x));
    ck_assert_int_eq(sp_compile(g), SP_ESHAPE); /* three channels: no loss */
    sp_graph_free(g);

    g = sp_graph_new(f.p, (sp_graph_opt){ 0 });
    x = sp_input(g, "x", (sp_shape){ .n = 9, .c = 1 }, SP_F32);
    sp_output(g, "loss", scaled(g, "a", x));
    ck_assert_int_eq(sp_compile(g), SP_OK);
    ((float *)x->data)[0] = 1;
    ((float *)x->data)[1] = 2;
    sp_forward(g, &r);
    ck_assert_double_eq(sp_loss(g, &r), 9);
    sp_graph_free(g);

    g = sp_graph_new(f.p, (sp_graph_opt){ 0 });
    x = sp_input(g, "x", (sp_shape){ .n = 9, .c = 1 }, SP_F32);
    scaled(g, "stranger", x);
    ck_assert_int_eq(sp_compile(g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "stranger"));
    sp_graph_free(g);
    done(f);
}
END_TEST

/* Each mistake is kept until sp_compile(), which names it. */
START_TEST(mistakes_are_named)
{
    static const char *const words[] = {
        "does not depend", "loss",      "sp_pop", "more than 8", "other sizes",
        "positive",        "isa 'z80'", "empty",  "a buffer",    "4 outputs"
    };
    sp_tensor *many[SP_MAX_OUT + 1];
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(
        p, (sp_graph_opt){ .train = true, .isa = _i == 6 ? "z80" : NULL });
    sp_shape s = { .n = 2, .c = _i == 3 ? 9 : _i == 5 ? -1 : 2 };
    sp_tensor *x = sp_input(g, "x", s, SP_F32);

    if (_i == 2)
        sp_push(g, "open");
    if (_i == 0)
        sp_weight(g, "idle", (int[]){ 3, 0 }, (sp_init){ SP_CONSTANT, 0 });
    if (_i == 4)
        sp_weight(g, "a", (int[]){ 3, 0 }, (sp_init){ SP_CONSTANT, 0 });
    if (_i == 8)
        sp_buffer(g, "a", (int[]){ 1, 0 }, (sp_init){ SP_CONSTANT, 0 });
    if (_i == 9)
        sp_record_many(g, &sum, "many", NULL, 0, (sp_tensor *[]){ x, NULL },
                       NULL, many, SP_MAX_OUT + 1);
    if (_i != 7) {
        x = summed(g, x, scaled(g, "a", x));
        if (_i != 1)
            sp_output(g, "loss", x);
    }
    ck_assert_int_ne(sp_compile(g), SP_OK);
    ck_assert_msg(strstr(sp_last_error(), words[_i]) != NULL, "%s",
                  sp_last_error());
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(parameters_are_shared_by_their_full_name)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    const sp_init zero = { SP_CONSTANT, 0 };

    sp_push(g, "a");
    sp_param *w = sp_weight(g, "w", (int[]){ 1, 0 }, zero);
    sp_buffer(g, "mean", (int[]){ 1, 0 }, zero);
    ck_assert_ptr_eq(sp_weight_named(g, "a.w"), w);
    ck_assert_ptr_nonnull(sp_weight_named(g, _i ? "w" : "a.mean"));
    ck_assert_int_eq(sp_compile(g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(
        sp_last_error(), _i ? "parameter w to be" : "parameter a.mean to be"));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(a_graph_is_compiled_once)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });

    summed(f.g, f.x, f.x);
    ck_assert_int_eq(sp_compile(f.g), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "is compiled"));
    sp_forward(f.g, &four); /* what was compiled goes on as it was */
    ck_assert_double_eq(sp_loss(f.g, &four), 99);
    done(f);
}
END_TEST

START_TEST(nonfinite_is_located)
{
    sp_fixture f = diamond((sp_graph_opt){ .train = true });
    const char *where;

    sp_find_nonfinite(f.g, &four, &where);
    ck_assert_ptr_null(where);
    sp_params_find(f.p, "b")->value[0] = INFINITY;
    sp_find_nonfinite(f.g, &four, &where);
    ck_assert_str_eq(where, "b (scale), forward");
    done(f);
}
END_TEST

START_TEST(gradcheck_agrees_and_notices)
{
    sp_fixture f =
        diamond((sp_graph_opt){ .train = true, .input_grads = true });
    sp_gradcheck_result r;

    sp_gradcheck(f.g, &four, 0.01, 5, &r);
    ck_assert_uint_eq(r.checked, 5 + 1 + 1);
    ck_assert_double_lt(r.error, 1e-3);
    done(f);

    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 4, .c = 1 }, SP_F32);
    sp_param *w[] = {
        sp_weight(g, "w", (int[]){ 1, 0 }, (sp_init){ SP_CONSTANT, 2 }), NULL
    };
    sp_output(
        g, "loss",
        sp_record(g, &wrong, "wrong", NULL, 0, (sp_tensor *[]){ x, NULL }, w));
    ck_assert_int_eq(sp_compile(g), SP_OK);
    sp_params_init(p, 1);
    for (int i = 0; i < 4; i++)
        ((float *)x->data)[i] = 3;
    /* The loss is 4 * 3 w / 4; the wrong gradient 4 / 4. */
    sp_gradcheck(g, &four, 0.01, 5, &r);
    ck_assert_str_eq(r.name, "w");
    ck_assert_double_eq(r.analytic, 1);
    ck_assert_double_eq_tol(r.numeric, 3, 1e-3);
    ck_assert_double_eq_tol(r.error, 2.0 / 3, 1e-3);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

/* Initial values depend on seed and name, and follow their distribution. */
START_TEST(initial_values)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    int dims[] = { 100, 100, 0 };
    sp_param *u = sp_weight(g, "u", dims, (sp_init){ SP_UNIFORM, 0.5f });
    sp_param *v = sp_weight(g, "v", dims, (sp_init){ SP_NORMAL, 2 });
    double total = 0, squares = 0;
    float first;

    scaled(g, "a", sp_input(g, "x", (sp_shape){ .n = 1 }, SP_F32));
    ck_assert_int_eq(sp_compile(g), SP_OK);
    sp_params_init(p, 7);
    first = u->value[0];
    for (int i = 0; i < 10000; i++) {
        ck_assert_float_ge(u->value[i], -0.5f);
        ck_assert_float_lt(u->value[i], 0.5f);
        total += v->value[i];
        squares += v->value[i] * (double)v->value[i];
    }
    ck_assert_double_lt(fabs(total / 10000), 4 * 2 / 100.0);
    ck_assert_double_lt(fabs(squares / 10000 - 4), 4 * 4 * sqrt(2) / 100);
    sp_params_init(p, 8);
    ck_assert_float_ne(u->value[0], first);
    sp_params_init(p, 7);
    ck_assert_float_eq(u->value[0], first);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph");
    TCase *tc = tcase_create("graph");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, diamond_by_hand, 0, 2);
    tcase_add_test(tc, fewer_rows_and_none);
    tcase_add_test(tc, micro_batches_add_up);
    tcase_add_test(tc, gradients_become_ready_in_order);
    tcase_add_test(tc, tied_parameter);
    tcase_add_test(tc, evaluation_shares_the_store);
    tcase_add_loop_test(tc, mistakes_are_named, 0, 10);
    tcase_add_loop_test(tc, parameters_are_shared_by_their_full_name, 0, 2);
    tcase_add_test(tc, a_graph_is_compiled_once);
    tcase_add_test(tc, nonfinite_is_located);
    tcase_add_test(tc, gradcheck_agrees_and_notices);
    tcase_add_test(tc, initial_values);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
