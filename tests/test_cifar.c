#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

extern const sp_data_set sp_data_set_cifar10, sp_data_set_cifar100;

enum { PIXELS = 3 * 1024, RECORD10 = PIXELS + 1, RECORD100 = PIXELS + 2 };

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

static sp_err open_set(const sp_data_set *set, sp_data_info *info, void **state)
{
    return set->open(dir, NULL, info, state);
}

static void refused(const sp_data_set *set)
{
    sp_data_info info;
    void *state;

    ck_assert_int_eq(open_set(set, &info, &state), SP_EDATA);
}

/* Files of zeros that take no space: all images black, of class 0. */
static void write_cifar10(void)
{
    for (int i = 1; i <= 5; i++) {
        char name[] = "data_batch_0.bin";

        name[11] = (char)('0' + i);
        sp_scratch_resize(dir, name, (size_t)10000 * RECORD10);
    }
    sp_scratch_resize(dir, "test_batch.bin", (size_t)10000 * RECORD10);
}

static void write_cifar100(void)
{
    sp_scratch_resize(dir, "train.bin", (size_t)50000 * RECORD100);
    sp_scratch_resize(dir, "test.bin", (size_t)10000 * RECORD100);
}

static void patch(const char *name, size_t at, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(sp_scratch_path(dir, name), "r+b");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* Record 3 of the second file is training image 10003; planes become
 * adjacent channels. */
START_TEST(records_become_images)
{
    uint8_t record[RECORD10], image[PIXELS];
    sp_data_info info;
    void *state;
    int label;

    record[0] = 7;
    for (int i = 0; i < PIXELS; i++)
        record[1 + i] = (uint8_t)(i / 1024 * 50 + i % 1024 % 50);
    write_cifar10();
    patch("data_batch_2.bin", 3 * RECORD10, record, sizeof record);
    ck_assert_int_eq(open_set(&sp_data_set_cifar10, &info, &state), SP_OK);
    ck_assert(info.h == 32 && info.w == 32 && info.c == 3);
    ck_assert(info.classes == 10 && info.count[SP_TRAIN] == 50000 &&
              info.count[SP_TEST] == 10000);
    ck_assert_str_eq(info.class_names[7], "horse");
    ck_assert_int_eq(
        sp_data_set_cifar10.read(state, SP_TRAIN, 10003, image, &label), SP_OK);
    ck_assert_int_eq(label, 7);
    for (int p = 0; p < 1024; p++)
        for (int k = 0; k < 3; k++)
            ck_assert_uint_eq(image[3 * p + k], k * 50 + p % 50);
    ck_assert_int_eq(
        sp_data_set_cifar10.read(state, SP_TEST, 9999, image, &label), SP_OK);
    ck_assert_int_eq(label, 0);
    sp_data_set_cifar10.close(state);
}
END_TEST

/* The second label byte is the class of the hundred. */
START_TEST(cifar100_takes_the_fine_label)
{
    static const uint8_t labels[] = { 250, 99 };
    char text[1000] = "";
    uint8_t image[PIXELS];
    sp_data_info info;
    void *state;
    int label;

    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), "class_%d\n", i);
    write_cifar100();
    patch("train.bin", (size_t)49999 * RECORD100, labels, 2);
    sp_scratch_write(dir, "fine_label_names.txt", text, strlen(text) / 2);
    refused(&sp_data_set_cifar100);
    ck_assert(HAS("fine_label_names.txt", "100"));
    sp_scratch_write(dir, "fine_label_names.txt", text, strlen(text));
    ck_assert_int_eq(open_set(&sp_data_set_cifar100, &info, &state), SP_OK);
    ck_assert(info.classes == 100 && info.count[SP_TRAIN] == 50000 &&
              info.count[SP_TEST] == 10000);
    ck_assert_str_eq(info.class_names[0], "class_0");
    ck_assert_str_eq(info.class_names[99], "class_99");
    ck_assert_int_eq(
        sp_data_set_cifar100.read(state, SP_TRAIN, 49999, image, &label),
        SP_OK);
    ck_assert_int_eq(label, 99);
    sp_data_set_cifar100.close(state);
}
END_TEST

START_TEST(describing_opens_nothing)
{
    sp_data_info info;

    ck_assert_int_eq(sp_data_set_cifar10.describe(NULL, &info), SP_OK);
    ck_assert(info.h == 32 && info.c == 3 && info.classes == 10);
    ck_assert_int_eq(sp_data_set_cifar100.describe(NULL, &info), SP_OK);
    ck_assert(info.h == 32 && info.c == 3 && info.classes == 100);
}
END_TEST

START_TEST(a_label_out_of_range_is_named)
{
    static const uint8_t label = 10;

    write_cifar10();
    patch("data_batch_2.bin", (size_t)1234 * RECORD10, &label, 1);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("data_batch_2.bin", "record 1234", "label 10", "0 to 9"));
}
END_TEST

START_TEST(a_truncated_file_is_named)
{
    write_cifar10();
    sp_scratch_resize(dir, "data_batch_5.bin", (size_t)10000 * RECORD10 - 1);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("data_batch_5.bin", "30729999", "30730000", "cut short"));
    sp_scratch_resize(dir, "data_batch_5.bin", (size_t)10000 * RECORD10);
    sp_scratch_resize(dir, "test_batch.bin", 0);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("test_batch.bin", "0 bytes", "cut short"));
    /* CIFAR-100's records under CIFAR-10's name. */
    sp_scratch_resize(dir, "test_batch.bin", (size_t)10000 * RECORD100);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("test_batch.bin", "another kind"));
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    write_cifar10();
    ck_assert_int_eq(unlink(sp_scratch_path(dir, "data_batch_3.bin")), 0);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("data_batch_3.bin", "data.root"));
    ck_assert_int_eq(mkdir(sp_scratch_path(dir, "data_batch_3.bin"), 0700), 0);
    refused(&sp_data_set_cifar10);
    ck_assert(HAS("data_batch_3.bin", "is not a file"));
}
END_TEST

/* What lies in the folder instead, and a word of the remedy. */
static const struct {
    const sp_data_set *set;
    const char *file, *word;
} mistakes[] = {
    { &sp_data_set_cifar10, "cifar-10-batches-bin/data_batch_1.bin",
      "cifar-10-batches-bin is where the files are" },
    { &sp_data_set_cifar10, "data_batch_1", "python version" },
    { &sp_data_set_cifar10, "cifar-10-batches-py/data_batch_1",
      "python version" },
    { &sp_data_set_cifar10, "train.bin", "cifar100" },
    { &sp_data_set_cifar10, "cifar-10-binary.tar.gz", "tar xzf" },
    { &sp_data_set_cifar100, "cifar-100-binary/train.bin",
      "cifar-100-binary is where the files are" },
    { &sp_data_set_cifar100, "meta", "python version" },
    { &sp_data_set_cifar100, "data_batch_1.bin", "cifar10" },
    { &sp_data_set_cifar100, "cifar-100-binary.tar.gz", "tar xzf" },
    { &sp_data_set_cifar100, "notes.txt", "no file train.bin" },
};

START_TEST(the_wrong_folder_is_recognised)
{
    sp_scratch_write(dir, mistakes[_i].file, "x", 1);
    refused(mistakes[_i].set);
    ck_assert(HAS(dir, mistakes[_i].word));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cifar");
    TCase *tc = tcase_create("cifar");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, records_become_images);
    tcase_add_test(tc, cifar100_takes_the_fine_label);
    tcase_add_test(tc, describing_opens_nothing);
    tcase_add_test(tc, a_label_out_of_range_is_named);
    tcase_add_test(tc, a_truncated_file_is_named);
    tcase_add_test(tc, a_missing_file_is_named);
    tcase_add_loop_test(tc, the_wrong_folder_is_recognised, 0,
                        sizeof mistakes / sizeof *mistakes);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
