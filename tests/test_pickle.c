#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "convert/pickle.h"

/* ---- Pickles by hand ----------------------------------------------------- */

#define STORAGE(class, key, count)                                             \
    "((X\7\0\0\0storagectorch\n" class "\nX\1\0\0\0" key "X\3\0\0\0cpuK" count \
                                       "tQ"
#define TENSOR "ctorch._utils\n_rebuild_tensor_v2\n"
#define HOOKS \
    "\x89"    \
    "ccollections\nOrderedDict\n)R"

/* One tensor "w" of 2 x 3 floats from the second number on, transposed. */
static const char good[] = "\x80\2}X\1\0\0\0w" TENSOR STORAGE(
    "FloatStorage", "7", "\x08") "K\2K\2K\3\x86K\1K\2\x86" HOOKS "tRs.";

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

/* Read from memory of just that size, for the sanitizer. */
static sp_err read(sp_arena *arena, const uint8_t *bytes, size_t size,
                   sp_pickled **out, size_t *count)
{
    uint8_t *copy = malloc(size ? size : 1);
    sp_err e;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    e = sp_pickle_read("x.pth", copy, size, arena, out, count);
    free(copy);
    return e;
}

static sp_err try(const uint8_t *bytes, size_t size)
{
    sp_arena arena = { 0 };
    sp_pickled *list;
    size_t count;
    sp_err e = read(&arena, bytes, size, &list, &count);

    sp_arena_free(&arena);
    return e;
}

static bool has(const char *word)
{
    return strstr(sp_last_error(), word) != NULL;
}

START_TEST(a_tensor_is_listed)
{
    sp_arena arena = { 0 };
    sp_pickled *t;
    size_t count;

    ck_assert_int_eq(read(&arena, BYTES(good), &t, &count), SP_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(t->name, "w");
    ck_assert_str_eq(t->type->numpy, "<f4");
    ck_assert_str_eq(t->storage, "7");
    ck_assert_int_eq(t->numbers, 8);
    ck_assert_int_eq(t->offset, 2);
    ck_assert_int_eq(t->ndim, 2);
    ck_assert_int_eq(t->dims[0], 2);
    ck_assert_int_eq(t->dims[1], 3);
    ck_assert_int_eq(t->strides[0], 1);
    ck_assert_int_eq(t->strides[1], 2);
    sp_arena_free(&arena);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    for (size_t n = 0; n < sizeof good - 1; n++)
        ck_assert_int_eq(try((const uint8_t *)good, n), SP_EFORMAT);
}
END_TEST

START_TEST(any_changed_byte_is_survived)
{
    uint8_t bytes[sizeof good - 1];

    for (size_t i = 0; i < sizeof bytes; i++)
        for (int v = 0; v < 256; v += 5) {
            memcpy(bytes, good, sizeof bytes);
            bytes[i] = (uint8_t)v;
            sp_err e = try(bytes, sizeof bytes);
            ck_assert(e == SP_OK || e == SP_EFORMAT);
        }
}
END_TEST

/* Every byte as an instruction without what it needs, and before those that
 * take something. */
START_TEST(instructions_without_operands_are_survived)
{
    static const char takers[] = "qr\x94\x85\x86\x87tsaue\x93QRb.";

    for (int a = 0; a < 256; a++)
        for (size_t b = 0; b < sizeof takers; b++) {
            const uint8_t bytes[] = { (uint8_t)a, (uint8_t)takers[b], '.' };
            ck_assert_int_eq(try(bytes, sizeof bytes), SP_EFORMAT);
        }
}
END_TEST

/* What a pickle of a state dict never does; the word is in the message. */
static const struct {
    const uint8_t *bytes;
    size_t size;
    const char *word;
} hostile[] = {
    { BYTES("\x80\2cos\nsystem\nX\2\0\0\0ls\x85R."), "os system" },
    { BYTES("\x80\4\x8c\5posix\x8c\6system\x93\x8c\2ls\x85R."),
      "posix system" },
    { BYTES("\x80\2c__builtin__\neval\n(X\1\0\0\0"
            "1tR."),
      "__builtin__ eval" },
    { BYTES("\x80\2i"), "0x69" },     /* INST */
    { BYTES("\x80\2(o"), "0x6f" },    /* OBJ */
    { BYTES("\x80\2)\x81"), "0x81" }, /* NEWOBJ */
    { BYTES("\x80\6."), "protocol" },
    { BYTES("\x80\2}r\xff\xff\xff\x7f."), "gap" },
    { BYTES("\x80\2h\0."), "no such entry" },
    { BYTES("\x80\2X\xff\xff\xff\xff"
            "a"),
      "cut off" },
    { BYTES("\x80\2X\2\0\0\0a\0."), "0 byte" },
    { BYTES("\x80\2\x8a\x09"
            "123456789."),
      "64 bits" },
    { BYTES("\x80\2N."), "no dictionary" },
    { BYTES("\x80\2}."), "no dictionary" },
    { BYTES("\x80\2}(K\1u."), "no value" },
    { BYTES("\x80\2}}b."), "no dictionary" },
    { BYTES("\x80\2]}b."), "another kind" },
    { BYTES("\x80\2ccollections\nOrderedDict\nK\1\x85R."), "another one" },
    { BYTES("\x80\2ctorch._utils\n_rebuild_parameter\nN\x85R."), "no tensor" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR "N\x85Rs."), "as PyTorch does" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR "((X\1\0\0\0stQK\0))\x89"
            "tRs."),
      "storage" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
          "QInt8Storage", "7", "\x08") "K\0K\2\x85K\1\x85" HOOKS "tRs."),
      "QInt8Storage" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
          "FloatStorage", "7", "\x07") "K\2K\2K\3\x86K\1K\2\x86" HOOKS "tRs."),
      "within its storage" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
          "FloatStorage", "7",
          "\x08") "K\0K\2\x85\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85" HOOKS
                  "tRs."),
      "within its storage" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
          "FloatStorage", "7", "\x08") "J\xff\xff\xff\xffK\2\x85K\1\x85" HOOKS
                                       "tRs."),
      "as PyTorch does" },
    { BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
          "FloatStorage", "7", "\x08") "K\0K\2\x85K\1K\1\x86" HOOKS "tRs."),
      "strides" },
};

START_TEST(nothing_else_is_done)
{
    ck_assert_int_eq(try(hostile[_i].bytes, hostile[_i].size), SP_EFORMAT);
    ck_assert_msg(has(hostile[_i].word) && has("x.pth"), "%s", sp_last_error());
}
END_TEST

/* A dictionary that holds itself, under a usual name. */
START_TEST(a_knot_is_survived)
{
    ck_assert_int_eq(try(BYTES("\x80\2}q\0X\x0a\0\0\0state_dicth\0s.")),
                     SP_EFORMAT);
    ck_assert(has("no dictionary"));
}
END_TEST

/* Sizes without an element need no place, however the others are. */
START_TEST(an_empty_tensor_is_listed)
{
    ck_assert_int_eq(
        try(BYTES("\x80\2}X\1\0\0\0w" TENSOR STORAGE(
            "FloatStorage", "7", "\0") "K\0K\0K\3\x86K\3K\1\x86" HOOKS "tRs.")),
        SP_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pickle");
    TCase *tc = tcase_create("pickle");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_tensor_is_listed);
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, any_changed_byte_is_survived);
    tcase_add_test(tc, instructions_without_operands_are_survived);
    tcase_add_loop_test(tc, nothing_else_is_done, 0,
                        (int)(sizeof hostile / sizeof *hostile));
    tcase_add_test(tc, a_knot_is_survived);
    tcase_add_test(tc, an_empty_tensor_is_listed);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
