#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

extern const sp_data_set sp_data_set_folder;

#define SET (&sp_data_set_folder)

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

static void *own;
static sp_data_info info;
static void *state;

static void write_png(const char *name, uint8_t value)
{
    sp_scratch_flat_png(dir, name, 2, 3, 3, value);
}

/* Classes whose byte order is not the alphabet's: B, a, "a b". */
static void write_sound(void)
{
    write_png("train/a/10.png", 10);
    write_png("train/a/9.png", 9);
    write_png("train/B/x-y.z.png", 1);
    write_png("train/a b/1.PNG", 20);
    write_png("test/B/1.png", 2);
    write_png("test/a/1.png", 11);
    write_png("test/a b/1.png", 21);
    write_png("test/a b/2.png", 22);
    own = sp_own_new(&SET->entry);
}

static void set(const char *key, double value)
{
    sp_own_set(own, &SET->entry, key, value);
}

static void refused(void)
{
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    free(own);
}

static void expect(sp_split split, size_t i, int label, uint8_t value)
{
    uint8_t image[18];
    int got;

    ck_assert_int_eq(SET->read(state, split, i, image, &got), SP_OK);
    ck_assert_int_eq(got, label);
    for (int k = 0; k < 18; k++)
        ck_assert_uint_eq(image[k], value);
}

START_TEST(classes_and_images_are_in_byte_order)
{
    write_sound();
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_OK);
    ck_assert(info.h == 2 && info.w == 3 && info.c == 3);
    ck_assert_int_eq(info.classes, 3);
    ck_assert_uint_eq(info.count[SP_TRAIN], 4);
    ck_assert_uint_eq(info.count[SP_TEST], 4);
    ck_assert_str_eq(info.class_names[0], "B");
    ck_assert_str_eq(info.class_names[1], "a");
    ck_assert_str_eq(info.class_names[2], "a b");
    expect(SP_TRAIN, 0, 0, 1);
    expect(SP_TRAIN, 1, 1, 10);
    expect(SP_TRAIN, 2, 1, 9);
    expect(SP_TRAIN, 3, 2, 20);
    expect(SP_TEST, 0, 0, 2);
    expect(SP_TEST, 1, 1, 11);
    expect(SP_TEST, 2, 2, 21);
    expect(SP_TEST, 3, 2, 22);
    SET->close(state);
    free(own);
}
END_TEST

START_TEST(hidden_names_are_left_out)
{
    write_sound();
    sp_scratch_write(dir, ".DS_Store", "x", 1);
    sp_scratch_write(dir, "train/.DS_Store", "x", 1);
    sp_scratch_write(dir, "train/.hidden/1.png", "x", 1);
    sp_scratch_write(dir, "test/a/._1.png", "x", 1);
    sp_scratch_write(dir, "README", "x", 1);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_OK);
    ck_assert_int_eq(info.classes, 3);
    ck_assert_uint_eq(info.count[SP_TEST], 4);
    SET->close(state);
    free(own);
}
END_TEST

/* A file that should not be there, and what is said about it. */
static const struct {
    const char *file, *word, *more;
} extra[] = {
    { "train/a/notes.txt", "train/a/notes.txt", "not a PNG" },
    { "train/a/2.jpg", "train/a/2.jpg", "not a PNG" },
    { "train/a/png", "train/a/png", "not a PNG" },
    { "train/a/deep/1.png", "train/a/deep", "folder within a class" },
    { "train/readme.png", "train/readme.png", "not a class folder" },
    { "train/new/1.png", "'new'", "not in" },
    { "test/new/1.png", "'new'", "not in" },
    { "test/A/1.png", "'A'", "not in" },
    { "test/z/1.png", "'z'", "not in" },
    { "test/a/bad.png", "test/a/bad.png", "ends too early" },
};

START_TEST(what_does_not_belong_is_named)
{
    write_sound();
    sp_scratch_write(dir, extra[_i].file, "\x89PNG\r\n\x1a\n", 8);
    refused();
    ck_assert(HAS(extra[_i].word, extra[_i].more));
}
END_TEST

START_TEST(foreign_bytes_under_a_png_name_are_named)
{
    write_sound();
    sp_scratch_write(dir, "test/a/2.png", "\xff\xd8\xff\xe0 JFIF....", 14);
    refused();
    ck_assert(HAS("test/a/2.png", "JPEG"));
}
END_TEST

START_TEST(empty_class_folders_are_named)
{
    write_sound();
    ck_assert_int_eq(mkdir(sp_scratch_path(dir, "train/empty"), 0777), 0);
    ck_assert_int_eq(mkdir(sp_scratch_path(dir, "test/empty"), 0777), 0);
    refused();
    ck_assert(HAS("train/empty", "empty"));
}
END_TEST

START_TEST(both_splits_are_needed)
{
    own = sp_own_new(&SET->entry);
    write_png("train/a/1.png", 1);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("/test", "ROOT/test/CLASS"));
    ck_assert_int_eq(mkdir(sp_scratch_path(dir, "test"), 0777), 0);
    refused();
    ck_assert(HAS("no class folder", "/test"));
}
END_TEST

/* The last image of all is looked at when opening. */
START_TEST(another_size_is_refused_or_scaled)
{
    write_sound();
    sp_scratch_flat_png(dir, "test/a b/3.png", 5, 4, 1, 77);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("test/a b/3.png", "5 x 4", "2 x 3"));
    set("resize", 1);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_OK);
    expect(SP_TEST, 4, 2, 77);
    SET->close(state);
    free(own);
}
END_TEST

START_TEST(keys_set_size_and_channels)
{
    write_sound();
    set("height", 4);
    set("width", 5);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("train/B/x-y.z.png", "4 x 5"));
    set("resize", 1);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_OK);
    ck_assert(info.h == 4 && info.w == 5);
    SET->close(state);
    set("channels", 1);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("x-y.z.png", "colour"));
    set("channels", 2);
    refused();
    ck_assert(HAS("data.channels", "2"));
}
END_TEST

START_TEST(the_number_of_classes_is_checked)
{
    write_sound();
    set("classes", 4);
    ck_assert_int_eq(SET->open(dir, own, &info, &state), SP_EDATA);
    ck_assert(HAS("3 classes", "data.classes is 4"));
    ck_assert_int_eq(SET->describe(own, &info), SP_EDATA);
    set("height", 8);
    set("width", 9);
    ck_assert_int_eq(SET->describe(own, &info), SP_OK);
    ck_assert(info.h == 8 && info.w == 9 && info.c == 3 && info.classes == 4);
    free(own);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("folder");
    TCase *tc = tcase_create("folder");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, classes_and_images_are_in_byte_order);
    tcase_add_test(tc, hidden_names_are_left_out);
    tcase_add_loop_test(tc, what_does_not_belong_is_named, 0,
                        sizeof extra / sizeof *extra);
    tcase_add_test(tc, foreign_bytes_under_a_png_name_are_named);
    tcase_add_test(tc, empty_class_folders_are_named);
    tcase_add_test(tc, both_splits_are_needed);
    tcase_add_test(tc, another_size_is_refused_or_scaled);
    tcase_add_test(tc, keys_set_size_and_channels);
    tcase_add_test(tc, the_number_of_classes_is_checked);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
