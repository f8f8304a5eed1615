/* LSTM and GRU over all time steps against a plain loop in double; their last
 * states; evaluation; shapes that do not fit. Gradients are checked with those
 * of all operators (test_ops.c) and against PyTorch (test_golden_rnn.c). */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"
#include "sprat/random.h"

static void fill(sp_tensor *x)
{
    uint32_t r[4];

    for (size_t i = 0; i < sp_count(x->shape); i++) {
        sp_random(3, SP_FOR_TEST, sp_name_hash(x->name), i, r);
        ((float *)x->data)[i] = 2.0f * sp_unit(r[0]) - 1.0f;
    }
}

static void same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&a[i], &b[i], sizeof *a) == 0,
                      "element %zu: %.9g, not %.9g", i, (double)a[i],
                      (double)b[i]);
}

/* One layer in one direction, as the test computes it. */
typedef struct plain {
    int t, n, in, hidden, gates;
    bool reverse;
    const float *x;
    const sp_param *w_ih, *w_hh, *b_ih, *b_hh;
    double *h, *c; /* states, [n][hidden] */
    double *y;     /* [t][n][hidden] */
} plain;

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

static double bias(const sp_param *b, int gate)
{
    return b ? (double)b->value[gate] : 0;
}

/* What one gate's unit gets from the inputs, and from the states. */
static void sums(const plain *p, int time, int row, int gate, double *in,
                 double *state)
{
    const float *w = p->w_ih->value + gate * p->in;
    const float *u = p->w_hh->value + gate * p->hidden;

    *in = bias(p->b_ih, gate);
    *state = bias(p->b_hh, gate);
    for (int i = 0; i < p->in; i++)
        *in += (double)w[i] * (double)p->x[(time * p->n + row) * p->in + i];
    for (int i = 0; i < p->hidden; i++)
        *state += (double)u[i] * p->h[row * p->hidden + i];
}

static void lstm_unit(const plain *p, int time, int row, int j)
{
    int at = row * p->hidden + j;
    double v[4];

    for (int k = 0; k < 4; k++) {
        double in, state;
        sums(p, time, row, k * p->hidden + j, &in, &state);
        v[k] = in + state;
    }
    p->c[at] = sigmoid(v[1]) * p->c[at] + sigmoid(v[0]) * tanh(v[2]);
    p->y[time * p->n * p->hidden + at] = sigmoid(v[3]) * tanh(p->c[at]);
}

static void gru_unit(const plain *p, int time, int row, int j)
{
    int at = row * p->hidden + j;
    double in[3], state[3], r, z, n;

    for (int k = 0; k < 3; k++)
        sums(p, time, row, k * p->hidden + j, &in[k], &state[k]);
    r = sigmoid(in[0] + state[0]);
    z = sigmoid(in[1] + state[1]);
    n = tanh(in[2] + r * state[2]);
    p->y[time * p->n * p->hidden + at] = (1 - z) * n + z * p->h[at];
}

static void run_plain(const plain *p)
{
    int state = p->n * p->hidden;

    for (int i = 0; i < p->t; i++) {
        int time = p->reverse ? p->t - 1 - i : i;
        for (int row = 0; row < p->n; row++)
            for (int j = 0; j < p->hidden; j++)
                (p->gates == 4 ? lstm_unit : gru_unit)(p, time, row, j);
        memcpy(p->h, p->y + time * state, (size_t)state * sizeof *p->h);
    }
}

static void close_to(const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) < 1e-6,
                      "element %d: %.9g, not %.9g", i, (double)got[i], want[i]);
}

/* An operator by itself: its parameters, states, results. */
typedef struct layer {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *h, *c, *y, *last_h, *last_c;
    sp_recurrent_params w;
} layer;

static const struct {
    bool gru, reverse, b_ih, b_hh, reference;
} kinds[] = {
    { false, false, true, true, false }, { false, true, true, false, false },
    { false, true, false, false, true }, { true, false, true, true, false },
    { true, true, false, true, false },  { true, false, true, false, true },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
enum { T = 6, N = 3, IN = 5, HIDDEN = 37 };

static sp_param *weight(const layer *o, const char *name, int rows, int columns)
{
    return sp_weight(o->g, name, (int[]){ rows, columns, 0 },
                     (sp_init){ SP_UNIFORM, 0.5f });
}

static void record(layer *o, int kind)
{
    bool reverse = kinds[kind].reverse;

    if (kinds[kind].gru) {
        sp_gru_result r = sp_gru(o->g, "gru", o->x, o->h, o->w, reverse);
        o->y = r.y;
        o->last_h = r.h;
        return;
    }
    sp_lstm_result r = sp_lstm(o->g, "lstm", o->x, o->h, o->c, o->w, reverse);
    o->y = r.y;
    o->last_h = r.h;
    o->last_c = r.c;
    sp_output(o->g, "c", r.c);
}

static layer open_layer(int kind, bool train)
{
    int wide = (kinds[kind].gru ? 3 : 4) * HIDDEN;
    sp_graph_opt opt = { .train = train,
                         .threads = 2,
                         .reference = kinds[kind].reference };
    sp_shape state = { .n = N, .c = HIDDEN };
    layer o = { .p = sp_params_new() };

    o.g = sp_graph_new(o.p, opt);
    o.x = sp_input(o.g, "x", (sp_shape){ .t = T, .n = N, .c = IN }, SP_F32);
    o.h = sp_input(o.g, "h", state, SP_F32);
    o.c = sp_input(o.g, "c", state, SP_F32);
    o.w.w_ih = weight(&o, "w_ih", wide, IN);
    o.w.w_hh = weight(&o, "w_hh", wide, HIDDEN);
    o.w.b_ih = kinds[kind].b_ih ? weight(&o, "b_ih", wide, 0) : NULL;
    o.w.b_hh = kinds[kind].b_hh ? weight(&o, "b_hh", wide, 0) : NULL;
    record(&o, kind);
    sp_output(o.g, "h", o.last_h);
    sp_output(o.g, "y", o.y);
    sp_output(o.g, "loss", sp_project(o.g, o.y));
    ck_assert_msg(sp_compile(o.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(o.p, 5);
    fill(o.x);
    fill(o.h);
    fill(o.c);
    return o;
}

static void close_layer(layer *o)
{
    sp_graph_free(o->g);
    sp_params_free(o->p);
}

static sp_run whole(void)
{
    return (sp_run){ .n = N, .t = T, .train = true, .weight = 1 };
}

START_TEST(operators_agree_with_a_plain_loop)
{
    layer o = open_layer(_i, true);
    sp_run run = whole();
    double h[N * HIDDEN], c[N * HIDDEN], y[T * N * HIDDEN];
    plain p = { .t = T,
                .n = N,
                .in = IN,
                .hidden = HIDDEN,
                .gates = kinds[_i].gru ? 3 : 4,
                .reverse = kinds[_i].reverse,
                .x = o.x->data,
                .w_ih = o.w.w_ih,
                .w_hh = o.w.w_hh,
                .b_ih = o.w.b_ih,
                .b_hh = o.w.b_hh,
                .h = h,
                .c = c,
                .y = y };

    for (int i = 0; i < N * HIDDEN; i++) {
        h[i] = (double)((float *)o.h->data)[i];
        c[i] = (double)((float *)o.c->data)[i];
    }
    run_plain(&p);
    sp_forward(o.g, &run);
    close_to(o.y->data, y, T * N * HIDDEN);
    close_to(o.last_h->data, h, N * HIDDEN);
    if (o.last_c)
        close_to(o.last_c->data, c, N * HIDDEN);
    close_layer(&o);
}
END_TEST

/* The state h behind the last step is the last output, of whatever length the
 * run is; behind no step, it is the first. */
START_TEST(last_states_are_the_last_outputs)
{
    layer o = open_layer(_i, true);
    size_t state = N * HIDDEN;

    for (int t = 0; t <= T; t++) {
        sp_run run = whole();
        int last = kinds[_i].reverse ? 0 : t - 1;
        run.t = t;
        sp_forward(o.g, &run);
        same_bits(o.last_h->data,
                  t == 0 ? o.h->data
                         : (float *)o.y->data + (size_t)last * state,
                  state);
        if (o.last_c && t == 0)
            same_bits(o.last_c->data, o.c->data, state);
    }
    close_layer(&o);
}
END_TEST

/* What is not recorded for training keeps less, and computes the same. */
START_TEST(evaluation_has_the_bits_of_training)
{
    layer a = open_layer(_i, true), b = open_layer(_i, false);
    sp_run run = whole();

    sp_forward(a.g, &run);
    sp_forward(b.g, &run);
    same_bits(a.y->data, b.y->data, T * N * HIDDEN);
    same_bits(a.last_h->data, b.last_h->data, N * HIDDEN);
    if (a.last_c)
        same_bits(a.last_c->data, b.last_c->data, N * HIDDEN);
    ck_assert_uint_lt(sp_graph_memory(b.g).planned,
                      sp_graph_memory(a.g).planned);
    close_layer(&a);
    close_layer(&b);
}
END_TEST

/* What of the shapes is wrong, and what is said. */
static const struct {
    sp_shape x, h, c;
    int w_ih[2], w_hh[2], b_ih;
    const char *says;
} mistakes[] = {
    { { .t = 2, .n = 3, .h = 2, .c = 4 },
      { .n = 3, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 4 },
      { 20, 5 },
      20,
      "2 x 1 pixels" },
    { { .t = 2, .n = 3, .c = 4 },
      { .n = 2, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 4 },
      { 20, 5 },
      20,
      "state h must have 3 rows of 5" },
    { { .t = 2, .n = 3, .c = 4 },
      { .t = 2, .n = 3, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 4 },
      { 20, 5 },
      20,
      "2 x 3 rows" },
    { { .t = 2, .n = 3, .c = 4 },
      { .n = 3, .c = 5 },
      { .n = 3, .c = 6 },
      { 20, 4 },
      { 20, 5 },
      20,
      "state c must have 3 rows of 5" },
    { { .t = 2, .n = 3, .c = 4 },
      { .n = 3, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 5 },
      { 20, 5 },
      20,
      "w_ih must be 20 x 4" },
    { { .t = 2, .n = 3, .c = 4 },
      { .n = 3, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 4 },
      { 15, 5 },
      20,
      "w_hh must be 20 x 5" },
    { { .t = 2, .n = 3, .c = 4 },
      { .n = 3, .c = 5 },
      { .n = 3, .c = 5 },
      { 20, 4 },
      { 20, 5 },
      5,
      "b_ih must have 20" },
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(what_does_not_fit_is_refused)
{
    layer o = { .p = sp_params_new() };

    o.g = sp_graph_new(o.p, (sp_graph_opt){ 0 });
    o.w.w_ih = weight(&o, "w_ih", mistakes[_i].w_ih[0], mistakes[_i].w_ih[1]);
    o.w.w_hh = weight(&o, "w_hh", mistakes[_i].w_hh[0], mistakes[_i].w_hh[1]);
    o.w.b_ih = weight(&o, "b_ih", mistakes[_i].b_ih, 0);
    sp_lstm(o.g, "lstm", sp_input(o.g, "x", mistakes[_i].x, SP_F32),
            sp_input(o.g, "h", mistakes[_i].h, SP_F32),
            sp_input(o.g, "c", mistakes[_i].c, SP_F32), o.w, false);
    ck_assert_int_eq(sp_compile(o.g), SP_ESHAPE);
    ck_assert_msg(strstr(sp_last_error(), mistakes[_i].says) != NULL, "%s",
                  sp_last_error());
    close_layer(&o);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recurrent");
    TCase *tc = tcase_create("recurrent");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, operators_agree_with_a_plain_loop, 0, KINDS);
    tcase_add_loop_test(tc, last_states_are_the_last_outputs, 0, KINDS);
    tcase_add_loop_test(tc, evaluation_has_the_bits_of_training, 0, KINDS);
    tcase_add_loop_test(tc, what_does_not_fit_is_refused, 0, MISTAKES);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
