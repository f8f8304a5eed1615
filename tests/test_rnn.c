/* Recurrent layers: that neither the cut into chunks, nor the other rows of a
 * batch, threads or the memory plan change a bit; that both directions are two
 * layers; what layers call their parameters and states. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"
#include "sprat/random.h"

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *y;
    bool shared; /* the parameters are another's */
} net;

static float number(const char *name, size_t i)
{
    uint32_t r[4];

    sp_random(3, SP_FOR_TEST, sp_name_hash(name), i, r);
    return 2.0f * sp_unit(r[0]) - 1.0f;
}

static void fill(float *x, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        x[i] = number(name, i);
}

/* Layers "rnn" over an input, over the parameters of `with` if there are. */
static net open_net(const net *with, sp_shape s, sp_rnn_opt o, sp_graph_opt opt)
{
    net t = { .shared = with != NULL };

    opt.input_grads = opt.train;
    t.p = with ? with->p : sp_params_new();
    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", s, SP_F32);
    t.y = sp_rnn(t.g, "rnn", t.x, o);
    sp_output(t.g, "y", t.y);
    sp_output(t.g, "loss", sp_project(t.g, t.y));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    if (!with)
        sp_params_init(t.p, 5);
    fill(t.x->data, sp_count(s), "x");
    return t;
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    if (!t->shared)
        sp_params_free(t->p);
}

static sp_run whole(const net *t)
{
    return (sp_run){ .n = t->x->shape.n,
                     .t = t->x->shape.t,
                     .train = true,
                     .weight = 1,
                     .seed = 7,
                     .step = 2 };
}

static void forward(const net *t)
{
    sp_run run = whole(t);

    sp_forward(t->g, &run);
}

static void same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&a[i], &b[i], sizeof *a) == 0,
                      "element %zu: %.9g, not %.9g", i, (double)a[i],
                      (double)b[i]);
}

static float *copy(const float *x, size_t n)
{
    float *c = malloc(n * sizeof *c);

    ck_assert_ptr_nonnull(c);
    memcpy(c, x, n * sizeof *c);
    return c;
}

/* ---- Laws of layers ------------------------------------------------------ */

static const sp_rnn_opt layers[] = {
    { .kind = SP_LSTM, .hidden = 19, .layers = 2 },
    { .kind = SP_LSTM, .hidden = 40, .biases = 1 },
    { .kind = SP_GRU, .hidden = 19, .layers = 2 },
    { .kind = SP_GRU, .hidden = 40, .biases = SP_NO_BIAS },
    { .kind = SP_LSTM, .hidden = 19, .layers = 2, .rank = 4 },
    { .kind = SP_GRU, .hidden = 40, .rank = 5, .joined = true },
    { .kind = SP_LSTM, .hidden = 9, .layers = 2, .bidirectional = true },
    { .kind = SP_GRU, .hidden = 9, .layers = 2, .bidirectional = true },
    { .kind = SP_LSTM, .hidden = 9, .bidirectional = true, .rank = 3 },
};
enum { LAYERS = sizeof layers / sizeof *layers, CARRYING = 6 };

static void carry_over(const net *t)
{
    const sp_state_pair *s;

    for (int i = 0; (s = sp_graph_state(t->g, i)); i++)
        memcpy(s->now->data, s->next->data,
               sp_count(s->now->shape) * sizeof(float));
}

/* A chunk of 2k steps is two chunks of k steps, states carried over. */
START_TEST(chunks_are_a_whole)
{
    enum { STEPS = 5, ROWS = 4, INPUTS = 11 };
    sp_shape s = { .t = 2 * STEPS, .n = ROWS, .c = INPUTS }, half = s;
    sp_graph_opt opt = { 0 };
    half.t = STEPS;
    net one = open_net(NULL, s, layers[_i], opt);
    net two = open_net(&one, half, layers[_i], opt);
    size_t in = STEPS * ROWS * INPUTS;
    size_t out = (size_t)(STEPS * ROWS * layers[_i].hidden);

    forward(&one);
    for (size_t k = 0; k < 2; k++) {
        memcpy(two.x->data, (float *)one.x->data + k * in, in * sizeof(float));
        forward(&two);
        carry_over(&two);
        same_bits(two.y->data, (float *)one.y->data + k * out, out);
    }
    for (int i = 0; sp_graph_state(one.g, i); i++)
        same_bits(sp_graph_state(one.g, i)->next->data,
                  sp_graph_state(two.g, i)->next->data,
                  sp_count(sp_graph_state(one.g, i)->now->shape));
    close_net(&two);
    close_net(&one);
}
END_TEST

/* Without the cell state, or without the hidden state, the second chunk is
 * another: both are carried. */
START_TEST(every_state_matters)
{
    sp_shape s = { .t = 3, .n = 2, .c = 5 };
    net t = open_net(NULL, s, layers[_i], (sp_graph_opt){ 0 });
    size_t out = (size_t)(6 * layers[_i].hidden);
    float *y;

    forward(&t);
    carry_over(&t);
    forward(&t);
    y = copy(t.y->data, out);
    for (int i = 0; sp_graph_state(t.g, i); i++) {
        const sp_state_pair *pair = sp_graph_state(t.g, i);
        size_t n = sp_count(pair->now->shape);
        float *kept = copy(pair->now->data, n);
        memset(pair->now->data, 0, n * sizeof *kept);
        forward(&t);
        ck_assert_msg(memcmp(y, t.y->data, out * sizeof *y) != 0,
                      "%s does not matter", pair->now->name);
        memcpy(pair->now->data, kept, n * sizeof *kept);
        free(kept);
    }
    free(y);
    close_net(&t);
}
END_TEST

START_TEST(rows_do_not_see_each_other)
{
    enum { STEPS = 4, ROWS = 7, INPUTS = 6 };
    sp_shape s = { .t = STEPS, .n = ROWS, .c = INPUTS };
    net all = open_net(NULL, s, layers[_i], (sp_graph_opt){ 0 });
    net one = open_net(&all, s, layers[_i], (sp_graph_opt){ 0 });
    size_t c = (size_t)all.y->shape.c;
    const float *x = all.x->data, *y = all.y->data;

    forward(&all);
    for (size_t row = 0; row < ROWS; row++) {
        sp_run run = whole(&one);
        run.n = 1;
        for (size_t t = 0; t < STEPS; t++)
            memcpy((float *)one.x->data + t * INPUTS,
                   x + (t * ROWS + row) * INPUTS, INPUTS * sizeof *x);
        sp_forward(one.g, &run);
        for (size_t t = 0; t < STEPS; t++)
            same_bits((float *)one.y->data + t * c, y + (t * ROWS + row) * c,
                      c);
    }
    close_net(&one);
    close_net(&all);
}
END_TEST

/* Outputs, and all gradients. */
static void same_results(sp_shape s, sp_rnn_opt o, sp_graph_opt a,
                         sp_graph_opt b)
{
    net one = open_net(NULL, s, o, a), two = open_net(NULL, s, o, b);
    sp_run run = whole(&one);

    sp_forward(one.g, &run);
    sp_backward(one.g, &run, NULL, NULL);
    sp_forward(two.g, &run);
    sp_backward(two.g, &run, NULL, NULL);
    same_bits(one.y->data, two.y->data, sp_count(one.y->shape));
    same_bits(one.x->grad, two.x->grad, sp_count(s));
    same_bits(sp_params_grads(one.p), sp_params_grads(two.p),
              sp_params_count(one.p));
    close_net(&one);
    close_net(&two);
}

/* Sizes at which every loop is cut over the threads. */
START_TEST(threads_do_not_change_bits)
{
    sp_rnn_opt o = layers[_i];

    o.hidden = 100;
    o.rank = o.rank ? 66 : 0;
    o.dropout = 0.3f;
    same_results((sp_shape){ .t = 3, .n = 40, .c = 70 }, o,
                 (sp_graph_opt){ .train = true, .threads = 1 },
                 (sp_graph_opt){ .train = true, .threads = 4 });
}
END_TEST

START_TEST(the_planner_does_not_change_bits)
{
    sp_rnn_opt o = layers[_i];

    o.dropout = 0.3f;
    same_results((sp_shape){ .t = 4, .n = 3, .c = 8 }, o,
                 (sp_graph_opt){ .train = true },
                 (sp_graph_opt){ .train = true, .no_planner = true });
    same_results((sp_shape){ .t = 4, .n = 3, .c = 8 }, o,
                 (sp_graph_opt){ .train = true },
                 (sp_graph_opt){ .train = true, .recompute = true });
}
END_TEST

/* ---- Both directions ----------------------------------------------------- */

static void copy_param(const net *to, const char *name, const net *from,
                       const char *other)
{
    sp_param *a = sp_params_find(to->p, name);
    const sp_param *b = sp_params_find(from->p, other);

    ck_assert_msg(a && b, "no %s or no %s", name, other);
    ck_assert_uint_eq(a->count, b->count);
    memcpy(a->value, b->value, a->count * sizeof *a->value);
}

/* The first half of the channels is what the layer gives forward; the second,
 * with the other parameters, what it gives on the reversed input, reversed. */
START_TEST(two_directions_are_two_layers)
{
    enum { STEPS = 5, ROWS = 2, INPUTS = 3, WIDE = 7 };
    static const char *const stems[] = { "rnn.weight_ih_l0", "rnn.weight_hh_l0",
                                         "rnn.bias_ih_l0", "rnn.bias_hh_l0" };
    sp_shape s = { .t = STEPS, .n = ROWS, .c = INPUTS };
    sp_rnn_opt o = { .kind = _i ? SP_GRU : SP_LSTM, .hidden = WIDE }, both = o;
    both.bidirectional = true;
    net b = open_net(NULL, s, both, (sp_graph_opt){ 0 });
    net one = open_net(NULL, s, o, (sp_graph_opt){ 0 });
    const size_t in = ROWS * INPUTS * sizeof(float);

    ck_assert_int_eq(b.y->shape.c, 2 * WIDE);
    forward(&b);
    for (size_t way = 0; way < 2; way++) {
        for (int i = 0; i < 4; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", stems[i],
                     way ? "_reverse" : "");
            copy_param(&one, stems[i], &b, name);
        }
        for (size_t t = 0; t < STEPS; t++)
            memcpy((float *)one.x->data + t * ROWS * INPUTS,
                   (float *)b.x->data +
                       (way ? STEPS - 1 - t : t) * ROWS * INPUTS,
                   in);
        forward(&one);
        for (size_t row = 0; row < STEPS * ROWS; row++) {
            size_t t = row / ROWS, at = way ? STEPS - 1 - t : t;
            same_bits((float *)b.y->data + row * 2 * WIDE + way * WIDE,
                      (float *)one.y->data + (at * ROWS + row % ROWS) * WIDE,
                      WIDE);
        }
    }
    close_net(&one);
    close_net(&b);
}
END_TEST

/* The future of one run is not the past of the next. */
START_TEST(two_directions_carry_nothing_over)
{
    net t = open_net(NULL, (sp_shape){ .t = 3, .n = 2, .c = 4 },
                     layers[CARRYING], (sp_graph_opt){ 0 });
    size_t n = sp_count(t.y->shape);
    float *y;

    ck_assert_ptr_null(sp_graph_state(t.g, 0));
    forward(&t);
    y = copy(t.y->data, n);
    forward(&t);
    same_bits(t.y->data, y, n);
    free(y);
    close_net(&t);
}
END_TEST

/* ---- Names, starts, mistakes --------------------------------------------- */

START_TEST(layers_are_called_as_in_pytorch)
{
    static const struct {
        const char *name;
        int rows, columns; /* columns: 0 for a vector */
    } want[] = {
        { "encoder.rnn.weight_ih_l0", 12, 5 },
        { "encoder.rnn.weight_hh_l0", 12, 3 },
        { "encoder.rnn.bias_ih_l0", 12, 0 },
        { "encoder.rnn.bias_hh_l0", 12, 0 },
        { "encoder.rnn.weight_ih_l1", 12, 3 },
        { "encoder.rnn.weight_hh_l1", 12, 3 },
        { "encoder.rnn.bias_ih_l1", 12, 0 },
        { "encoder.rnn.bias_hh_l1", 12, 0 },
    };
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *x =
        sp_input(g, "x", (sp_shape){ .t = 2, .n = 4, .c = 5 }, SP_F32);

    sp_push(g, "encoder");
    sp_rnn(g, "rnn", x, (sp_rnn_opt){ .hidden = 3, .layers = 2 });
    sp_pop(g);
    for (int i = 0; i < 8; i++) {
        const sp_param *w = sp_params_at(p, i);
        ck_assert_str_eq(w->name, want[i].name);
        ck_assert_int_eq(w->ndim, want[i].columns ? 2 : 1);
        ck_assert_int_eq(w->dims[0], want[i].rows);
        ck_assert_int_eq(w->ndim > 1 ? w->dims[1] : 0, want[i].columns);
        ck_assert_int_eq(w->init.kind, SP_UNIFORM);
        ck_assert_float_eq_tol(w->init.a, 1 / sqrtf(3), 1e-7f);
    }
    ck_assert_ptr_null(sp_params_at(p, 8));
    ck_assert_str_eq(sp_graph_state(g, 0)->now->name, "encoder.rnn.h_l0");
    ck_assert_str_eq(sp_graph_state(g, 3)->now->name, "encoder.rnn.c_l1");
    ck_assert_ptr_null(sp_graph_state(g, 4));
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

START_TEST(biases_and_bounds_are_options)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .t = 2, .c = 5 }, SP_F32);

    sp_rnn(g, "a", x, (sp_rnn_opt){ .hidden = 3, .biases = 1, .bound = 0.1f });
    sp_rnn(g, "b", x, (sp_rnn_opt){ .hidden = 3, .biases = SP_NO_BIAS });
    ck_assert_float_eq(sp_params_find(p, "a.weight_hh_l0")->init.a, 0.1f);
    ck_assert_float_eq(sp_params_find(p, "a.bias_ih_l0")->init.a, 0.1f);
    ck_assert_ptr_null(sp_params_find(p, "a.bias_hh_l0"));
    ck_assert_ptr_null(sp_params_find(p, "b.bias_ih_l0"));
    ck_assert_uint_eq(sp_params_count(p), 2 * 12 * (5 + 3) + 12);
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

/* Dropout stands between layers: one is the same as without, two are not. */
START_TEST(dropout_is_between_layers)
{
    sp_shape s = { .t = 2, .n = 3, .c = 8 };

    for (int count = 1; count <= 2; count++) {
        sp_rnn_opt o = { .hidden = 8, .layers = count }, drop = o;
        drop.dropout = 0.5f;
        net a = open_net(NULL, s, o, (sp_graph_opt){ .train = true });
        net b = open_net(NULL, s, drop, (sp_graph_opt){ .train = true });
        forward(&a);
        forward(&b);
        ck_assert_int_eq(memcmp(a.y->data, b.y->data,
                                sp_count(a.y->shape) * sizeof(float)) == 0,
                         count == 1);
        close_net(&a);
        close_net(&b);
    }
}
END_TEST

static const struct {
    sp_rnn_opt o;
    const char *says;
} mistakes[] = {
    { { .hidden = 0 }, "rnn (rnn): 1 layers of 0" },
    { { .hidden = 4, .layers = -1 }, "-1 layers" },
    { { .hidden = 4, .layers = 1001 }, "layers from 1 to 1000" },
    { { .hidden = 4, .biases = 3 }, "3 biases" },
    { { .hidden = 4, .biases = -2 }, "1, 2 or SP_NO_BIAS" },
    { { .hidden = INT32_MAX }, "layers of 2147483647" },
    { { .hidden = 4, .layers = 2, .dropout = 1.0f }, "probability 1" },
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(bad_options_are_refused)
{
    sp_params *p = sp_params_new();
    sp_graph *g = sp_graph_new(p, (sp_graph_opt){ 0 });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .t = 2, .c = 5 }, SP_F32);

    sp_rnn(g, "rnn", x, mistakes[_i].o);
    ck_assert_int_eq(sp_compile(g), SP_EARG);
    ck_assert_msg(strstr(sp_last_error(), mistakes[_i].says) != NULL, "%s",
                  sp_last_error());
    sp_graph_free(g);
    sp_params_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rnn");
    TCase *tc = tcase_create("rnn");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, chunks_are_a_whole, 0, CARRYING);
    tcase_add_loop_test(tc, every_state_matters, 0, CARRYING);
    tcase_add_loop_test(tc, rows_do_not_see_each_other, 0, LAYERS);
    tcase_add_loop_test(tc, threads_do_not_change_bits, 0, LAYERS);
    tcase_add_loop_test(tc, the_planner_does_not_change_bits, 0, LAYERS);
    tcase_add_loop_test(tc, two_directions_are_two_layers, 0, 2);
    tcase_add_test(tc, two_directions_carry_nothing_over);
    tcase_add_test(tc, layers_are_called_as_in_pytorch);
    tcase_add_test(tc, biases_and_bounds_are_options);
    tcase_add_test(tc, dropout_is_between_layers);
    tcase_add_loop_test(tc, bad_options_are_refused, 0, MISTAKES);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
