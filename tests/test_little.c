/* Bytes worked out by hand. */
#include <check.h>
#include <stdlib.h>

#include "base/little.h"

START_TEST(the_lowest_byte_comes_first)
{
    static const uint8_t bytes[] = { 0x01, 0x02, 0x03, 0x04,
                                     0x05, 0x06, 0x07, 0x88 };

    ck_assert_uint_eq(sp_little_get(bytes, 0), 0);
    ck_assert_uint_eq(sp_little_get(bytes, 1), 0x01);
    ck_assert_uint_eq(sp_little_get(bytes, 2), 0x0201);
    ck_assert_uint_eq(sp_little_get(bytes, 3), 0x030201);
    ck_assert_uint_eq(sp_little_get(bytes, 4), 0x04030201);
    ck_assert_uint_eq(sp_little_get(bytes, 8), 0x8807060504030201);
}
END_TEST

START_TEST(what_does_not_fit_is_left_out)
{
    uint8_t bytes[] = { 9, 9, 9, 9, 9 };

    sp_little_put(bytes + 1, 3, 0xaabbccdd);
    ck_assert_mem_eq(bytes, "\x09\xdd\xcc\xbb\x09", sizeof bytes);
    sp_little_put(bytes, 0, UINT64_MAX);
    ck_assert_uint_eq(bytes[0], 9);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("little");
    TCase *tc = tcase_create("little");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_test(tc, the_lowest_byte_comes_first);
    tcase_add_test(tc, what_does_not_fit_is_left_out);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
