#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text_set.h"

/* The split's tokens as words, with `between` between them. */
static const char *stream(sp_split split, const char *between)
{
    static char out[1024];
    const int32_t *token = SET->tokens(text_state, split);

    out[0] = '\0';
    for (size_t i = 0; i < text_info.count[split]; i++) {
        ck_assert(token[i] >= 0 && token[i] < text_info.classes);
        if (i > 0)
            strcat(out, between);
        strcat(out, text_info.class_names[token[i]]);
    }
    return out;
}

static const struct {
    int level;
    const char *text, *want;
} rules[] = {
    { WORD, "a b\na\n", "a b <eos> a <eos>" },
    { WORD, "a b\na", "a b <eos> a <eos>" },
    { WORD, "\n\na", "<eos> <eos> a <eos>" },
    { WORD, "a\r\nb\r\n", "a <eos> b <eos>" },
    { WORD, "a\rb\n", "a b <eos>" },
    { WORD, "\ta \v\fb  \n", "a b <eos>" },
    { WORD, " \n \n", "<eos> <eos>" },
    { WORD, "a\n ", "a <eos> <eos>" },
    { WORD, MARK "a\n", "a <eos>" },
    { WORD, "a " MARK "a\n", "a " MARK "a <eos>" },
    { WORD, MARK MARK "a\n", MARK "a <eos>" },
    { WORD, "\xc3\xa9\xc2\xa0\xc3\xa9\n", "\xc3\xa9\xc2\xa0\xc3\xa9 <eos>" },
    { WORD, "<eos> a\n", "<eos> a <eos>" },
    { CHAR, "ab\n", "a|b|\n" },
    { CHAR, "ab", "a|b" },
    { CHAR, "a\r\nb\r\r\n", "a|\n|b|\r|\n" },
    { CHAR, "a\r", "a|\r" },
    { CHAR, "\n\n", "\n|\n" },
    { CHAR, MARK "a" MARK, "a|" MARK },
    { CHAR, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 ",
      "\xc3\xa9|\xe2\x82\xac|\xf0\x9f\x98\x80| " },
    { CHAR, "\xf4\x8f\xbf\xbf\xed\x9f\xbf", "\xf4\x8f\xbf\xbf|\xed\x9f\xbf" },
};

START_TEST(tokens_are_as_the_rules_say)
{
    text_put_three(rules[_i].text, "x y\n", "x y\n");
    text_set("level", rules[_i].level);
    text_opens();
    ck_assert(text_info.text && text_info.chars == (rules[_i].level == CHAR));
    ck_assert_str_eq(stream(SP_TRAIN, rules[_i].level == WORD ? " " : "|"),
                     rules[_i].want);
}
END_TEST

/* b a <eos> b <eos> | c a <eos> | d b <eos> c <eos>. */
START_TEST(words_are_numbered_as_they_appear)
{
    static const char *const words[] = { "b", "a", "<eos>", "c", "d" };
    static const int32_t test[] = { 4, 0, 2, 3, 2 };

    text_put_three("b a\nb\n", "c a\n", "d b\nc\n");
    text_opens();
    ck_assert_int_eq(text_info.classes, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(text_info.class_names[i], words[i]);
    ck_assert_uint_eq(text_info.count[SP_TRAIN], 5);
    ck_assert_uint_eq(text_info.count[SP_VALID], 3);
    ck_assert_uint_eq(text_info.count[SP_TEST], 5);
    ck_assert_mem_eq(SET->tokens(text_state, SP_TEST), test, sizeof test);
    ck_assert_uint_eq(text_info.unknown[SP_TEST], 0);
}
END_TEST

START_TEST(words_outside_the_training_text_become_unk)
{
    text_put_three("a <unk> b\n", "a c\nc b\n", "d\na\n");
    text_set("vocabulary", TRAIN);
    text_opens();
    ck_assert_int_eq(text_info.classes, 4);
    ck_assert_str_eq(stream(SP_TRAIN, " "), "a <unk> b <eos>");
    ck_assert_str_eq(stream(SP_VALID, " "), "a <unk> <eos> <unk> b <eos>");
    ck_assert_str_eq(stream(SP_TEST, " "), "<unk> <eos> a <eos>");
    ck_assert_uint_eq(text_info.unknown[SP_TRAIN], 0);
    ck_assert_uint_eq(text_info.unknown[SP_VALID], 2);
    ck_assert_uint_eq(text_info.unknown[SP_TEST], 1);
}
END_TEST

START_TEST(words_that_cannot_become_unk_are_named)
{
    text_set("vocabulary", TRAIN);
    text_put_three("a b\n", "b a\n", "a\na new b\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("data.vocabulary", "test.txt, line 2", "'new'", "<unk>"));
    /* Only validation has <unk>: too late. */
    text_put_three("a b\n", "b\n\n<unk> a\n", "a b\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("valid.txt, line 3", "'<unk>'"));
    text_put_three("a b", "ab", "b\na");
    text_set("level", CHAR);
    text_refused(SP_EDATA);
    ck_assert(HAS("test.txt, line 1", "'line feed'"));
    text_put_three("a b\n", "b a\n", "b a\n");
    text_opens();
    ck_assert_int_eq(text_info.classes, 4);
}
END_TEST

/* The table of words grows many times; each keeps its number. */
START_TEST(many_words_keep_apart)
{
    enum { WORDS = 200000, SIZE = 7 };
    char *text = malloc(2 * WORDS * SIZE + 1);
    int wrong = 0;

    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < 2 * WORDS; i++)
        sprintf(text + SIZE * i, "%06d ", i % WORDS);
    text_put_three("a\n", "a\n", "a\n");
    sp_scratch_write(text_dir, "train.txt", text, 2 * WORDS * SIZE);
    text_opens();
    ck_assert_int_eq(text_info.classes, WORDS + 2);
    for (int i = 0; i < 2 * WORDS; i++)
        wrong += SET->tokens(text_state, SP_TRAIN)[i] != i % WORDS;
    ck_assert_int_eq(wrong, 0);
    ck_assert_str_eq(text_info.class_names[4711], "004711");
    free(text);
}
END_TEST

/* 100 characters: 90, 5 and 5 of them; put together they are the file. */
START_TEST(one_file_is_cut_by_shares)
{
    char text[101] = "", whole[101] = "";
    static const sp_split order[] = { SP_TRAIN, SP_VALID, SP_TEST };

    for (int i = 0; i < 100; i++)
        text[i] = (char)(i % 10 == 9 ? '\n' : 'a' + i % 23);
    text_put("input.txt", text);
    text_set("level", CHAR);
    text_opens();
    ck_assert_uint_eq(text_info.count[SP_TRAIN], 90);
    ck_assert_uint_eq(text_info.count[SP_VALID], 5);
    ck_assert_uint_eq(text_info.count[SP_TEST], 5);
    for (int i = 0; i < 3; i++)
        strcat(whole, stream(order[i], ""));
    ck_assert_str_eq(whole, text);
    text_set("valid_share", 0.259);
    text_set("test_share", 0.5);
    text_opens();
    ck_assert_uint_eq(text_info.count[SP_TRAIN], 25);
    ck_assert_uint_eq(text_info.count[SP_VALID], 25);
    ck_assert_uint_eq(text_info.count[SP_TEST], 50);
}
END_TEST

START_TEST(one_file_has_a_training_vocabulary_too)
{
    text_put("input.txt", "a <unk> a\nb\nc d a\n");
    text_set("vocabulary", TRAIN);
    text_set("valid_share", 0.25);
    text_set("test_share", 0.25);
    text_opens(); /* a <unk> a <eos> b <eos> | c d | a <eos>: 2.5 are 2 */
    ck_assert_str_eq(stream(SP_TRAIN, " "), "a <unk> a <eos> b <eos>");
    ck_assert_str_eq(stream(SP_VALID, " "), "<unk> <unk>");
    ck_assert_str_eq(stream(SP_TEST, " "), "a <eos>");
    ck_assert_int_eq(text_info.classes, 4);
    ck_assert_uint_eq(text_info.unknown[SP_VALID], 2);
    text_put("input.txt", "a e a\nb\nc d a\n");
    text_refused(SP_EDATA);
    ck_assert(HAS("input.txt, line 3", "'c'"));
}
END_TEST

START_TEST(shares_that_leave_nothing_are_refused)
{
    text_put("input.txt", "a b c d e f\n");
    text_set("valid_share", 0.5);
    text_set("test_share", 0.5);
    text_refused(SP_EDATA);
    ck_assert(HAS("data.valid_share", "0.5", "data.test_share"));
    text_set("valid_share", 0.1);
    text_refused(SP_EDATA);
    ck_assert(HAS("data.valid_share", "0 for validation"));
    text_set("valid_share", 0.4);
    text_set("test_share", 0);
    text_refused(SP_EDATA);
    ck_assert(HAS("data.test_share", "0 for testing"));
}
END_TEST

START_TEST(the_vocabulary_is_checked)
{
    text_put_three("a b\n", "a c\n", "a\n");
    text_set("vocab", 4);
    text_opens();
    ck_assert_int_eq(text_info.classes, 4);
    text_set("vocab", 5);
    text_refused(SP_EDATA);
    ck_assert(HAS("data.vocab", "5", "4 different words", text_dir));
}
END_TEST

START_TEST(describing_opens_nothing)
{
    sp_data_info said;

    ck_assert_int_eq(SET->describe(text_own, &said), SP_EDATA);
    ck_assert(HAS("data.vocab", "10000", "33278"));
    text_set("vocab", 77);
    text_set("level", CHAR);
    ck_assert_int_eq(SET->describe(text_own, &said), SP_OK);
    ck_assert(said.text && said.chars && said.classes == 77);
    ck_assert_ptr_null(said.class_names);
}
END_TEST

static void encodes(const char *text, const char *want)
{
    char got[256] = "";
    int32_t *tokens;
    size_t n;

    if (sp_text_encode(&text_info, text, &tokens, &n) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    for (size_t i = 0; i < n; i++)
        sprintf(got + strlen(got), "%s%d", i > 0 ? " " : "", (int)tokens[i]);
    ck_assert_str_eq(got, want);
    free(tokens);
}

/* a: 0, b: 1, <eos>: 2, <unk>: 3. */
START_TEST(a_prompt_becomes_tokens)
{
    int32_t *tokens;
    size_t n;

    text_put_three("a b\n<unk>", "a\n", "a\n");
    text_opens();
    encodes("", "");
    encodes("b  a", "1 0");
    encodes("b\n a\n", "1 2 0 2");
    encodes("new a", "3 0");
    ck_assert_int_eq(sp_text_encode(&text_info, "a\n\xff", &tokens, &n),
                     SP_EDATA);
    ck_assert(HAS("line 2", "0xff"));
    text_set("level", CHAR);
    text_put_three("ab\n", "ab", "ab");
    text_opens();
    encodes("ba\nb", "1 0 2 1");
    ck_assert_int_eq(sp_text_encode(&text_info, "ab\nx", &tokens, &n),
                     SP_EDATA);
    ck_assert(HAS("line 2", "'x'", "3"));
    text_info.class_names = NULL;
    ck_assert_int_eq(sp_text_encode(&text_info, "a", &tokens, &n), SP_EDATA);
    ck_assert(HAS("no words"));
}
END_TEST

/* The published counts, where the sets are there. */
static const struct {
    const char *root;
    int words;
    size_t train, valid, test;
} published[] = {
    { "ptb", 10000, 929589, 73760, 82430 },
    { "wikitext-2", 33278, 2088628, 217646, 245569 },
};

START_TEST(published_sets_have_their_counts)
{
    char *root = NULL;

    if (sp_data_find(published[_i].root, &root) != SP_OK)
        return;
    text_set("vocab", published[_i].words);
    ck_assert_int_eq(SET->open(root, text_own, &text_info, &text_state), SP_OK);
    free(root);
    ck_assert_int_eq(text_info.classes, published[_i].words);
    ck_assert_uint_eq(text_info.count[SP_TRAIN], published[_i].train);
    ck_assert_uint_eq(text_info.count[SP_VALID], published[_i].valid);
    ck_assert_uint_eq(text_info.count[SP_TEST], published[_i].test);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, tokens_are_as_the_rules_say, 0, LENGTH(rules));
    tcase_add_test(tc, words_are_numbered_as_they_appear);
    tcase_add_test(tc, words_outside_the_training_text_become_unk);
    tcase_add_test(tc, words_that_cannot_become_unk_are_named);
    tcase_add_test(tc, many_words_keep_apart);
    tcase_add_test(tc, one_file_is_cut_by_shares);
    tcase_add_test(tc, one_file_has_a_training_vocabulary_too);
    tcase_add_test(tc, shares_that_leave_nothing_are_refused);
    tcase_add_test(tc, the_vocabulary_is_checked);
    tcase_add_test(tc, describing_opens_nothing);
    tcase_add_test(tc, a_prompt_becomes_tokens);
    tcase_add_loop_test(tc, published_sets_have_their_counts, 0,
                        LENGTH(published));
}

int main(void)
{
    Suite *s = suite_create("text");
    TCase *tc = tcase_create("text");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, text_set_up, text_tear_down);
    add_tests(tc);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
