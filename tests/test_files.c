#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

static char folder[64];

static void setup(void)
{
    strcpy(folder, "/tmp/sprat-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(sp_dir_remove(folder), SP_OK);
    ck_assert(!sp_is_dir(folder));
}

/* The file holds exactly this text, and no temporary file is left. */
static void holds(const char *path, const char *text)
{
    uint8_t *bytes;
    size_t size;
    char *temporary = sp_path("", "%s.tmp", path);
    struct stat s;

    ck_assert_int_eq(sp_file_read(path, 1000, &bytes, &size), SP_OK);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_str_eq((char *)bytes, text); /* a 0 byte follows */
    ck_assert_int_ne(lstat(temporary, &s), 0);
    free(bytes);
    free(temporary);
}

static void put(const char *path, const char *text)
{
    ck_assert_int_eq(sp_file_write_synced(path, text, strlen(text)), SP_OK);
}

START_TEST(paths_are_joined)
{
    static const char *const cases[][2] = {
        { "runs", "runs/rank-0003.x" },
        { "runs/", "runs/rank-0003.x" },
        { "/", "/rank-0003.x" },
        { "", "rank-0003.x" },
    };
    char *p = sp_path(cases[_i][0], "rank-%04d.%s", 3, "x");

    ck_assert_str_eq(p, cases[_i][1]);
    free(p);
}
END_TEST

START_TEST(files_are_replaced_as_a_whole)
{
    sp_file_out *f;

    put("a", "");
    holds("a", "");
    put("a", "first");
    holds("a", "first");
    ck_assert_int_eq(sp_file_begin(&f, "a"), SP_OK);
    ck_assert_int_eq(sp_file_put(f, "sec", 3), SP_OK);
    ck_assert_int_eq(sp_file_put(f, "", 0), SP_OK);
    ck_assert_int_eq(sp_file_put(f, "ond", 3), SP_OK);
    {
        uint8_t *bytes;
        size_t size;
        ck_assert_int_eq(sp_file_read("a", 10, &bytes, &size), SP_OK);
        ck_assert_str_eq((char *)bytes, "first");
        free(bytes);
    }
    ck_assert_int_eq(sp_file_commit(f), SP_OK);
    holds("a", "second");
    ck_assert_int_eq(sp_file_begin(&f, "a"), SP_OK);
    ck_assert_int_eq(sp_file_put(f, "third", 5), SP_OK);
    sp_file_cancel(f);
    holds("a", "second");
    sp_file_cancel(NULL);
}
END_TEST

START_TEST(what_a_crash_left_is_replaced)
{
    FILE *left = fopen("a.tmp", "w");

    fputs("half of something longer", left);
    fclose(left);
    put("a", "new");
    holds("a", "new");
}
END_TEST

/* A disk that takes no more: the error is told, the old file stays. */
START_TEST(a_failing_write_leaves_the_old_file)
{
    struct rlimit limit = { 8, 8 };

    put("a", "old");
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(sp_file_write_synced("a", "more than eight bytes", 21),
                     SP_EIO);
    ck_assert_str_eq(sp_last_error(), "cannot write a.tmp: File too large");
    holds("a", "old");
}
END_TEST

START_TEST(messages_name_operation_path_and_remedy)
{
    errno = ENOSPC;
    ck_assert_int_eq(sp_io_fail("write", "run/x"), SP_EIO);
    ck_assert_str_eq(sp_last_error(),
                     "cannot write run/x: No space left on device (free some "
                     "space, or choose another disk)");
    errno = EACCES;
    ck_assert_int_eq(sp_io_fail("open", "run/x"), SP_EIO);
    ck_assert_str_eq(sp_last_error(),
                     "cannot open run/x: Permission denied (check the "
                     "permissions of it and of its folder)");
    errno = EROFS;
    ck_assert_int_eq(sp_io_fail("create", "run/x"), SP_EIO);
    ck_assert_str_eq(sp_last_error(), "cannot create run/x: Read-only file "
                                      "system (choose a folder that can be "
                                      "written)");
}
END_TEST

START_TEST(reading_refuses_what_is_no_file)
{
    uint8_t *bytes = NULL;
    size_t size;

    ck_assert_int_eq(sp_file_read("missing", 10, &bytes, &size), SP_EIO);
    ck_assert_str_eq(sp_last_error(),
                     "cannot open missing: No such file or directory");
    ck_assert_int_eq(sp_file_read(".", 10, &bytes, &size), SP_EIO);
    ck_assert_int_eq(sp_file_read("/dev/zero", 10, &bytes, &size), SP_EIO);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(sp_file_read("pipe", 10, &bytes, &size), SP_EIO);
    put("a", "12345");
    ck_assert_int_eq(sp_file_read("a", 4, &bytes, &size), SP_EFORMAT);
    ck_assert_str_eq(sp_last_error(),
                     "a has 5 bytes; at most 4 are expected here");
    ck_assert_ptr_null(bytes);
    ck_assert_int_eq(sp_file_read("a", 5, &bytes, &size), SP_OK);
    free(bytes);
}
END_TEST

START_TEST(appending_refuses_what_is_no_file)
{
    uint8_t *bytes;
    size_t size;
    FILE *f;

    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(sp_file_append("pipe", &f), SP_EIO);
    ck_assert_str_eq(sp_last_error(),
                     "cannot open pipe: it is not a regular file");
    ck_assert_int_eq(sp_file_append(".", &f), SP_EIO);
    ck_assert_int_eq(sp_file_append("/dev/null", &f), SP_EIO);
    put("a", "12");
    ck_assert_int_eq(sp_file_append("a", &f), SP_OK);
    fputs("3", f);
    fclose(f);
    ck_assert_int_eq(sp_file_append("new", &f), SP_OK);
    fclose(f);
    ck_assert_int_eq(sp_file_read("a", 5, &bytes, &size), SP_OK);
    ck_assert_str_eq((char *)bytes, "123");
    free(bytes);
}
END_TEST

START_TEST(reading_at_a_place)
{
    int fd;
    uint64_t size;
    char part[4] = "";

    put("a", "0123456789");
    ck_assert_int_eq(sp_file_open("a", &fd, &size), SP_OK);
    ck_assert_uint_eq(size, 10);
    ck_assert_int_eq(sp_file_read_at(fd, "a", 7, part, 3), SP_OK);
    ck_assert_str_eq(part, "789");
    ck_assert_int_eq(sp_file_read_at(fd, "a", 8, part, 3), SP_EFORMAT);
    ck_assert_str_eq(sp_last_error(), "a is truncated: it ends at byte 10");
    close(fd);
    /* What was refused is closed already, and nothing of it given out. */
    fd = -1;
    ck_assert_int_eq(sp_file_open(".", &fd, &size), SP_EIO);
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(writing_refuses_a_folder)
{
    ck_assert_int_eq(sp_dir_make("d"), SP_OK);
    ck_assert_int_eq(sp_file_write_synced("d", "x", 1), SP_EIO);
    ck_assert_int_eq(sp_file_write_synced("missing/a", "x", 1), SP_EIO);
    ck_assert_str_eq(sp_last_error(), "cannot create missing/a.tmp: No such "
                                      "file or directory");
}
END_TEST

START_TEST(hash_of_a_file)
{
    char hex[SP_HASH_HEX];
    uint64_t size;

    put("a", "abc");
    ck_assert_int_eq(sp_file_hash("a", hex, &size), SP_OK);
    ck_assert_uint_eq(size, 3);
    ck_assert_str_eq(
        hex,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(sp_file_hash(".", hex, &size), SP_EIO);
}
END_TEST

START_TEST(folders_are_made_with_those_above)
{
    ck_assert_int_eq(sp_dir_make("a/b//c/"), SP_OK);
    ck_assert(sp_is_dir("a/b/c"));
    ck_assert_int_eq(sp_dir_make("a/b"), SP_OK);
    ck_assert_int_eq(sp_dir_make("/"), SP_OK);
    ck_assert_int_eq(sp_dir_make("."), SP_OK);
    ck_assert_int_eq(sp_dir_add("a/new"), SP_OK);
    ck_assert_int_eq(sp_dir_add("none/new"), SP_EIO);
    ck_assert(!sp_is_dir("none"));
    ck_assert_int_eq(sp_dir_make(""), SP_EIO);
    put("a/file", "");
    ck_assert_int_eq(sp_dir_make("a/file"), SP_EIO);
    ck_assert_str_eq(sp_last_error(), "cannot make folder a/file: a file of "
                                      "that name is in the way");
    ck_assert_int_eq(sp_dir_make("a/file/x"), SP_EIO);
    ck_assert(sp_is_file("a/file") && !sp_is_dir("a/file"));
    ck_assert(!sp_is_file("a/b"));
}
END_TEST

START_TEST(folders_are_removed_but_links_not_followed)
{
    ck_assert_int_eq(sp_dir_make("keep"), SP_OK);
    put("keep/precious", "x");
    ck_assert_int_eq(sp_dir_make("a/b/c"), SP_OK);
    put("a/b/file", "x");
    ck_assert_int_eq(symlink("../keep", "a/link"), 0);
    ck_assert_int_eq(symlink("nowhere", "a/dangling"), 0);
    ck_assert_int_eq(symlink("keep", "outer"), 0);

    ck_assert_int_eq(sp_dir_remove("outer"), SP_EIO);
    ck_assert_int_eq(sp_dir_remove("outer/"), SP_EIO);
    ck_assert_int_eq(sp_dir_remove("a"), SP_OK);
    ck_assert(!sp_is_dir("a"));
    ck_assert_int_eq(sp_dir_remove("a"), SP_OK);
    ck_assert_int_eq(sp_dir_remove("."), SP_EIO);
    ck_assert_int_eq(sp_dir_remove("keep/.."), SP_EIO);
    ck_assert_int_eq(sp_dir_remove("/"), SP_EIO);
    ck_assert_int_eq(sp_dir_remove(""), SP_EIO);
    ck_assert_int_eq(sp_dir_remove("keep/precious"), SP_EIO);
    holds("keep/precious", "x");
}
END_TEST

/* Of what has failed; not that the folder cannot be removed. */
START_TEST(what_is_withdrawn_leaves_the_error)
{
    ck_assert_int_eq(sp_dir_make("made/inner"), SP_OK);
    ck_assert_int_eq(sp_dir_withdraw("made", sp_fail(SP_EDATA, "why")),
                     SP_EDATA);
    ck_assert(!sp_is_dir("made"));
    ck_assert_str_eq(sp_last_error(), "why");
    ck_assert_int_eq(sp_dir_withdraw("/", sp_fail(SP_EDATA, "why")), SP_EDATA);
    ck_assert_str_eq(sp_last_error(), "why");
}
END_TEST

START_TEST(folders_are_renamed)
{
    ck_assert_int_eq(sp_dir_make("new.tmp"), SP_OK);
    ck_assert_int_eq(sp_dir_make("under"), SP_OK);
    put("new.tmp/x", "x");
    ck_assert_int_eq(sp_rename_synced("new.tmp", "under/new"), SP_OK);
    holds("under/new/x", "x");
    ck_assert(!sp_is_dir("new.tmp"));
    ck_assert_int_eq(sp_rename_synced("missing", "y"), SP_EIO);
    ck_assert_int_eq(sp_dir_sync("under"), SP_OK);
    ck_assert_int_eq(sp_dir_sync("under/new/x"), SP_EIO);
}
END_TEST

static void points_to(const char *link, const char *target)
{
    char buffer[100] = "";

    ck_assert_int_gt(readlink(link, buffer, sizeof buffer - 1), 0);
    ck_assert_str_eq(buffer, target);
}

START_TEST(links_are_switched)
{
    ck_assert_int_eq(sp_link_switch("last", "one"), SP_OK);
    points_to("last", "one");
    ck_assert_int_eq(symlink("left by a crash", "last.tmp"), 0);
    ck_assert_int_eq(sp_link_switch("last", "two"), SP_OK);
    points_to("last", "two");
    ck_assert_int_ne(readlink("last.tmp", (char[9]){ 0 }, 8), 8);
    ck_assert_int_eq(sp_dir_make("solid"), SP_OK);
    ck_assert_int_eq(sp_link_switch("solid", "two"), SP_EIO);
    ck_assert_int_eq(sp_link_switch("missing/last", "two"), SP_EIO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("files");
    TCase *tc = tcase_create("files");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, paths_are_joined, 0, 4);
    tcase_add_test(tc, files_are_replaced_as_a_whole);
    tcase_add_test(tc, what_a_crash_left_is_replaced);
    tcase_add_test(tc, a_failing_write_leaves_the_old_file);
    tcase_add_test(tc, messages_name_operation_path_and_remedy);
    tcase_add_test(tc, reading_refuses_what_is_no_file);
    tcase_add_test(tc, appending_refuses_what_is_no_file);
    tcase_add_test(tc, reading_at_a_place);
    tcase_add_test(tc, writing_refuses_a_folder);
    tcase_add_test(tc, hash_of_a_file);
    tcase_add_test(tc, folders_are_made_with_those_above);
    tcase_add_test(tc, folders_are_removed_but_links_not_followed);
    tcase_add_test(tc, what_is_withdrawn_leaves_the_error);
    tcase_add_test(tc, folders_are_renamed);
    tcase_add_test(tc, links_are_switched);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
