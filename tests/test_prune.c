/* Magnitude pruning: what is removed, that it stays so, and what is refused
 * before step 0. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pruned.h"
#include "sprat/nn.h"
#include "train/checkpoint.h"
#include "train/prune.h"
#include "train/session.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* ---- Weights of checkpoints ---------------------------------------------- */

/* A checkpoint's weights in a session of their own. */
typedef struct opened {
    sp_config *config;
    sp_session s;
    sp_train_state state;
} opened;

static opened open_at(const char *run, const char *name,
                      const char *const *overrides)
{
    char *path = strdup(runs_path(&r, run, ""));
    sp_text told = { 0 };
    sp_checkpoint c;
    opened o = { .config = runs_config(&r, overrides) };

    ck_assert_int_eq(
        sp_session_open(&o.s, o.config, (sp_session_opt){ .train = true }),
        SP_OK);
    if (sp_checkpoint_open(&c, path, name) != SP_OK ||
        sp_checkpoint_load_all(&c, &o.s, &told) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    o.state = c.manifest.state;
    sp_text_free(&told);
    sp_checkpoint_close(&c);
    free(path);
    return o;
}

static void close_at(opened *o)
{
    sp_session_close(&o->s);
    sp_config_free(o->config);
}

/* All weights that can be pruned, one behind the other; free() frees. */
static float *gather(const opened *o, size_t *count)
{
    float *all = NULL;
    const sp_param *p;

    *count = 0;
    for (int i = 0; (p = sp_params_at(o->s.params, i)); i++) {
        if (p->buffer || p->ndim < 2)
            continue;
        all = realloc(all, (*count + p->count) * sizeof *all);
        ck_assert_ptr_nonnull(all);
        memcpy(all + *count, p->value, p->count * sizeof *all);
        *count += p->count;
    }
    return all;
}

static size_t zeros(const float *x, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += x[i] == 0;
    return count;
}

static int by_size(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);

    return (x > y) - (x < y);
}

/* The `count`-th smallest magnitude, by sorting a copy. */
static float magnitude(const float *x, size_t n, size_t count)
{
    float *sorted = malloc(n * sizeof *sorted), value;

    memcpy(sorted, x, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    value = fabsf(sorted[count - 1]);
    free(sorted);
    return value;
}

/* `after` is `before` with its smallest weights removed and all else as in
 * `origin`. */
static void check_weights(const opened *before, const opened *after,
                          const opened *origin, size_t expected)
{
    size_t n;
    float *x = gather(before, &n), *y = gather(after, &n);
    float *z = gather(origin, &n), limit = magnitude(x, n, expected);
    size_t moved = 0;

    ck_assert_uint_eq(zeros(y, n), expected);
    for (size_t i = 0; i < n; i++) {
        if (y[i] == 0) {
            ck_assert_float_le(fabsf(x[i]), limit);
        } else {
            ck_assert_float_ge(fabsf(x[i]), limit);
            ck_assert_float_eq(y[i], z[i]);
        }
        moved += x[i] != z[i];
    }
    ck_assert_uint_gt(moved, n / 2);
    free(x);
    free(y);
    free(z);
}

/* Biases, norms and running statistics are as they were; momentum is not. */
static void check_others(const opened *after, const opened *origin)
{
    int states = sp_optim_rule(after->s.optim)->state_count;
    const sp_param *p, *q;

    for (int i = 0; (p = sp_params_at(after->s.params, i)); i++) {
        q = sp_params_at(origin->s.params, i);
        if (p->buffer || p->ndim < 2)
            ck_assert_mem_eq(p->value, q->value, p->count * sizeof(float));
        for (int j = 0; !p->buffer && j < states; j++) {
            const float *m = sp_optim_state(after->s.optim, p, j);
            for (size_t k = 0; k < p->count; k++)
                ck_assert_float_eq(m[k], 0);
        }
    }
}

/* Up to a round's end; and over it, without a step. */
static void go_to(const char *run, int step, const char *const *with)
{
    char limit[32];
    const char *const extra[] = { limit, NULL };
    const char *both[RUNS_MOST];

    snprintf(limit, sizeof limit, "train.max_steps=%d", step);
    runs_join(both, with, extra);
    if (with)
        pruned_train(&r, run, both);
    else
        pruned_resume(&r, run, both);
}

static void go_over(const char *run)
{
    static const char *const on[] = { "train.max_steps=0", NULL };
    runs_job job = { .run = run, .overrides = on, .end = RUNS_STOP };

    ck_assert_int_eq(runs_resume(&r, job), SP_ESTOPPED);
}

/* Of 20 % each, rounded down; half with `late`. */
START_TEST(a_round_removes_the_smallest_and_leads_all_others_back)
{
    static const struct {
        int steps, again, epoch, share;
    } of[PRUNED_NETWORKS] = {
        { 6, 6, 0, 5 }, { 12, 12, 0, 5 }, { 12, 12, 0, 5 }, { 15, 10, 1, 2 }
    };
    const char *const *with = pruned_networks[_i];
    const char *const name = of[_i].epoch ? "rewind" : "start";
    int steps = of[_i].steps;
    size_t gone = 0;

    for (int round = 1; round <= 2; round++, steps += of[_i].again) {
        opened before, after, origin;

        go_to("a", steps, round == 1 ? with : NULL);
        before = open_at("a", "last", with);
        go_over("a");
        after = open_at("a", "last", with);
        origin = open_at("a", name, with);
        ck_assert_int_eq(before.state.round, round - 1);
        ck_assert_int_eq(after.state.round, round);
        ck_assert_int_eq(after.state.epoch, of[_i].epoch);
        ck_assert_int_eq(after.state.step, steps);
        ck_assert_int_eq(after.state.begun, steps);
        ck_assert_int_eq(origin.state.epoch, of[_i].epoch);
        ck_assert_double_eq(after.state.schedule.factor,
                            origin.state.schedule.factor);
        ck_assert(_i < 3 || before.state.schedule.factor < 1);
        ck_assert(isnan(after.state.best.epoch));
        gone += (sp_prunable(after.s.params) - gone) / (size_t)of[_i].share;
        check_weights(&before, &after, &origin, gone);
        check_others(&after, &origin);
        close_at(&before);
        close_at(&after);
        close_at(&origin);
    }
}
END_TEST

/* Through trainings with momentum, decay, clipping and Adam. */
START_TEST(what_is_removed_stays_0)
{
    const char *const *with = pruned_networks[_i];
    opened last;
    const sp_param *p;
    size_t moved = 0, gone = 0, all;

    pruned_train(&r, "a", with);
    last = open_at("a", "last", with);
    for (int i = 0; (p = sp_params_at(last.s.params, i)); i++)
        for (int j = 0;
             !p->buffer && j < sp_optim_rule(last.s.optim)->state_count; j++) {
            const float *m = sp_optim_state(last.s.optim, p, j);
            for (size_t k = 0; k < p->count; k++) {
                if (p->ndim > 1 && p->value[k] == 0)
                    ck_assert_float_eq(m[k], 0);
                moved += m[k] != 0;
            }
        }
    ck_assert_uint_gt(moved, 0);
    all = sp_prunable(last.s.params);
    for (int round = 1; round <= 2; round++)
        gone += (all - gone) / (_i == 3 ? 2 : 5);
    ck_assert_uint_eq(sp_prune_zeros(last.s.params), gone);
    close_at(&last);
}
END_TEST

/* ---- Choosing ------------------------------------------------------------ */

START_TEST(of_equal_weights_the_first_are_removed)
{
    static const float values[] = { 3, -1, 0, 1, -FLT_MIN, 1, -2, 1e30f };
    static const char gone_of[][9] = { "........", "..x.....", "..x.x...",
                                       ".xx.x...", ".xxxx...", ".xxxxx..",
                                       ".xxxxxx.", "xxxxxxx." };
    sp_params *params = sp_params_new();
    sp_graph *g = sp_graph_new(params, (sp_graph_opt){ .train = true });
    sp_tensor *x = sp_input(g, "x", (sp_shape){ .n = 1, .c = 8 }, SP_F32);
    sp_tensor *y = sp_linear(g, "fc", x, (sp_linear_opt){ .out = 1 });
    bool gone[8];
    float *w;

    sp_output(g, "loss", y);
    ck_assert_int_eq(sp_compile(g), SP_OK);
    ck_assert_uint_eq(sp_prunable(params), 8);
    w = sp_params_find(params, "fc.weight")->value;
    memcpy(w, values, sizeof values);
    ck_assert_uint_eq(sp_prune_zeros(params), 1);
    ck_assert_int_eq(sp_prune_smallest(params, (size_t)_i, gone), SP_OK);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(gone[i], gone_of[_i][i] == 'x');
    sp_prune_apply(params, gone);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(w[i], gone[i]          ? 0
                                 : values[i] == 0 ? FLT_MIN
                                                  : values[i]);
    sp_graph_free(g);
    sp_params_free(params);
}
END_TEST

/* A step that leads a weight to 0 does not remove it. */
START_TEST(only_a_pruning_removes)
{
    sp_config *c = runs_config(&r, pruned_mlp);
    sp_session s;
    sp_param *p;

    ck_assert_int_eq(sp_session_open(&s, c, (sp_session_opt){ .train = true }),
                     SP_OK);
    p = sp_params_find(s.params, "fc1.weight");
    ck_assert_ptr_nonnull(p);
    p->value[0] = p->value[1] = 0;
    p->grad[0] = 1;
    p->grad[1] = 0;
    sp_prune_keep(s.params, 1);
    ck_assert_float_eq(p->value[0], FLT_MIN);
    ck_assert_float_eq(p->value[1], 0);
    p->value[0] = 0;
    p->grad[2] = 5;
    sp_prune_hold(s.params, 1);
    ck_assert_float_eq(p->grad[0], 0);
    ck_assert_float_eq(p->grad[2], 5);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

/* ---- Refusals ------------------------------------------------------------ */

START_TEST(what_cannot_be_pruned_is_refused_before_step_0)
{
    static const struct {
        const char *override, *word;
    } cases[] = {
        { "prune.rewind_epoch=2", "prune.rewind_epoch: is 2" },
        { "prune.share=0", "prune.share: 0 is not" },
        { "prune.share=1", "prune.share: 1 is not" },
        { "prune.share=1.5", "prune.share" },
        { "prune.rounds=0", "prune.rounds" },
        { "compress.name=dgc", "prune.name: magnitude needs compress.name" },
        { "lowrank.name=pufferfish", "prune.name: magnitude needs lowrank" },
    };
    const char *extra[] = { cases[_i].override, NULL };
    const char *with[RUNS_MOST];

    runs_join(with, pruned_mlp, extra);
    runs_refused(&r, with, cases[_i].word);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("prune");
    TCase *t = tcase_create("prune");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t,
                        a_round_removes_the_smallest_and_leads_all_others_back,
                        0, PRUNED_NETWORKS);
    tcase_add_loop_test(t, what_is_removed_stays_0, 0, PRUNED_NETWORKS);
    tcase_add_loop_test(t, of_equal_weights_the_first_are_removed, 0, 8);
    tcase_add_test(t, only_a_pruning_removes);
    tcase_add_loop_test(t, what_cannot_be_pruned_is_refused_before_step_0, 0,
                        7);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
