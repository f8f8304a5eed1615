#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

/* The same bytes come back, plain and packed, at sizes around the buffers'. */
static const size_t sizes[] = { 0, 1, 1000, 65536, 1 << 20 };

START_TEST(plain_and_packed_read_alike)
{
    size_t n = sizes[_i], size;
    uint8_t *bytes = malloc(n + 1), *got;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i % 251);
    sp_scratch_write(dir, "plain", bytes, n);
    sp_scratch_gzip(dir, "packed", bytes, n);
    for (int k = 0; k < 2; k++) {
        const char *path = sp_scratch_path(dir, k ? "packed" : "plain");

        ck_assert_int_eq(sp_read_file(path, n, &got, &size), SP_OK);
        ck_assert_uint_eq(size, n);
        ck_assert(memcmp(got, bytes, n) == 0);
        free(got);
        ck_assert_int_eq(sp_read_file(path, SIZE_MAX, &got, &size), SP_OK);
        ck_assert_uint_eq(size, n);
        free(got);
        if (n > 0)
            ck_assert_int_eq(sp_read_file(path, n - 1, &got, &size),
                             SP_EFORMAT);
    }
    free(bytes);
}
END_TEST

/* A megabyte of zeros is a kilobyte of gzip: the limit holds for what it
 * becomes. */
START_TEST(the_limit_bounds_the_unpacked_size)
{
    size_t n = 1 << 20, size;
    uint8_t *bytes = calloc(1, n), *got;

    sp_scratch_gzip(dir, "bomb", bytes, n);
    ck_assert_int_eq(
        sp_read_file(sp_scratch_path(dir, "bomb"), 100000, &got, &size),
        SP_EFORMAT);
    ck_assert(HAS("bomb", "100000"));
    free(bytes);
}
END_TEST

START_TEST(damaged_gzip_is_refused)
{
    uint8_t text[2000], *packed, *got;
    size_t n, size;

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i >> 3);
    sp_scratch_gzip(dir, "a", text, sizeof text);
    FILE *f = fopen(sp_scratch_path(dir, "a"), "rb");
    packed = malloc(4096);
    n = fread(packed, 1, 4096, f);
    fclose(f);
    for (size_t cut = 12; cut < n; cut++) {
        sp_scratch_write(dir, "cut", packed, cut);
        ck_assert_int_eq(
            sp_read_file(sp_scratch_path(dir, "cut"), 4096, &got, &size),
            SP_EFORMAT);
        ck_assert(HAS("cut", "damaged gzip"));
    }
    packed[n - 6] ^= 1; /* the checksum */
    sp_scratch_write(dir, "sum", packed, n);
    ck_assert_int_eq(
        sp_read_file(sp_scratch_path(dir, "sum"), 4096, &got, &size),
        SP_EFORMAT);
    ck_assert(HAS("sum", "damaged gzip"));
    free(packed);
}
END_TEST

/* A pipe without a writer must not be waited for. */
START_TEST(what_is_no_file_is_refused)
{
    uint8_t *got;
    size_t size;

    ck_assert_int_eq(sp_read_file(sp_scratch_path(dir, "no"), 10, &got, &size),
                     SP_EIO);
    ck_assert(HAS("/no"));
    ck_assert_int_eq(sp_read_file(dir, 10, &got, &size), SP_EIO);
    ck_assert_int_eq(mkfifo(sp_scratch_path(dir, "pipe"), 0600), 0);
    ck_assert_int_eq(
        sp_read_file(sp_scratch_path(dir, "pipe"), 10, &got, &size), SP_EIO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("readfile");
    TCase *tc = tcase_create("readfile");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, plain_and_packed_read_alike, 0,
                        sizeof sizes / sizeof *sizes);
    tcase_add_test(tc, the_limit_bounds_the_unpacked_size);
    tcase_add_test(tc, damaged_gzip_is_refused);
    tcase_add_test(tc, what_is_no_file_is_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
