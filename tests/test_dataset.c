#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "fixture.h"

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

extern const sp_data_set sp_data_set_synthetic;

#define SET (&sp_data_set_synthetic)

static sp_err open_with(int valid, int train, sp_dataset **out)
{
    sp_data_cfg cfg = { .root = "", .valid = valid, .workers = 1 };
    void *own = sp_own_new(&SET->entry);
    sp_err err;

    sp_own_set(own, &SET->entry, "train", train);
    err = sp_dataset_open(out, SET, own, &cfg);
    free(own);
    return err;
}

static const int held_out[] = { 0, 1, 37, 99 };

/* Training and held-out samples are the training split, each once. */
START_TEST(parts_divide_the_training_split)
{
    enum { N = 100 };
    sp_dataset *d;
    int seen[N] = { 0 }, valid = held_out[_i];

    ck_assert_int_eq(open_with(valid, N, &d), SP_OK);
    ck_assert_uint_eq(d->count[SP_PART_VALID], (size_t)valid);
    ck_assert_uint_eq(d->count[SP_PART_TRAIN], (size_t)(N - valid));
    ck_assert_uint_eq(d->count[SP_PART_TEST], 256);
    for (int part = SP_PART_TRAIN; part <= SP_PART_VALID; part++)
        for (size_t i = 0; i < d->count[part]; i++)
            seen[sp_dataset_id(d, (sp_part)part, i)]++;
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], 1);
    for (size_t i = 0; i < 256; i++)
        ck_assert_uint_eq(sp_dataset_id(d, SP_PART_TEST, i), i);
    sp_dataset_close(d);
}
END_TEST

START_TEST(a_smaller_choice_is_part_of_a_larger)
{
    sp_dataset *small, *large;

    ck_assert_int_eq(open_with(10, 100, &small), SP_OK);
    ck_assert_int_eq(open_with(30, 100, &large), SP_OK);
    for (size_t i = 0; i < 10; i++)
        ck_assert_uint_eq(sp_dataset_id(small, SP_PART_VALID, i),
                          sp_dataset_id(large, SP_PART_VALID, i));
    sp_dataset_close(small);
    sp_dataset_close(large);
}
END_TEST

START_TEST(something_must_be_left_to_train_on)
{
    sp_dataset *d;

    ck_assert_int_eq(open_with(99, 100, &d), SP_OK);
    sp_dataset_close(d);
    ck_assert_int_eq(open_with(100, 100, &d), SP_EDATA);
    ck_assert(HAS("data.valid", "100", "99"));
    ck_assert_int_eq(open_with(1000, 100, &d), SP_EDATA);
}
END_TEST

START_TEST(settings_that_do_not_fit_are_refused)
{
    sp_data_cfg cfg = { .root = "",
                        .workers = 1,
                        .pad = 40,
                        .augment = SP_AUGMENT_CROP,
                        .pad_mode = SP_PAD_REFLECT };
    sp_data_info info = { .h = 32, .w = 32, .c = 3 };
    void *own = sp_own_new(&SET->entry);
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_check(&cfg, &info), SP_EDATA);
    ck_assert_int_eq(sp_dataset_open(&d, SET, own, &cfg), SP_EDATA);
    ck_assert(HAS("data.pad", "40", "32"));
    cfg.pad = 4;
    ck_assert_int_eq(sp_dataset_check(&cfg, &info), SP_OK);
    free(own);
}
END_TEST

START_TEST(samples_come_from_their_split)
{
    static uint8_t a[3072], b[3072];
    sp_dataset *d;
    int la, lb;

    ck_assert_int_eq(open_with(5, 100, &d), SP_OK);
    ck_assert_int_eq(sp_dataset_read(d, SP_PART_VALID, 7, a, &la), SP_OK);
    ck_assert_int_eq(SET->read(d->state, SP_TRAIN, 7, b, &lb), SP_OK);
    ck_assert(la == lb && memcmp(a, b, sizeof a) == 0);
    ck_assert_int_eq(sp_dataset_read(d, SP_PART_TEST, 7, a, &la), SP_OK);
    ck_assert_int_eq(SET->read(d->state, SP_TEST, 7, b, &lb), SP_OK);
    ck_assert(la == lb && memcmp(a, b, sizeof a) == 0);
    sp_dataset_close(d);
}
END_TEST

START_TEST(a_missing_folder_is_found_out_when_opening)
{
    extern const sp_data_set sp_data_set_cifar10;
    sp_data_cfg cfg = { .root = "/no/such/folder", .workers = 1 };
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_open(&d, &sp_data_set_cifar10, NULL, &cfg),
                     SP_EIO);
    ck_assert(HAS("data.root", "/no/such/folder"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dataset");
    TCase *tc = tcase_create("dataset");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, parts_divide_the_training_split, 0,
                        sizeof held_out / sizeof *held_out);
    tcase_add_test(tc, a_smaller_choice_is_part_of_a_larger);
    tcase_add_test(tc, something_must_be_left_to_train_on);
    tcase_add_test(tc, settings_that_do_not_fit_are_refused);
    tcase_add_test(tc, samples_come_from_their_split);
    tcase_add_test(tc, a_missing_folder_is_found_out_when_opening);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
