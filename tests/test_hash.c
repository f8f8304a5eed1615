#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* NIST's examples for SHA-256, and the empty message. */
static const struct {
    const char *message, *digest;
} known[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
      "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

START_TEST(known_answers)
{
    sp_hash h;
    char hex[SP_HASH_HEX];

    sp_hash_start(&h);
    sp_hash_add(&h, known[_i].message, strlen(known[_i].message));
    sp_hash_end(&h, hex);
    ck_assert_str_eq(hex, known[_i].digest);
}
END_TEST

START_TEST(a_million_a)
{
    sp_hash h;
    char hex[SP_HASH_HEX], part[1000];

    memset(part, 'a', sizeof part);
    sp_hash_start(&h);
    for (int i = 0; i < 1000; i++)
        sp_hash_add(&h, part, sizeof part);
    sp_hash_end(&h, hex);
    ck_assert_str_eq(
        hex,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* However a message is cut, its hash is the same; lengths around a block and
 * around the place of the length field. */
START_TEST(pieces_hash_as_the_whole)
{
    char whole[SP_HASH_HEX], cut[SP_HASH_HEX];
    unsigned char message[200];
    sp_hash h;

    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)(i * 7 + 1);
    for (size_t n = 0; n <= sizeof message; n++) {
        sp_hash_start(&h);
        sp_hash_add(&h, message, n);
        sp_hash_end(&h, whole);
        for (size_t step = 1; step <= 65; step += 16) {
            sp_hash_start(&h);
            for (size_t at = 0; at < n; at += step)
                sp_hash_add(&h, message + at, n - at < step ? n - at : step);
            sp_hash_end(&h, cut);
            ck_assert_str_eq(cut, whole);
        }
    }
}
END_TEST

/* RFC 3720, B.4: 32 bytes of zeros, of ones, counting up and down; and the
 * check value of the CRC's definition. (The RFC prints bytes, the lowest
 * first.) */
START_TEST(crc32c_known_answers)
{
    uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

    memset(ones, 255, sizeof ones);
    for (int i = 0; i < 32; i++) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    ck_assert_uint_eq(sp_crc32c("123456789", 9), 0xe3069283u);
    ck_assert_uint_eq(sp_crc32c(zeros, 32), 0x8a9136aau);
    ck_assert_uint_eq(sp_crc32c(ones, 32), 0x62a8ab43u);
    ck_assert_uint_eq(sp_crc32c(up, 32), 0x46dd794eu);
    ck_assert_uint_eq(sp_crc32c(down, 32), 0x113fdb5cu);
    ck_assert_uint_eq(sp_crc32c("", 0), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hash");
    TCase *tc = tcase_create("hash");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, known_answers, 0, sizeof known / sizeof *known);
    tcase_add_test(tc, a_million_a);
    tcase_add_test(tc, pieces_hash_as_the_whole);
    tcase_add_test(tc, crc32c_known_answers);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
