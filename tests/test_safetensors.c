#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/safetensors.h"

static char folder[64];

static void setup(void)
{
    strcpy(folder, "/tmp/sprat-safetensors-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void teardown(void) { ck_assert_int_eq(sp_dir_remove(folder), SP_OK); }

static const float weight[6] = { 1, -2, 0.5f, 3, 4, 5 };
static const int64_t step[1] = { INT64_C(-1234567890123) };
static const float scale[1] = { 0.25f };

static const sp_st_tensor tensors[] = {
    { .name = "layer.weight",
      .type = SP_ST_F32,
      .ndim = 2,
      .dims = { 2, 3 },
      .data = weight },
    { .name = "none", .type = SP_ST_F32, .ndim = 2, .dims = { 0, 7 } },
    { .name = "step",
      .type = SP_ST_I64,
      .ndim = 1,
      .dims = { 1 },
      .data = step },
    { .name = "sc\xc3\xa4le", .type = SP_ST_F32, .data = scale },
};
static const sp_st_pair pairs[] = { { "format", "pt" }, { "k", "\"" } };
static const sp_st_content content = { tensors, 4, pairs, 2 };

/* The whole file, written down from the format's description. */
static const char header[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"k\":\"\\\"\"},"
    "\"layer.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
    "\"data_offsets\":[0,24]},"
    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[24,24]},"
    "\"step\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[24,32]},"
    "\"sc\xc3\xa4le\":{\"dtype\":\"F32\",\"shape\":[],"
    "\"data_offsets\":[32,36]}}";

START_TEST(file_is_as_the_format_says)
{
    sp_st_stamp stamp;
    uint8_t *bytes;
    size_t size, length = sizeof header - 1, padded = (length + 7) / 8 * 8;
    uint64_t hashed;
    char hex[SP_HASH_HEX];

    ck_assert_int_eq(sp_st_write("a", &content, &stamp), SP_OK);
    ck_assert_int_eq(sp_file_read("a", 10000, &bytes, &size), SP_OK);
    ck_assert_uint_eq(size, 8 + padded + 36);
    ck_assert_uint_eq(bytes[0], padded & 255);
    ck_assert_uint_eq(bytes[1], padded >> 8);
    for (int i = 2; i < 8; i++)
        ck_assert_uint_eq(bytes[i], 0);
    ck_assert_mem_eq(bytes + 8, header, length);
    for (size_t i = length; i < padded; i++)
        ck_assert_uint_eq(bytes[8 + i], ' ');
    ck_assert_mem_eq(bytes + 8 + padded, weight, 24);
    ck_assert_mem_eq(bytes + 8 + padded + 24, step, 8);
    ck_assert_mem_eq(bytes + 8 + padded + 32, scale, 4);
    free(bytes);

    ck_assert_int_eq(sp_file_hash("a", hex, &hashed), SP_OK);
    ck_assert_uint_eq(stamp.size, size);
    ck_assert_uint_eq(hashed, size);
    ck_assert_str_eq(stamp.sha256, hex);
    ck_assert(!sp_is_file("a.tmp"));
}
END_TEST

START_TEST(what_was_written_is_read)
{
    sp_st_file *f;
    float w[6], s[1];
    int64_t i64[1];
    sp_st_tensor wanted = tensors[0];

    ck_assert_int_eq(sp_st_write("a", &content, NULL), SP_OK);
    ck_assert_int_eq(sp_st_open(&f, "a"), SP_OK);
    for (size_t i = 0; i < 4; i++) {
        const sp_st_tensor *t = sp_st_at(f, i);
        ck_assert_str_eq(t->name, tensors[i].name);
        ck_assert_int_eq(t->type, tensors[i].type);
        ck_assert_int_eq(t->ndim, tensors[i].ndim);
        ck_assert_mem_eq(t->dims, tensors[i].dims, sizeof t->dims);
        ck_assert_ptr_eq(sp_st_find(f, tensors[i].name), t);
    }
    ck_assert_ptr_null(sp_st_at(f, 4));
    ck_assert_ptr_null(sp_st_find(f, "layer.weigh"));
    ck_assert_int_eq(sp_st_read(f, sp_st_at(f, 0), w), SP_OK);
    ck_assert_mem_eq(w, weight, sizeof w);
    ck_assert_int_eq(sp_st_read(f, sp_st_at(f, 1), NULL), SP_OK);
    ck_assert_int_eq(sp_st_load(f, &tensors[2], i64), SP_OK);
    ck_assert_int_eq(i64[0], step[0]);
    ck_assert_int_eq(sp_st_load(f, &tensors[3], s), SP_OK);
    ck_assert_float_eq(s[0], 0.25f);
    ck_assert_str_eq(sp_st_metadata(f, "format"), "pt");
    ck_assert_str_eq(sp_st_metadata(f, "k"), "\"");
    ck_assert_ptr_null(sp_st_metadata(f, "x"));

    wanted.dims[0] = 3;
    wanted.dims[1] = 2;
    ck_assert_int_eq(sp_st_load(f, &wanted, w), SP_EFORMAT);
    ck_assert_str_eq(sp_last_error(), "a: tensor layer.weight is F32 [2, 3]; "
                                      "expected is F32 [3, 2]");
    wanted.name = "bias";
    ck_assert_int_eq(sp_st_load(f, &wanted, w), SP_EFORMAT);
    ck_assert_str_eq(sp_last_error(), "a: there is no tensor bias");
    sp_st_close(f);
}
END_TEST

START_TEST(a_file_without_tensors)
{
    sp_st_content nothing = { 0 };
    sp_st_file *f;

    ck_assert_int_eq(sp_st_write("a", &nothing, NULL), SP_OK);
    ck_assert_int_eq(sp_st_open(&f, "a"), SP_OK);
    ck_assert_ptr_null(sp_st_at(f, 0));
    ck_assert_ptr_null(sp_st_find(f, "x"));
    ck_assert_ptr_null(sp_st_metadata(f, "x"));
    sp_st_close(f);
}
END_TEST

static const sp_st_tensor unwritable[] = {
    { .name = "" },
    { .name = NULL },
    { .name = "\xff" },
    { .name = "twice" },
    { .name = "__metadata__" },
    { .name = "x", .ndim = 1, .dims = { -1 } },
    { .name = "x", .ndim = 9 },
    { .name = "x", .ndim = 3, .dims = { 1 << 30, 1 << 30, 1 << 30 } },
    { .name = "x", .ndim = 2, .dims = { 1 << 30, 1 << 30 } },
};

/* Nothing is written, and what stood there stays. */
START_TEST(unwritable_tensors_are_refused)
{
    static const char old[] = "old";
    sp_st_tensor two[2] = { { .name = "twice", .data = scale } };
    sp_st_content c = { two, 2, pairs, 1 };
    uint8_t *bytes;
    size_t size;

    two[1] = unwritable[_i];
    if (_i == 8) { /* fits alone, but not after the other */
        two[0].ndim = 3;
        two[0].dims[0] = two[0].dims[1] = 1 << 30;
        two[0].dims[2] = 1;
    }
    ck_assert_int_eq(sp_file_write_synced("a", old, 3), SP_OK);
    ck_assert_int_eq(sp_st_write("a", &c, NULL), SP_EARG);
    ck_assert_int_eq(sp_file_read("a", 10, &bytes, &size), SP_OK);
    ck_assert_uint_eq(size, 3);
    free(bytes);
    ck_assert(!sp_is_file("a.tmp"));
}
END_TEST

/* A file of this header, followed by `data` zero bytes. */
static void put_file(const char *json, size_t data)
{
    size_t n = strlen(json);
    uint8_t *bytes = calloc(8 + n + data, 1);

    bytes[0] = (uint8_t)n;
    bytes[1] = (uint8_t)(n >> 8);
    memcpy(bytes + 8, json, n);
    ck_assert_int_eq(sp_file_write_synced("b", bytes, 8 + n + data), SP_OK);
    free(bytes);
}

#define F32(shape, span) \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" span "}"

static const struct {
    const char *json;
    size_t data;
    const char *message; /* NULL: fine */
} headers[] = {
    { "{\"a\":" F32("[1]", "[0,4]") "}  ", 4, NULL },
    /* The order in the header is free. */
    { "{\"b\":" F32("[1]", "[4,8]") ",\"a\":" F32("[1]", "[0,4]") "}", 8,
      NULL },
    { "[]", 0, "b is not a safetensors file: its header does not begin" },
    { "  {}", 0, "does not begin with {" },
    { "", 0, "does not begin with {" },
    { "{]", 0, "b:1:2: not valid JSON" },
    { "{}", 1, "b: 1 bytes follow the last tensor" },
    { "{\"a\":1}", 0, "tensor a: it must have dtype, shape and data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "alone" },
    { "{\"a\":{\"x\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype" },
    { "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
      "tensor a has dtype BF16; only F32 and I64 are read: convert it" },
    { "{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
      "no dtype" },
    { "{\"a\":" F32("[2]", "[0,4]") "}", 4, "do not fit its shape" },
    { "{\"a\":" F32("[-1]", "[0,4]") "}", 4, "shape is not a list" },
    { "{\"a\":" F32("[1.0]", "[0,4]") "}", 4, "shape is not a list" },
    { "{\"a\":" F32("[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "at most 8" },
    { "{\"a\":" F32("1", "[0,4]") "}", 4, "shape is not a list" },
    { "{\"a\":" F32("[4611686018427387904,4]", "[0,0]") "}", 0,
      "do not fit its shape" },
    { "{\"a\":" F32("[1]", "[4,0]") "}", 4, "not [begin, end]" },
    { "{\"a\":" F32("[1]", "[0,4,8]") "}", 4, "not [begin, end]" },
    { "{\"a\":" F32("[1]", "[0]") "}", 4, "not [begin, end]" },
    { "{\"a\":" F32("[1]", "[0,\"4\"]") "}", 4, "not [begin, end]" },
    { "{\"a\":" F32("[2]", "[0,8]") "}", 4,
      "b: tensor a: the file ends before its data do: it is truncated" },
    { "{\"a\":" F32("[1]", "[0,4]") "}", 5, "1 bytes follow" },
    { "{\"a\":" F32("[1]", "[4,8]") "}", 8, "tensor a: there is a gap" },
    { "{\"a\":" F32("[2]", "[0,8]") ",\"c\":" F32("[1]", "[4,8]") "}", 8,
      "tensor c: its data overlap" },
    { "{\"a\":" F32("[1]", "[0,4]") ",\"a\":" F32("[1]", "[4,8]") "}", 8,
      "the key \"a\" stands twice" },
    { "{\"a\":" F32("[9223372036854775807]", "[0,9223372036854775807]") "}", 0,
      "do not fit its shape" },
    { "{\"__metadata__\":[]}", 0, "tensor __metadata__: it must be an object" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "it must hold strings alone" },
};

START_TEST(headers_are_checked)
{
    sp_st_file *f = NULL;
    sp_err e;

    put_file(headers[_i].json, headers[_i].data);
    e = sp_st_open(&f, "b");
    if (!headers[_i].message) {
        ck_assert_msg(e == SP_OK, "%s", sp_last_error());
        ck_assert_str_eq(sp_st_at(f, 0)->name, "a");
        sp_st_close(f);
        return;
    }
    ck_assert_int_eq(e, SP_EFORMAT);
    ck_assert_ptr_null(f);
    ck_assert_msg(strstr(sp_last_error(), headers[_i].message) != NULL, "%s",
                  sp_last_error());
}
END_TEST

START_TEST(other_files_are_refused)
{
    static const char png[] = "\x89PNG\r\n\x1a\n and more of it";
    sp_st_file *f;

    ck_assert_int_eq(sp_st_open(&f, "missing"), SP_EIO);
    ck_assert_int_eq(sp_st_open(&f, "."), SP_EIO);
    ck_assert_int_eq(sp_file_write_synced("b", png, sizeof png), SP_OK);
    ck_assert_int_eq(sp_st_open(&f, "b"), SP_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "not a safetensors file"));
}
END_TEST

/* Opens and reads everything. */
static sp_err read_all(const char *path)
{
    uint8_t room[64];
    sp_st_file *f;
    sp_err e = sp_st_open(&f, path);

    if (e != SP_OK)
        return e;
    for (size_t i = 0; e == SP_OK && sp_st_at(f, i); i++) {
        ck_assert_uint_le(sp_st_at(f, i)->bytes, sizeof room);
        e = sp_st_read(f, sp_st_at(f, i), room);
    }
    sp_st_close(f);
    return e;
}

START_TEST(every_truncation_is_refused)
{
    sp_st_stamp stamp;

    ck_assert_int_eq(sp_st_write("a", &content, &stamp), SP_OK);
    ck_assert_int_eq(read_all("a"), SP_OK);
    for (uint64_t n = stamp.size; n-- > 0;) {
        ck_assert_int_eq(truncate("a", (off_t)n), 0);
        ck_assert_int_eq(read_all("a"), SP_EFORMAT);
    }
}
END_TEST

/* Whatever a byte of the header becomes, the file is read or refused. */
START_TEST(changed_headers_are_survived)
{
    sp_st_stamp stamp;
    FILE *f;
    int refused = 0;

    ck_assert_int_eq(sp_st_write("a", &content, &stamp), SP_OK);
    f = fopen("a", "r+b");
    setvbuf(f, NULL, _IONBF, 0);
    for (long i = 0; i < (long)stamp.size - 36; i++) {
        int byte;

        fseek(f, i, SEEK_SET);
        byte = fgetc(f);
        for (int bit = 0; bit < 8; bit++) {
            sp_err e;
            fseek(f, i, SEEK_SET);
            fputc(byte ^ 1 << bit, f);
            e = read_all("a");
            ck_assert(e == SP_OK || e == SP_EFORMAT);
            refused += e != SP_OK;
            /* The header's length and its first bytes cannot change
             * unnoticed. */
            ck_assert(i >= 10 || e != SP_OK);
        }
        fseek(f, i, SEEK_SET);
        fputc(byte, f);
    }
    fclose(f);
    ck_assert_int_eq(read_all("a"), SP_OK);
    ck_assert_int_gt(refused, 8 * (int)sizeof header / 2);
}
END_TEST

START_TEST(a_file_that_shrinks_is_noticed)
{
    sp_st_file *f;
    float w[6];

    ck_assert_int_eq(sp_st_write("a", &content, NULL), SP_OK);
    ck_assert_int_eq(sp_st_open(&f, "a"), SP_OK);
    ck_assert_int_eq(truncate("a", 30), 0);
    ck_assert_int_eq(sp_st_read(f, sp_st_at(f, 0), w), SP_EFORMAT);
    sp_st_close(f);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("safetensors");
    TCase *tc = tcase_create("safetensors");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, file_is_as_the_format_says);
    tcase_add_test(tc, what_was_written_is_read);
    tcase_add_test(tc, a_file_without_tensors);
    tcase_add_loop_test(tc, unwritable_tensors_are_refused, 0,
                        COUNT(unwritable));
    tcase_add_loop_test(tc, headers_are_checked, 0, COUNT(headers));
    tcase_add_test(tc, other_files_are_refused);
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, changed_headers_are_survived);
    tcase_add_test(tc, a_file_that_shrinks_is_noticed);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
