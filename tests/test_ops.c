/* Laws over the whole registry of operators: gradients agree with differences
 * at every instruction set, and neither threads nor the memory plan change a
 * bit. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"
#include "kernels/kernels.h"
#include "op_list.h" /* made by meson from the list of operators */
#include "sprat/nn.h"
#include "sprat/random.h"

#define X(name) extern const sp_op sp_op_##name;
SP_OP_LIST
#undef X

static const sp_op *const ops[] = {
#define X(name) &sp_op_##name,
    SP_OP_LIST
#undef X
};

enum { OPS = sizeof ops / sizeof *ops, STEP_PER_ARRAY = 24 };

/* Values of one array lie on a grid in random order: no two are closer than
 * the step of differences at small sizes, and none is near 0, so that ties and
 * kinks are far. */
static void fill(sp_graph *g)
{
    for (int i = 0; i < g->values.count; i++) {
        sp_tensor *x = &sp_value_at(g, i)->t;
        size_t n = sp_count(x->shape);
        if (sp_value_at(g, i)->producer >= 0)
            continue;
        size_t *order = malloc(n * sizeof *order);
        ck_assert_ptr_nonnull(order);
        sp_permute(4, SP_FOR_TEST, (uint64_t)i, order, n);
        for (size_t k = 0; k < n; k++) {
            if (x->dtype == SP_F32)
                ((float *)x->data)[k] =
                    4.0f * ((float)order[k] + 0.25f) / (float)n - 2.0f;
            else
                ((int32_t *)x->data)[k] = (int32_t)(order[k] % 2);
        }
        free(order);
    }
}

/* The example under a loss, compiled and filled; NULL past the last. */
static sp_graph *open_example(const sp_op *op, int i, sp_graph_opt opt,
                              sp_params **p)
{
    *p = sp_params_new();
    opt.train = opt.input_grads = true;
    sp_graph *g = sp_graph_new(*p, opt);
    sp_tensor *y = op->example(g, i);

    if (!y) {
        sp_graph_free(g);
        sp_params_free(*p);
        return NULL;
    }
    sp_output(g, "y", y);
    sp_output(g, "loss", sp_project(g, y));
    ck_assert_msg(sp_compile(g) == SP_OK, "%s, example %d: %s", op->name, i,
                  sp_last_error());
    sp_params_init(*p, 4);
    fill(g);
    return g;
}

static void close_example(sp_graph *g, sp_params *p)
{
    sp_graph_free(g);
    sp_params_free(p);
}

/* All valid rows of the example's largest input. */
static sp_run whole(const sp_graph *g)
{
    sp_run run = {
        .train = true, .weight = 0.5, .seed = 5, .step = 3, .row = 2
    };

    for (int i = 0; i < g->values.count; i++) {
        sp_shape s = sp_value_at(g, i)->t.shape;
        run.n = s.n > run.n ? s.n : run.n;
        run.t = s.t > run.t ? s.t : run.t;
    }
    return run;
}

static void check_gradients(const sp_op *op, sp_graph_opt opt)
{
    sp_params *p;
    sp_graph *g;
    int i = 0;

    for (; (g = open_example(op, i, opt, &p)); i++) {
        sp_gradcheck_result worst;
        sp_run run = whole(g);
        sp_gradcheck(g, &run, 4e-3, STEP_PER_ARRAY, &worst);
        ck_assert_msg(worst.error < 2e-3,
                      "%s, example %d, %s%s: d/d%s[%zu] is %g, differences "
                      "say %g",
                      op->name, i, sp_graph_isa(g),
                      opt.reference ? " reference" : "", worst.name,
                      worst.element, worst.analytic, worst.numeric);
        ck_assert_uint_gt(worst.checked, 0);
        close_example(g, p);
    }
    ck_assert_int_gt(i, 1);
}

/* As the rule wants, and for convolutions by either of Winograd's tiles. */
static const sp_winograd tiles[] = { SP_WINOGRAD_AUTO, SP_WINOGRAD_2,
                                     SP_WINOGRAD_4 };

static int tile_count(const sp_op *op) { return op == &sp_op_convolve ? 3 : 1; }

START_TEST(gradients_match_differences)
{
    const sp_op *op = ops[_i];

    for (int k = 0; sp_kernels_at(k); k++)
        for (int w = 0; w < tile_count(op); w++)
            check_gradients(
                op, (sp_graph_opt){ .isa = sp_kernels_isa(sp_kernels_at(k)),
                                    .winograd = tiles[w] });
    check_gradients(op, (sp_graph_opt){ .reference = true });
}
END_TEST

static void same_bits(const float *a, const float *b, size_t n,
                      const char *what, const sp_op *op)
{
    ck_assert_msg((a == NULL) == (b == NULL), "%s: %s", op->name, what);
    ck_assert_msg(!a || memcmp(a, b, n * sizeof *a) == 0,
                  "%s: %s has other bits", op->name, what);
}

static void run_both(sp_graph *g)
{
    sp_run run = whole(g);

    sp_forward(g, &run);
    sp_backward(g, &run, NULL, NULL);
}

/* Outputs and gradients of two programs with the same operators. */
static void compare(const sp_graph *a, const sp_graph *b, const sp_op *op)
{
    for (int i = 0; i < a->values.count; i++) {
        const sp_value *v = sp_value_at(a, i), *w = sp_value_at(b, i);
        size_t n = sp_count(v->t.shape);
        if (v->output)
            same_bits(v->t.data, w->t.data, n, v->output, op);
        if (v->producer < 0)
            same_bits(v->t.grad, w->t.grad, n, v->t.name, op);
    }
    for (int i = 0; sp_params_at(a->params, i); i++) {
        const sp_param *p = sp_params_at(a->params, i);
        const sp_param *q = sp_params_at(b->params, i);
        same_bits(p->value, q->value, p->count, p->name, op);
        same_bits(p->grad, q->grad, p->count, p->name, op);
    }
}

static void check_same(const sp_op *op, sp_graph_opt opt, sp_graph_opt other)
{
    sp_params *p, *q;
    sp_graph *g;

    for (int i = 0; (g = open_example(op, i, opt, &p)); i++) {
        sp_graph *h = open_example(op, i, other, &q);
        run_both(g);
        run_both(h);
        compare(g, h, op);
        close_example(g, p);
        close_example(h, q);
    }
}

START_TEST(threads_and_planner_do_not_change_bits)
{
    const sp_op *op = ops[_i];

    for (int k = 0; sp_kernels_at(k); k++) {
        sp_graph_opt one = { .isa = sp_kernels_isa(sp_kernels_at(k)) };
        sp_graph_opt three = { .isa = one.isa, .threads = 3 };
        sp_graph_opt apart = { .isa = one.isa, .no_planner = true };
        check_same(op, one, apart);
        for (int w = 0; w < tile_count(op); w++) {
            one.winograd = three.winograd = tiles[w];
            check_same(op, one, three);
        }
    }
    check_same(op, (sp_graph_opt){ .reference = true },
               (sp_graph_opt){ .reference = true, .threads = 3 });
}
END_TEST

/* The first operator, on its own. */
static const sp_node *first(const sp_graph *g)
{
    return &sp_step_at(g, 0)->node;
}

static void check_recompute(const sp_op *op, sp_graph *g, const sp_run *valid)
{
    const sp_node *n = first(g);
    sp_run run = *valid;
    size_t count = sp_count(n->y[0]->shape), bytes = count * sizeof(float);
    float *y = malloc(bytes), *buffers[8];

    ck_assert_ptr_nonnull(y);
    run.kernels = g->kernels;
    run.threads = 2;
    memset(n->y[0]->data, 0, bytes);
    op->forward(n, &run);
    memcpy(y, n->y[0]->data, bytes);
    for (int i = 0; i < n->p_count; i++) {
        size_t size = n->p[i]->count * sizeof(float);
        buffers[i] = malloc(size);
        ck_assert_ptr_nonnull(buffers[i]);
        memcpy(buffers[i], n->p[i]->value, size);
    }
    memset(n->y[0]->data, 0, bytes);
    memset(n->scratch_data, 255, n->scratch);
    op->recompute(n, &run);
    same_bits(n->y[0]->data, y, count, "what is computed again", op);
    for (int i = 0; i < n->p_count; i++) {
        same_bits(n->p[i]->value, buffers[i], n->p[i]->count, n->p[i]->name,
                  op);
        free(buffers[i]);
    }
    free(y);
}

/* What is computed again in backward has forward's bits, and running statistics
 * are not updated twice. */
START_TEST(recomputing_repeats_the_bits)
{
    const sp_op *op = ops[_i];
    sp_params *p;
    sp_graph *g;

    if (!op->recompute)
        return;
    for (int i = 0; (g = open_example(op, i, (sp_graph_opt){ 0 }, &p)); i++) {
        for (int kind = 0; kind < 3; kind++) {
            sp_run run = whole(g);
            run.train = kind != 1;
            run.n -= kind == 2;
            check_recompute(op, g, &run);
        }
        close_example(g, p);
    }
}
END_TEST

/* With no valid rows there is nothing to do, and parameters get zeros. */
static void check_no_rows(const sp_op *op, sp_graph_opt opt)
{
    sp_params *p;
    sp_graph *g;

    for (int i = 0; (g = open_example(op, i, opt, &p)); i++) {
        sp_run run = whole(g);
        run.n = 0;
        for (size_t k = 0; k < sp_params_count(p); k++)
            sp_params_grads(p)[k] = NAN;
        sp_forward(g, &run);
        sp_backward(g, &run, NULL, NULL);
        ck_assert_double_eq(sp_loss(g, &run), 0);
        for (size_t k = 0; k < sp_params_count(p); k++)
            ck_assert_msg(sp_params_grads(p)[k] == 0, "%s", op->name);
        close_example(g, p);
    }
}

START_TEST(no_rows_give_zero_gradients)
{
    for (int w = 0; w < tile_count(ops[_i]); w++)
        check_no_rows(ops[_i], (sp_graph_opt){ .winograd = tiles[w] });
}
END_TEST

/* A run that adds to the gradients twice gives twice the gradient. */
static void check_adding(const sp_op *op, sp_graph_opt opt)
{
    sp_params *p;
    sp_graph *g;

    for (int i = 0; (g = open_example(op, i, opt, &p)); i++) {
        size_t n = sp_params_count(p);
        float *once = malloc((n + 1) * sizeof *once);
        sp_run run = whole(g);
        ck_assert_ptr_nonnull(once);
        sp_forward(g, &run);
        sp_backward(g, &run, NULL, NULL);
        memcpy(once, sp_params_grads(p), n * sizeof *once);
        run.add = true;
        sp_forward(g, &run);
        sp_backward(g, &run, NULL, NULL);
        for (size_t k = 0; k < n; k++)
            ck_assert_float_eq_tol(sp_params_grads(p)[k], 2 * once[k],
                                   1e-5f * (1 + fabsf(once[k])));
        free(once);
        close_example(g, p);
    }
}

START_TEST(micro_batches_add_up)
{
    for (int w = 0; w < tile_count(ops[_i]); w++)
        check_adding(ops[_i], (sp_graph_opt){ .winograd = tiles[w] });
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ops");
    TCase *tc = tcase_create("registry");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, gradients_match_differences, 0, OPS);
    tcase_add_loop_test(tc, threads_and_planner_do_not_change_bits, 0, OPS);
    tcase_add_loop_test(tc, recomputing_repeats_the_bits, 0, OPS);
    tcase_add_loop_test(tc, no_rows_give_zero_gradients, 0, OPS);
    tcase_add_loop_test(tc, micro_batches_add_up, 0, OPS);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
