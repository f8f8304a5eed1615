#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/safetensors.h"
#include "fixture.h"
#include "sprat/report.h"

static char *folder;

static void setup(void) { folder = sp_scratch_new(); }
static void teardown(void) { sp_scratch_free(folder); }

static void put(const char *name, const char *text)
{
    sp_scratch_write(folder, name, text, strlen(text));
}

static const char hash_a[] =
    "0123456789012345678901234567890123456789012345678901234567890123";
static const char hash_b[] =
    "1123456789012345678901234567890123456789012345678901234567890123";

/* A run of two epochs of 100 steps, whose hashes are as named from step 200
 * on. */
static void put_run(const char *name, double top1, const char *hash)
{
    char file[64], text[1024];

    snprintf(file, sizeof file, "%s/hashes.jsonl", name);
    snprintf(text, sizeof text,
             "{\"step\":100,\"hash\":\"%s\"}\n{\"step\":200,\"hash\":\"%s\"}\n",
             hash_a, hash);
    put(file, text);
    snprintf(file, sizeof file, "%s/metrics.jsonl", name);
    snprintf(text, sizeof text,
             "{\"kind\":\"epoch\",\"epoch\":1,\"step\":100,\"test_top1\":%g,"
             "\"items_per_s\":10}\n"
             "{\"kind\":\"epoch\",\"epoch\":2,\"step\":200,\"test_top1\":60,"
             "\"items_per_s\":20}\n",
             top1);
    put(file, text);
    snprintf(file, sizeof file, "%s/config.yaml", name);
    put(file, "train:\n  seed: 1\n  batch: 8\n");
    snprintf(file, sizeof file, "%s/result.json", name);
    put(file, "{\"status\":\"done\",\"step\":200,\"final\":{\"test_top1\":60},"
              "\"best\":{\"epoch\":2,\"test_top1\":60},\"packet_bytes\":40,"
              "\"isa\":\"avx2\",\"threads\":4,\"commit\":\"abc\"}");
}

/* Compare a and b, and give what was told as JSON, to be freed. */
static sp_json_doc *compare(const char *a, const char *b, bool *differ)
{
    char pa[200], pb[200];
    sp_compare_opt o = { .a = pa, .b = pb, .json = true };
    sp_json_doc *doc;
    char *text;
    size_t size;

    snprintf(pa, sizeof pa, "%s/%s", folder, a);
    snprintf(pb, sizeof pb, "%s/%s", folder, b);
    o.out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(o.out);
    ck_assert_msg(sp_compare(&o, differ) == SP_OK, "%s", sp_last_error());
    fclose(o.out);
    ck_assert_int_eq(sp_json_parse(&doc, "told", text, size), SP_OK);
    free(text);
    return doc;
}

static double number(const sp_json_doc *d, const char *a, const char *b,
                     const char *c)
{
    const sp_json_value *v = sp_json_find(sp_json_root(d), a);

    v = sp_json_find(v, b);
    v = c ? sp_json_find(v, c) : v;
    ck_assert_ptr_nonnull(v);
    return v->kind == SP_JSON_NUMBER ? v->number : NAN;
}

START_TEST(equal_runs_are_the_same)
{
    sp_json_doc *d;
    bool differ = true;

    put_run("a", 50, hash_a);
    put_run("b", 50, hash_a);
    /* What may differ: settings, machine. */
    put("b/config.yaml", "train:\n  seed: 1\n  batch: 8\n  threads: 2\n");
    d = compare("a", "b", &differ);
    ck_assert(!differ);
    ck_assert_double_eq(number(d, "hashes", "compared", NULL), 2);
    ck_assert_double_eq(number(d, "hashes", "same_through", NULL), 200);
    ck_assert_double_nan(number(d, "hashes", "differ_at", NULL));
    ck_assert_double_eq(number(d, "items_per_s", "a", NULL), 15);
    ck_assert_uint_eq(sp_json_find(sp_json_root(d), "settings")->count, 1);
    ck_assert_uint_eq(sp_json_find(sp_json_root(d), "made_by")->count, 0);
    sp_json_doc_free(d);
}
END_TEST

START_TEST(the_first_other_hash_is_found)
{
    sp_json_doc *d;
    bool differ;

    put_run("a", 50, hash_a);
    put_run("b", 50, hash_b);
    d = compare("a", "b", &differ);
    ck_assert(differ);
    ck_assert_double_eq(number(d, "hashes", "same_through", NULL), 100);
    ck_assert_double_eq(number(d, "hashes", "differ_at", NULL), 200);
    sp_json_doc_free(d);
}
END_TEST

START_TEST(the_largest_gap_is_found)
{
    sp_json_doc *d;
    bool differ;

    put_run("a", 50, hash_a);
    put_run("b", 47.5, hash_a);
    d = compare("a", "b", &differ);
    ck_assert(differ);
    ck_assert_double_eq(number(d, "scores", "test_top1", "largest_gap"), 2.5);
    ck_assert_double_eq(number(d, "scores", "test_top1", "gap_epoch"), 1);
    ck_assert_double_eq(number(d, "scores", "test_top1", "final_b"), 60);
    sp_json_doc_free(d);
}
END_TEST

START_TEST(steps_and_bytes_are_results_too)
{
    bool differ;

    put_run("a", 50, hash_a);
    put_run("b", 50, hash_a);
    put("b/result.json", "{\"status\":\"done\",\"step\":200,"
                         "\"final\":{\"test_top1\":60},"
                         "\"best\":{\"epoch\":2,\"test_top1\":60},"
                         "\"packet_bytes\":41}");
    sp_json_doc_free(compare("a", "b", &differ));
    ck_assert(differ);
    put("b/result.json", "{\"status\":\"stopped\",\"step\":150,"
                         "\"final\":{\"test_top1\":60},"
                         "\"best\":{\"epoch\":2,\"test_top1\":60},"
                         "\"packet_bytes\":40}");
    sp_json_doc_free(compare("a", "b", &differ));
    ck_assert(differ);
}
END_TEST

/* ---- Weights ---------------------------------------------------------------
 */

static void put_weights(const char *name, const float *w, const char *second,
                        int64_t rows)
{
    static const int64_t count = 7;
    float bias[2] = { 1, 2 };
    sp_st_tensor tensors[] = {
        { "w", SP_ST_F32, 2, { rows, 4 / rows }, w, 0, 0 },
        { second, SP_ST_F32, 1, { 2 }, bias, 0, 0 },
        { "n", SP_ST_I64, 0, { 0 }, &count, 0, 0 },
    };
    sp_st_content c = { .tensors = tensors, .count = 3 };

    sp_scratch_write(folder, name, "", 0); /* and its folder */
    ck_assert_int_eq(sp_st_write(sp_scratch_path(folder, name), &c, NULL),
                     SP_OK);
}

static const sp_json_value *tensor(const sp_json_doc *d, const char *name)
{
    const sp_json_value *v = sp_json_find(sp_json_root(d), "tensors")->first;

    while (v && strcmp(sp_json_find(v, "name")->text, name) != 0)
        v = v->next;
    ck_assert_ptr_nonnull(v);
    return v;
}

static const char *fate(const sp_json_doc *d, const char *name)
{
    return sp_json_find(tensor(d, name), "is")->text;
}

START_TEST(weights_are_compared)
{
    static const float a[4] = { 1, 2, 3, 4 }, b[4] = { 1, 2.5, 3, 3 };
    sp_json_doc *d;
    bool differ;

    put_weights("a/model.safetensors", a, "bias", 2);
    put_weights("b/model.safetensors", b, "bias", 2);
    put_weights("c/model.safetensors", a, "other", 1);
    d = compare("a", "b/model.safetensors", &differ);
    ck_assert(differ);
    ck_assert_str_eq(fate(d, "w"), "different");
    ck_assert_str_eq(fate(d, "bias"), "same");
    ck_assert_str_eq(fate(d, "n"), "same");
    ck_assert_double_eq(
        sp_json_find(tensor(d, "w"), "largest_difference")->number, 1);
    ck_assert_double_eq(sp_json_find(tensor(d, "w"), "different")->number, 2);
    sp_json_doc_free(d);
    d = compare("a", "c", &differ);
    ck_assert(differ);
    ck_assert_str_eq(fate(d, "w"), "shape");
    ck_assert_str_eq(fate(d, "bias"), "only_a");
    ck_assert_str_eq(fate(d, "other"), "only_b");
    sp_json_doc_free(d);
    sp_json_doc_free(compare("a", "a", &differ));
    ck_assert(!differ);
}
END_TEST

START_TEST(values_that_are_not_finite_are_told)
{
    static const float a[4] = { NAN, 2, 3, 4 }, b[4] = { 1, 2.5, 3, 3 };
    sp_json_doc *d;
    bool differ;

    put_weights("a/model.safetensors", a, "bias", 2);
    put_weights("b/model.safetensors", b, "bias", 2);
    d = compare("a", "b", &differ);
    ck_assert(differ);
    ck_assert_int_eq(sp_json_find(tensor(d, "w"), "largest_difference")->kind,
                     SP_JSON_NULL);
    ck_assert_double_eq(sp_json_find(tensor(d, "w"), "different")->number, 3);
    sp_json_doc_free(d);
    sp_json_doc_free(compare("a", "a", &differ));
    ck_assert(!differ); /* the same bits */
}
END_TEST

START_TEST(two_of_a_kind_are_wanted)
{
    static const float a[4] = { 1, 2, 3, 4 };
    char run[200], weights[200], none[200];
    sp_compare_opt o = { .out = stdout };
    bool differ;

    put_run("run", 50, hash_a);
    put_weights("w/model.safetensors", a, "bias", 2);
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(weights, sizeof weights, "%s/w", folder);
    snprintf(none, sizeof none, "%s/none", folder);
    o.a = run;
    o.b = weights;
    ck_assert_int_eq(sp_compare(&o, &differ), SP_EARG);
    o.b = none;
    ck_assert_int_eq(sp_compare(&o, &differ), SP_EARG);
    ck_assert(sp_error_has((const char *const[]){ "none", NULL }));
    put("run/hashes.jsonl", "{\"step\":1,\"hash\":\"short\"}\n");
    o.b = run;
    ck_assert_int_eq(sp_compare(&o, &differ), SP_EFORMAT);
    ck_assert(sp_error_has((const char *const[]){ "hashes.jsonl:1:", NULL }));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compare");
    TCase *tc = tcase_create("compare");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, equal_runs_are_the_same);
    tcase_add_test(tc, the_first_other_hash_is_found);
    tcase_add_test(tc, the_largest_gap_is_found);
    tcase_add_test(tc, steps_and_bytes_are_results_too);
    tcase_add_test(tc, weights_are_compared);
    tcase_add_test(tc, values_that_are_not_finite_are_told);
    tcase_add_test(tc, two_of_a_kind_are_wanted);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
