/* Laws that hold for whole networks to the last bit: how memory is planned,
 * how many threads run and how much of the capacity is used must not show. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "optim/optim.h"
#include "optim/section.h"
#include "sprat/model.h"
#include "sprat/nn.h"
#include "sprat/random.h"

enum { CLASSES = 10, BATCH = 5, STEPS = 2 };

extern const sp_model sp_model_mlp, sp_model_resnet, sp_model_vgg;
extern const sp_optimizer sp_optimizer_sgd;

/* Narrow, with every kind of operator among them; dropout is on in vgg. */
static const char *const networks[][4] = {
    { "model.name=resnet", "model.depth=8", "model.shortcut=A",
      "model.width=0.5" },
    { "model.name=resnet", "model.depth=18", "model.stem_norm=false",
      "model.width=0.07" },
    { "model.name=vgg", "model.depth=11", "model.fc=3", "model.width=0.18" },
    { "model.name=mlp", "model.hidden=[33,17]", "optim.lr=0.05",
      "optim.clip=1" },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* Image sizes; vgg takes no smaller ones. */
static const int sizes[NETWORKS] = { 16, 13, 32, 8 };

static const sp_section model_section = { .name = "model", .fallback = "" };

typedef struct network {
    sp_registry *registry;
    sp_config *config;
    sp_params *params;
    sp_graph *graph;
    int capacity;
} network;

static void configure(network *n, int which)
{
    static const sp_section *const sections[] = { &model_section,
                                                  &sp_optim_section };
    static const sp_model *const models[] = { &sp_model_mlp, &sp_model_resnet,
                                              &sp_model_vgg };

    n->registry = sp_registry_create(sections, 2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            sp_registry_add(n->registry, "model", &models[i]->entry), SP_OK);
    ck_assert_int_eq(
        sp_registry_add(n->registry, "optim", &sp_optimizer_sgd.entry), SP_OK);
    if (sp_config_load(&n->config, n->registry, NULL, 0, networks[which], 4) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

static network make(int which, int capacity, sp_graph_opt opt)
{
    network n = { .capacity = capacity };
    sp_shape images = {
        .n = capacity, .h = sizes[which], .w = sizes[which], .c = 3
    };
    const sp_model *model;

    configure(&n, which);
    model = (const sp_model *)sp_config_entry(n.config, "model");
    sp_model_args args = { .classes = CLASSES,
                           .own = sp_config_own(n.config, "model") };
    opt.train = true;
    n.params = sp_params_new();
    n.graph = sp_graph_new(n.params, opt);
    sp_tensor *x = sp_input(n.graph, "image", images, SP_F32);
    sp_tensor *t =
        sp_input(n.graph, "label", (sp_shape){ .n = capacity }, SP_I32);
    sp_tensor *y = model->build(n.graph, x, &args);
    sp_output(n.graph, "logits", y);
    sp_output(n.graph, "loss", sp_cross_entropy(n.graph, y, t, 0.1f));
    if (sp_compile(n.graph) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    sp_params_init(n.params, 7);
    return n;
}

static void unmake(network *n)
{
    sp_graph_free(n->graph);
    sp_params_free(n->params);
    sp_config_free(n->config);
    sp_registry_free(n->registry);
}

/* Rows [first, first + count) of a step's BATCH, forward and backward. */
static double run_rows(const network *n, int step, int first, int count)
{
    sp_tensor *x = sp_graph_input(n->graph, "image");
    sp_tensor *t = sp_graph_input(n->graph, "label");
    size_t row = sp_count(x->shape) / (size_t)n->capacity;
    sp_run run = { .n = count,
                   .t = 1,
                   .train = true,
                   .add = first > 0,
                   .weight = 1.0 / BATCH,
                   .seed = 1,
                   .step = step,
                   .row = first };
    uint32_t r[4];

    for (size_t i = 0; i < (size_t)count * row; i++) {
        sp_random((uint64_t)step, SP_FOR_TEST, 1, (size_t)first * row + i, r);
        ((float *)x->data)[i] = 2 * sp_unit(r[0]) - 1;
    }
    for (int i = 0; i < count; i++) {
        sp_random((uint64_t)step, SP_FOR_TEST, 2, (uint64_t)(first + i), r);
        ((int32_t *)t->data)[i] = (int32_t)(r[0] % CLASSES);
    }
    sp_forward(n->graph, &run);
    sp_backward(n->graph, &run, NULL, NULL);
    return sp_loss(n->graph, &run);
}

/* The losses of some steps of training. */
static void train(network *n, int threads, double loss[STEPS])
{
    const sp_optim_cfg *cfg = sp_config_section(n->config, "optim");
    sp_optim_args args = { .params = n->params,
                           .rule = &sp_optimizer_sgd,
                           .own = sp_config_own(n->config, "optim"),
                           .cfg = cfg,
                           .threads = threads };
    sp_optim *o;

    ck_assert_int_eq(sp_optim_new(&o, &args), SP_OK);
    for (int step = 0; step < STEPS; step++) {
        loss[step] = run_rows(n, step, 0, BATCH);
        sp_optim_update(o, cfg->lr, sp_optim_norm(o), step);
    }
    sp_optim_free(o);
}

/* All values, gradients and buffers of two stores have the same bits. */
static void assert_same_params(const network *a, const network *b)
{
    const sp_param *p, *q;

    for (int i = 0; (p = sp_params_at(a->params, i)); i++) {
        q = sp_params_at(b->params, i);
        ck_assert_msg(memcmp(p->value, q->value, p->count * sizeof(float)) == 0,
                      "values of %s differ", p->name);
        ck_assert_msg(p->buffer || memcmp(p->grad, q->grad,
                                          p->count * sizeof(float)) == 0,
                      "gradients of %s differ", p->name);
    }
}

static void assert_same_training(network *a, int threads_a, network *b,
                                 int threads_b)
{
    double loss[2][STEPS];

    train(a, threads_a, loss[0]);
    train(b, threads_b, loss[1]);
    ck_assert_double_gt(loss[0][0], 1);
    ck_assert_double_ne(loss[0][0], loss[0][1]);
    ck_assert_mem_eq(loss[0], loss[1], sizeof loss[0]);
    assert_same_params(a, b);
    unmake(a);
    unmake(b);
}

START_TEST(planned_memory_does_not_show)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    network b =
        make(_i, BATCH, (sp_graph_opt){ .threads = 1, .no_planner = true });

    ck_assert_uint_lt(sp_graph_memory(a.graph).planned,
                      sp_graph_memory(a.graph).unplanned);
    assert_same_training(&a, 1, &b, 1);
}
END_TEST

/* Nor what is computed again in backward, with the plan and without. Batch
 * norms' running statistics, among the buffers, are updated once. */
START_TEST(recomputing_does_not_show)
{
    static const bool gains[NETWORKS] = { true, true, true, false };
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    network b =
        make(_i, BATCH, (sp_graph_opt){ .threads = 1, .recompute = true });
    network c = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    network d = make(
        _i, BATCH,
        (sp_graph_opt){ .threads = 1, .recompute = true, .no_planner = true });
    size_t kept = sp_graph_memory(a.graph).planned;
    size_t again = sp_graph_memory(b.graph).planned;

    ck_assert_uint_le(again, kept);
    ck_assert_int_eq(again < kept, gains[_i]); /* mlp has no norms */
    assert_same_training(&a, 1, &b, 1);
    assert_same_training(&c, 1, &d, 1);
}
END_TEST

/* The same over a batch in pieces. */
START_TEST(recomputing_pieces_does_not_show)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 2 });
    network b =
        make(_i, BATCH, (sp_graph_opt){ .threads = 2, .recompute = true });
    double loss[2][3];

    for (int i = 0; i < 3; i++) {
        loss[0][i] = run_rows(&a, i, i, 2);
        loss[1][i] = run_rows(&b, i, i, 2);
    }
    ck_assert_mem_eq(loss[0], loss[1], sizeof loss[0]);
    assert_same_params(&a, &b);
    unmake(&a);
    unmake(&b);
}
END_TEST

START_TEST(threads_do_not_show)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    network b = make(_i, BATCH, (sp_graph_opt){ .threads = 3 });

    assert_same_training(&a, 1, &b, 3);
}
END_TEST

START_TEST(threads_do_not_show_without_planner_and_tiles)
{
    sp_graph_opt opt = { .threads = 1, .no_planner = true, .reference = true };
    network a = make(_i, BATCH, opt);
    opt.threads = 3;
    network b = make(_i, BATCH, opt);

    assert_same_training(&a, 1, &b, 3);
}
END_TEST

START_TEST(unused_capacity_does_not_show)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 2 });
    network b = make(_i, BATCH + 4, (sp_graph_opt){ .threads = 2 });

    assert_same_training(&a, 2, &b, 2);
}
END_TEST

/* What a larger batch left in memory does not reach a smaller one. */
START_TEST(earlier_batches_do_not_show)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    network b = make(_i, BATCH, (sp_graph_opt){ .threads = 1 });
    double loss[2];

    run_rows(&b, 9, 0, BATCH);
    sp_params_init(b.params, 7);
    loss[0] = run_rows(&a, 0, 0, 2);
    loss[1] = run_rows(&b, 0, 0, 2);
    ck_assert_mem_eq(&loss[0], &loss[1], sizeof(double));
    assert_same_params(&a, &b);
    unmake(&a);
    unmake(&b);
}
END_TEST

/* Without batch norm, the gradient of a batch is the sum over its pieces. */
START_TEST(pieces_of_a_batch_add_up)
{
    enum { MLP = 3 };
    network a = make(MLP, BATCH, (sp_graph_opt){ .threads = 1 });
    network b = make(MLP, BATCH, (sp_graph_opt){ .threads = 1 });
    double whole = run_rows(&a, 0, 0, BATCH), parts;

    parts = run_rows(&b, 0, 0, 2);
    parts += run_rows(&b, 0, 2, 3);
    ck_assert_double_eq_tol(whole, parts, 1e-6);
    for (size_t i = 0; i < sp_params_count(a.params); i++)
        ck_assert_float_eq_tol(sp_params_grads(a.params)[i],
                               sp_params_grads(b.params)[i], 1e-6f);
    unmake(&a);
    unmake(&b);
}
END_TEST

/* A rank that has no samples contributes nothing, and nothing breaks. */
START_TEST(an_empty_batch_has_zero_gradients)
{
    network a = make(_i, BATCH, (sp_graph_opt){ .threads = 2 });

    run_rows(&a, 0, 0, BATCH);
    ck_assert(run_rows(&a, 0, 0, 0) == 0);
    for (size_t i = 0; i < sp_params_count(a.params); i++)
        ck_assert(sp_params_grads(a.params)[i] == 0);
    unmake(&a);
}
END_TEST

/* ---- Gradients that take the memory of logits ---------------------------- */

/* A classifier whose logits are nearly all of its memory. */
enum { ROWS = 16, WORDS = 2000, LOGITS = ROWS * WORDS * 4 };

/* Who reads the logits: the loss alone, the caller too, another loss too. */
enum readers { LOSS, CALLER, TWO_LOSSES, READERS };

static network make_wide(enum readers who, bool no_planner)
{
    network n = { .params = sp_params_new() };

    n.graph = sp_graph_new(
        n.params, (sp_graph_opt){ .train = true, .no_planner = no_planner });
    sp_tensor *x =
        sp_input(n.graph, "x", (sp_shape){ .n = ROWS, .c = 3 }, SP_F32);
    sp_tensor *label =
        sp_input(n.graph, "label", (sp_shape){ .n = ROWS }, SP_I32);
    sp_tensor *y = sp_linear(n.graph, "fc", x, (sp_linear_opt){ .out = WORDS });
    sp_tensor *loss = sp_cross_entropy(n.graph, y, label, 0);
    if (who == CALLER)
        sp_output(n.graph, "logits", y);
    if (who == TWO_LOSSES)
        loss = sp_add(n.graph, loss, sp_cross_entropy(n.graph, y, label, 0.1f));
    sp_output(n.graph, "loss", loss);
    ck_assert_msg(sp_compile(n.graph) == SP_OK, "%s", sp_last_error());
    sp_params_init(n.params, 7);
    for (int i = 0; i < ROWS * 3; i++)
        ((float *)x->data)[i] = 0.1f * (float)(i * 7 % 23) - 1;
    for (int i = 0; i < ROWS; i++)
        ((int32_t *)label->data)[i] = i * 321 % WORDS;
    return n;
}

/* One step; the logits' bits before and behind it are the same where the
 * caller wants them. */
static double run_wide(const network *n)
{
    static float before[ROWS * WORDS];
    sp_run run = { .n = ROWS, .t = 1, .train = true, .weight = 1.0 / ROWS };
    const sp_tensor *logits = sp_graph_output(n->graph, "logits");

    sp_forward(n->graph, &run);
    if (logits)
        memcpy(before, logits->data, LOGITS);
    sp_backward(n->graph, &run, NULL, NULL);
    if (logits)
        ck_assert_mem_eq(before, logits->data, LOGITS);
    return sp_loss(n->graph, &run);
}

/* They do so when nobody else reads the logits, and that does not show. */
START_TEST(gradients_replace_logits_that_nobody_reads)
{
    network a = make_wide((enum readers)_i, false);
    network b = make_wide((enum readers)_i, true);
    double loss[] = { run_wide(&a), run_wide(&b) };
    size_t planned = sp_graph_memory(a.graph).planned;

    ck_assert_uint_ge(planned, (_i == LOSS ? 1 : 2) * LOGITS);
    ck_assert_uint_lt(planned, (_i == LOSS ? 1 : 2) * LOGITS + LOGITS / 2);
    ck_assert_uint_ge(sp_graph_memory(b.graph).planned, 2 * LOGITS);
    ck_assert_mem_eq(&loss[0], &loss[1], sizeof(double));
    assert_same_params(&a, &b);
    unmake(&a);
    unmake(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("planner_laws");
    TCase *tc = tcase_create("planner_laws");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, planned_memory_does_not_show, 0, NETWORKS);
    tcase_add_loop_test(tc, recomputing_does_not_show, 0, NETWORKS);
    tcase_add_loop_test(tc, recomputing_pieces_does_not_show, 0, NETWORKS);
    tcase_add_loop_test(tc, threads_do_not_show, 0, NETWORKS);
    tcase_add_loop_test(tc, threads_do_not_show_without_planner_and_tiles, 0,
                        NETWORKS);
    tcase_add_loop_test(tc, unused_capacity_does_not_show, 0, NETWORKS);
    tcase_add_loop_test(tc, earlier_batches_do_not_show, 0, NETWORKS);
    tcase_add_test(tc, pieces_of_a_batch_add_up);
    tcase_add_loop_test(tc, an_empty_batch_has_zero_gradients, 0, NETWORKS);
    tcase_add_loop_test(tc, gradients_replace_logits_that_nobody_reads, 0,
                        READERS);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
