#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "convert/npy.h"

/* A header of version 1, with its length; gives the bytes of all. */
static size_t make(const char *dict, uint8_t out[SP_NPY_HEADER])
{
    size_t n = strlen(dict);

    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + 10, dict, n);
    return 10 + n;
}

static sp_err read(const char *dict, sp_npy *a)
{
    uint8_t bytes[SP_NPY_HEADER], *copy;
    size_t n = make(dict, bytes);
    sp_err e;

    /* Of just that size, for the sanitizer to see reading beyond. */
    copy = malloc(n);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, n);
    e = sp_npy_read(a, "x.npz", "w.npy", copy, n);
    free(copy);
    return e;
}

/* As NumPy writes it: 118 bytes of text, so that the numbers begin at 128. */
START_TEST(a_header_is_as_numpy_writes_it)
{
    static const char want[] =
        "\x93NUMPY\1\0\x76\0"
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    const int64_t dims[] = { 2, 3 };
    sp_text out = { 0 };

    sp_npy_write(&out, "<f4", dims, 2);
    ck_assert_uint_eq(out.size, 128);
    ck_assert_mem_eq(out.bytes, want, sizeof want - 1);
    for (size_t i = sizeof want - 1; i < 127; i++)
        ck_assert_int_eq(out.bytes[i], ' ');
    ck_assert_int_eq(out.bytes[127], '\n');
    sp_text_free(&out);
}
END_TEST

START_TEST(what_was_written_is_read)
{
    const int64_t dims[] = { 5, 1, 1000000, 7 };

    for (int ndim = 0; ndim <= 4; ndim++) {
        sp_text out = { 0 };
        sp_npy a;
        sp_npy_write(&out, "<i8", dims, ndim);
        ck_assert_int_eq(
            sp_npy_read(&a, "x", "w", (uint8_t *)out.bytes, out.size), SP_OK);
        ck_assert_uint_eq(a.data, out.size);
        ck_assert_str_eq(a.type->numpy, "<i8");
        ck_assert_int_eq(a.ndim, ndim);
        for (int i = 0; i < ndim; i++)
            ck_assert_int_eq(a.dims[i], dims[i]);
        sp_text_free(&out);
    }
}
END_TEST

START_TEST(other_spellings_are_read)
{
    sp_npy a;

    ck_assert_int_eq(read("{\"shape\":(12,),'fortran_order':True , "
                          "\"descr\": '<f2'}\n",
                          &a),
                     SP_OK);
    ck_assert(a.fortran);
    ck_assert_int_eq(a.ndim, 1);
    ck_assert_int_eq(a.dims[0], 12);
    ck_assert_str_eq(a.type->storage, "HalfStorage");
}
END_TEST

static const char *const wrong[] = {
    "",
    "{}",
    "{'descr': '<f4', 'fortran_order': False}",
    "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
    "{'descr':'<f4', 'fortran_order':False, 'shape':(99999999999999999999,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f4",
};

START_TEST(other_headers_are_refused)
{
    sp_npy a;

    ck_assert_int_eq(read(wrong[_i], &a), SP_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "x.npz: w.npy"));
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    const int64_t dims[] = { 2, 3 };
    sp_text out = { 0 };
    sp_npy a;

    sp_npy_write(&out, "<f4", dims, 2);
    for (size_t n = 0; n < out.size; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, out.bytes, n);
        ck_assert_int_eq(sp_npy_read(&a, "x", "w", copy, n), SP_EFORMAT);
        free(copy);
    }
    sp_text_free(&out);
}
END_TEST

START_TEST(a_long_header_is_refused)
{
    uint8_t bytes[SP_NPY_HEADER] = "\x93NUMPY\2\0\xff\xff\xff\xff{";
    sp_npy a;

    ck_assert_int_eq(sp_npy_read(&a, "x", "w", bytes, sizeof bytes),
                     SP_EFORMAT);
    bytes[6] = 9; /* an unknown version */
    ck_assert_int_eq(sp_npy_read(&a, "x", "w", bytes, sizeof bytes),
                     SP_EFORMAT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("npy");
    TCase *tc = tcase_create("npy");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_test(tc, a_header_is_as_numpy_writes_it);
    tcase_add_test(tc, what_was_written_is_read);
    tcase_add_test(tc, other_spellings_are_read);
    tcase_add_loop_test(tc, other_headers_are_refused, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, a_long_header_is_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
