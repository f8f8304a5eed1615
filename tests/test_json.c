#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"

static sp_err parse(sp_json_doc **doc, const char *text)
{
    return sp_json_parse(doc, "doc.json", text, strlen(text));
}

/* ---- Writing ----------------------------------------------------------- */

static void put_sample(sp_json *j)
{
    sp_json_open(j, NULL);
    sp_json_int(j, "epoch", -3);
    sp_json_number(j, "loss", 0.1);
    sp_json_number(j, "bad", NAN);
    sp_json_number(j, "worse", -INFINITY);
    sp_json_bool(j, "best", true);
    sp_json_text(j, "none", NULL);
    sp_json_list(j, "shape");
    sp_json_int(j, NULL, 16);
    sp_json_null(j, NULL);
    sp_json_list(j, NULL);
    sp_json_close(j);
    sp_json_open(j, NULL);
    sp_json_text(j, "a\"", "\\ \" \n \t \x01 \xc3\xa4 \xff");
    sp_json_close(j);
    sp_json_close(j);
    sp_json_open(j, "empty");
    sp_json_close(j);
    sp_json_close(j);
}

START_TEST(writes_every_kind)
{
    sp_json j = { 0 };
    const char *text;

    put_sample(&j);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_str_eq(text,
                     "{\"epoch\":-3,\"loss\":0.1,\"bad\":null,\"worse\":null,"
                     "\"best\":true,\"none\":null,\"shape\":[16,null,[],"
                     "{\"a\\\"\":\"\\\\ \\\" \\n \\u0009 \\u0001 \xc3\xa4 "
                     "\xef\xbf\xbd\"}],\"empty\":{}}");
    sp_json_free(&j);
}
END_TEST

START_TEST(pretty_text_has_the_same_values)
{
    sp_json j = { .pretty = true };
    const char *text;
    sp_json_doc *doc;

    put_sample(&j);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_ptr_eq(strstr(text, "{\n  \"epoch\": -3,\n  \"loss\": 0.1,\n"),
                     text);
    ck_assert_ptr_nonnull(strstr(text, "  \"shape\": [16, null, [],\n    {\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n  \"empty\": {}\n}"));
    ck_assert_int_eq(parse(&doc, text), SP_OK);
    ck_assert_uint_eq(sp_json_root(doc)->count, 8);
    sp_json_doc_free(doc);
    sp_json_free(&j);
    ck_assert(j.pretty);
    sp_json_int(&j, NULL, 1);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_str_eq(text, "1");
    sp_json_free(&j);
}
END_TEST

/* Each wrong use, as a letter a call: { [ object, list; k v with key; - close.
 */
static const char *const misuses[] = {
    "",   "{",   "[",   "-",   "{-}",  "{v-", "[k-",  "kk",  "k",
    "vv", "{-v", "[--", "{k[", "{{-k", "v-",  "[-{-", "{[-",
};

START_TEST(wrong_use_is_told)
{
    sp_json j = { 0 };
    const char *text;

    for (const char *c = misuses[_i]; *c; c++) {
        if (*c == '{')
            sp_json_open(&j, NULL);
        else if (*c == '[')
            sp_json_list(&j, NULL);
        else if (*c == 'k')
            sp_json_int(&j, "key", 1);
        else if (*c == 'v')
            sp_json_int(&j, NULL, 1);
        else
            sp_json_close(&j);
    }
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_EARG);
    sp_json_free(&j);
}
END_TEST

START_TEST(nesting_has_a_limit)
{
    sp_json j = { 0 };
    const char *text;
    sp_json_doc *doc;
    char deep[2 * SP_JSON_DEPTH + 3];

    for (int i = 0; i < SP_JSON_DEPTH; i++)
        sp_json_list(&j, NULL);
    for (int i = 0; i < SP_JSON_DEPTH; i++)
        sp_json_close(&j);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_int_eq(parse(&doc, text), SP_OK);
    sp_json_doc_free(doc);
    snprintf(deep, sizeof deep, "[%s]", text);
    ck_assert_int_eq(parse(&doc, deep), SP_EFORMAT);
    sp_json_free(&j);
    for (int i = 0; i <= SP_JSON_DEPTH; i++)
        sp_json_list(&j, NULL);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_EARG);
    sp_json_free(&j);
}
END_TEST

static const double numbers[] = {
    0,
    -1.5,
    0.1,
    1.0 / 3,
    1e-7,
    1e300,
    5e-324,
    1e15,
    1e15 - 1,
    123,
    0.30000000000000004,
    2e-310,
    -1e22,
};

/* The value comes back bit for bit, also where a comma marks decimals. */
START_TEST(numbers_come_back)
{
    static const char *const locales[] = { "C", "de_DE.UTF-8" };

    for (int l = 0; l < 2; l++) {
        sp_json j = { 0 };
        const char *text;
        sp_json_doc *doc;

        setlocale(LC_ALL, locales[l]);
        sp_json_number(&j, NULL, numbers[_i]);
        ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
        ck_assert_int_eq(parse(&doc, text), SP_OK);
        ck_assert(sp_json_root(doc)->number == numbers[_i]);
        sp_json_doc_free(doc);
        sp_json_free(&j);
    }
}
END_TEST

/* ---- Reading ----------------------------------------------------------- */

START_TEST(reads_every_kind)
{
    sp_json_doc *doc;
    const sp_json_value *root, *list;
    const char *text;
    int64_t whole;
    double number;
    bool truth;

    ck_assert_int_eq(
        parse(&doc, " {\"i\": -9223372036854775808, \"n\" : 1.5e+2,\n"
                    "\t\"t\":\"a\\u00e4\\ud83d\\udc1f\\/\\n\",\"b\":false,"
                    "\"z\":null, \"l\":[1, [], {}], \"big\":"
                    "9223372036854775808 }\r\n"),
        SP_OK);
    root = sp_json_root(doc);
    ck_assert_int_eq(root->kind, SP_JSON_OBJECT);
    ck_assert_uint_eq(root->count, 7);
    ck_assert_int_eq(sp_json_get_int(root, "i", &whole), SP_OK);
    ck_assert_int_eq(whole, INT64_MIN);
    ck_assert_int_eq(sp_json_get_number(root, "n", &number), SP_OK);
    ck_assert_double_eq(number, 150);
    ck_assert_int_eq(sp_json_get_number(root, "i", &number), SP_OK);
    ck_assert_double_eq(number, -0x1p63);
    ck_assert_int_eq(sp_json_get_text(root, "t", &text), SP_OK);
    ck_assert_str_eq(text, "a\xc3\xa4\xf0\x9f\x90\x9f/\n");
    ck_assert_int_eq(sp_json_get_bool(root, "b", &truth), SP_OK);
    ck_assert(!truth);
    ck_assert_int_eq(sp_json_get(root, "l", SP_JSON_LIST, &list), SP_OK);
    ck_assert_uint_eq(list->count, 3);
    ck_assert_int_eq(list->first->integer, 1);
    ck_assert_int_eq(list->first->next->kind, SP_JSON_LIST);
    ck_assert_ptr_null(list->first->next->next->next);

    ck_assert_int_eq(sp_json_get_int(root, "n", &whole), SP_EFORMAT);
    ck_assert_str_eq(sp_last_error(), "doc.json: \"n\" is missing or is not a "
                                      "whole number");
    ck_assert_int_eq(sp_json_get_int(root, "big", &whole), SP_EFORMAT);
    ck_assert_int_eq(sp_json_get_text(root, "nowhere", &text), SP_EFORMAT);
    ck_assert_int_eq(sp_json_get_bool(root, "z", &truth), SP_EFORMAT);
    ck_assert_int_eq(sp_json_get_number(list, "x", &number), SP_EFORMAT);
    ck_assert_ptr_null(sp_json_find(NULL, "x"));
    sp_json_doc_free(doc);
}
END_TEST

static const struct {
    const char *text, *message;
} garbage[] = {
    { "", "1:1: not valid JSON: unexpected character (the text ends here)" },
    { " \n ", "2:2: not valid JSON: unexpected" },
    { "{", "1:2: not valid JSON: a key in quotes" },
    { "[1,]", "1:4: not valid JSON: unexpected character" },
    { "[1 2]", "1:4: not valid JSON: \",\" or \"]\" is expected" },
    { "[1", "1:3: not valid JSON: \",\" or \"]\" is expected (the text ends" },
    { "{\"a\" 1}", "1:6: not valid JSON: \":\" is expected" },
    { "{\"a\":1,}", "1:8: not valid JSON: a key in quotes" },
    { "{a:1}", "1:2: not valid JSON: a key in quotes" },
    { "{\"a\":1 \"b\":2}", "1:8: not valid JSON: \",\" or \"}\"" },
    { "{\"a\":1,\"b\":2,\"a\":3}", " not valid JSON: the key \"a\" stands "
                                   "twice" },
    { "1 2", "1:3: not valid JSON: something follows" },
    { "nul", "1:1: not valid JSON: unexpected character" },
    { "True", "1:1: not valid JSON" },
    { "NaN", "1:1: not valid JSON" },
    { "-Infinity", "1:2: not valid JSON" },
    { "01", "1:2: not valid JSON: something follows" },
    { "+1", "1:1: not valid JSON" },
    { ".5", "1:1: not valid JSON" },
    { "1.", "1:3: not valid JSON: digits must follow the point" },
    { "1e", "1:3: not valid JSON: digits must follow the e" },
    { "1e999", "1:6: not valid JSON: number too large" },
    { "0x10", "1:2: not valid JSON" },
    { "\"a", "1:3: not valid JSON: unfinished string" },
    { "\"\\", "1:3: not valid JSON: unfinished string" },
    { "\"\\\"", "1:4: not valid JSON: unfinished string" },
    { "\"\\x\"", "1:3: not valid JSON: unknown escape" },
    { "\"\\u12g4\"", "1:4: not valid JSON: \\u needs four" },
    { "\"\\u12\"", "1:4: not valid JSON: \\u needs four" },
    { "\"\\u0000\"", "not valid JSON: a string must not contain \\u0000" },
    { "\"\\ud83d\"", "not valid JSON: first half" },
    { "\"\\ud83d\\u0041\"", "not valid JSON: first half" },
    { "\"\\udc1f\"", "not valid JSON: second half" },
    { "\"\n\"", "1:2: not valid JSON: control character" },
    { "\"\xff\"", "1:2: not valid JSON: malformed UTF-8" },
    { "\"\xc3\"", "1:2: not valid JSON: malformed UTF-8" },
    { "\"\xed\xa0\x80\"", "1:2: not valid JSON: malformed UTF-8" },
    { "\xef\xbb\xbf{}", "1:1: not valid JSON" },
    { "// c\n1", "1:1: not valid JSON" },
};

START_TEST(garbage_is_refused_with_its_place)
{
    sp_json_doc *doc = NULL;

    ck_assert_int_eq(parse(&doc, garbage[_i].text), SP_EFORMAT);
    ck_assert_ptr_null(doc);
    ck_assert_ptr_eq(strstr(sp_last_error(), "doc.json:"), sp_last_error());
    ck_assert_msg(strstr(sp_last_error(), garbage[_i].message) != NULL, "%s",
                  sp_last_error());
}
END_TEST

static const char whole[] =
    "{\"a\":[1,-2.5e3,true,null],\"b\":{\"c\":\"x\\u00e4\\n\"}}";

/* Copied to the end of its own block, so that a sanitizer sees any step
 * beyond it. */
static sp_err parse_exactly(const char *text, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1);
    sp_json_doc *doc;
    sp_err e;

    memcpy(copy, text, n);
    e = sp_json_parse(&doc, "cut", copy, n);
    if (e == SP_OK)
        sp_json_doc_free(doc);
    free(copy);
    return e;
}

START_TEST(every_truncation_is_refused)
{
    for (size_t n = 0; n + 1 < sizeof whole; n++)
        ck_assert_int_eq(parse_exactly(whole, n), SP_EFORMAT);
    ck_assert_int_eq(parse_exactly(whole, sizeof whole - 1), SP_OK);
}
END_TEST

/* Whatever one byte becomes, reading ends in one of two ways. */
START_TEST(every_changed_byte_is_survived)
{
    char text[sizeof whole];

    for (size_t i = 0; i + 1 < sizeof whole; i++)
        for (int byte = 0; byte < 256; byte++) {
            sp_err e;

            memcpy(text, whole, sizeof whole);
            text[i] = (char)byte;
            e = parse_exactly(text, sizeof whole - 1);
            ck_assert(e == SP_OK || e == SP_EFORMAT);
        }
}
END_TEST

/* Many members must not take the square of their time. */
START_TEST(large_objects_are_read_quickly)
{
    enum { N = 100000 };
    sp_json j = { 0 };
    const char *text;
    sp_json_doc *doc;
    char key[16];

    sp_json_open(&j, NULL);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "k%d", i);
        sp_json_int(&j, key, i);
    }
    sp_json_close(&j);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_int_eq(parse(&doc, text), SP_OK);
    ck_assert_uint_eq(sp_json_root(doc)->count, N);
    sp_json_doc_free(doc);
    sp_json_free(&j);
}
END_TEST

START_TEST(a_file_is_read_as_its_text_is)
{
    char folder[] = "/tmp/sprat-json-XXXXXX", path[64];
    sp_json_doc *doc;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.json", folder);
    ck_assert_int_eq(sp_json_read(&doc, path, 5), SP_EIO);
    ck_assert_int_eq(sp_file_write_synced(path, "[1,2]", 5), SP_OK);
    ck_assert_int_eq(sp_json_read(&doc, path, 5), SP_OK);
    ck_assert_uint_eq(sp_json_root(doc)->count, 2);
    sp_json_doc_free(doc);
    ck_assert_int_eq(sp_json_read(&doc, path, 4), SP_EFORMAT);
    ck_assert_int_eq(sp_file_write_synced(path, "[1,2", 4), SP_OK);
    ck_assert_int_eq(sp_json_read(&doc, path, 5), SP_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "a.json:1:5"));
    ck_assert_int_eq(sp_dir_remove(folder), SP_OK);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("json");
    TCase *tc = tcase_create("json");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_test(tc, writes_every_kind);
    tcase_add_test(tc, pretty_text_has_the_same_values);
    tcase_add_loop_test(tc, wrong_use_is_told, 0, COUNT(misuses));
    tcase_add_test(tc, nesting_has_a_limit);
    tcase_add_loop_test(tc, numbers_come_back, 0, COUNT(numbers));
    tcase_add_test(tc, reads_every_kind);
    tcase_add_loop_test(tc, garbage_is_refused_with_its_place, 0,
                        COUNT(garbage));
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, every_changed_byte_is_survived);
    tcase_add_test(tc, large_objects_are_read_quickly);
    tcase_add_test(tc, a_file_is_read_as_its_text_is);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
