#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

extern const sp_data_set sp_data_set_synthetic;

#define SET (&sp_data_set_synthetic)
#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

enum { BYTES = 32 * 32 * 3 };

static void *open_default(sp_data_info *info)
{
    void *own = sp_own_new(&SET->entry), *state;

    ck_assert_int_eq(SET->open(NULL, own, info, &state), SP_OK);
    free(own);
    return state;
}

START_TEST(defaults_are_as_stated)
{
    sp_data_info info;
    void *state = open_default(&info);

    ck_assert(info.h == 32 && info.w == 32 && info.c == 3);
    ck_assert_int_eq(info.classes, 10);
    ck_assert_uint_eq(info.count[SP_TRAIN], 1024);
    ck_assert_uint_eq(info.count[SP_TEST], 256);
    SET->close(state);
}
END_TEST

START_TEST(samples_are_functions_of_their_number)
{
    sp_data_info info;
    void *a = open_default(&info), *b = open_default(&info);
    uint8_t x[BYTES], y[BYTES];
    int lx, ly;

    for (size_t i = 0; i < 40; i++) {
        ck_assert_int_eq(SET->read(a, SP_TRAIN, 39 - i, x, &lx), SP_OK);
        ck_assert_int_eq(SET->read(b, SP_TRAIN, 39 - i, y, &ly), SP_OK);
        ck_assert_int_eq(lx, ly);
        ck_assert_mem_eq(x, y, BYTES);
        ck_assert_int_eq(SET->read(a, SP_TEST, 39 - i, y, &ly), SP_OK);
        ck_assert_mem_ne(x, y, BYTES);
    }
    SET->close(a);
    SET->close(b);
}
END_TEST

static long distance(const uint8_t *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i < BYTES; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return (long)sum;
}

/* Means of training images classify the test images: there is something to
 * learn. And pixels of one class are not all the same. */
START_TEST(labels_can_be_learned)
{
    enum { CLASSES = 10, TRAIN = 200, TEST = 100 };
    static double mean[CLASSES][BYTES];
    sp_data_info info;
    void *state = open_default(&info);
    uint8_t x[BYTES];
    int label, right = 0;

    for (size_t i = 0; i < TRAIN; i++) {
        ck_assert_int_eq(SET->read(state, SP_TRAIN, i, x, &label), SP_OK);
        ck_assert(label >= 0 && label < CLASSES);
        for (int k = 0; k < BYTES; k++)
            mean[label][k] += x[k] * (double)CLASSES / TRAIN;
    }
    for (size_t i = 0; i < TEST; i++) {
        int best = 0;

        ck_assert_int_eq(SET->read(state, SP_TEST, i, x, &label), SP_OK);
        for (int c = 1; c < CLASSES; c++)
            if (distance(x, mean[c]) < distance(x, mean[best]))
                best = c;
        right += best == label;
        ck_assert_int_gt(distance(x, mean[label]), 10000);
    }
    ck_assert_int_eq(right, TEST);
    SET->close(state);
}
END_TEST

static sp_err describe_shape(int count, double h, double w, double c,
                             sp_data_info *info)
{
    void *own = sp_own_new(&SET->entry);
    sp_list *shape = NULL;
    sp_err err;

    for (size_t i = 0; i < SET->entry.key_count; i++)
        if (strcmp(SET->entry.keys[i].name, "shape") == 0)
            shape =
                (sp_list *)(void *)((char *)own + SET->entry.keys[i].offset);
    *shape = (sp_list){ .count = count, .value = { h, w, c } };
    err = SET->describe(own, info);
    free(own);
    return err;
}

START_TEST(shapes_are_checked)
{
    sp_data_info info;

    ck_assert_int_eq(describe_shape(3, 1, 7, 2, &info), SP_OK);
    ck_assert(info.h == 1 && info.w == 7 && info.c == 2);
    ck_assert_int_eq(describe_shape(2, 1, 7, 0, &info), SP_EDATA);
    ck_assert(HAS("data.shape", "2 numbers"));
    ck_assert_int_eq(describe_shape(3, 1.5, 7, 2, &info), SP_EDATA);
    ck_assert(HAS("data.shape", "1.5"));
    ck_assert_int_eq(describe_shape(3, 1, 0, 2, &info), SP_EDATA);
    ck_assert_int_eq(describe_shape(3, 16385, 1, 2, &info), SP_EDATA);
    ck_assert_int_eq(describe_shape(3, 1, 1, 1e9, &info), SP_EDATA);
}
END_TEST

static void *open_text(int vocab, int train, int test, sp_data_info *info)
{
    void *own = sp_own_new(&SET->entry), *state;

    sp_own_set(own, &SET->entry, "vocab", vocab);
    sp_own_set(own, &SET->entry, "train", train);
    sp_own_set(own, &SET->entry, "test", test);
    ck_assert_int_eq(SET->open(NULL, own, info, &state), SP_OK);
    free(own);
    return state;
}

START_TEST(text_has_what_was_asked_for)
{
    sp_data_info info;
    void *state = open_text(7, 300, 200, &info);
    void *longer = open_text(7, 600, 200, &info);
    const int32_t *x = SET->tokens(state, SP_TRAIN);

    ck_assert(info.text && info.classes == 7);
    ck_assert_uint_eq(info.count[SP_TRAIN], 600);
    ck_assert_uint_eq(info.count[SP_VALID], 200);
    ck_assert_uint_eq(info.count[SP_TEST], 200);
    for (int i = 0; i < 300; i++)
        ck_assert(x[i] >= 0 && x[i] < 7);
    ck_assert_mem_eq(x, SET->tokens(longer, SP_TRAIN), 300 * sizeof *x);
    ck_assert_mem_ne(x, SET->tokens(state, SP_VALID), 200 * sizeof *x);
    ck_assert_mem_ne(x, SET->tokens(state, SP_TEST), 200 * sizeof *x);
    SET->close(state);
    SET->close(longer);
}
END_TEST

/* Of the test tokens, the share that is what followed the token `back` places
 * before most often in training. */
static double right_share(const sp_data_info *info, void *state, size_t back)
{
    enum { V = 50 };
    int count[V][V] = { { 0 } }, best[V] = { 0 };
    const int32_t *x = SET->tokens(state, SP_TRAIN);
    size_t right = 0;

    for (size_t i = back; i < info->count[SP_TRAIN]; i++)
        count[x[i - back]][x[i]]++;
    for (int a = 0; a < V; a++)
        for (int b = 1; b < V; b++)
            if (count[a][b] > count[a][best[a]])
                best[a] = b;
    x = SET->tokens(state, SP_TEST);
    for (size_t i = back; i < info->count[SP_TEST]; i++)
        right += x[i] == best[x[i - back]];
    return (double)right / (double)(info->count[SP_TEST] - back);
}

/* As made: 1/2 + 1/2/50 by the last token; by the one before it 1/4 + 3/4/50
 * or the 1/4 + 3/4/50 that two steps of the first kind leave. Seven standard
 * errors of 4000 tokens are at most 0.055. */
START_TEST(text_can_be_learned)
{
    sp_data_info info;
    void *state = open_text(50, 40000, 4000, &info);

    ck_assert_double_eq_tol(right_share(&info, state, 1), 0.51, 0.055);
    ck_assert_double_eq_tol(right_share(&info, state, 2), 0.265, 0.055);
    SET->close(state);
}
END_TEST

START_TEST(one_token_is_too_few)
{
    void *own = sp_own_new(&SET->entry);
    sp_data_info info;

    sp_own_set(own, &SET->entry, "vocab", 3);
    sp_own_set(own, &SET->entry, "test", 1);
    ck_assert_int_eq(SET->describe(own, &info), SP_EDATA);
    ck_assert(HAS("data.test"));
    free(own);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("synthetic");
    TCase *tc = tcase_create("synthetic");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, defaults_are_as_stated);
    tcase_add_test(tc, samples_are_functions_of_their_number);
    tcase_add_test(tc, labels_can_be_learned);
    tcase_add_test(tc, shapes_are_checked);
    tcase_add_test(tc, text_has_what_was_asked_for);
    tcase_add_test(tc, text_can_be_learned);
    tcase_add_test(tc, one_token_is_too_few);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
