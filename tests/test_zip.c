#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/files.h"
#include "convert/zip.h"
#include "fixture.h"

static char *folder;

static void setup(void) { folder = sp_scratch_new(); }

static void teardown(void) { sp_scratch_free(folder); }

/* ---- Archives by hand ---------------------------------------------------- */

/* One file `a` of the bytes 123456789, whose CRC-32 is the well-known
 * 0xcbf43926, written down from the format's description. */
static const uint8_t stored[] =
    "PK\3\4\x14\0\0\0\0\0\0\0\x21\0\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0"
    "\1\0\0\0"
    "a"
    "123456789"
    "PK\1\2\x14\0\x14\0\0\0\0\0\0\0\x21\0\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0"
    "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "a"
    "PK\5\6\0\0\0\0\1\0\1\0\x2f\0\0\0\x28\0\0\0\0\0";

enum {
    SIZE = sizeof stored - 1,
    DIRECTORY = 40, /* where it begins, and what stands in it */
    FLAGS = DIRECTORY + 8,
    METHOD = DIRECTORY + 10,
    CRC = DIRECTORY + 16,
    PACKED = DIRECTORY + 20,
    UNPACKED = DIRECTORY + 24,
    PLACE = DIRECTORY + 42
};

static bool has(const char *word)
{
    return strstr(sp_last_error(), word) != NULL;
}

START_TEST(a_stored_file_is_read)
{
    const sp_zip_entry *e;
    char text[9];
    sp_zip z;

    ck_assert(sp_zip_is(stored, SIZE));
    ck_assert_int_eq(sp_zip_open(&z, "x.zip", stored, SIZE), SP_OK);
    ck_assert_uint_eq(z.count, 1);
    e = sp_zip_find(&z, "a");
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->size, 9);
    ck_assert_int_eq(sp_zip_read(&z, e, text, 9), SP_OK);
    ck_assert_mem_eq(text, "123456789", 9);
    ck_assert_ptr_null(sp_zip_find(&z, "b"));
    sp_zip_close(&z);
}
END_TEST

static const struct {
    int at, value;
    const char *word;
} changes[] = {
    { FLAGS, 1, "encrypted" },
    { METHOD, 12, "another method" },
    { METHOD, 8, "damaged" }, /* these bytes are no deflated ones */
    { CRC, 0, "damaged" },
    { PACKED, 10, "size" },
    { UNPACKED, 8, "size" },
    { UNPACKED + 3, 0x40, "size" }, /* 1 GiB */
    { PLACE, 1, "header" },
    { PLACE + 3, 0x7f, "header" },
    { DIRECTORY, 'Q', "directory" },
    { DIRECTORY + 29, 0x10, "directory" }, /* a long name */
    { DIRECTORY + 46, 0, "directory" },    /* a 0 byte in it */
    { SIZE - 12, 2, "directory" },         /* entries */
    { SIZE - 3, 0x7f, "directory" },       /* place */
    { SIZE - 22, 'Q', "truncated" },
};

/* Reading as far as it goes. */
static sp_err read_all(const uint8_t *bytes, size_t size)
{
    sp_zip z;
    sp_err e = sp_zip_open(&z, "x.zip", bytes, size);

    if (e != SP_OK)
        return e;
    for (size_t i = 0; e == SP_OK && i < z.count; i++) {
        size_t n = (size_t)z.entries[i].size;
        char *out = malloc(n + 1);
        ck_assert_ptr_nonnull(out);
        e = sp_zip_read(&z, &z.entries[i], out, n);
        free(out);
    }
    sp_zip_close(&z);
    return e;
}

START_TEST(what_cannot_be_is_refused)
{
    uint8_t bytes[SIZE];

    memcpy(bytes, stored, SIZE);
    bytes[changes[_i].at] = (uint8_t)changes[_i].value;
    ck_assert_int_eq(read_all(bytes, SIZE), SP_EFORMAT);
    ck_assert_msg(has(changes[_i].word) && has("x.zip"), "%s", sp_last_error());
}
END_TEST

/* From memory of just that size, for the sanitizer to see reading beyond. */
static sp_err read_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    sp_err e;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    e = read_all(copy, size);
    free(copy);
    return e;
}

START_TEST(every_truncation_is_refused)
{
    for (size_t n = 0; n < SIZE; n++)
        ck_assert_int_eq(read_copy(stored, n), SP_EFORMAT);
    ck_assert_int_eq(read_copy(stored, SIZE), SP_OK);
}
END_TEST

START_TEST(any_changed_byte_is_survived)
{
    uint8_t bytes[SIZE];

    for (size_t i = 0; i < SIZE; i++)
        for (int v = 0; v < 256; v += 15) {
            memcpy(bytes, stored, SIZE);
            bytes[i] = (uint8_t)v;
            sp_err e = read_copy(bytes, SIZE);
            ck_assert(e == SP_OK || e == SP_EFORMAT);
        }
}
END_TEST

/* ---- Deflate ------------------------------------------------------------- */

static void put(uint8_t **p, const void *bytes, size_t n)
{
    memcpy(*p, bytes, n);
    *p += n;
}

/* An archive of one deflated file, by changing the stored one. */
static size_t deflated(const uint8_t *bytes, size_t n, uint64_t claimed,
                       uint8_t out[1 << 16])
{
    uint8_t packed[1 << 15], *p = out, *directory;
    z_stream s = { .next_in = (Bytef *)bytes,
                   .avail_in = (unsigned)n,
                   .next_out = packed,
                   .avail_out = sizeof packed };
    uint32_t crc = (uint32_t)crc32(0, bytes, (unsigned)n);
    uint32_t size, whole = (uint32_t)claimed, at;

    ck_assert_int_eq(
        deflateInit2(&s, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&s, Z_FINISH), Z_STREAM_END);
    size = (uint32_t)s.total_out;
    deflateEnd(&s);
    put(&p, stored, 31);
    put(&p, packed, size);
    directory = p;
    put(&p, stored + DIRECTORY, SIZE - DIRECTORY);
    directory[10] = 8;
    memcpy(directory + 16, &crc, 4);
    memcpy(directory + 20, &size, 4);
    memcpy(directory + 24, &whole, 4);
    at = (uint32_t)(directory - out);
    memcpy(p - 6, &at, 4);
    return (size_t)(p - out);
}

START_TEST(a_deflated_file_is_read)
{
    static uint8_t data[5000], bytes[1 << 16], out[5000];
    size_t size;
    sp_zip z;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i >> 3);
    size = deflated(data, sizeof data, sizeof data, bytes);
    ck_assert_int_eq(sp_zip_open(&z, "x.zip", bytes, size), SP_OK);
    ck_assert_int_eq(sp_zip_read(&z, z.entries, out, sizeof out), SP_OK);
    ck_assert_mem_eq(out, data, sizeof data);
    /* The beginning alone. */
    memset(out, 0, sizeof out);
    ck_assert_int_eq(sp_zip_read(&z, z.entries, out, 10), SP_OK);
    ck_assert_mem_eq(out, data, 10);
    sp_zip_close(&z);
}
END_TEST

/* What it unpacks to is neither less nor more than it says; and it says no more
 * than deflate can do. */
START_TEST(a_bomb_is_refused)
{
    static uint8_t zeros[100000], bytes[1 << 16];
    const uint64_t claims[] = { 99999, 100001, 4000000000 };
    size_t size = deflated(zeros, sizeof zeros, sizeof zeros, bytes);

    ck_assert_int_eq(read_all(bytes, size), SP_OK);
    for (int i = 0; i < 3; i++) {
        size = deflated(zeros, sizeof zeros, claims[i], bytes);
        ck_assert_int_eq(read_all(bytes, size), SP_EFORMAT);
        ck_assert(has(i < 2 ? "damaged" : "size"));
    }
}
END_TEST

/* ---- Writing ------------------------------------------------------------- */

static void read_back(const char *path, uint8_t **bytes, size_t *size)
{
    ck_assert_int_eq(sp_file_read(path, 1 << 24, bytes, size), SP_OK);
}

/* Byte by byte: version 4.5 and a name in UTF-8 differ from the one above. */
START_TEST(an_archive_is_as_the_format_says)
{
    const char *path = sp_scratch_path(folder, "a.zip");
    const sp_zip_part parts[] = { { "12345", 5 }, { "6789", 4 } };
    uint8_t want[SIZE], *bytes;
    size_t size;
    sp_zip_out *z;

    memcpy(want, stored, SIZE);
    want[4] = want[DIRECTORY + 4] = want[DIRECTORY + 6] = 45;
    want[7] = want[DIRECTORY + 9] = 8;
    ck_assert_int_eq(sp_zip_begin(&z, path), SP_OK);
    ck_assert_int_eq(sp_zip_add(z, "a", parts, 2), SP_OK);
    ck_assert_int_eq(sp_zip_end(z), SP_OK);
    read_back(path, &bytes, &size);
    ck_assert_uint_eq(size, SIZE);
    ck_assert_mem_eq(bytes, want, SIZE);
    free(bytes);
}
END_TEST

/* More entries than 16 bits count: ZIP64's end of the directory. */
START_TEST(many_files_are_written_and_read)
{
    enum { MANY = 65600 };
    const char *path = sp_scratch_path(folder, "many.zip");
    char name[16];
    uint8_t *bytes;
    size_t size;
    sp_zip_out *out;
    sp_zip z;

    ck_assert_int_eq(sp_zip_begin(&out, path), SP_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        sp_zip_part part = { name, (size_t)(i % 2) };
        ck_assert_int_eq(sp_zip_add(out, name, &part, 1), SP_OK);
    }
    ck_assert_int_eq(sp_zip_end(out), SP_OK);
    read_back(path, &bytes, &size);
    ck_assert_int_eq(sp_zip_open(&z, path, bytes, size), SP_OK);
    ck_assert_uint_eq(z.count, MANY);
    ck_assert_uint_eq(sp_zip_find(&z, "65599")->size, 1);
    ck_assert_uint_eq(sp_zip_find(&z, "65599")->data[0], '6');
    sp_zip_close(&z);
    free(bytes);
}
END_TEST

START_TEST(a_name_that_stands_twice_is_refused)
{
    const char *path = sp_scratch_path(folder, "twice.zip");
    uint8_t *bytes;
    size_t size;
    sp_zip_out *out;

    ck_assert_int_eq(sp_zip_begin(&out, path), SP_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sp_zip_add(out, "a", NULL, 0), SP_OK);
    ck_assert_int_eq(sp_zip_end(out), SP_OK);
    read_back(path, &bytes, &size);
    ck_assert_int_eq(read_all(bytes, size), SP_EFORMAT);
    ck_assert(has("twice"));
    free(bytes);
}
END_TEST

START_TEST(what_is_cancelled_leaves_nothing)
{
    const char *path = sp_scratch_path(folder, "none.zip");
    sp_zip_out *out;

    ck_assert_int_eq(sp_zip_begin(&out, path), SP_OK);
    ck_assert_int_eq(sp_zip_add(out, "a", NULL, 0), SP_OK);
    sp_zip_cancel(out);
    sp_zip_cancel(NULL);
    ck_assert(!sp_is_file(path));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("zip");
    TCase *tc = tcase_create("zip");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_stored_file_is_read);
    tcase_add_loop_test(tc, what_cannot_be_is_refused, 0,
                        (int)(sizeof changes / sizeof *changes));
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, any_changed_byte_is_survived);
    tcase_add_test(tc, a_deflated_file_is_read);
    tcase_add_test(tc, a_bomb_is_refused);
    tcase_add_test(tc, an_archive_is_as_the_format_says);
    tcase_add_test(tc, many_files_are_written_and_read);
    tcase_add_test(tc, a_name_that_stands_twice_is_refused);
    tcase_add_test(tc, what_is_cancelled_leaves_nothing);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
