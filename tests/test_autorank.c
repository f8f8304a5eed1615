/* Ranks that training chooses: the rule, and what checkpoints hold of it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/random.h"
#include "train/autorank.h"

/* ---- The rule ------------------------------------------------------------ */

enum { MOST_EPOCHS = 60, MOST_LAYERS = 5 };

/* As the authors' code does: the whole average, its gradient as numpy's, the
 * last 11 of it. */
static double mean_gradient(const double *ranks, int n)
{
    double average[MOST_EPOCHS], gradient[MOST_EPOCHS], sum = 0;

    average[0] = ranks[0];
    for (int i = 1; i < n; i++)
        average[i] = ranks[i] * (2.0 / 16) + average[i - 1] * (1 - 2.0 / 16);
    for (int i = 0; i < n; i++) {
        int before = i > 0 ? i - 1 : i, behind = i < n - 1 ? i + 1 : i;
        gradient[i] = (average[behind] - average[before]) / (behind - before);
    }
    for (int i = n - 11; i < n; i++)
        sum += fabs(gradient[i]);
    return sum / 11;
}

/* Layers that settle after one another, and tremble. */
static double made_up(int layer, int epoch, int sequence)
{
    uint32_t draw[4];
    double fall = 4 + 3 * layer + sequence;

    sp_random(7, SP_FOR_DATA, (uint64_t)sequence,
              (uint64_t)(layer * MOST_EPOCHS + epoch), draw);
    return 5 + 20 * exp(-epoch / fall) +
           0.3 * sequence * (double)draw[0] / 4294967296.0;
}

static sp_autorank open_layers(int count, int rows, int columns)
{
    sp_autorank a;

    ck_assert_int_eq(sp_autorank_room(&a, count), SP_OK);
    for (int i = 0; i < count; i++) {
        a.layers[i].whole = strdup(i ? "layer1.fc.weight" : "layer1.weight");
        a.layers[i].blocks = 1;
        a.layers[i].rows = rows;
        a.layers[i].columns = columns;
    }
    return a;
}

START_TEST(layers_become_stable_as_in_the_published_code)
{
    static const int warmup = 15;
    sp_autorank a = open_layers(MOST_LAYERS, 64, 64);
    double all[MOST_LAYERS][MOST_EPOCHS], now[MOST_LAYERS];
    bool stable[MOST_LAYERS] = { false };
    int changes = 0;

    for (int epoch = 0; epoch < MOST_EPOCHS; epoch++) {
        int left = 0;
        for (int i = 0; i < MOST_LAYERS; i++)
            left += !stable[i];
        for (int i = 0; i < MOST_LAYERS; i++) {
            double limit = left == 1 ? 0.5 : left == 2 ? 0.25 : 0.1;
            all[i][epoch] = now[i] = made_up(i, epoch, _i);
            if (epoch >= warmup && !stable[i] &&
                mean_gradient(all[i], epoch + 1) <= limit) {
                stable[i] = true;
                changes++;
            }
        }
        if (epoch == 0)
            sp_autorank_start(&a, now);
        else
            sp_autorank_add(&a, now, warmup);
        for (int i = 0; i < MOST_LAYERS; i++)
            ck_assert_int_eq(a.layers[i].stable, stable[i]);
    }
    ck_assert_int_ge(changes, MOST_LAYERS);
    ck_assert_int_eq(sp_autorank_left(&a), 0);
    sp_autorank_free(&a);
}
END_TEST

/* A sequence with a slope has, in the long run, an average with that slope: at
 * most 0.1 among three layers or more, 0.25 of two, 0.5 of one. */
START_TEST(the_last_two_layers_may_change_more)
{
    static const struct {
        int layers;
        double slope;
        bool stable;
    } cases[] = {
        { 3, 0.09, true },  { 3, 0.11, false }, { 2, 0.24, true },
        { 2, 0.26, false }, { 1, 0.49, true },  { 1, 0.51, false },
    };
    sp_autorank a = open_layers(cases[_i].layers, 64, 64);
    double now[3];

    for (int epoch = 0; epoch < 200; epoch++) {
        for (int i = 0; i < cases[_i].layers; i++)
            now[i] = 30 - cases[_i].slope * epoch;
        if (epoch == 0)
            sp_autorank_start(&a, now);
        else
            sp_autorank_add(&a, now, 150);
    }
    ck_assert_int_eq(sp_autorank_left(&a) == 0, cases[_i].stable);
    sp_autorank_free(&a);
}
END_TEST

START_TEST(nothing_is_judged_before_there_are_points_and_the_warmup_is_over)
{
    static const int warmup[] = { 0, 11, 12, 20 }, first[] = { 11, 11, 12, 20 };
    sp_autorank a = open_layers(1, 64, 64);
    double now = 9;

    sp_autorank_start(&a, &now);
    for (int epoch = 1; epoch <= 20; epoch++) {
        sp_autorank_add(&a, &now, warmup[_i]);
        ck_assert_int_eq(sp_autorank_left(&a), epoch < first[_i]);
    }
    sp_autorank_free(&a);
}
END_TEST

/* 40 x 120 at the start: 40 for a stable rank of 16; so 2.5 for 1, rounded up.
 * Factors of rank 30 have as many weights, 30 * 160. */
START_TEST(the_rank_is_the_stable_one_scaled)
{
    static const struct {
        double stable_rank;
        int rank;
        bool pays;
    } cases[] = {
        { 16, 40, false },  { 20, 40, false },    { 12, 30, false },
        { 11.6, 29, true }, { 11.61, 30, false }, { 3, 8, true },
        { 0.1, 1, true },   { 0, 1, true },
    };
    sp_autorank a = open_layers(1, 40, 120);
    double start = 16;

    sp_autorank_start(&a, &start);
    a.layers[0].stable_rank = cases[_i].stable_rank;
    ck_assert_int_eq(sp_autorank_estimate(&a.layers[0]), cases[_i].rank);
    ck_assert_int_eq(sp_autorank_pays(&a.layers[0]), cases[_i].pays);
    ck_assert(!sp_autorank_choose(&a)); /* is not stable */
    a.layers[0].stable = true;
    ck_assert_int_eq(sp_autorank_choose(&a), cases[_i].pays);
    ck_assert_int_eq(a.layers[0].rank, cases[_i].pays ? cases[_i].rank : 0);
    sp_autorank_free(&a);
}
END_TEST

START_TEST(layers_are_found_by_their_names)
{
    sp_autorank a = open_layers(2, 4, 4);

    ck_assert_ptr_eq(sp_autorank_find(&a, "layer1"), &a.layers[0]);
    ck_assert_ptr_eq(sp_autorank_find(&a, "layer1.weight"), &a.layers[0]);
    ck_assert_ptr_eq(sp_autorank_find(&a, "layer1.fc"), &a.layers[1]);
    ck_assert_ptr_null(sp_autorank_find(&a, "layer"));
    ck_assert_ptr_null(sp_autorank_find(&a, "fc"));
    sp_autorank_free(&a);
}
END_TEST

/* ---- In checkpoints ------------------------------------------------------ */

static sp_autorank some_history(int epochs)
{
    sp_autorank a = open_layers(2, 24, 32);
    double now[2] = { 1.0 / 3, 24.0 / 7 };

    sp_autorank_start(&a, now);
    for (int i = 0; i < epochs; i++) {
        now[0] = made_up(0, i, 1);
        now[1] = made_up(1, i, 2);
        sp_autorank_add(&a, now, 15);
    }
    return a;
}

static sp_err read_text(const char *text, sp_autorank *a)
{
    sp_json_doc *doc;
    sp_err e = sp_json_parse(&doc, "x.json", text, strlen(text));

    if (e == SP_OK)
        e = sp_autorank_read(sp_json_root(doc), a);
    sp_json_doc_free(doc);
    return e;
}

static void write_text(const sp_autorank *a, sp_json *j, const char **text)
{
    sp_json_open(j, NULL);
    sp_autorank_write(j, a);
    sp_json_close(j);
    ck_assert_int_eq(sp_json_finish(j, text), SP_OK);
}

START_TEST(what_was_seen_keeps_its_bits)
{
    static const int epochs[] = { 0, 5, 12, 40 };
    sp_autorank a = some_history(epochs[_i]), b;
    sp_json j = { 0 };
    const char *text;

    a.chosen = _i == 3;
    a.layers[1].rank = 9;
    write_text(&a, &j, &text);
    ck_assert_int_eq(read_text(text, &b), SP_OK);
    ck_assert_int_eq(b.count, 2);
    ck_assert_int_eq(b.epochs, a.epochs);
    ck_assert_int_eq(b.chosen, a.chosen);
    for (int i = 0; i < 2; i++) {
        const sp_autorank_layer *x = &a.layers[i], *y = &b.layers[i];
        ck_assert_str_eq(x->whole, y->whole);
        ck_assert_int_eq(x->rows, y->rows);
        ck_assert_int_eq(x->columns, y->columns);
        ck_assert_int_eq(x->blocks, y->blocks);
        ck_assert_int_eq(x->rank, y->rank);
        ck_assert_int_eq(x->stable, y->stable);
        ck_assert_mem_eq(&x->scale, &y->scale, sizeof x->scale);
        ck_assert_mem_eq(&x->stable_rank, &y->stable_rank, sizeof(double));
        ck_assert_mem_eq(x->points, y->points, sizeof x->points);
    }
    sp_json_free(&j);
    sp_autorank_free(&a);
    sp_autorank_free(&b);
}
END_TEST

START_TEST(what_is_no_history_is_refused)
{
#define LAYER(rows, points)                                                \
    "{\"autorank\":{\"epochs\":0,\"chosen\":false,\"layers\":[{\"whole\":" \
    "\"a\",\"blocks\":1,\"rows\":" rows ",\"columns\":4,\"scale\":1,"      \
    "\"stable_rank\":1,\"stable\":false,\"rank\":0,\"points\":" points "}]}}"
    static const char *const texts[] = {
        LAYER("0", "[1]"),
        LAYER("4", "[]"),
        LAYER("4", "[1,2]"),
        LAYER("4", "[null]"),
        LAYER("4", "3"),
        LAYER("1e300", "[1]"),
        "{\"autorank\":3}",
        "{\"autorank\":{\"epochs\":-1,\"chosen\":false,\"layers\":[]}}",
        "{\"autorank\":{\"epochs\":1,\"layers\":[]}}",
        "{\"autorank\":{\"epochs\":1,\"chosen\":true,\"layers\":[3]}}",
    };
    sp_autorank a;

    ck_assert_int_eq(read_text(LAYER("4", "[1]"), &a), SP_OK);
    ck_assert_int_eq(a.count, 1);
    sp_autorank_free(&a);
    ck_assert_int_eq(read_text("{}", &a), SP_OK);
    ck_assert_int_eq(a.count, 0);
    ck_assert_int_eq(read_text(texts[_i], &a), SP_EFORMAT);
    ck_assert_ptr_null(a.layers);
#undef LAYER
}
END_TEST

int main(void)
{
    Suite *s = suite_create("autorank");
    TCase *rule = tcase_create("rule");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_loop_test(rule, layers_become_stable_as_in_the_published_code, 0,
                        4);
    tcase_add_loop_test(rule, the_last_two_layers_may_change_more, 0, 6);
    tcase_add_loop_test(
        rule, nothing_is_judged_before_there_are_points_and_the_warmup_is_over,
        0, 4);
    tcase_add_loop_test(rule, the_rank_is_the_stable_one_scaled, 0, 8);
    tcase_add_test(rule, layers_are_found_by_their_names);
    tcase_add_loop_test(rule, what_was_seen_keeps_its_bits, 0, 4);
    tcase_add_loop_test(rule, what_is_no_history_is_refused, 0, 10);
    suite_add_tcase(s, rule);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
