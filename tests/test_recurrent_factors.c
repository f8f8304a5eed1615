/* LSTM and GRU with matrices in factors against the same with the factors'
 * products: results, and gradients; threads; factors that do not fit. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/nn.h"
#include "sprat/random.h"

enum { T = 4, N = 3, IN = 13, HIDDEN = 37 };
enum { IH = 1, HH = 2 };

/* What is of low rank, and how. */
typedef struct kind {
    bool gru, reverse, joined, b_ih, b_hh, reference;
    int low, rank;
} kind;

static const kind kinds[] = {
    { false, false, false, true, true, false, IH | HH, 5 },
    { false, true, true, true, false, false, IH | HH, 6 },
    { false, false, false, false, true, false, IH, 13 },
    { false, true, false, false, false, false, HH, 1 },
    { false, false, true, true, true, true, IH | HH, 7 },
    { true, false, false, true, true, false, IH | HH, 5 },
    { true, true, true, true, false, false, IH | HH, 6 },
    { true, false, true, false, true, false, IH, 3 },
    { true, true, false, false, false, false, HH, 33 },
    { true, false, false, true, true, true, IH | HH, 4 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* An operator by itself. */
typedef struct layer {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *h, *c, *y, *last_h, *last_c;
    sp_recurrent_params w;
} layer;

static void fill(sp_tensor *x)
{
    uint32_t r[4];

    for (size_t i = 0; i < sp_count(x->shape); i++) {
        sp_random(3, SP_FOR_TEST, sp_name_hash(x->name), i, r);
        ((float *)x->data)[i] = 2.0f * sp_unit(r[0]) - 1.0f;
    }
}

static sp_param *weight(const layer *o, const char *name, int rows, int columns)
{
    return sp_weight(o->g, name, (int[]){ rows, columns, 0 },
                     (sp_init){ SP_UNIFORM, 0.6f });
}

static int gates_of(const kind *k) { return k->gru ? 3 : 4; }

/* The parameters: factors where the kind says and `low`, else whole. */
static void make_params(layer *o, const kind *k, bool low)
{
    int wide = gates_of(k) * HIDDEN;
    int high = (k->joined ? 1 : gates_of(k)) * k->rank;

    if (low && k->low & IH) {
        o->w.u_ih = weight(o, "u_ih", high, IN);
        o->w.v_ih = weight(o, "v_ih", wide, k->rank);
    } else {
        o->w.w_ih = weight(o, "w_ih", wide, IN);
    }
    if (low && k->low & HH) {
        o->w.u_hh = weight(o, "u_hh", high, HIDDEN);
        o->w.v_hh = weight(o, "v_hh", wide, k->rank);
    } else {
        o->w.w_hh = weight(o, "w_hh", wide, HIDDEN);
    }
    o->w.b_ih = k->b_ih ? weight(o, "b_ih", wide, 0) : NULL;
    o->w.b_hh = k->b_hh ? weight(o, "b_hh", wide, 0) : NULL;
}

static void record(layer *o, const kind *k)
{
    if (k->gru) {
        sp_gru_result r = sp_gru(o->g, "gru", o->x, o->h, o->w, k->reverse);
        o->y = r.y;
        o->last_h = r.h;
        return;
    }
    sp_lstm_result r =
        sp_lstm(o->g, "lstm", o->x, o->h, o->c, o->w, k->reverse);
    o->y = r.y;
    o->last_h = r.h;
    o->last_c = r.c;
    sp_output(o->g, "c", r.c);
}

static layer open_layer(const kind *k, bool low, sp_graph_opt opt)
{
    sp_shape state = { .n = N, .c = HIDDEN };
    layer o = { .p = sp_params_new() };

    opt.input_grads = opt.train;
    opt.reference = k->reference;
    o.g = sp_graph_new(o.p, opt);
    o.x = sp_input(o.g, "x", (sp_shape){ .t = T, .n = N, .c = IN }, SP_F32);
    o.h = sp_input(o.g, "h", state, SP_F32);
    o.c = sp_input(o.g, "c", state, SP_F32);
    make_params(&o, k, low);
    record(&o, k);
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

static void run_both(const layer *o)
{
    sp_run run = { .n = N, .t = T, .train = true, .weight = 1 };

    sp_forward(o->g, &run);
    sp_backward(o->g, &run, NULL, NULL);
}

/* Against the largest that is wanted. */
static void close_to(const char *what, const float *got, const double *want,
                     size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    ck_assert_msg(most > 0, "%s: all zero", what);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= 1e-5 * most,
                      "%s[%zu]: %.9g, not %.9g", what, i, (double)got[i],
                      want[i]);
}

static void same(const char *what, const float *got, const float *want,
                 size_t n)
{
    double *exact = malloc(n * sizeof *exact);

    ck_assert_ptr_nonnull(exact);
    for (size_t i = 0; i < n; i++)
        exact[i] = (double)want[i];
    close_to(what, got, exact, n);
    free(exact);
}

static void same_param(const sp_param *got, const sp_param *want)
{
    if (want)
        same(want->name, got->grad, want->grad, want->count);
}

/* ---- Factors, block by block --------------------------------------------- */

/* Entry (i,j) of a matrix of floats. */
static double entry(const float *m, int columns, int i, int j)
{
    return (double)m[i * columns + j];
}

/* The row of u that row i of v meets with its column r. */
static int u_row(const sp_param *u, const sp_param *v, int i, int r)
{
    int rank = v->dims[1], blocks = u->dims[0] / rank;

    return i / (v->dims[0] / blocks) * rank + r;
}

/* w = v u. */
static void multiply(const sp_param *u, const sp_param *v, sp_param *w)
{
    for (int i = 0; i < w->dims[0]; i++)
        for (int j = 0; j < w->dims[1]; j++) {
            double sum = 0;
            for (int r = 0; r < v->dims[1]; r++)
                sum += entry(v->value, v->dims[1], i, r) *
                       entry(u->value, u->dims[1], u_row(u, v, i, r), j);
            w->value[i * w->dims[1] + j] = (float)sum;
        }
}

/* du = v^T dw, dv = dw u^T. */
static void check_factors(const sp_param *u, const sp_param *v,
                          const sp_param *w)
{
    double *du = calloc(u->count, sizeof *du);
    double *dv = calloc(v->count, sizeof *dv);
    int columns = w->dims[1], rank = v->dims[1];

    ck_assert(du && dv);
    for (int i = 0; i < w->dims[0]; i++)
        for (int r = 0; r < rank; r++)
            for (int j = 0; j < columns; j++) {
                double dw = entry(w->grad, columns, i, j);
                int row = u_row(u, v, i, r);
                du[row * columns + j] += entry(v->value, rank, i, r) * dw;
                dv[i * rank + r] += dw * entry(u->value, columns, row, j);
            }
    close_to(u->name, u->grad, du, u->count);
    close_to(v->name, v->grad, dv, v->count);
    free(du);
    free(dv);
}

static void copy_param(const sp_param *from, sp_param *to)
{
    memcpy(to->value, from->value, from->count * sizeof *to->value);
}

/* Give the whole layer the products of the other's factors. */
static void set_whole(const layer *low, const layer *whole)
{
    if (low->w.w_ih)
        copy_param(low->w.w_ih, whole->w.w_ih);
    else
        multiply(low->w.u_ih, low->w.v_ih, whole->w.w_ih);
    if (low->w.w_hh)
        copy_param(low->w.w_hh, whole->w.w_hh);
    else
        multiply(low->w.u_hh, low->w.v_hh, whole->w.w_hh);
}

START_TEST(factors_compute_what_their_product_does)
{
    const kind *k = &kinds[_i];
    sp_graph_opt opt = { .train = true, .threads = 2 };
    layer low = open_layer(k, true, opt), whole = open_layer(k, false, opt);

    set_whole(&low, &whole);
    run_both(&low);
    run_both(&whole);
    same("y", low.y->data, whole.y->data, T * N * HIDDEN);
    same("h", low.last_h->data, whole.last_h->data, N * HIDDEN);
    same("dx", low.x->grad, whole.x->grad, T * N * IN);
    same("dh", low.h->grad, whole.h->grad, N * HIDDEN);
    if (!k->gru) {
        same("c", low.last_c->data, whole.last_c->data, N * HIDDEN);
        same("dc", low.c->grad, whole.c->grad, N * HIDDEN);
    }
    same_param(low.w.b_ih, whole.w.b_ih);
    same_param(low.w.b_hh, whole.w.b_hh);
    same_param(low.w.w_ih, low.w.w_ih ? whole.w.w_ih : NULL);
    same_param(low.w.w_hh, low.w.w_hh ? whole.w.w_hh : NULL);
    if (low.w.u_ih)
        check_factors(low.w.u_ih, low.w.v_ih, whole.w.w_ih);
    if (low.w.u_hh)
        check_factors(low.w.u_hh, low.w.v_hh, whole.w.w_hh);
    close_layer(&whole);
    close_layer(&low);
}
END_TEST

/* What is not recorded for training keeps nothing between factors, and computes
 * the same. */
START_TEST(evaluation_has_the_bits_of_training)
{
    const kind *k = &kinds[_i];
    layer a = open_layer(k, true, (sp_graph_opt){ .train = true });
    layer b = open_layer(k, true, (sp_graph_opt){ .threads = 2 });
    sp_run run = { .n = N, .t = T, .train = true, .weight = 1 };

    sp_forward(a.g, &run);
    sp_forward(b.g, &run);
    ck_assert_mem_eq(a.y->data, b.y->data, sizeof(float) * T * N * HIDDEN);
    ck_assert_mem_eq(a.last_h->data, b.last_h->data,
                     sizeof(float) * N * HIDDEN);
    close_layer(&a);
    close_layer(&b);
}
END_TEST

/* Products: (inputs + units) rank for u, wide rank for v. */
START_TEST(products_are_counted)
{
    const kind *k = &kinds[_i];
    layer o = open_layer(k, true, (sp_graph_opt){ 0 });
    int wide = gates_of(k) * HIDDEN;
    int high = k->joined ? k->rank : gates_of(k) * k->rank;
    int ih = k->low & IH ? high * IN + wide * k->rank : wide * IN;
    int hh = k->low & HH ? high * HIDDEN + wide * k->rank : wide * HIDDEN;

    ck_assert_double_eq(sp_graph_macs(o.g), ih + hh);
    close_layer(&o);
}
END_TEST

/* ---- Mistakes ------------------------------------------------------------ */

/* Sizes of parameters, for 4 inputs and states of 5; 0: there is none. */
static const struct {
    int w_ih[2], u_ih[2], v_ih[2], w_hh[2], u_hh[2], v_hh[2];
    sp_err err;
    const char *says;
} mistakes[] = {
    { { 20, 4 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, SP_EARG, "given once" },
    { { 0 }, { 8, 4 }, { 0 }, { 20, 5 }, { 0 }, { 0 }, SP_EARG, "given once" },
    { { 0 }, { 0 }, { 20, 2 }, { 20, 5 }, { 0 }, { 0 }, SP_EARG, "u_ih and" },
    { { 20, 4 },
      { 8, 4 },
      { 20, 2 },
      { 20, 5 },
      { 0 },
      { 0 },
      SP_EARG,
      "once" },
    { { 20, 4 },
      { 0 },
      { 0 },
      { 20, 5 },
      { 8, 5 },
      { 20, 2 },
      SP_EARG,
      "once" },
    { { 0 },
      { 8, 4 },
      { 21, 2 },
      { 20, 5 },
      { 0 },
      { 0 },
      SP_ESHAPE,
      "v_ih must be 20 x rank" },
    { { 0 },
      { 8, 5 },
      { 20, 2 },
      { 20, 5 },
      { 0 },
      { 0 },
      SP_ESHAPE,
      "u_ih must be 8 x 4 or, joined, 2 x 4" },
    { { 20, 4 },
      { 0 },
      { 0 },
      { 0 },
      { 6, 5 },
      { 20, 2 },
      SP_ESHAPE,
      "u_hh must be 8 x 5 or, joined, 2 x 5" },
    { { 20, 4 },
      { 0 },
      { 0 },
      { 0 },
      { 8, 5 },
      { 20, 0 },
      SP_ESHAPE,
      "v_hh must be 20 x rank" },
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static sp_param *maybe(const layer *o, const char *name, const int size[2])
{
    return size[0] ? weight(o, name, size[0], size[1]) : NULL;
}

START_TEST(factors_that_do_not_fit_are_refused)
{
    sp_shape state = { .n = 3, .c = 5 };
    layer o = { .p = sp_params_new() };

    o.g = sp_graph_new(o.p, (sp_graph_opt){ 0 });
    o.x = sp_input(o.g, "x", (sp_shape){ .t = 2, .n = 3, .c = 4 }, SP_F32);
    o.h = sp_input(o.g, "h", state, SP_F32);
    o.c = sp_input(o.g, "c", state, SP_F32);
    o.w.w_ih = maybe(&o, "w_ih", mistakes[_i].w_ih);
    o.w.u_ih = maybe(&o, "u_ih", mistakes[_i].u_ih);
    o.w.v_ih = maybe(&o, "v_ih", mistakes[_i].v_ih);
    o.w.w_hh = maybe(&o, "w_hh", mistakes[_i].w_hh);
    o.w.u_hh = maybe(&o, "u_hh", mistakes[_i].u_hh);
    o.w.v_hh = maybe(&o, "v_hh", mistakes[_i].v_hh);
    sp_lstm(o.g, "lstm", o.x, o.h, o.c, o.w, false);
    ck_assert_int_eq(sp_compile(o.g), mistakes[_i].err);
    ck_assert_msg(strstr(sp_last_error(), mistakes[_i].says) != NULL, "%s",
                  sp_last_error());
    close_layer(&o);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recurrent_factors");
    TCase *tc = tcase_create("recurrent_factors");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, factors_compute_what_their_product_does, 0, KINDS);
    tcase_add_loop_test(tc, evaluation_has_the_bits_of_training, 0, KINDS);
    tcase_add_loop_test(tc, products_are_counted, 0, KINDS);
    tcase_add_loop_test(tc, factors_that_do_not_fit_are_refused, 0, MISTAKES);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
