/* Training on text: states that are carried on, scores of every token, and the
 * laws that hold for images, too. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runs.h"
#include "train/evaluate.h"
#include "train/session.h"

/* 600 tokens in 4 columns are 149 targets each: 22 chunks of up to 7. */
#define TEXT                                                       \
    "model.name=lstm_lm", "model.hidden=6", "model.embedding=5",   \
        "model.layers=2", "model.dropout=0.25", "model.bound=0.5", \
        "data.vocab=11", "data.augment=none", "data.train=600",    \
        "data.test=101", "train.batch=4", "train.bptt=7",          \
        "train.eval_batch=3", "train.epochs=2", "optim.lr=0.5"

static const char *const text[] = { TEXT, NULL };

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static void train(const char *run, const char *const *overrides)
{
    if (runs_train(&r, (runs_job){ .run = run, .overrides = overrides }) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

static void check_same(const char *a, const char *b)
{
    ck_assert(runs_same(&r, a, b, "model.safetensors"));
    ck_assert(runs_same(&r, a, b, "optim.safetensors"));
}

/* A number of a run's result.json, "best" "test_ppl"; NAN: it is not there. */
static double result(const char *run, const char *line, const char *key)
{
    const char *path = runs_path(&r, run, "result.json");
    char *bytes = runs_read(path);
    const sp_json_value *object;
    double value = NAN;
    sp_json_doc *doc;

    ck_assert_int_eq(sp_json_parse(&doc, path, bytes, strlen(bytes)), SP_OK);
    object = sp_json_find(sp_json_root(doc), line);
    ck_assert_ptr_nonnull(object);
    if (sp_json_find(object, key))
        ck_assert_int_eq(sp_json_get_number(object, key, &value), SP_OK);
    sp_json_doc_free(doc);
    free(bytes);
    return value;
}

START_TEST(a_run_learns_and_reports_perplexity)
{
    const char *more[] = { TEXT,
                           "train.epochs=8",
                           "data.train=2000",
                           "model.hidden=16",
                           "model.dropout=0",
                           NULL };
    double ppl;

    train("a", more);
    ppl = result("a", "final", "train_ppl");
    ck_assert_double_lt(ppl, 8); /* 11 for one who knows nothing */
    ck_assert_double_eq_tol(log(ppl), result("a", "final", "train_loss"), 1e-9);
    ck_assert_double_eq_tol(log(result("a", "best", "valid_ppl")),
                            result("a", "best", "valid_loss"), 1e-9);
    ck_assert(isnan(result("a", "final", "train_top1")));
}
END_TEST

START_TEST(what_shares_memory_or_work_changes_no_bit)
{
    const char *threads[] = { TEXT, "train.threads=3", NULL };
    const char *planner[] = { TEXT, "train.planner=off", NULL };

    train("a", text);
    train("b", threads);
    check_same("a", "b");
    train("c", planner);
    check_same("a", "c");
}
END_TEST

/* Each part of a batch has its own rows of the states. */
START_TEST(micro_batches_are_the_same_training)
{
    const char *whole[] = { TEXT, "train.epochs=1", NULL };
    const char *parts[] = { TEXT, "train.epochs=1", "train.micro_batch=2",
                            NULL };

    train("a", whole);
    train("b", parts);
    ck_assert_double_eq_tol(result("a", "final", "train_loss"),
                            result("b", "final", "train_loss"), 1e-5);
    ck_assert_double_eq_tol(result("a", "final", "valid_loss"),
                            result("b", "final", "valid_loss"), 1e-5);
}
END_TEST

/* Within an epoch, where states are carried, and at its end. */
START_TEST(a_resumed_run_has_the_same_bits)
{
    static const int at[] = { 1, 10, 22, 23, 40 };
    runs_job stop = {
        .run = "b", .overrides = text, .end = RUNS_STOP, .lines = at[_i]
    };
    runs_job go_on = { .run = "b" };

    train("a", text);
    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(runs_resume(&r, go_on), SP_OK);
    check_same("a", "b");
    ck_assert_double_eq(result("a", "best", "test_ppl"),
                        result("b", "best", "test_ppl"));
}
END_TEST

START_TEST(a_killed_run_goes_on_from_its_checkpoint)
{
    const char *often[] = { TEXT, "train.checkpoint_steps=5", NULL };
    runs_job die = {
        .run = "b", .overrides = often, .end = RUNS_DIE, .lines = 18
    };
    runs_job go_on = { .run = "b" };

    train("a", often);
    ck_assert(runs_train_killed(&r, die));
    ck_assert_int_eq(runs_resume(&r, go_on), SP_OK);
    check_same("a", "b");
}
END_TEST

START_TEST(the_test_part_is_scored_once_with_the_best_weights)
{
    runs_job again = { .run = "a" };
    char *metrics;
    sp_scores s;
    double ppl;

    train("a", text);
    ppl = result("a", "best", "test_ppl");
    ck_assert_int_eq(
        sp_eval(r.registry, runs_path(&r, "a", ""), "best", SP_PART_TEST, &s),
        SP_OK);
    ck_assert_uint_eq(s.count, 100); /* of 101 tokens */
    ck_assert_double_eq_tol(ppl, exp(s.loss), 1e-9 * ppl);
    ck_assert(isnan(s.top1));
    metrics = runs_read(runs_path(&r, "a", "metrics.jsonl"));
    ck_assert_ptr_null(strstr(metrics, "test_"));
    ck_assert_ptr_nonnull(strstr(metrics, "valid_ppl"));
    free(metrics);
    /* A complete run is only tested again. */
    ck_assert_int_eq(runs_resume(&r, again), SP_OK);
    ck_assert_double_eq(result("a", "best", "test_ppl"), ppl);
}
END_TEST

/* The mean loss of the validation part, its states of `forgotten` ("rnn.c")
 * zeroed before each chunk. */
static double loss_without(sp_session *s, const char *forgotten)
{
    sp_loader *l = NULL;
    double sum = 0, count = 0;
    sp_batch b;

    ck_assert_int_eq(sp_loader_new(&l,
                                   &(sp_loader_opt){
                                       .data = s->data,
                                       .part = SP_PART_VALID,
                                       .batch = (size_t)s->eval.rows,
                                       .steps = s->eval.steps,
                                       .scoring = true,
                                   }),
                     SP_OK);
    for (;;) {
        sp_carry *c = &s->eval.carry;
        sp_run run = { .weight = 1 };

        ck_assert_int_eq(sp_loader_next(l, &b), SP_OK);
        if (b.end)
            break;
        run.n = b.n;
        run.t = b.t;
        memcpy(s->eval.input->data, b.tokens,
               (size_t)(b.n * b.t) * sizeof(int));
        memcpy(s->eval.label->data, b.labels,
               (size_t)(b.n * b.t) * sizeof(int));
        if (b.index == 0)
            sp_carry_reset(c);
        for (int i = 0; i < c->count; i++)
            if (forgotten && strstr(c->at[i].name, forgotten))
                memset(c->at[i].now, 0,
                       (size_t)(c->rows * c->at[i].c) * sizeof(float));
        sp_carry_forward(c, &run, 0);
        sp_carry_advance(c);
        sum += sp_loss(s->eval.graph, &run);
        count += b.n * b.t;
    }
    sp_loader_free(l);
    return sum / count;
}

static sp_session open_eval(sp_config *c)
{
    sp_session s;

    if (sp_session_open(
            &s, c, (sp_session_opt){ .eval = true, .data = true }) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return s;
}

START_TEST(hidden_and_cell_states_of_every_layer_are_carried)
{
    static const char *const names[] = { "rnn.h_l0", "rnn.c_l0", "rnn.h_l1",
                                         "rnn.c_l1" };
    const char *large[] = { TEXT, "model.bound=2", NULL };
    sp_config *c = runs_config(&r, large);
    sp_session s = open_eval(c);
    sp_scores scores;
    double whole;

    ck_assert_int_eq(s.eval.carry.count, 4);
    ck_assert_int_eq(sp_evaluate(&s, SP_PART_VALID, NULL, NULL, &scores),
                     SP_OK);
    whole = loss_without(&s, NULL);
    ck_assert_double_eq(whole, scores.loss);
    for (int i = 0; i < 4; i++)
        ck_assert_double_gt(fabs(loss_without(&s, names[i]) - whole), 1e-4);
    ck_assert_double_gt(fabs(loss_without(&s, "rnn.c_") - whole), 1e-4);
    sp_session_close(&s);
    sp_config_free(c);
}
END_TEST

static sp_scores score(const char *batch, const char *steps)
{
    const char *with[] = { TEXT, batch, steps, NULL };
    sp_config *c = runs_config(&r, with);
    sp_session s = open_eval(c);
    sp_scores scores;

    ck_assert_int_eq(sp_evaluate(&s, SP_PART_TEST, NULL, NULL, &scores), SP_OK);
    sp_session_close(&s);
    sp_config_free(c);
    return scores;
}

/* Chunks do not matter, since states are carried. Columns do, since each begins
 * with zero, but none loses a target. */
START_TEST(every_target_is_scored_whatever_the_chunks)
{
    static const char *const steps[] = { "train.bptt=1", "train.bptt=13",
                                         "train.bptt=100", "train.bptt=1000" };
    static const char *const batch[] = { "train.eval_batch=1",
                                         "train.eval_batch=7",
                                         "train.eval_batch=100",
                                         "train.eval_batch=256" };
    sp_scores one = score(batch[0], steps[0]);

    for (int i = 0; i < 4; i++) {
        sp_scores chunks = score(batch[0], steps[i]);
        sp_scores columns = score(batch[i], steps[1]);

        ck_assert_uint_eq(chunks.count, 100);
        ck_assert_uint_eq(columns.count, 100);
        ck_assert_double_eq_tol(chunks.loss, one.loss, 1e-6);
        if (i > 0)
            ck_assert_double_gt(fabs(columns.loss - one.loss), 1e-6);
    }
}
END_TEST

/* 149 targets a column are 22 chunks of 7 tokens, but 2 of 100 and of 149. */
START_TEST(a_chunk_begun_cannot_change_its_length)
{
    const char *chunks[] = { TEXT, "train.bptt=100", NULL };
    const char *longer[] = { "train.bptt=140", NULL };
    runs_job stop = {
        .run = "a", .overrides = chunks, .end = RUNS_STOP, .lines = 1
    };
    runs_job go_on = { .run = "a", .overrides = longer };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(runs_resume(&r, go_on), SP_ECONFIG);
    ck_assert_msg(runs_error("change train.bptt between epochs only"), "%s",
                  sp_last_error());
}
END_TEST

/* e^loss overflows, and is written as null. */
START_TEST(a_perplexity_may_be_infinite)
{
    const char *wild[] = { TEXT, "model.bound=10", "optim.lr=1e4",
                           "train.epochs=1", NULL };
    runs_job more = { .run = "a",
                      .overrides = (const char *[]){ "train.epochs=2", NULL } };
    char *metrics;
    sp_err e;

    e = runs_train(&r, (runs_job){ .run = "a", .overrides = wild });
    ck_assert_msg(e == SP_OK, "%s", sp_last_error());
    metrics = runs_read(runs_path(&r, "a", "metrics.jsonl"));
    ck_assert_ptr_nonnull(strstr(metrics, "\"valid_ppl\":null"));
    free(metrics);
    e = runs_resume(&r, more);
    ck_assert_msg(e == SP_OK || e == SP_ENUMERIC, "%s", sp_last_error());
}
END_TEST

/* Their numbers mean other things. */
START_TEST(made_up_text_does_not_go_on_with_words)
{
    const char *other[] = { "data.name=text", "data.vocab=11", "train.epochs=3",
                            NULL, NULL };
    char root[512];

    snprintf(root, sizeof root, "data.root=%s", runs_path(&r, "words", ""));
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = { "words/train.txt",
                                             "words/valid.txt",
                                             "words/test.txt" };
        char lines[40 * 24] = "";
        for (int k = 0; k < 40; k++)
            strcat(lines, "a b c d e f g h i j\n");
        sp_scratch_write(r.folder, files[i], lines, strlen(lines));
    }
    other[3] = root;
    train("a", text);
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "a", .overrides = other }),
        SP_ECONFIG);
    ck_assert_msg(runs_error("made-up tokens, the data are words"), "%s",
                  sp_last_error());
}
END_TEST

START_TEST(a_smoothed_loss_has_no_perplexity)
{
    const char *smooth[] = { TEXT, "train.epochs=1",
                             "train.label_smoothing=0.1", NULL };

    train("a", smooth);
    ck_assert(isnan(result("a", "final", "train_ppl")));
    ck_assert(!isnan(result("a", "final", "valid_ppl")));
}
END_TEST

START_TEST(what_does_not_fit_text_is_refused)
{
    static const struct {
        const char *override, *word;
    } wrong[] = {
        { "data.vocab=0", "model.name: lstm_lm takes tokens" },
        { "train.bptt=150", "train.bptt" },
        { "train.batch=100", "600 tokens in 100 columns" },
        { "data.augment=flip", "data.augment" },
        { "data.valid=5", "data.valid" },
        { "model.tied=true", "model.tied" },
    };
    const char *overrides[] = { TEXT, wrong[_i].override, NULL };
    sp_config *c = runs_config(&r, overrides);

    ck_assert_int_ne(sp_check(c, NULL, NULL), SP_OK);
    ck_assert_msg(runs_error(wrong[_i].word), "%s", sp_last_error());
    sp_config_free(c);
}
END_TEST

START_TEST(a_model_for_images_takes_no_text)
{
    const char *overrides[] = { "data.vocab=11", "data.augment=none", NULL };
    sp_config *c = runs_config(&r, overrides);

    ck_assert_int_eq(sp_check(c, NULL, NULL), SP_ECONFIG);
    ck_assert_msg(runs_error("model.name: mlp takes images"), "%s",
                  sp_last_error());
    sp_config_free(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text_training");
    TCase *t = tcase_create("text_training");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_run_learns_and_reports_perplexity);
    tcase_add_test(t, what_shares_memory_or_work_changes_no_bit);
    tcase_add_test(t, micro_batches_are_the_same_training);
    tcase_add_loop_test(t, a_resumed_run_has_the_same_bits, 0, 5);
    tcase_add_test(t, a_killed_run_goes_on_from_its_checkpoint);
    tcase_add_test(t, the_test_part_is_scored_once_with_the_best_weights);
    tcase_add_test(t, hidden_and_cell_states_of_every_layer_are_carried);
    tcase_add_test(t, every_target_is_scored_whatever_the_chunks);
    tcase_add_test(t, a_chunk_begun_cannot_change_its_length);
    tcase_add_test(t, a_perplexity_may_be_infinite);
    tcase_add_test(t, made_up_text_does_not_go_on_with_words);
    tcase_add_test(t, a_smoothed_loss_has_no_perplexity);
    tcase_add_loop_test(t, what_does_not_fit_text_is_refused, 0, 6);
    tcase_add_test(t, a_model_for_images_takes_no_text);
    suite_add_tcase(s, t);

    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
