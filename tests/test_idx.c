#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

extern const sp_data_set sp_data_set_idx;

#define SET (&sp_data_set_idx)

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

static sp_err open_with(int classes, sp_data_info *info, void **state)
{
    void *own = sp_own_new(&SET->entry);
    sp_err err;

    sp_own_set(own, &SET->entry, "height", 3);
    sp_own_set(own, &SET->entry, "width", 2);
    sp_own_set(own, &SET->entry, "classes", classes);
    err = SET->open(dir, own, info, state);
    free(own);
    return err;
}

static void refused(int classes)
{
    sp_data_info info;
    void *state;

    ck_assert_int_eq(open_with(classes, &info, &state), SP_EDATA);
}

static void write_images(const char *name, uint8_t n, bool packed)
{
    uint8_t b[16 + 10 * 6] = { 0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 3, 0, 0, 0, 2 };

    for (int i = 0; i < n * 6; i++)
        b[16 + i] = (uint8_t)(i * 3);
    (packed ? sp_scratch_gzip : sp_scratch_write)(dir, name, b,
                                                  16 + (size_t)n * 6);
}

/* Labels 0, 1, 2, 3, 0, ... */
static void write_labels(const char *name, uint8_t n, bool packed)
{
    uint8_t b[8 + 10] = { 0, 0, 8, 1, 0, 0, 0, n };

    for (int i = 0; i < n; i++)
        b[8 + i] = (uint8_t)(i % 4);
    (packed ? sp_scratch_gzip : sp_scratch_write)(dir, name, b, 8u + n);
}

static void write_sound(void)
{
    write_images("train-images-idx3-ubyte", 10, false);
    write_labels("train-labels-idx1-ubyte.gz", 10, true);
    write_images("t10k-images-idx3-ubyte.gz", 3, true);
    write_labels("t10k-labels-idx1-ubyte", 3, false);
}

START_TEST(plain_and_gzip_files_are_read)
{
    sp_data_info info;
    void *state;
    uint8_t image[6];
    int label;

    write_sound();
    ck_assert_int_eq(open_with(0, &info, &state), SP_OK);
    ck_assert(info.h == 3 && info.w == 2 && info.c == 1);
    ck_assert_int_eq(info.classes, 4);
    ck_assert_uint_eq(info.count[SP_TRAIN], 10);
    ck_assert_uint_eq(info.count[SP_TEST], 3);
    ck_assert_int_eq(SET->read(state, SP_TRAIN, 9, image, &label), SP_OK);
    ck_assert_int_eq(label, 1);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(image[i], 3 * (54 + i));
    ck_assert_int_eq(SET->read(state, SP_TEST, 2, image, &label), SP_OK);
    ck_assert_int_eq(label, 2);
    ck_assert_uint_eq(image[0], 36);
    SET->close(state);
    ck_assert_int_eq(open_with(7, &info, &state), SP_OK);
    ck_assert_int_eq(info.classes, 7);
    SET->close(state);
}
END_TEST

START_TEST(labels_beyond_the_classes_are_named)
{
    write_sound();
    refused(3);
    ck_assert(HAS("train-labels-idx1-ubyte", "record 3", "label 3", "0 to 2",
                  "data.classes"));
}
END_TEST

START_TEST(another_image_size_names_the_keys)
{
    sp_data_info info;
    void *state, *own = sp_own_new(&SET->entry);

    write_sound();
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("3 x 2", "28 x 28", "data.height"));
    free(own);
}
END_TEST

/* One byte of a sound file's header changed, or its size. */
static const struct {
    const char *file;
    int at; /* of the byte; -1: only the size changes */
    uint8_t byte;
    int cut; /* bytes taken off the end; negative: added */
    const char *word;
} damage[] = {
    { "train-images-idx3-ubyte", 0, 1, 0, "magic" },
    { "train-images-idx3-ubyte", 1, 9, 0, "magic" },
    { "train-images-idx3-ubyte", 2, 0x0d, 0, "0x0d" },
    { "train-images-idx3-ubyte", 3, 1, 0, "labels, not images" },
    { "train-images-idx3-ubyte", 4, 255, 0, "declares" },
    { "train-images-idx3-ubyte", 7, 9, 0, "declares 54 bytes" },
    { "train-images-idx3-ubyte", 7, 0, 0, "size of 0" },
    { "train-images-idx3-ubyte", 8, 255, 0, "size of 4278190083" },
    { "train-images-idx3-ubyte", 15, 0, 0, "size of 0" },
    { "train-images-idx3-ubyte", -1, 0, 1, "declares 60 bytes" },
    { "train-images-idx3-ubyte", -1, 0, -1, "holds 61" },
    { "train-images-idx3-ubyte", -1, 0, 62, "header" },
    { "train-images-idx3-ubyte", -1, 0, 73, "magic" },
    { "train-images-idx3-ubyte", -1, 0, 76, "magic" },
    { "t10k-labels-idx1-ubyte", 3, 3, 0, "images, not labels" },
    { "t10k-labels-idx1-ubyte", -1, 0, 1, "declares 3 bytes" },
};

START_TEST(damage_is_named)
{
    const char *path;
    uint8_t *bytes;
    size_t size;

    write_sound();
    path = sp_scratch_path(dir, damage[_i].file);
    ck_assert_int_eq(sp_read_file(path, 4096, &bytes, &size), SP_OK);
    if (damage[_i].at >= 0)
        bytes[damage[_i].at] = damage[_i].byte;
    sp_scratch_write(dir, damage[_i].file, bytes, size);
    sp_scratch_resize(dir, damage[_i].file,
                      (size_t)((long)size - damage[_i].cut));
    refused(0);
    ck_assert(HAS(damage[_i].file, damage[_i].word));
    free(bytes);
}
END_TEST

START_TEST(counts_must_agree)
{
    write_sound();
    write_labels("train-labels-idx1-ubyte.gz", 9, true);
    refused(0);
    ck_assert(HAS("10 images", "9 labels"));
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    write_sound();
    ck_assert_int_eq(unlink(sp_scratch_path(dir, "t10k-labels-idx1-ubyte")), 0);
    refused(0);
    ck_assert(HAS("t10k-labels-idx1-ubyte", ".gz", dir));
}
END_TEST

START_TEST(classes_are_wanted_where_nothing_is_opened)
{
    void *own = sp_own_new(&SET->entry);
    sp_data_info info;

    ck_assert_int_eq(SET->describe(own, &info), SP_EDATA);
    ck_assert(HAS("data.classes"));
    sp_own_set(own, &SET->entry, "classes", 10);
    ck_assert_int_eq(SET->describe(own, &info), SP_OK);
    ck_assert(info.h == 28 && info.w == 28 && info.c == 1 &&
              info.classes == 10);
    free(own);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("idx");
    TCase *tc = tcase_create("idx");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, plain_and_gzip_files_are_read);
    tcase_add_test(tc, labels_beyond_the_classes_are_named);
    tcase_add_test(tc, another_image_size_names_the_keys);
    tcase_add_loop_test(tc, damage_is_named, 0, sizeof damage / sizeof *damage);
    tcase_add_test(tc, counts_must_agree);
    tcase_add_test(tc, a_missing_file_is_named);
    tcase_add_test(tc, classes_are_wanted_where_nothing_is_opened);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
