#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_sample.h"

static char *printed(const sp_config *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    ck_assert_int_eq(sp_config_print(c, f), SP_OK);
    fclose(f);
    return text;
}

START_TEST(print_names_every_key_and_its_source)
{
    sp_config *c;
    char *text;

    ck_assert_int_eq(
        sample_load(&c, (const char *[]){ MLP "optim: {lr: 1e-7}\n", NULL },
                    (const char *[]){ "train.at=[1,0.5]", NULL }),
        SP_OK);
    text = printed(c);
    ck_assert_str_eq(text, "model:\n"
                           "  name: mlp                   # a.yaml:1:9\n"
                           "\n"
                           "train:\n"
                           "  epochs: 30                  # default\n"
                           "  offset: -7                  # default\n"
                           "  note: \"\"                    # default\n"
                           "  at: [1, 0.5]                # argument\n"
                           "\n"
                           "optim:\n"
                           "  name: sgd                   # default\n"
                           "  lr: 1.0e-07                 # a.yaml:2:9\n"
                           "  weight_decay: 0.0001        # default\n"
                           "  decay: all                  # default\n"
                           "  momentum: 0.9               # default\n"
                           "  nesterov: false             # default\n");
    free(text);
    sp_config_free(c);
}
END_TEST

/* Strings and numbers that are hard to write. */
static const char *const notes[] = {
    "",
    "plain",
    "../data/cifar-10",
    "a b",
    " a ",
    "true",
    "~",
    "0.1",
    "a: b",
    "a #b",
    "- a",
    "[1]",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "\"quoted\"",
    "it's",
    "back\\slash",
    "line\nbreak\n",
    "\ttab\r",
    "\x01\x1f\x7f",
    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f",
    "\xc2\x85",
    "\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf",
};

START_TEST(printed_text_reads_back)
{
    sp_config *c, *again;
    char *text, *text2, override[100];
    const char *note;

    sample_accepted(&c, MLP);
    /* As a double-quoted string in hexadecimal, independent of the printer. */
    strcpy(override, "train.note=\"");
    for (const char *p = notes[_i]; *p; p++) {
        if ((unsigned char)*p < 0x80)
            snprintf(override + strlen(override), 8, "\\x%02x", *p);
        else
            strncat(override, p, 1);
    }
    strcat(override, "\"");
    if (notes[_i][0] != '\xc2' && strncmp(notes[_i], "\xe2\x80", 2) != 0)
        ck_assert_msg(sp_config_set(c, override, NULL) == SP_OK, "%s",
                      sp_last_error());
    else
        ck_assert_int_eq(
            sp_config_set(c,
                          notes[_i][0] == '\xc2'
                              ? "train.note=\"\\N\""
                              : "train.note=\"\\u2028\\u2029\\uFEFF\"",
                          NULL),
            SP_OK);
    note = ((const sample_train *)sp_config_section(c, "train"))->note;
    ck_assert_str_eq(note, notes[_i]);
    text = printed(c);
    sample_accepted(&again, text);
    note = ((const sample_train *)sp_config_section(again, "train"))->note;
    ck_assert_str_eq(note, notes[_i]);
    ck_assert_str_eq(sp_config_source(again, "model", "name"), "a.yaml:2:3");
    text2 = printed(again);
    free(text2);
    free(text);
    sp_config_free(again);
    sp_config_free(c);
}
END_TEST

static const double numbers[] = {
    0, 1.0 / 3, 0.1, 1e-7, 5e-324, 999.99999999999989, 2e-300, 1000,
};

START_TEST(printed_numbers_read_back)
{
    sp_config *c, *again;
    char override[64], *text;

    sample_accepted(&c, MLP);
    snprintf(override, sizeof override, "optim.lr=%.17g", numbers[_i]);
    ck_assert_int_eq(sp_config_set(c, override, NULL), SP_OK);
    text = printed(c);
    sample_accepted(&again, text);
    ck_assert(memcmp(sp_config_section(again, "optim"),
                     sp_config_section(c, "optim"), sizeof(sample_optim)) == 0);
    free(text);
    sp_config_free(again);
    sp_config_free(c);
}
END_TEST

/* A file's name may hold what a comment cannot. */
START_TEST(printed_sources_stay_in_their_comment)
{
    static const char *const name[] = { "a\nb: \xff\xe2\x80\xa8.yaml" };
    sp_config *c, *again;
    char *text;

    sample_put(name[0], MLP, strlen(MLP));
    ck_assert_int_eq(sp_config_load(&c, sample_registry, name, 1, NULL, 0),
                     SP_OK);
    text = printed(c);
    sample_accepted(&again, text);
    free(text);
    sp_config_free(again);
    sp_config_free(c);
}
END_TEST

/* Printing what was read back gives the same text, sources included; what an
 * argument changes is the argument's. */
START_TEST(sources_survive_reading_back)
{
    const char *change[] = { "train.offset=9" };
    sp_config *c, *again;
    char *text, *second;

    ck_assert_int_eq(
        sample_load(
            &c, (const char *[]){ MLP "train: {note: 'a # b: \"'}\n", NULL },
            (const char *[]){ "optim.lr=0.5", NULL }),
        SP_OK);
    text = printed(c);
    sample_put("printed.yaml", text, strlen(text));
    ck_assert_int_eq(
        sp_config_read_back(&again, sample_registry, "printed.yaml", NULL, 0),
        SP_OK);
    second = printed(again);
    ck_assert_str_eq(second, text);
    free(second);
    sp_config_free(again);
    ck_assert_int_eq(
        sp_config_read_back(&again, sample_registry, "printed.yaml", change, 1),
        SP_OK);
    ck_assert_str_eq(sp_config_source(again, "train", "offset"), "argument");
    ck_assert_str_eq(sp_config_source(again, "train", "note"), "a.yaml:2:9");
    ck_assert_str_eq(sp_config_source(again, "train", "epochs"), "default");
    free(text);
    sp_config_free(again);
    sp_config_free(c);
}
END_TEST

START_TEST(print_tells_a_full_disk)
{
    FILE *full = fopen("/dev/full", "w");
    sp_config *c;

    sample_accepted(&c, MLP);
    if (full) {
        ck_assert_int_eq(sp_config_print(c, full), SP_EIO);
        fclose(full);
    }
    sp_config_free(c);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("config_print");
    TCase *tc = tcase_create("config_print");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, sample_setup, sample_teardown);
    tcase_add_test(tc, print_names_every_key_and_its_source);
    tcase_add_loop_test(tc, printed_text_reads_back, 0, COUNT(notes));
    tcase_add_loop_test(tc, printed_numbers_read_back, 0, COUNT(numbers));
    tcase_add_test(tc, printed_sources_stay_in_their_comment);
    tcase_add_test(tc, sources_survive_reading_back);
    tcase_add_test(tc, print_tells_a_full_disk);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
