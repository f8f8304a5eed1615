#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "data/augment.h"
#include "data/section.h"

static sp_data_cfg settings(const char *normalize)
{
    sp_data_cfg cfg = { .augment = SP_AUGMENT_BOTH, .pad = 2 };

    while (strcmp(sp_normalize_name(cfg.normalize), normalize) != 0)
        cfg.normalize++;
    return cfg;
}

static sp_augment make(const sp_data_cfg *cfg, int h, int w, int c)
{
    sp_augment a;

    ck_assert_int_eq(sp_augment_init(&a, cfg, h, w, c), SP_OK);
    return a;
}

/* The key table and the table of constants must name the same choices. */
START_TEST(choices_and_constants_agree)
{
    const char *choices = NULL;
    char joined[256] = "";

    for (size_t i = 0; i < sp_data_section.key_count; i++)
        if (strcmp(sp_data_section.keys[i].name, "normalize") == 0)
            choices = sp_data_section.keys[i].choices;
    for (int i = 0; sp_normalize_name(i); i++) {
        strcat(joined, i > 0 ? "|" : "");
        strcat(joined, sp_normalize_name(i));
    }
    ck_assert_str_eq(choices, joined);
    ck_assert_ptr_null(sp_normalize_name(-1));
}
END_TEST

/* Published constants, by hand: (byte/255 - mean)/std, or on 0 to 255. */
static const struct {
    const char *name;
    int c;
    uint8_t byte[3];
    float want[3];
} values[] = {
    { "none", 1, { 51 }, { 0.2f } },
    { "none", 4, { 0, 255, 51 }, { 0, 1, 0.2f } },
    { "half", 3, { 0, 255, 51 }, { -1, 1, -0.6f } },
    { "fb",
      3,
      { 0, 123, 255 },
      { -125.3f / 63.0f, 0, (255 - 113.9f) / 66.7f } },
    { "pufferfish",
      3,
      { 0, 255, 51 },
      { -0.4914f / 0.2023f, 0.5178f / 0.1994f, -0.2465f / 0.2010f } },
    { "torchpack",
      3,
      { 0, 255, 51 },
      { -0.4914f / 0.2023f, 0.5178f / 0.1994f, -0.2465f / 0.2010f } },
    { "imagenet",
      3,
      { 0, 255, 51 },
      { -0.485f / 0.229f, 0.544f / 0.224f, -0.206f / 0.225f } },
    { "mnist", 1, { 255 }, { 0.8693f / 0.3081f } },
    { "fashion", 1, { 51 }, { -0.086f / 0.353f } },
};

START_TEST(normalising_uses_the_published_constants)
{
    sp_data_cfg cfg = settings(values[_i].name);
    sp_augment a;
    uint8_t image[4] = { 0 };
    float out[4];

    memcpy(image, values[_i].byte, 3);
    a = make(&cfg, 1, 1, values[_i].c);
    sp_augment_apply(&a, (sp_cut){ 0 }, image, out);
    for (int k = 0; k < values[_i].c && k < 3; k++)
        ck_assert_float_eq_tol(out[k], values[_i].want[k], 2e-6f);
}
END_TEST

START_TEST(constants_for_other_channels_are_refused)
{
    sp_data_cfg rgb = settings("fb"), grey = settings("mnist");
    sp_augment a;

    ck_assert_int_eq(sp_augment_init(&a, &rgb, 28, 28, 1), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "'fb'"));
    ck_assert_int_eq(sp_augment_init(&a, &grey, 28, 28, 3), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "'mnist'"));
}
END_TEST

/* Row 0 1 2 3 seen through a window moved by dx; padding is 2 wide. */
static const struct {
    int mode, dx;
    bool flip;
    float want[4]; /* bytes; -1 stands for zero padding */
} rows[] = {
    { SP_PAD_ZERO, 0, false, { 10, 11, 12, 13 } },
    { SP_PAD_ZERO, -2, false, { -1, -1, 10, 11 } },
    { SP_PAD_ZERO, 1, false, { 11, 12, 13, -1 } },
    { SP_PAD_ZERO, 1, true, { -1, 13, 12, 11 } },
    { SP_PAD_ZERO, 0, true, { 13, 12, 11, 10 } },
    { SP_PAD_REFLECT, -2, false, { 12, 11, 10, 11 } },
    { SP_PAD_REFLECT, 2, false, { 12, 13, 12, 11 } },
    { SP_PAD_REFLECT, 2, true, { 11, 12, 13, 12 } },
};

static float mnist(float byte) { return (byte / 255 - 0.1307f) / 0.3081f; }

/* Both across and down, with the image turned. */
START_TEST(windows_show_the_padding_asked_for)
{
    static const uint8_t image[] = { 10, 11, 12, 13 };
    sp_data_cfg cfg = settings("mnist");

    cfg.pad_mode = rows[_i].mode;
    for (int raw = 0; raw < 2; raw++)
        for (int down = 0; down < 2; down++) {
            sp_cut cut = { .flip = rows[_i].flip };
            sp_augment a;
            float out[16];
            int h = down ? 4 : 3, w = down ? 3 : 4;
            uint8_t picture[12];

            if (down && rows[_i].flip)
                continue;
            for (int i = 0; i < 12; i++)
                picture[i] = image[down ? i / 3 : i % 4];
            cfg.pad_raw = raw;
            a = make(&cfg, h, w, 1);
            *(down ? &cut.dy : &cut.dx) = rows[_i].dx;
            sp_augment_apply(&a, cut, picture, out);
            for (int i = 0; i < 12; i++) {
                float byte = rows[_i].want[down ? i / 3 : i % 4];
                float want = byte >= 0 ? mnist(byte) : raw ? mnist(0) : 0;

                ck_assert_float_eq_tol(out[i], want, 1e-6f);
            }
        }
}
END_TEST

START_TEST(channels_stay_together)
{
    static const uint8_t image[] = { 0, 51, 102, 153, 204, 255 };
    sp_augment a = make(&(sp_data_cfg){ .pad = 0 }, 1, 2, 3);
    float out[6];

    sp_augment_apply(&a, (sp_cut){ .flip = true }, image, out);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq_tol(out[i], 0.2f * (float)((i + 3) % 6), 1e-6f);
}
END_TEST

/* All cuts of [-pad, pad]^2 x flip appear, about equally often; an augment
 * setting leaves the others alone. */
START_TEST(choices_are_even_and_repeatable)
{
    enum { N = 50000, SIDES = 5 };
    sp_data_cfg cfg = settings("none");
    int seen[2][SIDES][SIDES] = { 0 };

    cfg.augment = _i;
    sp_augment a = make(&cfg, 8, 8, 1);
    int crop = _i == SP_AUGMENT_CROP || _i == SP_AUGMENT_BOTH;
    int flip = _i == SP_AUGMENT_FLIP || _i == SP_AUGMENT_BOTH;
    int kinds = (crop ? SIDES * SIDES : 1) * (flip ? 2 : 1), found = 0;

    for (size_t i = 0; i < N; i++) {
        sp_cut c = sp_augment_draw(&a, 7, (int)(i % 3), i);
        sp_cut again = sp_augment_draw(&a, 7, (int)(i % 3), i);

        ck_assert(c.dy == again.dy && c.dx == again.dx && c.flip == again.flip);
        seen[c.flip][c.dy + 2][c.dx + 2]++;
    }
    for (int i = 0; i < 2 * SIDES * SIDES; i++) {
        int n = (&seen[0][0][0])[i], want = N / kinds;

        found += n > 0;
        /* Six standard deviations of a binomial count. */
        ck_assert(n == 0 || (n - want) * (n - want) <= 36 * (want + 1));
    }
    ck_assert_int_eq(found, kinds);
}
END_TEST

START_TEST(epochs_and_seeds_differ)
{
    sp_data_cfg cfg = settings("none");
    sp_augment a = make(&cfg, 8, 8, 1);
    int epochs = 0, seeds = 0;

    for (size_t i = 0; i < 100; i++) {
        sp_cut c = sp_augment_draw(&a, 1, 0, i);
        sp_cut e = sp_augment_draw(&a, 1, 1, i);
        sp_cut s = sp_augment_draw(&a, 2, 0, i);

        epochs += c.dy != e.dy || c.dx != e.dx || c.flip != e.flip;
        seeds += c.dy != s.dy || c.dx != s.dx || c.flip != s.flip;
    }
    /* Of 50 equally likely cuts, 98 % change. */
    ck_assert_int_gt(epochs, 90);
    ck_assert_int_gt(seeds, 90);
}
END_TEST

START_TEST(reflection_needs_pixels)
{
    sp_data_cfg cfg = { .augment = SP_AUGMENT_CROP,
                        .pad = 4,
                        .pad_mode = SP_PAD_REFLECT };
    sp_augment a;

    ck_assert_int_eq(sp_augment_init(&a, &cfg, 5, 5, 1), SP_OK);
    ck_assert_int_eq(sp_augment_init(&a, &cfg, 4, 32, 1), SP_EDATA);
    ck_assert_int_eq(sp_augment_init(&a, &cfg, 32, 4, 1), SP_EDATA);
    cfg.augment = SP_AUGMENT_FLIP;
    ck_assert_int_eq(sp_augment_init(&a, &cfg, 4, 4, 1), SP_OK);
    cfg.augment = SP_AUGMENT_CROP;
    cfg.pad_mode = SP_PAD_ZERO;
    ck_assert_int_eq(sp_augment_init(&a, &cfg, 1, 1, 1), SP_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("augment");
    TCase *tc = tcase_create("augment");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, choices_and_constants_agree);
    tcase_add_loop_test(tc, normalising_uses_the_published_constants, 0,
                        sizeof values / sizeof *values);
    tcase_add_test(tc, constants_for_other_channels_are_refused);
    tcase_add_loop_test(tc, windows_show_the_padding_asked_for, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_test(tc, channels_stay_together);
    tcase_add_loop_test(tc, choices_are_even_and_repeatable, 0, 4);
    tcase_add_test(tc, epochs_and_seeds_differ);
    tcase_add_test(tc, reflection_needs_pixels);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
