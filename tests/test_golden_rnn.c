/* Recurrent layers and language models against PyTorch in float64: outputs,
 * last states and all gradients; losses of the first steps of training, with
 * states carried over. The files in golden/ are made by tools/golden_rnn.py,
 * which says what they hold; parameters and inputs are computed here as
 * there. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden_file.h"
#include "sprat/nn.h"
#include "sprat/random.h"

enum { STEPS_MAX = 20, DIGESTS_MAX = 32 };
enum { WEIGHT_SEED = 1, DATA_SEED = 3 };

/* As in tools/golden_rnn.py. */
enum { T = 9, N = 3, IN = 5 };
enum { LM_T = 5, LM_N = 4, WORDS = 50, WIDE = 16 };
static const float BOUND = 0.5f, EMBEDDING_BOUND = 1.0f, LR = 0.5f;

/* Against the largest entry, and the norm; against the loss. */
static const double TOLERANCE = 1e-5, LOSS_TOLERANCE = 1e-6;

typedef struct golden {
    golden_digest digests[DIGESTS_MAX];
    double loss[STEPS_MAX];
    int digest_count, steps;
} golden;

static void read_line(void *arg, char *line)
{
    golden *g = arg;

    if (strncmp(line, "loss ", 5) == 0) {
        ck_assert_int_lt(g->steps, STEPS_MAX);
        g->loss[g->steps++] = strtod(line + 5, NULL);
    } else {
        ck_assert_int_lt(g->digest_count, DIGESTS_MAX);
        golden_read_digest(&g->digests[g->digest_count++], line);
    }
}

static golden *read_golden(const char *name)
{
    golden *g = calloc(1, sizeof *g);

    ck_assert_ptr_nonnull(g);
    golden_read(name, read_line, g);
    return g;
}

/* ---- Programs ------------------------------------------------------------ */

/* Ways to compute that must not change results. */
static const sp_graph_opt variants[] = {
    { .train = true, .threads = 2 },
    { .train = true, .reference = true },
    { .train = true, .isa = "base", .no_planner = true },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

typedef struct net {
    sp_params *p;
    sp_graph *g;
    sp_tensor *x, *label, *y;
    sp_run run;
} net;

static void words(uint32_t *out, size_t n, uint64_t seed, const char *name)
{
    uint32_t r[4];

    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            sp_random(seed, SP_FOR_TEST, sp_name_hash(name), i / 4, r);
        out[i] = r[i % 4];
    }
}

static void fill(sp_tensor *x)
{
    size_t n = sp_count(x->shape);
    float *to = x->data;

    words(x->data, n, DATA_SEED, x->name);
    for (size_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, &to[i], sizeof word);
        to[i] = 2.0f * sp_unit(word) - 1.0f;
    }
}

static void fill_tokens(sp_tensor *x, uint64_t seed, int limit)
{
    size_t n = sp_count(x->shape);
    uint32_t *to = x->data;

    words(to, n, seed, x->name);
    for (size_t i = 0; i < n; i++)
        to[i] %= (uint32_t)limit;
}

/* The loss over logits, compiled, at the parameters' start. */
static void finish(net *t, sp_tensor *logits)
{
    sp_shape s = logits->shape;

    t->label =
        sp_input(t->g, "label", (sp_shape){ .t = s.t, .n = s.n }, SP_I32);
    sp_output(t->g, "loss", sp_cross_entropy(t->g, logits, t->label, 0));
    ck_assert_msg(sp_compile(t->g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t->p, WEIGHT_SEED);
    t->run = (sp_run){
        .n = s.n, .t = s.t, .train = true, .weight = 1.0 / (s.t * s.n)
    };
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

/* An array of a digest: its values, or its gradient. */
static const float *find_array(const net *t, const golden_digest *d)
{
    bool grad = strcmp(d->kind, "gradient") == 0;
    const sp_param *p = sp_params_find(t->p, d->name);
    const sp_state_pair *s;

    if (p) {
        ck_assert_uint_eq(p->count, d->count);
        return p->grad;
    }
    for (int i = 0; (s = sp_graph_state(t->g, i)); i++)
        if (strcmp(s->now->name, d->name) == 0) {
            ck_assert_uint_eq(sp_count(s->now->shape), d->count);
            return grad ? s->now->grad : s->next->data;
        }
    const sp_tensor *x = strcmp(d->name, "x") == 0   ? t->x
                         : strcmp(d->name, "y") == 0 ? t->y
                                                     : NULL;
    ck_assert_msg(x != NULL, "no array %s", d->name);
    ck_assert_uint_eq(sp_count(x->shape), d->count);
    return grad ? x->grad : x->data;
}

static double compare(const net *t, const golden *g)
{
    double worst = 0;

    for (int i = 0; i < g->digest_count; i++) {
        const golden_digest *d = &g->digests[i];
        double error = golden_disagreement(d, find_array(t, d), WEIGHT_SEED);
        ck_assert_msg(error < TOLERANCE, "%s of %s differs by %.1e", d->kind,
                      d->name, error);
        worst = fmax(worst, error);
    }
    return worst;
}

/* How many arrays a file should hold a gradient of. */
static int trained(const net *t)
{
    int count = 0;

    while (sp_params_at(t->p, count))
        count++;
    return count;
}

/* ---- Layers -------------------------------------------------------------- */

static const struct {
    const char *name;
    sp_rnn_opt opt;
    int others; /* arrays beside the parameters' gradients */
} cases[] = {
    { "lstm", { .kind = SP_LSTM, .hidden = 13, .layers = 2 }, 10 },
    { "gru", { .kind = SP_GRU, .hidden = 13, .layers = 2 }, 6 },
    { "lstm-both",
      { .kind = SP_LSTM, .hidden = 7, .layers = 2, .bidirectional = true },
      2 },
    { "gru-both",
      { .kind = SP_GRU, .hidden = 7, .layers = 2, .bidirectional = true },
      2 },
};
enum { CASES = sizeof cases / sizeof *cases };

static net open_layers(sp_rnn_opt o, sp_graph_opt opt)
{
    net t = { .p = sp_params_new() };

    opt.input_grads = true;
    o.bound = BOUND;
    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "x", (sp_shape){ .t = T, .n = N, .c = IN }, SP_F32);
    t.y = sp_rnn(t.g, "rnn", t.x, o);
    sp_output(t.g, "y", t.y);
    finish(&t, t.y);
    fill(t.x);
    for (int i = 0; sp_graph_state(t.g, i); i++)
        fill(sp_graph_state(t.g, i)->now);
    fill_tokens(t.label, DATA_SEED, t.y->shape.c);
    return t;
}

START_TEST(layers_agree_with_pytorch)
{
    golden *g = read_golden(cases[_i].name);

    for (int v = 0; v < VARIANTS; v++) {
        net t = open_layers(cases[_i].opt, variants[v]);
        sp_forward(t.g, &t.run);
        sp_backward(t.g, &t.run, NULL, NULL);
        ck_assert_int_eq(g->digest_count, trained(&t) + cases[_i].others);
        printf("  %s, variant %d: differ by up to %.1e\n", cases[_i].name, v,
               compare(&t, g));
        close_net(&t);
    }
    fflush(stdout);
    free(g);
}
END_TEST

/* ---- Language models ----------------------------------------------------- */

static const struct {
    const char *name;
    bool tied;
    int biases;
    int rank;
} models[] = { { "lm-tied-1", true, 1, 0 },
               { "lm-tied-2", true, 2, 0 },
               { "lm-untied-1", false, 1, 0 },
               { "lm-untied-2", false, 2, 0 },
               { "lm-rank", true, 1, 3 } };
enum { MODELS = sizeof models / sizeof *models };

static net open_model(int model, sp_graph_opt opt)
{
    bool tied = models[model].tied;
    sp_rnn_opt rnn = { .hidden = WIDE,
                       .layers = 2,
                       .biases = models[model].biases,
                       .bound = BOUND,
                       .rank = models[model].rank };
    sp_linear_opt decoder = { .out = WORDS,
                              .bound = BOUND,
                              .tied = tied ? "encoder.weight" : NULL };
    sp_embedding_opt encoder = { .rows = WORDS,
                                 .out = WIDE,
                                 .bound = EMBEDDING_BOUND };
    net t = { .p = sp_params_new() };
    sp_tensor *e;

    t.g = sp_graph_new(t.p, opt);
    t.x = sp_input(t.g, "token", (sp_shape){ .t = LM_T, .n = LM_N }, SP_I32);
    e = sp_embedding(t.g, "encoder", t.x, encoder);
    t.y = sp_rnn(t.g, "rnn", e, rnn);
    finish(&t, sp_linear(t.g, "decoder", t.y, decoder));
    return t;
}

/* Forward and backward over the data of a step; then what a run leaves becomes
 * what the next starts with. */
static double run_step(const net *t, int step)
{
    const sp_state_pair *s;

    fill_tokens(t->x, DATA_SEED + (uint64_t)step, WORDS);
    fill_tokens(t->label, DATA_SEED + (uint64_t)step, WORDS);
    sp_forward(t->g, &t->run);
    sp_backward(t->g, &t->run, NULL, NULL);
    for (int i = 0; (s = sp_graph_state(t->g, i)); i++)
        memcpy(s->now->data, s->next->data,
               sp_count(s->now->shape) * sizeof(float));
    return sp_loss(t->g, &t->run);
}

START_TEST(language_models_agree_with_pytorch)
{
    golden *g = read_golden(models[_i].name);

    ck_assert_int_eq(g->steps, STEPS_MAX);
    for (int v = 0; v < VARIANTS; v++) {
        net t = open_model(_i, variants[v]);
        double worst = 0, gradients = 0;
        for (int step = 0; step < g->steps; step++) {
            double loss = run_step(&t, step);
            worst = fmax(worst, fabs(loss / g->loss[step] - 1));
            if (step == 0)
                gradients = compare(&t, g);
            for (size_t i = 0; i < sp_params_count(t.p); i++)
                sp_params_values(t.p)[i] -= LR * sp_params_grads(t.p)[i];
        }
        ck_assert_int_eq(g->digest_count, trained(&t));
        printf("  %s, variant %d: gradients differ by up to %.1e, losses by "
               "%.1e\n",
               models[_i].name, v, gradients, worst);
        ck_assert_double_lt(worst, LOSS_TOLERANCE);
        close_net(&t);
    }
    fflush(stdout);
    free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("golden_rnn");
    TCase *tc = tcase_create("golden_rnn");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, layers_agree_with_pytorch, 0, CASES);
    tcase_add_loop_test(tc, language_models_agree_with_pytorch, 0, MODELS);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
