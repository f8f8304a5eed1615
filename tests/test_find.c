#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

START_TEST(a_folder_as_given_comes_first)
{
    char *path;

    sp_scratch_write(dir, "set/file", "", 0);
    sp_scratch_write(dir, "data/set/file", "", 0);
    setenv("SPRAT_DATA", sp_scratch_path(dir, "data"), 1);
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(sp_data_find("set", &path), SP_OK);
    ck_assert_str_eq(path, "set");
    free(path);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(sp_data_find("set", &path), SP_OK);
    ck_assert_str_eq(path, sp_scratch_path(dir, "data/set"));
    free(path);
    ck_assert_int_eq(sp_data_find(dir, &path), SP_OK);
    ck_assert_str_eq(path, dir);
    free(path);
}
END_TEST

START_TEST(the_error_lists_the_places)
{
    char *path;

    setenv("SPRAT_DATA", "/nowhere/at-all", 1);
    ck_assert_int_eq(sp_data_find("no-such-set", &path), SP_EIO);
    ck_assert(HAS("no-such-set", "/nowhere/at-all", "/usr/share/datasets",
                  "data.root"));
    unsetenv("SPRAT_DATA");
    ck_assert_int_eq(sp_data_find("no-such-set", &path), SP_EIO);
    ck_assert(HAS("not set"));
    ck_assert_int_eq(sp_data_find("/no/such/set", &path), SP_EIO);
    ck_assert(HAS("/no/such/set"));
    ck_assert_int_eq(sp_data_find("", &path), SP_EARG);
}
END_TEST

START_TEST(an_archive_is_told_how_to_unpack)
{
    static const char *const cases[][2] = {
        { "cifar-10-binary.tar.gz", "tar xzf" },
        { "a.b.tgz", "tar xzf" },
        { "set.zip", "unzip" },
        { "data_batch_1.bin", "is a file" },
    };
    char *path;

    for (int i = 0; i < 4; i++) {
        sp_scratch_write(dir, cases[i][0], "x", 1);
        ck_assert_int_eq(sp_data_find(sp_scratch_path(dir, cases[i][0]), &path),
                         SP_EDATA);
        ck_assert(HAS(cases[i][0], cases[i][1], "data.root"));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("find");
    TCase *tc = tcase_create("find");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_folder_as_given_comes_first);
    tcase_add_test(tc, the_error_lists_the_places);
    tcase_add_test(tc, an_archive_is_told_how_to_unpack);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
