/* Text that a model writes. */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"

static const char corpus[] = "the cat sat\nthe dog ran\na cat ran <unk>\n";

/* Enough epochs to know it by heart. */
static const char settings[] =
    "model: {name: lstm_lm, hidden: 16}\n"
    "data: {name: text}\n"
    "train: {batch: 2, bptt: 8, eval_batch: 1, epochs: 150, threads: 1,\n"
    "  keep: 1}\n"
    "optim: {name: sgd, lr: 0.5, momentum: 0.9}\n"
    "log: {every: 1000}\n";

static runs r;
static char root[512];

/* A text of 20 times the same lines. */
static void set_up(void)
{
    static const char *const files[] = { "text/train.txt", "text/valid.txt",
                                         "text/test.txt" };
    char many[20 * sizeof corpus] = "";

    r = runs_new();
    for (int i = 0; i < 20; i++)
        strcat(many, corpus);
    for (int i = 0; i < 3; i++)
        sp_scratch_write(r.folder, files[i], many, strlen(many));
    snprintf(root, sizeof root, "data.root=%s",
             sp_scratch_path(r.folder, "text"));
}

static void tear_down(void) { runs_free(&r); }

static void train(const char *level)
{
    const char *overrides[] = { root, level, NULL };

    sp_scratch_write(r.folder, "config.yaml", settings, sizeof settings - 1);
    if (runs_train(&r, (runs_job){ .run = "a", .overrides = overrides }) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

static sp_err sample(sp_sample_opt o, char **out)
{
    size_t size;
    sp_err e;

    o.run = runs_path(&r, "a", "");
    o.out = open_memstream(out, &size);
    ck_assert_ptr_nonnull(o.out);
    e = sp_sample(r.registry, &o);
    fclose(o.out);
    return e;
}

static char *text(sp_sample_opt o)
{
    char *out;

    if (sample(o, &out) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return out;
}

static void check_text(sp_sample_opt o, const char *want)
{
    char *out = text(o);

    ck_assert_str_eq(out, want);
    free(out);
}

/* A model that knows its text by heart goes on with it, and what it likes best
 * does not hang on chance. */
START_TEST(a_model_writes_what_it_has_learnt)
{
    sp_sample_opt o = { .tokens = 4, .prompt = "the dog" };

    train("data.level=word");
    check_text(o, "the dog ran\na cat\n");
    o.seed = 7;
    check_text(o, "the dog ran\na cat\n");
    o.tokens = 2;
    o.temperature = 0.01;
    o.prompt = "the dog";
    check_text(o, "the dog ran\n");
}
END_TEST

START_TEST(an_unknown_word_is_said_to_be_unknown)
{
    char *out;

    train("data.level=word");
    out = text((sp_sample_opt){ .tokens = 1, .prompt = "the bird" });
    ck_assert_int_eq(strncmp(out, "the <unk>", 9), 0);
    free(out);
}
END_TEST

START_TEST(a_seed_is_a_text)
{
    sp_sample_opt o = { .tokens = 40, .temperature = 2, .seed = 3 };
    char *a, *b, *c;

    train("data.level=word");
    a = text(o);
    b = text(o);
    o.seed = 4;
    c = text(o);
    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    free(a);
    free(b);
    free(c);
}
END_TEST

START_TEST(characters_follow_each_other_without_spaces)
{
    train("data.level=char");
    check_text((sp_sample_opt){ .tokens = 5, .prompt = "the do" },
               "the dog ran\n");
}
END_TEST

START_TEST(what_the_vocabulary_lacks_is_refused)
{
    char *out;

    train("data.level=char");
    ck_assert_int_eq(
        sample((sp_sample_opt){ .tokens = 1, .prompt = "the X" }, &out),
        SP_EDATA);
    ck_assert_msg(runs_error("'X'"), "%s", sp_last_error());
    free(out);
}
END_TEST

START_TEST(only_text_with_words_can_be_written)
{
    const char *made_up[] = { "model.name=lstm_lm", "model.hidden=4",
                              "data.vocab=5",       "data.augment=none",
                              "train.bptt=7",       "train.epochs=1",
                              "data.train=600",     NULL };
    char *out;

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_int_eq(sample((sp_sample_opt){ .tokens = 1 }, &out), SP_ECONFIG);
    ck_assert_msg(runs_error("trained on images"), "%s", sp_last_error());
    free(out);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "a",
                                                .overrides = made_up,
                                                .overwrite = true }),
                     SP_OK);
    ck_assert_int_eq(sample((sp_sample_opt){ .tokens = 1 }, &out), SP_ECONFIG);
    ck_assert_msg(runs_error("stand for nothing"), "%s", sp_last_error());
    free(out);
}
END_TEST

/* The numbers of the words are what the weights speak of. */
START_TEST(another_vocabulary_is_noticed)
{
    const char *path = sp_scratch_path(r.folder, "text/train.txt");
    sp_scores s;
    char *bytes;

    train("data.level=word");
    bytes = runs_read(path);
    memcpy(bytes, "the cow", 7);
    sp_scratch_write(r.folder, "text/train.txt", bytes, strlen(bytes));
    free(bytes);
    ck_assert_int_ne(
        sp_eval(r.registry, runs_path(&r, "a", ""), "last", SP_PART_TEST, &s),
        SP_OK);
    ck_assert_msg(runs_error("trained on"), "%s", sp_last_error());
    ck_assert_int_ne(runs_resume(&r, (runs_job){ .run = "a" }), SP_OK);
    ck_assert_msg(runs_error("trained on"), "%s", sp_last_error());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sample");
    TCase *t = tcase_create("sample");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_model_writes_what_it_has_learnt);
    tcase_add_test(t, an_unknown_word_is_said_to_be_unknown);
    tcase_add_test(t, a_seed_is_a_text);
    tcase_add_test(t, characters_follow_each_other_without_spaces);
    tcase_add_test(t, what_the_vocabulary_lacks_is_refused);
    tcase_add_test(t, only_text_with_words_can_be_written);
    tcase_add_test(t, another_vocabulary_is_noticed);
    suite_add_tcase(s, t);

    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
