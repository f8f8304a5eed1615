#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_set.h"

static const char *first_word(sp_split split)
{
    return text_info.class_names[SET->tokens(text_state, split)[0]];
}

static const char *const names[][3] = {
    { "train.txt", "valid.txt", "test.txt" },
    { "ptb.train.txt", "ptb.valid.txt", "ptb.test.txt" },
    { "wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens" },
};

START_TEST(files_are_found_by_any_of_their_names)
{
    static const char *const texts[] = { "a\n", "b\n", "c\n" };

    for (int i = 0; i < 3; i++)
        text_put(names[_i][i], texts[i]);
    text_opens();
    ck_assert_str_eq(first_word(SP_TRAIN), "a");
    ck_assert_str_eq(first_word(SP_VALID), "b");
    ck_assert_str_eq(first_word(SP_TEST), "c");
    text_put("input.txt", "x\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("both", names[_i][0], "input.txt"));
    ck_assert_int_eq(unlink(sp_scratch_path(text_dir, "input.txt")), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(unlink(sp_scratch_path(text_dir, names[_i][i])), 0);
        text_refused(SP_EDATA);
        ck_assert(HAS("no file", names[_i][i], text_dir, "tools/get-data"));
        text_put(names[_i][i], texts[i]);
    }
    /* One file of another kind is enough. */
    text_put(names[(_i + 1) % 3][2], "x\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("both", names[_i][0], names[(_i + 1) % 3][0]));
}
END_TEST

static const struct {
    const char *file, *word;
} mistakes[] = {
    { "notes", "there is no text in" },
    { "ptb/ptb.train.txt", "set data.root to its folder" },
    { "wikitext-2/wiki.train.tokens", "set data.root to its folder" },
    { "simple-examples.tgz", "tar xzf" },
    { "wikitext-2-v1.zip", "unzip" },
    { "val.txt", "valid.txt" },
};

START_TEST(the_wrong_folder_is_recognised)
{
    text_put(mistakes[_i].file, "x\n");
    text_refused(SP_EDATA);
    ck_assert(HAS(text_dir, mistakes[_i].word));
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
    const char *words[3];
} bad[] = {
    { "ab\nc\0d\n", 7, { "line 2, column 2", "NUL" } },
    { "\0", 1, { "line 1, column 1", "NUL" } },
    { "\xff\xfe"
      "a\0",
      4,
      { "line 1, column 1", "0xff" } },
    { "a\n\xc3\xa9\xe9 b\n", 8, { "line 2, column 2", "0xe9", "iconv" } },
    { "a\n\n\xc3", 4, { "line 3, column 1", "0xc3" } },
    { "ab\x80\n", 4, { "line 1, column 3", "0x80" } },
    { "\xc0\xaf\n", 3, { "0xc0" } },
    { "\xe0\x80\xaf\n", 4, { "0xe0" } },
    { "\xed\xa0\x80\n", 4, { "0xed" } },
    { "\xf4\x90\x80\x80\n", 5, { "0xf4" } },
    { "\xf0\x9f\x98", 3, { "0xf0" } },
    { "a b\n\xf5", 5, { "line 2, column 1", "0xf5" } },
    { "", 0, { "is empty" } },
    { MARK, 3, { "is empty" } },
    { "x", 1, { "1 token" } },
};

START_TEST(bad_text_is_refused)
{
    for (int level = WORD; level <= CHAR; level++) {
        /* One word is two tokens, its end of line included. */
        if (level == WORD && bad[_i].size == 1 && bad[_i].bytes[0] == 'x')
            continue;
        text_set("level", level);
        text_put_three("a b\n", "a b\n", "a b\n");
        sp_scratch_write(text_dir, "valid.txt", bad[_i].bytes, bad[_i].size);
        text_refused(SP_EDATA);
        ck_assert(HAS("valid.txt"));
        for (int i = 0; i < 3 && bad[_i].words[i]; i++)
            ck_assert(HAS(bad[_i].words[i]));
    }
}
END_TEST

START_TEST(a_lone_line_feed_is_one_token)
{
    text_put_three("a b\n", "\n", "a b\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("valid.txt", "1 token", "at least 2"));
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    text_put_three("a b\n", "a b\n", "a b\n");
    ck_assert_int_eq(unlink(sp_scratch_path(text_dir, "test.txt")), 0);
    ck_assert_int_eq(mkdir(sp_scratch_path(text_dir, "test.txt"), 0700), 0);
    text_refused(SP_EIO);
    ck_assert(HAS("test.txt", "is not a file"));
    ck_assert_int_eq(rmdir(sp_scratch_path(text_dir, "test.txt")), 0);
    ck_assert_int_eq(mkfifo(sp_scratch_path(text_dir, "test.txt"), 0600), 0);
    text_refused(SP_EIO);
    ck_assert(HAS("test.txt", "is not a file"));
}
END_TEST

START_TEST(a_file_that_may_not_be_read_is_named)
{
    text_put_three("a b\n", "a b\n", "a b\n");
    ck_assert_int_eq(chmod(sp_scratch_path(text_dir, "train.txt"), 0), 0);
    if (access(sp_scratch_path(text_dir, "train.txt"), R_OK) == 0)
        return; /* this user may read everything */
    text_refused(SP_EIO);
    ck_assert(HAS("train.txt", "cannot be opened"));
}
END_TEST

/* A line of a million words, and the longest word. */
START_TEST(lines_and_words_may_be_long)
{
    enum { WORDS = 1000000, LONGEST = 65536 };
    char *text = malloc(2 * WORDS);

    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < WORDS; i++)
        memcpy(text + 2 * i, i % 3 ? "a " : "b ", 2);
    text_put_three("a\n", "a\n", "a\n");
    sp_scratch_write(text_dir, "train.txt", text, 2 * WORDS);
    text_opens();
    ck_assert_uint_eq(text_info.count[SP_TRAIN], WORDS + 1);
    memset(text, 'w', LONGEST + 1);
    sp_scratch_write(text_dir, "train.txt", text, LONGEST);
    text_opens();
    ck_assert_uint_eq(strlen(text_info.class_names[0]), LONGEST);
    memset(text, 'w', LONGEST + 5);
    memcpy(text, "a\nb ", 4);
    sp_scratch_write(text_dir, "train.txt", text, LONGEST + 5);
    text_refused(SP_EDATA);
    ck_assert(HAS("train.txt", "line 2, column 3", "65537", "65536"));
    text_set("level", CHAR);
    text_opens();
    ck_assert_uint_eq(text_info.count[SP_TRAIN], LONGEST + 5);
    free(text);
}
END_TEST

START_TEST(gzip_is_unpacked)
{
    text_put_three("a\n", "a\n", "a\n");
    sp_scratch_gzip(text_dir, "train.txt", "b c\n", 4);
    text_opens();
    ck_assert_uint_eq(text_info.count[SP_TRAIN], 3);
    ck_assert_str_eq(first_word(SP_TRAIN), "b");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text_files");
    TCase *tc = tcase_create("text_files");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, text_set_up, text_tear_down);
    tcase_add_loop_test(tc, files_are_found_by_any_of_their_names, 0,
                        LENGTH(names));
    tcase_add_loop_test(tc, the_wrong_folder_is_recognised, 0,
                        LENGTH(mistakes));
    tcase_add_loop_test(tc, bad_text_is_refused, 0, LENGTH(bad));
    tcase_add_test(tc, a_lone_line_feed_is_one_token);
    tcase_add_test(tc, what_is_no_file_is_refused);
    tcase_add_test(tc, a_file_that_may_not_be_read_is_named);
    tcase_add_test(tc, lines_and_words_may_be_long);
    tcase_add_test(tc, gzip_is_unpacked);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
