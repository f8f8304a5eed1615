/* The bytes of fields, from the examples of the encoding's specification and
 * worked out by hand from its rules. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"

/* Compare with bytes in hexadecimal, and free. */
static void expect(sp_text *t, const char *hex)
{
    sp_text got = { 0 };

    ck_assert_int_eq(sp_text_check(t), SP_OK);
    for (size_t i = 0; i < t->size; i++)
        sp_text_add(&got, "%s%02x", i > 0 ? " " : "",
                    (unsigned char)t->bytes[i]);
    ck_assert_str_eq(sp_text_string(&got), hex);
    sp_text_free(&got);
    sp_text_free(t);
}

/* "A Simple Message", "Length-Delimited Records" and "Submessages" of the
 * specification: a = 150; b = "testing"; c.a = 150. */
START_TEST(the_examples_of_the_specification)
{
    sp_text t = { 0 }, inner = { 0 };

    sp_pb_int(&t, 1, 150);
    expect(&t, "08 96 01");
    sp_pb_string(&t, 2, "testing");
    expect(&t, "12 07 74 65 73 74 69 6e 67");
    sp_pb_int(&inner, 1, 150);
    sp_pb_message(&t, 3, &inner);
    expect(&t, "1a 03 08 96 01");
    sp_text_free(&inner);
    sp_pb_int(&t, 1, -2);
    expect(&t, "08 fe ff ff ff ff ff ff ff ff 01");
}
END_TEST

START_TEST(varints_end_where_seven_bits_do)
{
    sp_text t = { 0 };

    sp_pb_int(&t, 1, 0);
    expect(&t, "08 00");
    sp_pb_int(&t, 1, 127);
    expect(&t, "08 7f");
    sp_pb_int(&t, 1, 128);
    expect(&t, "08 80 01");
    sp_pb_int(&t, 1, 16383);
    expect(&t, "08 ff 7f");
    sp_pb_int(&t, 1, 16384);
    expect(&t, "08 80 80 01");
    sp_pb_int(&t, 1, -1);
    expect(&t, "08 ff ff ff ff ff ff ff ff ff 01");
    sp_pb_int(&t, 1, INT64_MIN);
    expect(&t, "08 80 80 80 80 80 80 80 80 80 01");
}
END_TEST

/* From 16 on a tag takes two bytes: 16 << 3 is 128. */
START_TEST(tags_hold_large_numbers)
{
    sp_text t = { 0 };

    sp_pb_int(&t, 15, 1);
    expect(&t, "78 01");
    sp_pb_int(&t, 16, 1);
    expect(&t, "80 01 01");
    sp_pb_int(&t, SP_PB_FIELDS, 1);
    expect(&t, "f8 ff ff ff 0f 01");
}
END_TEST

/* IEEE 754: 1.5 is 0x3ff8 << 48 as a double; 1 is 0x3f800000 as a float, -2 is
 * 0xc0000000. The lowest byte comes first. */
START_TEST(floating_point_is_little_endian)
{
    sp_text t = { 0 };

    sp_pb_double(&t, 1, 1.5);
    expect(&t, "09 00 00 00 00 00 00 f8 3f");
    sp_pb_float(&t, 2, 1);
    expect(&t, "15 00 00 80 3f");
    sp_pb_float(&t, 2, -2);
    expect(&t, "15 00 00 00 c0");
}
END_TEST

START_TEST(what_is_empty_has_its_tag)
{
    sp_text t = { 0 }, inner = { 0 };

    sp_pb_bytes(&t, 1, NULL, 0);
    sp_pb_string(&t, 2, "");
    sp_pb_message(&t, 3, &inner);
    expect(&t, "0a 00 12 00 1a 00");
}
END_TEST

START_TEST(bytes_may_be_zero_and_long)
{
    static const uint8_t three[] = { 0, 255, 0 };
    sp_text t = { 0 };
    uint8_t long_one[200];

    sp_pb_bytes(&t, 1, three, 3);
    expect(&t, "0a 03 00 ff 00");
    memset(long_one, 7, sizeof long_one);
    sp_pb_bytes(&t, 1, long_one, sizeof long_one);
    ck_assert_uint_eq(t.size, 1 + 2 + 200);
    ck_assert_mem_eq(t.bytes, "\x0a\xc8\x01\x07", 4); /* 200 is c8 01 */
    sp_text_free(&t);
}
END_TEST

START_TEST(an_inner_failure_is_the_outer_ones)
{
    sp_text t = { 0 }, inner = { .failed = true };

    sp_pb_message(&t, 1, &inner);
    ck_assert_int_eq(sp_text_check(&t), SP_ENOMEM);
    sp_text_free(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("protobuf");
    TCase *tc = tcase_create("protobuf");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_test(tc, the_examples_of_the_specification);
    tcase_add_test(tc, varints_end_where_seven_bits_do);
    tcase_add_test(tc, tags_hold_large_numbers);
    tcase_add_test(tc, floating_point_is_little_endian);
    tcase_add_test(tc, what_is_empty_has_its_tag);
    tcase_add_test(tc, bytes_may_be_zero_and_long);
    tcase_add_test(tc, an_inner_failure_is_the_outer_ones);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
