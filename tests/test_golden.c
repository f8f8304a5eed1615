/* Whole networks against PyTorch in float64: first-step gradients, losses of
 * the first steps, evaluation after them. The files in golden/ are made by
 * tools/golden.py, which explains their fields; weights and inputs are
 * computed here as there. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "golden_file.h"
#include "optim/optim.h"
#include "optim/section.h"
#include "sprat/model.h"
#include "sprat/nn.h"
#include "sprat/random.h"

enum { CLASSES = 10, SIZE = 32, STEPS_MAX = 20 };

/* The losses of direct convolutions must agree to a thousandth. Winograd's
 * tiles round some times more coarsely; over 20 steps, units that are near
 * their kink then take another side, as they would by a change of the data in
 * the sixth digit. */
static const double GRADIENT_TOLERANCE = 1e-4;
static const double LOSS_TOLERANCE = 1e-3, TILES_LOSS_TOLERANCE = 1e-2;

extern const sp_model sp_model_resnet, sp_model_vgg;
extern const sp_optimizer sp_optimizer_sgd;

/* The networks, and in how many of the variants below they are computed. */
static const struct {
    const char *name;
    int variants;
} networks[] = { { "resnet20", 5 },
                 { "resnet18", 3 },
                 { "resnet18-narrow", 5 },
                 { "vgg19", 3 },
                 { "vgg19-narrow", 5 } };
enum { NETWORKS = sizeof networks / sizeof *networks };

/* ---- Reading a golden file ----------------------------------------------- */

enum { DIGESTS_MAX = 100, SETTINGS_MAX = 16 };

typedef struct golden {
    char *settings[SETTINGS_MAX]; /* "model.depth=20" */
    size_t setting_count;
    int batch, steps, digest_count;
    unsigned weight_seed, data_seed;
    float shift_low, shift_high; /* of batch norm's bias */
    golden_digest digests[DIGESTS_MAX];
    double loss[STEPS_MAX], eval;
} golden;

static void read_settings(golden *g, const char *section, char *words)
{
    for (char *w = strtok(words, " \n"); w; w = strtok(NULL, " \n")) {
        size_t size = strlen(section) + strlen(w) + 2;
        char *s = malloc(size);
        ck_assert_uint_lt(g->setting_count, SETTINGS_MAX);
        snprintf(s, size, "%s.%s", section, w);
        g->settings[g->setting_count++] = s;
    }
}

static void read_line(void *arg, char *line)
{
    golden *g = arg;
    double x;

    if (strncmp(line, "model ", 6) == 0)
        read_settings(g, "model", line + 6);
    else if (strncmp(line, "optim ", 6) == 0)
        read_settings(g, "optim", line + 6);
    else if (strncmp(line, "gradient ", 9) == 0 &&
             g->digest_count < DIGESTS_MAX)
        golden_read_digest(&g->digests[g->digest_count++], line);
    else if (sscanf(line, "loss %lf", &x) == 1 && g->steps < STEPS_MAX)
        g->loss[g->steps++] = x;
    else if (sscanf(line, "eval %lf", &g->eval) != 1 &&
             sscanf(line, "batch %d", &g->batch) != 1 &&
             sscanf(line, "shifts %f %f", &g->shift_low, &g->shift_high) != 2 &&
             sscanf(line, "seeds %u %u", &g->weight_seed, &g->data_seed) != 2)
        ck_abort_msg("line not understood: %s", line);
}

/* ---- The network --------------------------------------------------------- */

/* A way to compute that must not change results (much). */
typedef struct variant {
    const char *name;
    sp_graph_opt opt;
} variant;

static const variant variants[] = {
    { "as usual", { .threads = 2 } },
    { "without tiles", { .threads = 2, .winograd = SP_WINOGRAD_OFF } },
    { "by BLAS", { .threads = 1, .reference = true } },
    { "without planner", { .threads = 1, .no_planner = true } },
    { "with the base instruction set", { .threads = 1, .isa = "base" } },
};

typedef struct network {
    golden g;
    sp_registry *registry;
    sp_config *config;
    sp_params *params;
} network;

static const sp_section model_section = { .name = "model", .fallback = "" };

static void open_network(network *n, const char *name)
{
    static const sp_section *const sections[] = { &model_section,
                                                  &sp_optim_section };

    golden_read(name, read_line, &n->g);
    n->registry = sp_registry_create(sections, 2);
    ck_assert_int_eq(
        sp_registry_add(n->registry, "model", &sp_model_resnet.entry), SP_OK);
    ck_assert_int_eq(sp_registry_add(n->registry, "model", &sp_model_vgg.entry),
                     SP_OK);
    ck_assert_int_eq(
        sp_registry_add(n->registry, "optim", &sp_optimizer_sgd.entry), SP_OK);
    if (sp_config_load(&n->config, n->registry, NULL, 0,
                       (const char *const *)n->g.settings,
                       n->g.setting_count) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    n->params = sp_params_new();
}

static void close_network(network *n)
{
    sp_params_free(n->params);
    sp_config_free(n->config);
    sp_registry_free(n->registry);
    for (size_t i = 0; i < n->g.setting_count; i++)
        free(n->g.settings[i]);
}

static sp_graph *compile(const network *n, sp_graph_opt opt)
{
    const sp_model *model =
        (const sp_model *)sp_config_entry(n->config, "model");
    sp_model_args args = { .classes = CLASSES,
                           .own = sp_config_own(n->config, "model") };
    sp_shape images = { .n = n->g.batch, .h = SIZE, .w = SIZE, .c = 3 };
    sp_graph *g = sp_graph_new(n->params, opt);
    sp_tensor *x = sp_input(g, "image", images, SP_F32);
    sp_tensor *t = sp_input(g, "label", (sp_shape){ .n = n->g.batch }, SP_I32);

    sp_output(g, "loss", sp_cross_entropy(g, model->build(g, x, &args), t, 0));
    if (sp_compile(g) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return g;
}

/* Fill `value` with low + (high - low) * [0, 1). */
static void fill(float *value, size_t n, uint64_t seed, const char *name,
                 float low, float high)
{
    uint64_t hash = sp_name_hash(name);
    uint32_t r[4];

    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            sp_random(seed, SP_FOR_TEST, hash, i / 4, r);
        value[i] = low + (high - low) * sp_unit(r[i % 4]);
    }
}

/* Whether it is a batch norm's weight or bias. */
static bool is_norm(const network *n, const sp_param *p)
{
    size_t stem = (size_t)(strrchr(p->name, '.') - p->name);
    char mean[128];

    snprintf(mean, sizeof mean, "%.*s.running_mean", (int)stem, p->name);
    return sp_params_find(n->params, mean) != NULL;
}

/* The models' own initial values, but batch norm's: 1 and 0 would hide
 * mistakes. */
static void initialise(const network *n)
{
    sp_param *p;

    sp_params_init(n->params, n->g.weight_seed);
    for (int i = 0; (p = sp_params_at(n->params, i)); i++) {
        bool weight = strcmp(strrchr(p->name, '.'), ".weight") == 0;
        if (!p->buffer && is_norm(n, p))
            fill(p->value, p->count, n->g.weight_seed, p->name,
                 weight ? 0.5f : n->g.shift_low,
                 weight ? 1.0f : n->g.shift_high);
    }
}

static void reset_buffers(const network *n)
{
    sp_param *p;

    for (int i = 0; (p = sp_params_at(n->params, i)); i++)
        for (size_t k = 0; p->buffer && k < p->count; k++)
            p->value[k] = p->init.a;
}

/* Forward, and backward if the graph is for training; the data of a step. */
static double run_step(const network *n, sp_graph *g, int step, bool train)
{
    sp_tensor *x = sp_graph_input(g, "image"), *t = sp_graph_input(g, "label");
    uint64_t seed = n->g.data_seed + (unsigned)step;
    uint64_t label = sp_name_hash("label");
    sp_run run = { .n = n->g.batch,
                   .t = 1,
                   .train = train,
                   .weight = 1.0 / n->g.batch,
                   .step = step };

    fill(x->data, sp_count(x->shape), seed, "image", -2, 2);
    for (int i = 0; i < n->g.batch; i++) {
        uint32_t r[4];
        sp_random(seed, SP_FOR_TEST, label, (uint64_t)i / 4, r);
        ((int32_t *)t->data)[i] = (int32_t)(r[i % 4] % CLASSES);
    }
    sp_forward(g, &run);
    if (train)
        sp_backward(g, &run, NULL, NULL);
    return sp_loss(g, &run);
}

/* ---- Comparing ----------------------------------------------------------- */

static double disagreement(const network *n, const golden_digest *d)
{
    const sp_param *p = sp_params_find(n->params, d->name);

    ck_assert_msg(p != NULL, "there is no parameter %s", d->name);
    ck_assert_uint_eq(p->count, d->count);
    return golden_disagreement(d, p->grad, n->g.weight_seed);
}

static void compare_gradients(const network *n, const variant *v)
{
    sp_graph_opt opt = v->opt;
    const char *name = "";
    double worst = 0;
    int trained = 0;
    sp_graph *g;
    sp_param *p;

    opt.train = true;
    g = compile(n, opt);
    if (v == variants)
        initialise(n);
    run_step(n, g, 0, true);
    for (int i = 0; (p = sp_params_at(n->params, i)); i++)
        trained += !p->buffer;
    ck_assert_int_eq(n->g.digest_count, trained);
    for (int i = 0; i < n->g.digest_count; i++) {
        double error = disagreement(n, &n->g.digests[i]);
        if (error > worst)
            name = n->g.digests[i].name;
        worst = fmax(worst, error);
    }
    printf("  gradients %s: differ by up to %.1e (%s)\n", v->name, worst, name);
    ck_assert_double_lt(worst, GRADIENT_TOLERANCE);
    sp_graph_free(g);
}

/* From the initial values on. */
static void compare_losses(const network *n, sp_winograd tiles,
                           double tolerance)
{
    sp_graph_opt opt = { .threads = 2, .winograd = tiles };
    sp_graph *eval = compile(n, opt), *g;
    const sp_optim_cfg *cfg = sp_config_section(n->config, "optim");
    sp_optim_args args = { .params = n->params,
                           .rule = &sp_optimizer_sgd,
                           .own = sp_config_own(n->config, "optim"),
                           .cfg = cfg,
                           .threads = 1 };
    double worst = 0;
    sp_optim *o;

    opt.train = true;
    g = compile(n, opt);
    ck_assert_int_eq(sp_optim_new(&o, &args), SP_OK);
    initialise(n);
    reset_buffers(n);
    for (int step = 0; step < n->g.steps; step++) {
        double loss = run_step(n, g, step, true);
        worst = fmax(worst, fabs(loss / n->g.loss[step] - 1));
        sp_optim_update(o, cfg->lr, sp_optim_norm(o), step);
    }
    worst =
        fmax(worst, fabs(run_step(n, eval, n->g.steps, false) / n->g.eval - 1));
    printf("  losses of %d steps, %s tiles: differ by up to %.1e\n", n->g.steps,
           tiles == SP_WINOGRAD_OFF ? "without" : "with", worst);
    ck_assert_double_lt(worst, tolerance);
    sp_optim_free(o);
    sp_graph_free(eval);
    sp_graph_free(g);
}

START_TEST(network_agrees_with_pytorch)
{
    network *n = calloc(1, sizeof *n);

    open_network(n, networks[_i].name);
    printf("%s\n", networks[_i].name);
    for (int v = 0; v < networks[_i].variants; v++)
        compare_gradients(n, &variants[v]);
    ck_assert_int_gt(n->g.steps, 0);
    compare_losses(n, SP_WINOGRAD_OFF, LOSS_TOLERANCE);
    compare_losses(n, SP_WINOGRAD_AUTO, TILES_LOSS_TOLERANCE);
    fflush(stdout);
    close_network(n);
    free(n);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("golden");
    TCase *tc = tcase_create("golden");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 240);
    tcase_add_loop_test(tc, network_agrees_with_pytorch, 0, NETWORKS);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
