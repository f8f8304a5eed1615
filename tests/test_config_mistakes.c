#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_sample.h"

START_TEST(keys_that_come_with_another_choice_are_mistakes)
{
    sp_config *c;

    sample_refused(
        MLP "optim: {name: adam, momentum: 0.5}\n",
        "a.yaml:2:21: optim with name: adam has no key \"momentum\"; "
        "momentum belongs to optim.name: sgd");
    /* Set after the choice, and by the same arguments as the choice. */
    ck_assert_int_eq(
        sample_load(&c,
                    (const char *[]){ MLP "optim: {name: adam}\n",
                                      "optim: {momentum: 1}\n", NULL },
                    NULL),
        SP_ECONFIG);
    ck_assert_int_eq(sample_load(&c, (const char *[]){ MLP, NULL },
                                 (const char *[]){ "optim.momentum=1",
                                                   "optim.name=adam", NULL }),
                     SP_ECONFIG);
    ck_assert_str_eq(sp_last_error(),
                     "argument \"optim.momentum=1\": optim with name: adam has "
                     "no key \"momentum\"; momentum belongs to optim.name: "
                     "sgd");
    /* Set earlier, but unknown to the earlier choice too. */
    ck_assert_int_eq(
        sample_load(&c,
                    (const char *[]){ MLP "optim: {momentun: 1}\n",
                                      "optim: {name: adam}\n", NULL },
                    NULL),
        SP_ECONFIG);
}
END_TEST

static const struct {
    const char *text, *lines;
} mistakes[] = {
    { "", "configuration: model.name must be given; the names are: mlp" },
    { MLP "optim:\n  momentun: 0.9\n",
      "a.yaml:3:3: optim with name: sgd has no key \"momentun\"; did you mean "
      "momentum?" },
    { MLP "optim:\n  epochs: 0.9\n",
      "a.yaml:3:3: optim with name: sgd has no key \"epochs\"; epochs is a key "
      "of section train" },
    { MLP "train:\n  beta: 0.9\n",
      "a.yaml:3:3: train has no key \"beta\"; beta belongs to optim.name: "
      "adam" },
    { MLP "train:\n  name: x\n", "a.yaml:3:3: train has no key \"name\"; the "
                                 "keys are: epochs, offset, note, at" },
    { MLP "train:\n  something: x\n",
      "a.yaml:3:3: train has no key \"something\"; the keys are: epochs, "
      "offset, note, at" },
    { MLP "trian:\n  epochs: 3\n",
      "a.yaml:2:1: there is no section \"trian\"; did you mean train?" },
    { MLP "lr: 3\n", "a.yaml:2:1: there is no section \"lr\"; lr is a key of "
                     "section optim" },
    { MLP "zoo: {}\n",
      "a.yaml:2:1: there is no section \"zoo\"; the sections are: model, "
      "train, optim" },
    { MLP "optim:\n  name: SGD\n",
      "a.yaml:3:9: optim.name: there is no \"SGD\"; did you mean sgd?" },
    { MLP "optim:\n  name: lion\n",
      "a.yaml:3:9: optim.name: there is no \"lion\"; the names are: sgd, "
      "adam" },
    { MLP "optim: {name: [sgd]}\n",
      "a.yaml:2:15: optim.name must be one name, not a list" },
    { MLP "train:\n  epochs: ten\n",
      "a.yaml:3:11: train.epochs must be a whole number, not \"ten\"" },
    { MLP "train:\n  epochs: 2.5\n",
      "a.yaml:3:11: train.epochs must be a whole number, not \"2.5\"" },
    { MLP "train:\n  epochs:\n",
      "a.yaml:3:10: train.epochs must be a whole number, not \"\"" },
    { MLP "train:\n  epochs: 0\n",
      "a.yaml:3:11: train.epochs must be from 1 to 100000, not 0" },
    { MLP "train:\n  offset: 1e10\n",
      "a.yaml:3:11: train.offset must be from -2147483648 to 2147483647, not "
      "10000000000" },
    { MLP "optim:\n  lr: 1001\n",
      "a.yaml:3:7: optim.lr must be from 0 to 1000, not 1001" },
    { MLP "optim:\n  lr: -1e-30\n",
      "a.yaml:3:7: optim.lr must be from 0 to 1000, not -1e-30" },
    { MLP "optim:\n  lr: .nan\n",
      "a.yaml:3:7: optim.lr must be a finite number, not \".nan\"" },
    { MLP "optim:\n  lr: inf\n",
      "a.yaml:3:7: optim.lr must be a finite number, not \"inf\"" },
    { MLP "optim:\n  lr: 1e999\n",
      "a.yaml:3:7: optim.lr must be a finite number, not \"1e999\"" },
    { MLP "optim:\n  lr: 0x10\n",
      "a.yaml:3:7: optim.lr must be a finite number, not \"0x10\"" },
    { MLP "optim:\n  lr: [1]\n",
      "a.yaml:3:7: optim.lr must be a single value, not a list" },
    { MLP "optim:\n  decay: none\n",
      "a.yaml:3:10: optim.decay must be one of all, matrices, not \"none\"" },
    { MLP "optim:\n  decay: al\n",
      "a.yaml:3:10: optim.decay must be one of all, matrices, not \"al\"" },
    { MLP "train:\n  at: 5\n", "a.yaml:3:7: train.at must be a list of "
                               "numbers, as in [1, 2], not \"5\"" },
    { MLP "train:\n  at: [5, x]\n",
      "a.yaml:3:7: train.at must hold finite numbers, not \"x\"" },
    { MLP "train:\n  at: [5, [6]]\n",
      "a.yaml:3:11: a list holds numbers, not lists or mappings" },
    { MLP "optim:\n  name: adam\n  steps: [5, 10]\n",
      "a.yaml:4:10: optim.steps must be from 0 to 9, not 10" },
    { MLP "optim:\n  lr: 1\n  decay: all\n  lr: 1\n",
      "a.yaml:5:3: \"lr\" is set twice, first at a.yaml:3:3; remove one" },
    { MLP "optim:\n  lr: 1\ntrain:\n  at: []\noptim:\n  lr: 2\n",
      "a.yaml:6:1: section optim stands twice, first at a.yaml:2:1; put its "
      "keys together" },
    { MLP "optim: 3\n", "a.yaml:2:8: optim is a section: write its keys as "
                        "indented \"key: value\" lines" },
    { MLP "optim: [3]\n",
      "a.yaml:2:8: a section holds \"key: value\" lines, not a list" },
    { MLP "train: {note: {a: b}}\n",
      "a.yaml:2:15: the value must be a single value or a list of numbers" },
    { MLP "train: {[a]: b}\n",
      "a.yaml:2:9: a key must be a word, not a list or mapping" },
    { MLP "[train]: {at: []}\n", "a.yaml:2:1: a section's name must be a "
                                 "word" },
    { MLP "train: {note: &x a}\n",
      "a.yaml:2:15: anchors are not supported; leave \"&x\" out" },
    { MLP "train: &x {note: a}\n",
      "a.yaml:2:8: anchors and tags are not supported; leave \"x\" out" },
    { MLP "train: {note: *x}\n",
      "a.yaml:2:15: aliases are not supported; write the value out" },
    { MLP "train: {note: !!str a}\n",
      "a.yaml:2:15: tags are not supported; leave \"tag:yaml.org,2002:str\" "
      "out" },
    { MLP "train: {note: \"a\\0b\"}\n",
      "a.yaml:2:15: a string must not contain a 0 byte" },
    { MLP "--- \n" MLP, "a.yaml:2:1: a second document begins; a configuration "
                        "is one document" },
    { "- a\n", "a.yaml:1:1: a configuration holds sections, each with indented "
               "\"key: value\" lines\n"
               "configuration: model.name must be given; the names are: mlp" },
};

START_TEST(mistakes_are_told_with_place_and_remedy)
{
    sample_refused(mistakes[_i].text, mistakes[_i].lines);
}
END_TEST

START_TEST(all_mistakes_come_at_once)
{
    sp_config *c;
    sp_err e = sample_load(
        &c,
        (const char *[]){ "train:\n  epochs: x\n  nota: y\n",
                          "optim: {lr: -1}\n", "a: [\n", NULL },
        (const char *[]){ "optim.lrr=3", "optim", "b.c=1", "train.offset=1.5",
                          "optim.=", "train.at=[1", NULL });

    ck_assert_int_eq(e, SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "c.yaml:2:1: not valid "
                                                  "YAML: "));
    ck_assert_ptr_nonnull(
        strstr(sp_last_error(),
               "argument \"optim\": must be section.key=value, as in "
               "train.epochs=30\n"
               "argument \"b.c=1\": there is no section \"b\"; the sections "
               "are: model, train, optim\n"
               "argument \"optim.=\": must be section.key=value, as in "
               "train.epochs=30\n"
               "argument \"train.at=[1\": not valid YAML: "));
    ck_assert_ptr_nonnull(
        strstr(sp_last_error(),
               "a.yaml:3:3: train has no key \"nota\"; did you mean note?\n"
               "argument \"optim.lrr=3\": optim with name: sgd has no key "
               "\"lrr\"; did you mean lr?\n"
               "a.yaml:2:11: train.epochs must be a whole number, not \"x\"\n"
               "argument \"train.offset=1.5\": train.offset must be a whole "
               "number, not \"1.5\"\n"
               "b.yaml:1:13: optim.lr must be from 0 to 1000, not -1"));
}
END_TEST

/* What a file would have set is not said to be missing. */
START_TEST(a_file_that_is_not_read_misses_nothing)
{
    sp_config *c;
    sp_err e = sample_load(&c, (const char *[]){ "model: {name\n", NULL },
                           (const char *[]){ NULL });

    ck_assert_int_eq(e, SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "not valid YAML"));
    ck_assert_ptr_null(strstr(sp_last_error(), "must be given"));
}
END_TEST

/* The end of a long list of mistakes is counted, not lost. */
START_TEST(many_mistakes_are_counted)
{
    char text[4000] = MLP "train:\n";
    sp_config *c;

    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), 40, "  wrong_key_%d: 1\n", i);
    ck_assert_int_eq(sample_load(&c, (const char *[]){ text, NULL }, NULL),
                     SP_ECONFIG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "\"wrong_key_39\""));
    ck_assert_ptr_null(strstr(sp_last_error(), "\"wrong_key_40\""));
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "\nand 20 more mistakes"));
}
END_TEST

/* A thing whose own default is wrong is told, not run with. */
START_TEST(wrong_defaults_are_mistakes)
{
    static const sp_key keys[] = {
        { "depth", SP_INT, 0, "ten", 0, 0, "", NULL },
    };
    static const sp_entry bad = { "bad", "", sizeof(int), keys, 1 };

    ck_assert_int_eq(sp_registry_add(sample_registry, "model", &bad), SP_OK);
    sample_refused("model: {name: bad}\n",
                   "default of model.depth: model.depth must "
                   "be a whole number, not \"ten\"");
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    static const char *const names[] = { "no.yaml", ".", "/dev/zero" };
    sp_config *c;

    ck_assert_int_eq(sp_config_load(&c, sample_registry, names, 3, NULL, 0),
                     SP_EIO);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "cannot open no.yaml: No "
                                                  "such file"));
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "it is a folder"));
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "/dev/zero: it is not a "
                                                  "regular file"));
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;       /* 0: up to the closing 0 */
    const char *place; /* NULL: fine */
} encodings[] = {
    { "\xef\xbb\xbfmodel:\r\n  name: mlp\r\n", 0, NULL },
    { "# only a comment\n---\nmodel: {name: mlp}\n...\n", 0, NULL },
    { "model:\n  name: ml\0p\n", 20, "a.yaml:2:11: control characters" },
    { "model:\n  name: ml\x01p\n", 20, "a.yaml:2:11: control characters" },
    { "model:\n  name: \xc3\xa4\xff\n", 19, "a.yaml:2:10: invalid leading" },
    { "model:\n  name: \xed\xa0\x80\n", 19, "a.yaml:2:9: invalid Unicode" },
    { "model:\n\tname: mlp\n", 0,
      "a.yaml:2:1: not valid YAML: found "
      "character that cannot start any token" },
    { "model: \"mlp", 0, "a.yaml:1:12: not valid YAML: found unexpected end" },
};

START_TEST(encodings_and_broken_bytes)
{
    static const char *const name[] = { "a.yaml" };
    sp_config *c;
    sp_err e;

    size_t size = encodings[_i].size;

    sample_put("a.yaml", encodings[_i].bytes,
               size ? size : strlen(encodings[_i].bytes));
    e = sp_config_load(&c, sample_registry, name, 1, NULL, 0);
    if (!encodings[_i].place) {
        ck_assert_msg(e == SP_OK, "%s", sp_last_error());
        sp_config_free(c);
        return;
    }
    ck_assert_int_eq(e, SP_ECONFIG);
    ck_assert_msg(strncmp(sp_last_error(), encodings[_i].place,
                          strlen(encodings[_i].place)) == 0,
                  "%s", sp_last_error());
}
END_TEST

/* Shapes that make a careless reader slow or deep. */
START_TEST(hostile_files_end_soon)
{
    enum { N = 1 << 20 };
    static const char *const parts[] = { "[", "{a: ", "? ", "- ", "a:\n", "x" };
    static const char *const name[] = { "a.yaml" };
    size_t length = strlen(parts[_i]);
    char *text = malloc(N);
    sp_config *c;

    for (size_t i = 0; i < N; i++)
        text[i] = parts[_i][i % length];
    sample_put("a.yaml", text, N);
    ck_assert_int_eq(sp_config_load(&c, sample_registry, name, 1, NULL, 0),
                     SP_ECONFIG);
    sample_put("a.yaml", text, N / 2);
    ck_assert_int_eq(sp_config_load(&c, sample_registry, name, 1, NULL, 0),
                     SP_ECONFIG);
    free(text);
}
END_TEST

/* Every cut of a good file is fine or refused, and never more than that. */
START_TEST(truncated_files)
{
    static const char text[] = "model: {name: mlp}\ntrain:\n  at: [1, 2]\n"
                               "  note: \"a \\u00e4\"\noptim:\n  - lr\n";
    static const char *const name[] = { "a.yaml" };

    for (size_t n = 0; n < sizeof text; n++) {
        sp_config *c = NULL;
        sample_put("a.yaml", text, n);
        if (sp_config_load(&c, sample_registry, name, 1, NULL, 0) == SP_OK)
            sp_config_free(c);
        else
            ck_assert_ptr_null(c);
    }
}
END_TEST

static const char *next_word(const void *arg, size_t i)
{
    static const char *const words[] = { "lr", "momentum", "batch",
                                         "micro_batch", NULL };

    ck_assert_ptr_null(arg);
    return words[i];
}

START_TEST(nearest_word)
{
    ck_assert_str_eq(sp_nearest("rl", next_word, NULL), "lr");
    ck_assert_str_eq(sp_nearest("momentmu", next_word, NULL), "momentum");
    ck_assert_str_eq(sp_nearest("Momentum", next_word, NULL), "momentum");
    ck_assert_str_eq(sp_nearest("bacth", next_word, NULL), "batch");
    ck_assert_str_eq(sp_nearest("micro-batch", next_word, NULL), "micro_batch");
    ck_assert_ptr_null(sp_nearest("x", next_word, NULL));
    ck_assert_ptr_null(sp_nearest("", next_word, NULL));
    ck_assert_ptr_null(sp_nearest("dropout", next_word, NULL));
    ck_assert_ptr_null(
        sp_nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                   next_word, NULL));
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("config_mistakes");
    TCase *tc = tcase_create("config_mistakes");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, sample_setup, sample_teardown);
    tcase_add_test(tc, keys_that_come_with_another_choice_are_mistakes);
    tcase_add_loop_test(tc, mistakes_are_told_with_place_and_remedy, 0,
                        COUNT(mistakes));
    tcase_add_test(tc, all_mistakes_come_at_once);
    tcase_add_test(tc, a_file_that_is_not_read_misses_nothing);
    tcase_add_test(tc, many_mistakes_are_counted);
    tcase_add_test(tc, wrong_defaults_are_mistakes);
    tcase_add_test(tc, files_that_cannot_be_read);
    tcase_add_loop_test(tc, encodings_and_broken_bytes, 0, COUNT(encodings));
    tcase_add_loop_test(tc, hostile_files_end_soon, 0, 6);
    tcase_add_test(tc, truncated_files);
    tcase_add_test(tc, nearest_word);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
