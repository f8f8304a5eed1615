#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "convert/foreign.h"
#include "fixture.h"

/* tests/golden/state-dict.pth and arrays.npz, by tools/golden_arrays.py. */
static char *folder;

static void setup(void) { folder = sp_scratch_new(); }

static void teardown(void) { sp_scratch_free(folder); }

static bool has(const char *word)
{
    return strstr(sp_last_error(), word) != NULL;
}

static const sp_foreign_array *array(const sp_foreign *f, const char *name,
                                     int ndim, const int64_t *dims)
{
    const sp_foreign_array *a = sp_foreign_find(f, name);

    ck_assert_msg(a != NULL, "%s", name);
    ck_assert_int_eq(a->ndim, ndim);
    for (int i = 0; i < ndim; i++)
        ck_assert_int_eq(a->dims[i], dims[i]);
    return a;
}

/* Numbers first, first + step, ... over 4. */
static void check_row(const sp_foreign *f, const char *name, int64_t count,
                      double first, double step)
{
    float x[64];

    ck_assert_int_eq(sp_foreign_read(f, array(f, name, 1, &count), x), SP_OK);
    for (int i = 0; i < count; i++)
        ck_assert_double_eq((double)x[i], (first + i * step) / 4);
}

/* The transpose of 0/4 to 11/4 in rows of 4. */
static void check_turned(const sp_foreign *f, const char *name)
{
    const int64_t dims[] = { 4, 3 };
    float x[12];

    ck_assert_int_eq(sp_foreign_read(f, array(f, name, 2, dims), x), SP_OK);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq((double)x[3 * i + k], (4 * k + i) / 4.0);
}

START_TEST(a_state_dict_is_read)
{
    const int64_t plain[] = { 2, 3, 4 }, empty[] = { 0, 3 };
    float x[24];
    sp_foreign f;

    ck_assert_int_eq(sp_foreign_open(&f, SP_GOLDEN_DIR "/state-dict.pth"),
                     SP_OK);
    ck_assert_uint_eq(f.count, 9);
    ck_assert_int_eq(
        sp_foreign_read(&f, array(&f, "module.plain", 3, plain), x), SP_OK);
    for (int i = 0; i < 24; i++)
        ck_assert_double_eq((double)x[i], i / 4.0);
    check_turned(&f, "module.turned");
    check_row(&f, "module.part", 4, 5, 3);
    check_row(&f, "module.half", 6, 0, 1);
    check_row(&f, "module.bfloat16", 6, 0, 1);
    check_row(&f, "module.double", 6, 0, 1);
    check_row(&f, "module.parameter", 5, 0, 1);
    ck_assert_int_eq(
        sp_foreign_read(&f, array(&f, "module.num_batches_tracked", 0, NULL),
                        x),
        SP_OK);
    ck_assert_double_eq((double)x[0], 7);
    ck_assert_int_eq(
        sp_foreign_read(&f, array(&f, "module.empty", 2, empty), x), SP_OK);
    sp_foreign_close(&f);
}
END_TEST

START_TEST(arrays_of_numpy_are_read)
{
    const int64_t dims[] = { 3, 4 };
    static const char *const names[] = { "plain", "turned", "half" };
    int64_t five = 5;
    float x[12];
    sp_foreign f;

    ck_assert_int_eq(sp_foreign_open(&f, SP_GOLDEN_DIR "/arrays.npz"), SP_OK);
    ck_assert_uint_eq(f.count, 5);
    for (int i = 0; i < 3; i++) { /* one of them in Fortran's order */
        ck_assert_int_eq(sp_foreign_read(&f, array(&f, names[i], 2, dims), x),
                         SP_OK);
        for (int k = 0; k < 12; k++)
            ck_assert_double_eq((double)x[k], k / 4.0);
    }
    ck_assert_int_eq(sp_foreign_read(&f, array(&f, "number", 0, NULL), x),
                     SP_OK);
    ck_assert_double_eq((double)x[0], 2.5);
    ck_assert_int_eq(sp_foreign_read(&f, array(&f, "whole", 1, &five), x),
                     SP_OK);
    ck_assert_double_eq((double)x[4], 4);
    sp_foreign_close(&f);
}
END_TEST

START_TEST(a_safetensors_file_is_read)
{
    static const float w[] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t n[] = { 9 };
    const sp_st_tensor tensors[] = {
        { .name = "w", .ndim = 2, .dims = { 2, 3 }, .data = w },
        { .name = "n", .type = SP_ST_I64, .data = n },
    };
    const sp_st_content content = { tensors, 2, NULL, 0 };
    const char *path = sp_scratch_path(folder, "w.safetensors");
    const int64_t dims[] = { 2, 3 };
    float x[6];
    sp_foreign f;

    ck_assert_int_eq(sp_st_write(path, &content, NULL), SP_OK);
    ck_assert_int_eq(sp_foreign_open(&f, path), SP_OK);
    ck_assert_int_eq(sp_foreign_read(&f, array(&f, "w", 2, dims), x), SP_OK);
    ck_assert_mem_eq(x, w, sizeof w);
    ck_assert_int_eq(sp_foreign_read(&f, array(&f, "n", 0, NULL), x), SP_OK);
    ck_assert_double_eq((double)x[0], 9);
    sp_foreign_close(&f);
}
END_TEST

/* By the bits of IEEE 754; what training reads itself refuses them. */
START_TEST(other_types_of_a_safetensors_file_are_read)
{
    static const uint8_t f16[] = { 0x00, 0x3e, 0x00, 0xc4 },
                         bf16[] = { 0x40, 0x40, 0x00, 0xc0 },
                         f64[] = { 0, 0, 0, 0, 0, 0, 0xd0, 0x3f },
                         i32[] = { 0xfd, 0xff, 0xff, 0xff }, u8[] = { 200 },
                         yes[] = { 1 };
    const sp_st_tensor tensors[] = {
        { "f16", SP_ST_F16, 1, { 2 }, f16, 0, 0 },
        { "bf16", SP_ST_BF16, 1, { 2 }, bf16, 0, 0 },
        { "f64", SP_ST_F64, 1, { 1 }, f64, 0, 0 },
        { "i32", SP_ST_I32, 1, { 1 }, i32, 0, 0 },
        { "u8", SP_ST_U8, 1, { 1 }, u8, 0, 0 },
        { "bool", SP_ST_BOOL, 1, { 1 }, yes, 0, 0 },
    };
    static const float want[][2] = { { 1.5f, -4 }, { 3, -2 }, { 0.25f },
                                     { -3 },       { 200 },   { 1 } };
    const sp_st_content content = { tensors, 6, NULL, 0 };
    const char *path = sp_scratch_path(folder, "types.safetensors");
    sp_st_file *strict = NULL;
    sp_foreign f;

    ck_assert_int_eq(sp_st_write(path, &content, NULL), SP_OK);
    ck_assert_int_eq(sp_st_open(&strict, path), SP_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "as `sprat import` does"));
    ck_assert_int_eq(sp_foreign_open(&f, path), SP_OK);
    for (int i = 0; i < 6; i++) {
        const sp_st_tensor *t = &tensors[i];
        float x[2] = { 0, 0 };
        ck_assert_int_eq(sp_foreign_read(&f, array(&f, t->name, 1, t->dims), x),
                         SP_OK);
        ck_assert_mem_eq(x, want[i], sizeof x);
    }
    sp_foreign_close(&f);
}
END_TEST

/* Files of other kinds are told apart. */
START_TEST(other_files_are_refused)
{
    static const struct {
        const char *bytes, *word;
        size_t size;
    } files[] = {
        { "\x80\2\x8a\x0al\xfc", "before 1.6", 6 },
        { "hello, this is text", "none of what can be read", 19 },
        { "\x93NUMPY\1\0v\0{'descr'", "none of what can be read", 19 },
        { "", "truncated", 0 },
        { "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "neither", 22 },
    };
    sp_foreign f;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sp_scratch_write(folder, "x", files[i].bytes, files[i].size);
        ck_assert_int_eq(sp_foreign_open(&f, sp_scratch_path(folder, "x")),
                         SP_EFORMAT);
        ck_assert_msg(has(files[i].word), "%s", sp_last_error());
    }
    ck_assert_int_eq(sp_foreign_open(&f, sp_scratch_path(folder, "none")),
                     SP_EIO);
}
END_TEST

/* What it says takes many times its size: no state dict has 4 MiB of it. */
START_TEST(a_large_pickle_is_refused)
{
    static const char zeros[(1 << 22) + 1];
    const sp_zip_part part = { zeros, sizeof zeros };
    const char *path = sp_scratch_path(folder, "x.pth");
    sp_zip_out *out;
    sp_foreign f;

    ck_assert_int_eq(sp_zip_begin(&out, path), SP_OK);
    ck_assert_int_eq(sp_zip_add(out, "x/data.pkl", &part, 1), SP_OK);
    ck_assert_int_eq(sp_zip_end(out), SP_OK);
    ck_assert_int_eq(sp_foreign_open(&f, path), SP_EFORMAT);
    ck_assert(has("x/data.pkl: is larger"));
}
END_TEST

static const char *const golden[] = { SP_GOLDEN_DIR "/state-dict.pth",
                                      SP_GOLDEN_DIR "/arrays.npz" };

/* List and read all of an archive, of memory of just that size. */
static sp_err read_all(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    float x[64];
    sp_foreign f;
    sp_err e;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    e = sp_foreign_parse(&f, "x", copy, size);
    for (size_t i = 0; e == SP_OK && i < f.count; i++) {
        double count = 1;
        for (int k = 0; k < f.arrays[i].ndim; k++)
            count *= (double)f.arrays[i].dims[k];
        if (count <= 64)
            e = sp_foreign_read(&f, &f.arrays[i], x);
        if (e != SP_OK)
            sp_foreign_close(&f);
    }
    if (e == SP_OK)
        sp_foreign_close(&f);
    free(copy);
    return e;
}

START_TEST(every_truncation_is_refused)
{
    uint8_t *bytes;
    size_t size;

    ck_assert_int_eq(sp_file_read(golden[_i], 1 << 16, &bytes, &size), SP_OK);
    for (size_t n = 0; n < size; n++)
        ck_assert_int_eq(read_all(bytes, n), SP_EFORMAT);
    ck_assert_int_eq(read_all(bytes, size), SP_OK);
    free(bytes);
}
END_TEST

START_TEST(any_changed_byte_is_survived)
{
    uint8_t *bytes;
    size_t size;

    ck_assert_int_eq(sp_file_read(golden[_i], 1 << 16, &bytes, &size), SP_OK);
    for (size_t i = 0; i < size; i++) {
        uint8_t was = bytes[i], bit = (uint8_t)(1 << i % 8);
        bytes[i] = was ^ bit;
        sp_err e = read_all(bytes, size);
        ck_assert(e == SP_OK || e == SP_EFORMAT);
        bytes[i] = was;
    }
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("foreign");
    TCase *tc = tcase_create("foreign");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_state_dict_is_read);
    tcase_add_test(tc, arrays_of_numpy_are_read);
    tcase_add_test(tc, a_safetensors_file_is_read);
    tcase_add_test(tc, other_types_of_a_safetensors_file_are_read);
    tcase_add_test(tc, other_files_are_refused);
    tcase_add_test(tc, a_large_pickle_is_refused);
    tcase_add_loop_test(tc, every_truncation_is_refused, 0, 2);
    tcase_add_loop_test(tc, any_changed_byte_is_survived, 0, 2);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
