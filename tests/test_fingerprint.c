/* Fingerprints: what differs has another, what is equal has the same. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "data/fingerprint.h"
#include "fixture.h"

extern const sp_data_set sp_data_set_folder, sp_data_set_synthetic;

/* Every size around the blocks, every bit. */
START_TEST(any_bit_counts)
{
    uint8_t bytes[200] = { 0 };

    for (size_t n = 0; n < sizeof bytes; n++) {
        uint64_t whole;

        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(i * 37 + 11);
        whole = sp_fingerprint(0, bytes, n);
        ck_assert(whole == sp_fingerprint(0, bytes, n));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            ck_assert(sp_fingerprint(0, bytes, n) != whole);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        /* Zeros at the end are not padding. */
        bytes[n] = 0;
        ck_assert(sp_fingerprint(0, bytes, n + 1) != whole);
    }
}
END_TEST

/* What a weaker sum would miss: two signs, two values exchanged. */
START_TEST(changes_do_not_cancel)
{
    enum { N = 64 };
    float x[N];
    uint64_t whole;

    for (int i = 0; i < N; i++)
        x[i] = (float)i - 20.5f;
    whole = sp_fingerprint(0, x, sizeof x);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++) {
            float a = x[i], b = x[k];

            x[i] = -a;
            x[k] = -b;
            ck_assert(sp_fingerprint(0, x, sizeof x) != whole);
            x[i] = b;
            x[k] = a;
            ck_assert(sp_fingerprint(0, x, sizeof x) != whole);
            x[i] = a;
            x[k] = b;
        }
}
END_TEST

START_TEST(what_came_before_counts)
{
    uint64_t a = sp_fingerprint(sp_fingerprint(0, "ab", 2), "c", 1);
    uint64_t b = sp_fingerprint(sp_fingerprint(0, "a", 1), "bc", 2);

    ck_assert(a != b);
    ck_assert(a != sp_fingerprint(0, "c", 1));
    ck_assert(sp_fingerprint(a, "", 0) != a);
}
END_TEST

/* ---- Data sets --------------------------------------------------------- */

/* Four training images of two bytes and one test image; `change`: the sample
 * whose last byte or label is another. */
typedef struct tiny {
    int change;
    bool label;
} tiny;

static sp_err describe_tiny(const void *own, sp_data_info *info)
{
    (void)own;
    *info = (sp_data_info){ .h = 1, .w = 2, .c = 1, .classes = 3 };
    info->count[SP_TRAIN] = 4;
    info->count[SP_TEST] = 1;
    return SP_OK;
}

static sp_err open_tiny(const char *root, const void *own, sp_data_info *info,
                        void **state)
{
    (void)root;
    *state = malloc(sizeof(tiny));
    memcpy(*state, own, sizeof(tiny));
    return describe_tiny(own, info);
}

static sp_err read_tiny(const void *state, sp_split split, size_t i,
                        uint8_t *image, int *label)
{
    const tiny *t = state;
    bool changed = split == SP_TRAIN && (int)i == t->change;

    image[0] = (uint8_t)i;
    image[1] = (uint8_t)(changed && !t->label);
    *label = changed && t->label ? 2 : 1;
    return SP_OK;
}

static const sp_data_set tiny_set = {
    .entry = { .name = "tiny" },
    .describe = describe_tiny,
    .open = open_tiny,
    .read = read_tiny,
    .close = free,
};

static const sp_data_cfg plain = { .root = "", .workers = 1 };

static char *lines_of(const sp_data_set *set, const void *own,
                      const sp_data_cfg *cfg)
{
    sp_dataset *d;
    sp_text out = { 0 };

    if (sp_dataset_open(&d, set, own, cfg) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    ck_assert_int_eq(sp_dataset_fingerprint(d, &out), SP_OK);
    sp_dataset_close(d);
    return out.bytes;
}

static char *lines_of_tiny(int change, bool label)
{
    tiny t = { change, label };

    return lines_of(&tiny_set, &t, &plain);
}

START_TEST(every_image_and_label_counts)
{
    char *whole = lines_of_tiny(-1, false);

    ck_assert_ptr_nonnull(
        strstr(whole, "kind: images of 1x2x1 in 3 classes\n"));
    ck_assert_ptr_nonnull(strstr(whole, "training split: 4 images"));
    ck_assert_ptr_nonnull(strstr(whole, "test split: 1 images"));
    for (int i = 0; i < 4; i++)
        for (int label = 0; label < 2; label++) {
            char *other = lines_of_tiny(i, label);
            const char *at = strstr(whole, "training split");

            /* Up to there they are alike, and behind it. */
            ck_assert_int_eq(strncmp(whole, other, (size_t)(at - whole)), 0);
            ck_assert_str_ne(at, other + (at - whole));
            ck_assert_str_eq(strstr(whole, "test split"),
                             strstr(other, "test split"));
            free(other);
        }
    free(whole);
}
END_TEST

static char *lines_of_text(double vocab)
{
    const sp_entry *entry = &sp_data_set_synthetic.entry;
    void *own = sp_own_new(entry);
    char *out;

    sp_own_set(own, entry, "vocab", vocab);
    sp_own_set(own, entry, "train", 500);
    sp_own_set(own, entry, "test", 50);
    out = lines_of(&sp_data_set_synthetic, own, &plain);
    free(own);
    return out;
}

START_TEST(text_counts_by_its_tokens)
{
    char *a = lines_of_text(20), *b = lines_of_text(20), *c = lines_of_text(21);

    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    ck_assert_ptr_nonnull(strstr(a, "training split: 500 tokens"));
    ck_assert_ptr_nonnull(strstr(a, "kind: text of 20 words"));
    free(a);
    free(b);
    free(c);
}
END_TEST

static char *lines_of_folder(const char *folder)
{
    void *own = sp_own_new(&sp_data_set_folder.entry);
    sp_data_cfg cfg = { .root = folder, .workers = 1 };
    char *out = lines_of(&sp_data_set_folder, own, &cfg);

    free(own);
    return out;
}

/* Four images and one of that name; behind one there are more bytes, which no
 * reader looks at. */
static char *folder_new(const char *name, size_t behind)
{
    static const char zeros[8];
    char *folder = sp_scratch_new();
    FILE *f;

    sp_scratch_flat_png(folder, "train/cat/1.png", 4, 4, 3, 9);
    sp_scratch_flat_png(folder, "train/dog/1.png", 4, 4, 3, 99);
    sp_scratch_flat_png(folder, "test/cat/1.png", 4, 4, 3, 9);
    sp_scratch_flat_png(folder, "test/dog/1.png", 4, 4, 3, 9);
    sp_scratch_flat_png(folder, name, 4, 4, 3, 9);
    f = fopen(sp_scratch_path(folder, "test/dog/1.png"), "ab");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(zeros, 1, behind, f), behind);
    fclose(f);
    return folder;
}

/* The same files elsewhere are the same; with another name or size, not. */
START_TEST(folders_count_by_names_and_sizes)
{
    static const struct {
        const char *name;
        size_t behind;
        bool same;
    } others[] = { { "train/cat/2.png", 0, true },
                   { "train/cat/3.png", 0, false },
                   { "train/cat/2.png", 1, false } };
    char *first = folder_new("train/cat/2.png", 0);
    char *other = folder_new(others[_i].name, others[_i].behind);
    char *a = lines_of_folder(first), *b = lines_of_folder(other);

    ck_assert_int_eq(strcmp(a, b) == 0, others[_i].same);
    free(a);
    free(b);
    sp_scratch_free(first);
    sp_scratch_free(other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fingerprint");
    TCase *tc = tcase_create("fingerprint");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, any_bit_counts);
    tcase_add_test(tc, changes_do_not_cancel);
    tcase_add_test(tc, what_came_before_counts);
    tcase_add_test(tc, every_image_and_label_counts);
    tcase_add_test(tc, text_counts_by_its_tokens);
    tcase_add_loop_test(tc, folders_count_by_names_and_sizes, 0, 3);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
