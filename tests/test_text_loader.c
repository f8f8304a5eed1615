#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader.h"

/* A text made for these tests: token i is i, so that a token tells where it
 * stands. The training, validation and test splits have the lengths that the
 * settings give. */
enum { MOST = 4000, RANKS = 3 };

struct lengths {
    size_t count[SP_SPLITS];
    int bad; /* is put at the end of the test split, if not 0 */
};

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    const struct lengths *l = own;
    int32_t *tokens = malloc((MOST + 1) * sizeof *tokens);

    (void)root;
    ck_assert_ptr_nonnull(tokens);
    for (int i = 0; i <= MOST; i++)
        tokens[i] = i;
    *info = (sp_data_info){ .text = true, .classes = MOST };
    memcpy(info->count, l->count, sizeof l->count);
    if (l->bad != 0)
        tokens[l->count[SP_TEST] - 1] = l->bad;
    *state = tokens;
    return SP_OK;
}

static const int32_t *tokens_of(const void *state, sp_split split)
{
    (void)split;
    return state;
}

static const sp_data_set counted = {
    .entry = { .name = "counted" },
    .open = open_set,
    .tokens = tokens_of,
    .close = free,
};

static const sp_data_cfg plain = { .root = "", .workers = 1 };

/* All splits of one length. */
static sp_dataset *open_data(size_t n)
{
    struct lengths l = { { n, n, n }, 0 };
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &l, &plain), SP_OK);
    return d;
}

static sp_loader *start(sp_loader_opt o)
{
    sp_loader *l;

    if (sp_loader_new(&l, &o) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return l;
}

static sp_batch next(sp_loader *l)
{
    sp_batch b;

    ck_assert_int_eq(sp_loader_next(l, &b), SP_OK);
    return b;
}

static void expect(const sp_batch *b, int t, int n, const int32_t *tokens)
{
    ck_assert_int_eq(b->t, t);
    ck_assert_int_eq(b->n, n);
    ck_assert_ptr_null(b->x);
    ck_assert_ptr_null(b->ids);
    for (int i = 0; i < t * n; i++) {
        ck_assert_int_eq(b->tokens[i], tokens[i]);
        ck_assert_int_eq(b->labels[i], tokens[i] + 1);
    }
}

/* 17 tokens in 3 columns are 5 each: 0-4, 5-9, 10-14, two dropped; the 4
 * targets of each in chunks of 3 and 1. */
START_TEST(training_columns_are_as_counted_by_hand)
{
    static const int32_t first[] = { 0, 5, 10, 1, 6, 11, 2, 7, 12 };
    static const int32_t second[] = { 3, 8, 13 };
    sp_dataset *d = open_data(17);
    sp_loader *l = start((sp_loader_opt){ .data = d, .batch = 3, .steps = 3 });

    ck_assert_uint_eq(sp_loader_batches(l), 2);
    ck_assert_uint_eq(sp_loader_capacity(l), 3);
    for (int e = 0; e < 2; e++) {
        sp_batch b = next(l);

        expect(&b, 3, 3, first);
        ck_assert(b.epoch == e && b.index == 0 && !b.last && !b.end);
        ck_assert(b.rows == 3 && b.row == 0 && b.targets == 9);
        b = next(l);
        expect(&b, 1, 3, second);
        ck_assert(b.index == 1 && b.last && b.targets == 3);
        b = next(l);
        ck_assert(b.end && b.epoch == e && b.n == 0);
    }
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* 12 tokens have 11 targets: 4, 4 and 3 for columns from 0, 4 and 8; the last
 * ones of the longer two come alone. */
START_TEST(scoring_columns_are_as_counted_by_hand)
{
    static const int32_t first[] = { 0, 4, 8, 1, 5, 9 };
    static const int32_t second[] = { 2, 6, 10 }, third[] = { 3, 7 };
    sp_dataset *d = open_data(12);
    sp_loader *l = start((sp_loader_opt){ .data = d,
                                          .part = SP_PART_TEST,
                                          .batch = 3,
                                          .steps = 2,
                                          .scoring = true });
    sp_batch b = next(l);

    ck_assert_uint_eq(sp_loader_batches(l), 3);
    expect(&b, 2, 3, first);
    ck_assert_uint_eq(b.targets, 6);
    b = next(l);
    expect(&b, 1, 3, second);
    b = next(l);
    expect(&b, 1, 2, third);
    ck_assert(b.rows == 2 && b.targets == 2 && b.last);
    ck_assert(next(l).end);
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* Of an epoch: how often each token is a target, and that row r of a chunk
 * goes on where that of the chunk before ended. Returns the targets. */
static size_t walk(sp_loader *l, int seen[MOST])
{
    static int32_t end[MOST];
    size_t targets = 0, rows = 0;
    int wrong = 0;

    memset(seen, 0, MOST * sizeof *seen);
    for (sp_batch b = next(l); !b.end; b = next(l)) {
        ck_assert(b.n > 0 && (size_t)b.n == b.rows);
        ck_assert(b.index == 0 || b.rows <= rows);
        rows = b.rows;
        targets += b.targets;
        for (int s = 0; s < b.t; s++)
            for (int i = 0; i < b.n; i++) {
                int32_t token = b.tokens[s * b.n + i];

                wrong += b.labels[s * b.n + i] != token + 1;
                wrong += (b.index > 0 || s > 0) && token != end[i];
                seen[token + 1]++;
                end[i] = token + 1;
            }
    }
    ck_assert_int_eq(wrong, 0);
    return targets;
}

static const size_t sizes[] = { 2, 3, 10, 11, 64, 97, 1000, 2003 };

START_TEST(scoring_has_every_target_once)
{
    static const size_t batches[] = { 1, 2, 3, 10, 63, 5000 };
    static const int steps[] = { 1, 2, 7, 35, 4000 };
    static int seen[MOST];
    size_t n = sizes[_i];
    sp_dataset *d = open_data(n);

    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 5; k++) {
            sp_loader *l = start((sp_loader_opt){ .data = d,
                                                  .part = SP_PART_VALID,
                                                  .batch = batches[i],
                                                  .steps = steps[k],
                                                  .scoring = true });

            ck_assert_uint_eq(walk(l, seen), n - 1);
            ck_assert_int_eq(seen[0], 0);
            for (size_t t = 1; t < n; t++)
                ck_assert_int_eq(seen[t], 1);
            sp_loader_free(l);
        }
    sp_dataset_close(d);
}
END_TEST

/* Every token but the first of each column, and the dropped remainder. */
START_TEST(training_has_every_target_of_its_columns_once)
{
    static const size_t batches[] = { 1, 2, 7, 20 };
    static const int steps[] = { 1, 4, 35, 49 };
    static int seen[MOST];
    enum { N = 1013 };
    size_t batch = batches[_i], each = N / batch;
    sp_dataset *d = open_data(N);

    for (int k = 0; k < 4; k++) {
        sp_loader *l = start(
            (sp_loader_opt){ .data = d, .batch = batch, .steps = steps[k] });

        ck_assert_uint_eq(walk(l, seen), batch * (each - 1));
        for (size_t t = 0; t < N; t++)
            ck_assert_int_eq(seen[t], t < each * batch && t % each != 0);
        sp_loader_free(l);
    }
    sp_dataset_close(d);
}
END_TEST

/* What the ranks get together is what one gets alone; a rank's columns stay
 * its own, also in a batch that not all columns take part in. */
START_TEST(ranks_share_the_columns)
{
    static const size_t batches[] = { 2, 3, 7, 8 };
    sp_dataset *d = open_data(101);
    sp_loader_opt o = { .data = d, .batch = batches[_i / 2], .steps = 6 };
    sp_loader *alone, *l[RANKS];

    o.scoring = _i % 2;
    alone = start(o);
    o.ranks = RANKS;
    for (o.rank = 0; o.rank < RANKS; o.rank++)
        l[o.rank] = start(o);
    for (sp_batch a = next(alone); !a.end; a = next(alone)) {
        size_t row = 0, first, most;

        for (int r = 0; r < RANKS; r++) {
            sp_batch b = next(l[r]);

            sp_share(o.batch, r, RANKS, &first, &most);
            ck_assert(!b.end && b.t == a.t && b.rows == a.rows &&
                      b.targets == a.targets && b.last == a.last);
            ck_assert_uint_eq(b.row, row);
            ck_assert(b.n == 0 || b.row == first);
            ck_assert((size_t)b.n <= most);
            ck_assert_uint_eq(sp_loader_capacity(l[r]), most);
            for (int s = 0; s < b.t; s++)
                for (int i = 0; i < b.n; i++) {
                    int at = s * a.n + (int)row + i;

                    ck_assert_int_eq(b.tokens[s * b.n + i], a.tokens[at]);
                    ck_assert_int_eq(b.labels[s * b.n + i], a.labels[at]);
                }
            row += (size_t)b.n;
        }
        ck_assert_uint_eq(row, a.rows);
    }
    for (int r = 0; r < RANKS; r++) {
        ck_assert(next(l[r]).end);
        sp_loader_free(l[r]);
    }
    sp_loader_free(alone);
    sp_dataset_close(d);
}
END_TEST

START_TEST(seeking_gives_what_running_there_gives)
{
    sp_dataset *d = open_data(101);
    sp_loader_opt o = { .data = d, .batch = 7, .steps = 4, .scoring = _i == 1 };
    sp_loader *ran = start(o), *l = start(o);

    for (int e = 0; e < 2; e++)
        for (size_t i = 0; i <= sp_loader_batches(ran); i++) {
            sp_batch a = next(ran), b;
            size_t size = (size_t)(a.t * a.n) * sizeof *a.tokens;

            ck_assert_int_eq(sp_loader_seek(l, 5, 1), SP_OK);
            next(l);
            ck_assert_int_eq(sp_loader_seek(l, e, i), SP_OK);
            b = next(l);
            ck_assert(a.end == b.end && a.epoch == b.epoch &&
                      a.index == b.index && a.n == b.n && a.t == b.t);
            ck_assert(a.end || memcmp(a.tokens, b.tokens, size) == 0);
        }
    ck_assert_int_eq(sp_loader_seek(l, 0, sp_loader_batches(l) + 1), SP_EARG);
    ck_assert_int_eq(sp_loader_seek(l, -1, 0), SP_EARG);
    sp_loader_free(ran);
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* 1000 tokens in 20 columns: 49 targets each. */
START_TEST(a_short_text_is_refused_with_the_arithmetic)
{
    sp_dataset *d = open_data(1000);
    sp_loader_opt o = { .data = d, .batch = 20, .steps = 49 };
    sp_loader *l = start(o);

    ck_assert_uint_eq(sp_loader_batches(l), 1);
    sp_loader_free(l);
    o.steps = 64;
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EDATA);
    ck_assert_str_eq(sp_last_error(),
                     "train.bptt: 1000 tokens in 20 columns are 50 each, 49 "
                     "targets; 64 steps need at least 65 a column, 1300 "
                     "tokens: make train.batch or train.bptt smaller");
    o.batch = 2000;
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "0 each, 0 targets"));
    o.steps = 0;
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EARG);
    sp_dataset_close(d);
}
END_TEST

START_TEST(what_cannot_be_scored_is_said)
{
    struct lengths lengths = { { 10, 1, 0 }, 0 };
    sp_loader_opt o = {
        .part = SP_PART_TEST, .batch = 4, .steps = 5, .scoring = true
    };
    sp_dataset *d;
    sp_loader *l;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &lengths, &plain), SP_OK);
    o.data = d;
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "1 token"));
    o.part = SP_PART_VALID;
    l = start(o);
    ck_assert_uint_eq(sp_loader_batches(l), 0);
    for (int e = 0; e < 3; e++) {
        sp_batch b = next(l);

        ck_assert(b.end && b.epoch == e);
    }
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* A set's own validation split is the validation part. */
START_TEST(parts_are_the_sets_own_splits)
{
    struct lengths lengths = { { 10, 30, 20 }, 0 };
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &lengths, &plain), SP_OK);
    ck_assert_uint_eq(d->count[SP_PART_TRAIN], 10);
    ck_assert_uint_eq(d->count[SP_PART_VALID], 20);
    ck_assert_uint_eq(d->count[SP_PART_TEST], 30);
    sp_dataset_close(d);
}
END_TEST

static void check_refused(sp_data_cfg cfg, const char *start_of_text)
{
    struct lengths lengths = { { 10, 10, 10 }, 0 };
    sp_data_info info = { .text = true, .classes = 5 };
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &lengths, &cfg), SP_EDATA);
    ck_assert_int_eq(
        strncmp(sp_last_error(), start_of_text, strlen(start_of_text)), 0);
    ck_assert_int_eq(sp_dataset_check(&cfg, &info), SP_EDATA);
    ck_assert_int_eq(
        strncmp(sp_last_error(), start_of_text, strlen(start_of_text)), 0);
}

START_TEST(settings_for_images_are_refused)
{
    sp_data_cfg cfg = plain;

    cfg.augment = SP_AUGMENT_FLIP;
    check_refused(cfg, "data.augment: ");
    cfg = plain;
    cfg.normalize = SP_NORMALIZE_NONE + 1;
    check_refused(cfg, "data.normalize: ");
    cfg = plain;
    cfg.valid = 3;
    check_refused(cfg, "data.valid: ");
}
END_TEST

static const int32_t *nothing_of(const void *state, sp_split split)
{
    (void)state, (void)split;
    return NULL;
}

START_TEST(tokens_out_of_range_are_found_when_opening)
{
    static const int bad[] = { -1, MOST };
    struct lengths lengths = { { 10, 20, 10 }, bad[_i] };
    sp_dataset *d;
    sp_data_set silent = counted;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &lengths, &plain), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "token 19 of test"));
    lengths.bad = 0;
    silent.tokens = NULL;
    ck_assert_int_eq(sp_dataset_open(&d, &silent, &lengths, &plain), SP_EARG);
    silent.tokens = nothing_of;
    ck_assert_int_eq(sp_dataset_open(&d, &silent, &lengths, &plain), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "no tokens for its 10 of "
                                                  "train"));
    memset(lengths.count, 0, sizeof lengths.count);
    ck_assert_int_eq(sp_dataset_open(&d, &silent, &lengths, &plain), SP_OK);
    sp_dataset_close(d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text_loader");
    TCase *tc = tcase_create("text_loader");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, training_columns_are_as_counted_by_hand);
    tcase_add_test(tc, scoring_columns_are_as_counted_by_hand);
    tcase_add_loop_test(tc, scoring_has_every_target_once, 0,
                        sizeof sizes / sizeof *sizes);
    tcase_add_loop_test(tc, training_has_every_target_of_its_columns_once, 0,
                        4);
    tcase_add_loop_test(tc, ranks_share_the_columns, 0, 8);
    tcase_add_loop_test(tc, seeking_gives_what_running_there_gives, 0, 2);
    tcase_add_test(tc, a_short_text_is_refused_with_the_arithmetic);
    tcase_add_test(tc, what_cannot_be_scored_is_said);
    tcase_add_test(tc, parts_are_the_sets_own_splits);
    tcase_add_test(tc, settings_for_images_are_refused);
    tcase_add_loop_test(tc, tokens_out_of_range_are_found_when_opening, 0, 2);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
