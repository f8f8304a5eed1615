#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/loader.h"

/* A data set made for these tests: image i is one pixel of value i, label
 * i mod 7; reading takes a time that depends on i, and number `bad` fails. */
enum { TRAIN = 103, TEST = 50, NONE = -1 };

static sp_err describe(const void *own, sp_data_info *info)
{
    (void)own;
    *info = (sp_data_info){
        .h = 1, .w = 2, .c = 1, .classes = 7, .count = { TRAIN, TEST }
    };
    return SP_OK;
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    int *bad = malloc(sizeof *bad);

    (void)root;
    ck_assert_ptr_nonnull(bad);
    *bad = *(const int *)own;
    *state = bad;
    return describe(own, info);
}

static sp_err read_sample(const void *state, sp_split split, size_t i,
                          uint8_t *image, int *label)
{
    const int *bad = state;
    struct timespec t = { .tv_nsec = (long)(i * 7919 % 5) * 20000 };

    nanosleep(&t, NULL);
    if (*bad == (int)i)
        return sp_fail(SP_EDATA, "image %zu is damaged", i);
    image[0] = (uint8_t)i;
    image[1] = (uint8_t)(split == SP_TEST ? 200 : 100);
    *label = (int)(i % 7);
    return SP_OK;
}

static const sp_data_set counted = {
    .entry = { .name = "counted" },
    .describe = describe,
    .open = open_set,
    .read = read_sample,
    .close = free,
};

static sp_dataset *open_data(int bad, int augment, int valid)
{
    sp_data_cfg cfg = {
        .root = "", .augment = augment, .valid = valid, .pad = 1, .workers = 2
    };
    sp_dataset *d;

    ck_assert_int_eq(sp_dataset_open(&d, &counted, &bad, &cfg), SP_OK);
    return d;
}

static sp_loader *start(sp_loader_opt o)
{
    sp_loader *l;

    ck_assert_int_eq(sp_loader_new(&l, &o), SP_OK);
    return l;
}

static sp_batch next(sp_loader *l)
{
    sp_batch b;

    ck_assert_int_eq(sp_loader_next(l, &b), SP_OK);
    return b;
}

/* Every image of an epoch, in order, with its label and number; the batches'
 * own numbers are checked. Returns how many. */
static size_t epoch(sp_loader *l, int number, float *x, size_t *ids)
{
    size_t n = 0, index = 0;
    bool last = sp_loader_batches(l) == 0;

    for (sp_batch b = next(l); !b.end; b = next(l), index++) {
        ck_assert_int_eq(b.epoch, number);
        ck_assert_uint_eq(b.index, index);
        last = b.last;
        for (int i = 0; i < b.n; i++) {
            ck_assert_int_eq(b.labels[i], (int)(b.ids[i] % 7));
            memcpy(x + 2 * n, b.x + 2 * i, 2 * sizeof *x);
            ids[n++] = b.ids[i];
        }
    }
    ck_assert(last);
    ck_assert_uint_eq(index, sp_loader_batches(l));
    return n;
}

START_TEST(an_epoch_has_every_sample_once)
{
    static const size_t batches[] = { 1, 7, 103, 200 };
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);
    sp_loader *l = start(
        (sp_loader_opt){ .data = d, .shuffle = true, .batch = batches[_i] });
    float x[2 * TRAIN];
    size_t ids[TRAIN], first[TRAIN];

    for (int e = 0; e < 3; e++) {
        int seen[TRAIN] = { 0 };

        ck_assert_uint_eq(epoch(l, e, x, ids), TRAIN);
        for (int i = 0; i < TRAIN; i++) {
            seen[ids[i]]++;
            ck_assert_float_eq_tol(x[2 * i] * 255, (float)ids[i], 1e-3f);
            ck_assert_float_eq_tol(x[2 * i + 1] * 255, 100, 1e-3f);
        }
        for (int i = 0; i < TRAIN; i++)
            ck_assert_int_eq(seen[i], 1);
        if (e == 0)
            memcpy(first, ids, sizeof ids);
    }
    ck_assert_mem_ne(first, ids, sizeof ids);
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

START_TEST(order_without_shuffling_is_the_parts)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 20);
    float x[2 * TRAIN];
    size_t ids[TRAIN];

    for (int part = 0; part < SP_PARTS; part++) {
        sp_loader *l = start(
            (sp_loader_opt){ .data = d, .batch = 8, .part = (sp_part)part });
        size_t n = epoch(l, 0, x, ids);

        ck_assert_uint_eq(n, d->count[part]);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(ids[i], sp_dataset_id(d, (sp_part)part, i));
            ck_assert_float_eq_tol(x[2 * i + 1] * 255,
                                   part == SP_PART_TEST ? 200 : 100, 1e-3f);
        }
        sp_loader_free(l);
    }
    sp_dataset_close(d);
}
END_TEST

/* Any number of workers gives the bits of one, augmentation included. */
START_TEST(workers_change_nothing)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_BOTH, 0);
    float x[2][2 * TRAIN];
    size_t ids[2][TRAIN];
    sp_loader_opt o = { .data = d,
                        .batch = 5,
                        .shuffle = true,
                        .augment = true,
                        .seed = 9,
                        .workers = 1 };
    sp_loader *one = start(o), *many;

    o.workers = _i;
    many = start(o);
    for (int e = 0; e < 2; e++) {
        ck_assert_uint_eq(epoch(one, e, x[0], ids[0]), TRAIN);
        ck_assert_uint_eq(epoch(many, e, x[1], ids[1]), TRAIN);
        ck_assert_mem_eq(x[0], x[1], sizeof x[0]);
        ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    }
    sp_loader_free(one);
    sp_loader_free(many);
    sp_dataset_close(d);
}
END_TEST

/* Augmentation is drawn by (seed, epoch, sample), wherever the sample is. */
START_TEST(augmentation_follows_the_sample)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_BOTH, 0);
    sp_loader_opt o = { .data = d, .batch = 10, .augment = true, .seed = 4 };
    sp_loader *l = start(o);
    float x[2 * TRAIN], want[2];
    size_t ids[TRAIN];

    ck_assert_int_eq(sp_loader_seek(l, 3, 0), SP_OK);
    ck_assert_uint_eq(epoch(l, 3, x, ids), TRAIN);
    for (size_t i = 0; i < TRAIN; i++) {
        uint8_t image[2] = { (uint8_t)ids[i], 100 };

        sp_augment_apply(&d->augment,
                         sp_augment_draw(&d->augment, 4, 3, ids[i]), image,
                         want);
        ck_assert_mem_eq(x + 2 * i, want, sizeof want);
    }
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

START_TEST(seeds_change_the_order)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);
    float x[2 * TRAIN];
    size_t a[TRAIN], b[TRAIN];
    sp_loader_opt o = { .data = d, .batch = 9, .shuffle = true };
    sp_loader *l = start(o);

    epoch(l, 0, x, a);
    sp_loader_free(l);
    o.seed = 1;
    l = start(o);
    epoch(l, 0, x, b);
    sp_loader_free(l);
    ck_assert_mem_ne(a, b, sizeof a);
    sp_dataset_close(d);
}
END_TEST

START_TEST(short_batches_come_last_or_not_at_all)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);
    sp_loader_opt o = { .data = d, .batch = 10 };

    for (int drop = 0; drop < 2; drop++) {
        o.drop_last = drop;
        sp_loader *l = start(o);

        ck_assert_uint_eq(sp_loader_batches(l), drop ? 10 : 11);
        for (size_t i = 0; i < sp_loader_batches(l); i++) {
            sp_batch b = next(l);

            ck_assert_int_eq(b.n, i < 10 ? 10 : 3);
            ck_assert_uint_eq(b.rows, (size_t)b.n);
            ck_assert_int_eq(b.last, i + 1 == sp_loader_batches(l));
        }
        ck_assert(next(l).end);
        sp_loader_free(l);
    }
    sp_dataset_close(d);
}
END_TEST

/* What the ranks get together is what one rank gets alone, also where there
 * are fewer rows than ranks. */
START_TEST(ranks_share_each_batch)
{
    enum { RANKS = 4 };
    static const size_t batches[] = { 3, 8, 10 };
    sp_dataset *d = open_data(NONE, SP_AUGMENT_BOTH, 0);
    sp_loader_opt o = {
        .data = d, .batch = batches[_i], .shuffle = true, .augment = true
    };
    sp_loader *alone = start(o), *l[RANKS];

    o.ranks = RANKS;
    for (o.rank = 0; o.rank < RANKS; o.rank++)
        l[o.rank] = start(o);
    for (sp_batch a = next(alone); !a.end; a = next(alone)) {
        size_t row = 0;

        for (int r = 0; r < RANKS; r++) {
            sp_batch b = next(l[r]);

            ck_assert(!b.end && b.index == a.index && b.rows == a.rows);
            ck_assert_uint_eq(b.row, row);
            ck_assert_uint_le((size_t)b.n, sp_loader_capacity(l[r]));
            ck_assert(
                memcmp(b.x, a.x + 2 * row, 2 * (size_t)b.n * sizeof *b.x) == 0);
            ck_assert(memcmp(b.ids, a.ids + row, (size_t)b.n * sizeof *b.ids) ==
                      0);
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
    sp_dataset *d = open_data(NONE, SP_AUGMENT_BOTH, 0);
    sp_loader_opt o = {
        .data = d, .batch = 10, .shuffle = true, .augment = true, .workers = 3
    };
    sp_loader *ran = start(o), *l = start(o);

    for (int e = 0; e < 3; e++)
        for (size_t i = 0; i <= sp_loader_batches(ran); i++) {
            sp_batch a = next(ran), b;

            /* There and back, while workers are at it. */
            ck_assert_int_eq(sp_loader_seek(l, 5, 2), SP_OK);
            ck_assert_int_eq(sp_loader_seek(l, e, i), SP_OK);
            b = next(l);
            ck_assert(a.end == b.end && a.epoch == b.epoch &&
                      a.index == b.index && a.n == b.n);
            if (!a.end)
                ck_assert_mem_eq(a.x, b.x, 2 * (size_t)a.n * sizeof *a.x);
        }
    ck_assert_int_eq(sp_loader_seek(l, 0, sp_loader_batches(l) + 1), SP_EARG);
    ck_assert_int_eq(sp_loader_seek(l, -1, 0), SP_EARG);
    sp_loader_free(ran);
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* Batches before the damaged image arrive; its own gives the reader's words,
 * as often as asked; going elsewhere works. */
START_TEST(errors_reach_the_consumer)
{
    sp_dataset *d = open_data(47, SP_AUGMENT_NONE, 0);
    sp_loader *l =
        start((sp_loader_opt){ .data = d, .batch = 10, .workers = _i });
    sp_batch b;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(next(l).n, 10);
    for (int i = 0; i < 3; i++) {
        (void)sp_fail(SP_EARG, "something else");
        ck_assert_int_eq(sp_loader_next(l, &b), SP_EDATA);
        ck_assert_str_eq(sp_last_error(), "image 47 is damaged");
    }
    ck_assert_int_eq(sp_loader_seek(l, 0, 5), SP_OK);
    ck_assert_uint_eq(next(l).index, 5);
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

/* Freed at once, after a while, and while everything is ready. */
START_TEST(freeing_is_possible_at_any_time)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);

    for (int i = 0; i < 60; i++) {
        sp_loader *l =
            start((sp_loader_opt){ .data = d, .batch = 7, .workers = 4 });
        struct timespec t = { .tv_nsec = i * 50000 };

        nanosleep(&t, NULL);
        for (int k = 0; k < i % 5; k++)
            next(l);
        sp_loader_free(l);
    }
    sp_loader_free(NULL);
    sp_dataset_close(d);
}
END_TEST

START_TEST(an_empty_part_ends_at_once)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);
    sp_loader *l =
        start((sp_loader_opt){ .data = d, .batch = 4, .part = SP_PART_VALID });

    ck_assert_uint_eq(sp_loader_batches(l), 0);
    for (int e = 0; e < 3; e++) {
        sp_batch b = next(l);

        ck_assert(b.end && b.epoch == e && b.n == 0);
    }
    sp_loader_free(l);
    sp_dataset_close(d);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
    sp_dataset *d = open_data(NONE, SP_AUGMENT_NONE, 0);
    sp_loader_opt o = { .data = d, .batch = TRAIN + 1, .drop_last = true };
    sp_loader *l;

    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EDATA);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "train.batch"));
    o = (sp_loader_opt){ .data = d, .batch = 0 };
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EARG);
    o = (sp_loader_opt){ .data = d, .batch = 1, .rank = 2, .ranks = 2 };
    ck_assert_int_eq(sp_loader_new(&l, &o), SP_EARG);
    sp_dataset_close(d);
}
END_TEST

START_TEST(shares_are_near_equal_and_complete)
{
    for (size_t rows = 0; rows < 20; rows++)
        for (int ranks = 1; ranks < 9; ranks++) {
            size_t end = 0, most = (rows + (size_t)ranks - 1) / (size_t)ranks;

            for (int r = 0; r < ranks; r++) {
                size_t first, n;

                sp_share(rows, r, ranks, &first, &n);
                ck_assert_uint_eq(first, end);
                ck_assert(n <= most && n + 1 >= rows / (size_t)ranks);
                end += n;
            }
            ck_assert_uint_eq(end, rows);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("loader");
    TCase *tc = tcase_create("loader");
    SRunner *run = srunner_create(s);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_epoch_has_every_sample_once, 0, 4);
    tcase_add_test(tc, order_without_shuffling_is_the_parts);
    tcase_add_loop_test(tc, workers_change_nothing, 1, 6);
    tcase_add_test(tc, augmentation_follows_the_sample);
    tcase_add_test(tc, seeds_change_the_order);
    tcase_add_test(tc, short_batches_come_last_or_not_at_all);
    tcase_add_loop_test(tc, ranks_share_each_batch, 0, 3);
    tcase_add_test(tc, seeking_gives_what_running_there_gives);
    tcase_add_loop_test(tc, errors_reach_the_consumer, 1, 4);
    tcase_add_test(tc, freeing_is_possible_at_any_time);
    tcase_add_test(tc, an_empty_part_ends_at_once);
    tcase_add_test(tc, options_out_of_range_are_refused);
    tcase_add_test(tc, shares_are_near_equal_and_complete);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
