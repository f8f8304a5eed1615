#include <check.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/resize.h"
#include "fixture.h"

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

#define HAS(...) sp_error_has((const char *const[]){ __VA_ARGS__, NULL })

static sp_err read_png(const char *name, int h, int w, int c, uint8_t *out)
{
    return sp_png_read(sp_scratch_path(dir, name), h, w, c, false, out);
}

/* One row of three pixels in every kind PNG knows, and what comes of it:
 * hand-computed. Alpha 0, 128, 255 over black: v*128/255 rounded. */
static const uint8_t palette[] = { 10, 20, 30, 200, 100, 50, 255, 0, 1 };
static const uint8_t palette_alpha[] = { 255, 128, 0 };
static const uint16_t grey_hole[] = { 0x1234 }, rgb_hole[] = { 1, 2, 3 };

static const struct kind {
    sp_png_spec spec;
    const char *bytes; /* of the row */
    int channels;      /* 1 grey, 3 colour */
    uint8_t want[9];
} kinds[] = {
    { { .bits = 1, .colour = 0 }, "\xa0", 1, { 255, 0, 255 } },
    { { .bits = 2, .colour = 0 }, "\x6c", 1, { 85, 170, 255 } },
    { { .bits = 4, .colour = 0 }, "\x1f\x80", 1, { 17, 255, 136 } },
    { { .bits = 8, .colour = 0 }, "\x01\x80\xff", 1, { 1, 128, 255 } },
    { { .bits = 16, .colour = 0 },
      "\x12\xff\x80\x01\xff\xff",
      1,
      { 0x12, 0x80, 0xff } },
    { { .bits = 16, .colour = 0, .transparent = grey_hole },
      "\x12\x34\x12\x35\xff\xff",
      1,
      { 0, 0x12, 0xff } },
    { { .bits = 8, .colour = PNG_COLOR_TYPE_GRAY_ALPHA },
      "\x64\xff\x64\x80\x64\0",
      1,
      { 100, 50, 0 } },
    { { .bits = 16, .colour = PNG_COLOR_TYPE_GRAY_ALPHA },
      "\x64\xee\xff\xff\x64\x01\x80\x7f\x64\x64\0\x7f",
      1,
      { 100, 50, 0 } },
    { { .bits = 2,
        .colour = PNG_COLOR_TYPE_PALETTE,
        .palette = palette,
        .colours = 3 },
      "\x18",
      3,
      { 10, 20, 30, 200, 100, 50, 255, 0, 1 } },
    { { .bits = 8,
        .colour = PNG_COLOR_TYPE_PALETTE,
        .palette = palette,
        .colours = 3,
        .palette_alpha = palette_alpha },
      "\2\1\0",
      3,
      { 0, 0, 0, 100, 50, 25, 10, 20, 30 } },
    { { .bits = 8, .colour = PNG_COLOR_TYPE_RGB },
      "\1\2\3\4\5\6\xff\xfe\xfd",
      3,
      { 1, 2, 3, 4, 5, 6, 255, 254, 253 } },
    { { .bits = 8, .colour = PNG_COLOR_TYPE_RGB, .transparent = rgb_hole },
      "\1\2\3\4\5\6\1\2\4",
      3,
      { 0, 0, 0, 4, 5, 6, 1, 2, 4 } },
    { { .bits = 16, .colour = PNG_COLOR_TYPE_RGB },
      "\1\xff\2\xff\3\xff\4\xff\5\xff\6\xff\7\xff\10\xff\11\xff",
      3,
      { 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
    { { .bits = 8, .colour = PNG_COLOR_TYPE_RGB_ALPHA },
      "\xff\x64\1\x80\xff\x64\1\xff\xff\x64\1\0",
      3,
      { 128, 50, 1, 255, 100, 1, 0, 0, 0 } },
    { { .bits = 16, .colour = PNG_COLOR_TYPE_RGB_ALPHA },
      "\xff\0\x64\0\1\0\x80\0\xff\0\x64\0\1\0\xff\0\xff\0\x64\0\1\0\0\0",
      3,
      { 128, 50, 1, 255, 100, 1, 0, 0, 0 } },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void write_kind(const struct kind *k, bool interlaced)
{
    sp_png_spec s = k->spec;

    s.w = 3;
    s.h = 1;
    s.interlaced = interlaced;
    s.rows = (const uint8_t *)k->bytes;
    sp_scratch_png(dir, "kind.png", &s);
}

START_TEST(every_kind_is_converted_as_stated)
{
    const struct kind *k = &kinds[_i / 2];
    uint8_t got[9];
    int h, w, c;

    write_kind(k, _i % 2);
    ck_assert_int_eq(sp_png_size(sp_scratch_path(dir, "kind.png"), &h, &w, &c),
                     SP_OK);
    ck_assert(h == 1 && w == 3 && c == k->channels);
    ck_assert_int_eq(read_png("kind.png", 1, 3, 3, got), SP_OK);
    for (int i = 0; i < 9; i++)
        ck_assert_uint_eq(got[i], k->want[k->channels == 3 ? i : i / 3]);
}
END_TEST

START_TEST(colour_is_refused_where_grey_is_wanted)
{
    const struct kind *k = &kinds[_i];
    uint8_t got[3];

    write_kind(k, false);
    if (k->channels == 1) {
        ck_assert_int_eq(read_png("kind.png", 1, 3, 1, got), SP_OK);
        ck_assert_mem_eq(got, k->want, 3);
    } else {
        ck_assert_int_eq(read_png("kind.png", 1, 3, 1, got), SP_EDATA);
        ck_assert(HAS("kind.png", "colour"));
    }
}
END_TEST

/* A picture of 9 x 7 random bytes, interlaced and not. */
START_TEST(interlacing_changes_nothing)
{
    uint8_t rows[7 * 9 * 3], got[7 * 9 * 3];
    sp_png_spec s = { .w = 9,
                      .h = 7,
                      .bits = 8,
                      .interlaced = _i,
                      .colour = PNG_COLOR_TYPE_RGB,
                      .rows = rows };

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(i * i * 31 + i * 7);
    sp_scratch_png(dir, "a.png", &s);
    ck_assert_int_eq(read_png("a.png", 7, 9, 3, got), SP_OK);
    ck_assert_mem_eq(got, rows, sizeof rows);
}
END_TEST

START_TEST(another_size_is_refused)
{
    uint8_t got[64];

    sp_scratch_flat_png(dir, "a.png", 4, 5, 1, 9);
    ck_assert_int_eq(read_png("a.png", 5, 4, 1, got), SP_EDATA);
    ck_assert(HAS("a.png", "4 x 5", "5 x 4"));
    ck_assert_int_eq(
        sp_png_read(sp_scratch_path(dir, "a.png"), 2, 3, 1, true, got), SP_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(got[i], 9);
}
END_TEST

static void resize_row(const uint8_t *from, int n, uint8_t *to, int m)
{
    sp_image_resize(from, (sp_image_size){ 1, n, 1 }, to,
                    (sp_image_size){ 1, m, 1 });
}

/* 3 -> 2: (0 + 90/2) / 1.5 = 30 and (90/2 + 255) / 1.5 = 200. */
START_TEST(shrinking_takes_area_means)
{
    static const uint8_t three[] = { 0, 90, 255 };
    static const uint8_t block[] = { 1, 3, 10, 20, 5, 7, 30, 41 };
    uint8_t to[4];

    resize_row(three, 3, to, 2);
    ck_assert_uint_eq(to[0], 30);
    ck_assert_uint_eq(to[1], 200);
    /* Two 2 x 2 blocks: 16/4 and 101/4 = 25.25. */
    sp_image_resize(block, (sp_image_size){ 2, 4, 1 }, to,
                    (sp_image_size){ 1, 2, 1 });
    ck_assert_uint_eq(to[0], 4);
    ck_assert_uint_eq(to[1], 25);
}
END_TEST

START_TEST(enlarging_repeats_the_nearest_pixel)
{
    static const uint8_t two[] = { 7, 9 }, even[] = { 7, 7, 9, 9 };
    uint8_t to[4];

    resize_row(two, 2, to, 4);
    ck_assert_mem_eq(to, even, 4);
    resize_row(two, 1, to, 3);
    ck_assert(to[0] == 7 && to[1] == 7 && to[2] == 7);
    /* Wider and flatter at once: the mean down, the nearest across. */
    sp_image_resize((const uint8_t[]){ 2, 4, 6, 12 },
                    (sp_image_size){ 2, 2, 1 }, to, (sp_image_size){ 1, 4, 1 });
    ck_assert(to[0] == 4 && to[1] == 4 && to[2] == 8 && to[3] == 8);
}
END_TEST

START_TEST(a_flat_image_stays_flat_at_any_size)
{
    uint8_t from[6 * 5 * 3], to[13 * 13 * 3];

    memset(from, 201, sizeof from);
    for (int h = 1; h <= 13; h++)
        for (int w = 1; w <= 13; w++) {
            memset(to, 0, sizeof to);
            sp_image_resize(from, (sp_image_size){ 6, 5, 3 }, to,
                            (sp_image_size){ h, w, 3 });
            for (int i = 0; i < h * w * 3; i++)
                ck_assert_uint_eq(to[i], 201);
        }
}
END_TEST

/* Bytes of a small sound PNG. */
static uint8_t *sound(size_t *size)
{
    uint8_t rows[48], *bytes;

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(i * 37);
    sp_scratch_png(dir, "a.png",
                   &(sp_png_spec){ .w = 4,
                                   .h = 4,
                                   .bits = 8,
                                   .colour = PNG_COLOR_TYPE_RGB,
                                   .rows = rows });
    ck_assert_int_eq(
        sp_read_file(sp_scratch_path(dir, "a.png"), 4096, &bytes, size), SP_OK);
    return bytes;
}

/* libpng must not speak for itself: what it would print is caught here. */
static void catch_stderr(void)
{
    fflush(stderr);
    ck_assert_ptr_nonnull(freopen(sp_scratch_path(dir, "stderr"), "w", stderr));
}

static void check_nothing_caught(void)
{
    struct stat st;

    fflush(stderr);
    ck_assert_int_eq(stat(sp_scratch_path(dir, "stderr"), &st), 0);
    ck_assert_int_eq(st.st_size, 0);
}

START_TEST(every_truncation_is_refused)
{
    size_t size;
    uint8_t *bytes = sound(&size), got[48];

    catch_stderr();
    for (size_t n = 0; n < size; n++) {
        sp_scratch_write(dir, "cut.png", bytes, n);
        ck_assert_int_eq(read_png("cut.png", 4, 4, 3, got), SP_EDATA);
        ck_assert_ptr_nonnull(strstr(sp_last_error(), "cut.png"));
    }
    check_nothing_caught();
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "truncated"));
    free(bytes);
}
END_TEST

/* Every bit of a PNG is in the signature, a length or under a checksum. */
START_TEST(every_flipped_bit_is_refused)
{
    size_t size;
    uint8_t *bytes = sound(&size), got[48];

    catch_stderr();
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        sp_scratch_write(dir, "bit.png", bytes, size);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        ck_assert_int_eq(read_png("bit.png", 4, 4, 3, got), SP_EDATA);
        ck_assert_ptr_nonnull(strstr(sp_last_error(), "bit.png"));
    }
    check_nothing_caught();
    free(bytes);
}
END_TEST

START_TEST(a_bad_checksum_is_called_that)
{
    size_t size;
    uint8_t *bytes = sound(&size), got[48];

    bytes[size - 16] ^= 1; /* the end of IDAT's checksum is there */
    sp_scratch_write(dir, "crc.png", bytes, size);
    ck_assert_int_eq(read_png("crc.png", 4, 4, 3, got), SP_EDATA);
    ck_assert(HAS("crc.png", "checksum"));
    free(bytes);
}
END_TEST

static void big_endian(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A sound header that promises too much. */
static const uint32_t huge[][2] = {
    { 16385, 1 },      { 1, 16385 }, { 1000000, 1000000 }, { 0x7fffffff, 5 },
    { 0xffffffff, 1 }, { 0, 4 },     { 16384, 16384 },
};

START_TEST(a_huge_declared_size_is_refused)
{
    size_t size;
    uint8_t *bytes = sound(&size), got[48];

    big_endian(bytes + 16, huge[_i][0]);
    big_endian(bytes + 20, huge[_i][1]);
    big_endian(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    sp_scratch_write(dir, "huge.png", bytes, size);
    ck_assert_int_eq(
        sp_png_read(sp_scratch_path(dir, "huge.png"), 4, 4, 3, true, got),
        SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "huge.png"));
    free(bytes);
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
    const char *named;
} foreign[] = {
    { "", 0, "empty" },
    { "\xff\xd8\xff\xe0\0\20JFIF\0\1\1", 14, "JPEG" },
    { "GIF89a\1\0\1\0\0\0", 12, "GIF" },
    { "RIFF\4\0\0\0WEBPVP8 ", 16, "WebP" },
    { "BM\76\0\0\0\0\0\0\0\0\0\0\0", 14, "BMP" },
    { "II*\0\10\0\0\0\0\0\0\0", 12, "TIFF" },
    { "P6\n1 1\n255\nabc", 14, "PNM" },
    { "\x1f\x8b\10\0\0\0\0\0\0\0\0\0\0", 13, "gzip" },
    { "hello, world", 12, "not a PNG" },
    { "\x89", 1, "ends too early" },
};

START_TEST(other_formats_are_named)
{
    uint8_t got[3];

    sp_scratch_write(dir, "x.png", foreign[_i].bytes, foreign[_i].size);
    ck_assert_int_eq(read_png("x.png", 1, 1, 3, got), SP_EDATA);
    ck_assert(HAS("x.png", foreign[_i].named));
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    uint8_t got[3];
    int h, w, c;

    ck_assert_int_eq(read_png("none.png", 1, 1, 3, got), SP_EDATA);
    ck_assert(HAS("none.png"));
    ck_assert_int_eq(sp_png_size(dir, &h, &w, &c), SP_EDATA);
    ck_assert_int_eq(read_png("none.png", 1, 1, 2, got), SP_EARG);
    ck_assert_int_eq(read_png("none.png", 0, 1, 3, got), SP_EARG);
    ck_assert_int_eq(read_png("none.png", 1, 16385, 3, got), SP_EARG);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("png");
    TCase *tc = tcase_create("png");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, every_kind_is_converted_as_stated, 0, 2 * KINDS);
    tcase_add_loop_test(tc, colour_is_refused_where_grey_is_wanted, 0, KINDS);
    tcase_add_loop_test(tc, interlacing_changes_nothing, 0, 2);
    tcase_add_test(tc, another_size_is_refused);
    tcase_add_test(tc, shrinking_takes_area_means);
    tcase_add_test(tc, enlarging_repeats_the_nearest_pixel);
    tcase_add_test(tc, a_flat_image_stays_flat_at_any_size);
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, every_flipped_bit_is_refused);
    tcase_add_test(tc, a_bad_checksum_is_called_that);
    tcase_add_loop_test(tc, a_huge_declared_size_is_refused, 0,
                        sizeof huge / sizeof *huge);
    tcase_add_loop_test(tc, other_formats_are_named, 0,
                        sizeof foreign / sizeof *foreign);
    tcase_add_test(tc, what_is_no_file_is_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
