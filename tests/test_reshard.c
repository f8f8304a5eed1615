/* Going on with other ranks: what adds up is conserved, columns are cut anew,
 * and what cannot be read is refused. The files of all ranks are written by
 * one process. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "sprat/nn.h"
#include "sprat/random.h"
#include "train/reshard.h"
#include "train/statistics.h"

enum { MAX_RANKS = 8, KEPT = 3, COLUMNS = 11, STATE = 3, FLAT = 7 };

/* One rank: a network with running statistics, a state of text, and three
 * arrays of a compressor, of which the last two add up. */
typedef struct rank {
    sp_params *params;
    sp_graph *graph;
    sp_carried state;
    sp_carry carry;
    sp_kept kept[KEPT];
    float *arrays[KEPT];
    sp_local local;
} rank;

static char *folder;

static void set_up(void) { folder = sp_scratch_new(); }

static void tear_down(void) { sp_scratch_free(folder); }

static char names[KEPT][32] = { "fc.weight.velocity", "fc.weight.residual",
                                "fc.bias.residual" };

static rank rank_new(int number, int ranks)
{
    rank r = { .params = sp_params_new() };
    size_t first, rows;
    sp_tensor *x;

    r.graph = sp_graph_new(r.params, (sp_graph_opt){ 0 });
    x = sp_input(r.graph, "x", (sp_shape){ .n = 2, .c = 3 }, SP_F32);
    x = sp_linear(r.graph, "fc", x, (sp_linear_opt){ .out = 5 });
    sp_output(r.graph, "y", sp_norm(r.graph, "bn", x, (sp_norm_opt){ 0 }));
    ck_assert_int_eq(sp_compile(r.graph), SP_OK);
    sp_params_init(r.params, 1);
    sp_share(COLUMNS, number, ranks, &first, &rows);
    r.state = (sp_carried){ .name = "rnn.h_l0",
                            .c = STATE,
                            .now = calloc(rows * STATE + 1, sizeof(float)) };
    for (int k = 0; k < KEPT; k++) {
        r.kept[k] = (sp_kept){
            .name = names[k],
            .tensor = { .name = names[k], .ndim = 2, .dims = { 5, 3 } },
            .adds = k > 0,
        };
        if (k == 2) {
            r.kept[k].tensor.ndim = 1;
            r.kept[k].tensor.dims[0] = FLAT;
        }
        r.arrays[k] = calloc(sp_kept_size(&r.kept[k]), sizeof(float));
        r.kept[k].data = r.arrays[k];
    }
    r.local.params = r.params;
    r.local.rows = (int)rows;
    return r;
}

/* What points into the rank itself, once it stands where it stays. */
static sp_local *local_of(rank *r, bool carry, bool keeps)
{
    r->carry = (sp_carry){ .at = &r->state, .count = 1, .rows = r->local.rows };
    r->local.carry = carry ? &r->carry : NULL;
    r->local.kept = r->kept;
    r->local.kept_count = keeps ? KEPT : 0;
    return &r->local;
}

static void rank_free(rank *r)
{
    for (int k = 0; k < KEPT; k++)
        free(r->arrays[k]);
    free(r->state.now);
    sp_graph_free(r->graph);
    sp_params_free(r->params);
}

static float value_at(int number, int k, size_t i)
{
    uint32_t word[4];

    sp_random(7, SP_FOR_TEST, (uint64_t)(number * KEPT + k), i, word);
    return sp_normal(word[0], word[1]);
}

static float column_at(size_t column, size_t i)
{
    return (float)(column * 100 + i);
}

static void fill(rank *r, int number, int ranks)
{
    size_t first, rows;

    for (int k = 0; k < KEPT; k++)
        for (size_t i = 0; i < sp_kept_size(&r->kept[k]); i++)
            r->arrays[k][i] = value_at(number, k, i);
    sp_share(COLUMNS, number, ranks, &first, &rows);
    for (size_t i = 0; i < rows * STATE; i++)
        r->state.now[i] = column_at(first + i / STATE, i % STATE);
    for (size_t i = 0; i < 5; i++)
        sp_params_find(r->params, "bn.running_mean")->value[i] =
            (float)number + 0.25f;
}

/* Where the checkpoint's arrays are kept: by all ranks, by every second one,
 * or by none. */
typedef enum keeping { BY_ALL, BY_SECOND, BY_NONE } keeping;

static bool keeps(keeping how, int number)
{
    return how == BY_ALL || (how == BY_SECOND && number % 2 == 0);
}

/* A checkpoint of so many ranks, within an epoch. */
static sp_manifest save(int ranks, keeping how)
{
    sp_manifest m = { .ranks = ranks, .batch = COLUMNS };

    m.state.batch = 1;
    m.rank_stamps = calloc((size_t)ranks, sizeof *m.rank_stamps);
    for (int n = 0; n < ranks; n++) {
        char name[SP_RANK_FILE_ROOM];
        rank r = rank_new(n, ranks);

        fill(&r, n, ranks);
        m.rank_stamps[n].keeps = keeps(how, n);
        ck_assert_int_eq(
            sp_local_save(sp_scratch_path(folder, sp_rank_file(name, n)),
                          local_of(&r, true, keeps(how, n)),
                          &m.rank_stamps[n].stamp),
            SP_OK);
        rank_free(&r);
    }
    return m;
}

/* Rank `number` of those that go on; what it had before must not matter. */
static rank go_on(const sp_manifest *m, int number, int ranks, keeping how,
                  sp_err *e)
{
    rank r = rank_new(number, ranks);
    bool all[MAX_RANKS];

    for (int n = 0; n < ranks; n++)
        all[n] = keeps(how, n);
    for (int k = 0; k < KEPT; k++)
        memset(r.arrays[k], 0x55, sp_kept_size(&r.kept[k]) * sizeof(float));
    *e = sp_reshard(folder, m, local_of(&r, true, keeps(how, number)),
                    sp_place_of(all, number, ranks));
    return r;
}

/* One that keeps arrays, as all do, and must not fail. */
static rank went_on(const sp_manifest *m, int number, int ranks)
{
    sp_err e;
    rank r = go_on(m, number, ranks, BY_ALL, &e);

    ck_assert_msg(e == SP_OK, "%s", sp_last_error());
    return r;
}

/* Array k is the sum of what `count` ranks from `first` on had. */
static void check_sum(const rank *now, int k, int first, int count)
{
    for (size_t i = 0; i < sp_kept_size(&now->kept[k]); i++) {
        float want = 0;

        for (int r = first; r < first + count; r++)
            want += value_at(r, k, i);
        ck_assert(now->arrays[k][i] == want);
    }
}

static const struct {
    int from, to;
} jobs[] = { { 4, 2 }, { 4, 8 }, { 4, 3 }, { 4, 1 },
             { 1, 4 }, { 3, 4 }, { 8, 5 }, { 2, 2 } };

enum { JOBS = sizeof jobs / sizeof *jobs };

START_TEST(what_adds_up_is_conserved)
{
    enum { MOST = 5 * 3 };
    int from = jobs[_i].from, to = jobs[_i].to;
    sp_manifest m = save(from, BY_ALL);
    double sum[KEPT][MOST] = { 0 }, size[KEPT][MOST] = { 0 };
    size_t n[KEPT];

    for (int r = 0; r < to; r++) {
        rank now = went_on(&m, r, to);

        for (int k = 0; k < KEPT; k++) {
            n[k] = sp_kept_size(&now.kept[k]);
            for (size_t i = 0; i < n[k]; i++)
                sum[k][i] += (double)now.arrays[k][i];
        }
        rank_free(&now);
    }
    for (int k = 0; k < KEPT; k++)
        for (size_t i = 0; i < n[k]; i++) {
            double old = 0, tolerance;

            for (int r = 0; k > 0 && r < from; r++) {
                old += (double)value_at(r, k, i);
                size[k][i] += fabs((double)value_at(r, k, i));
            }
            /* One rounding of each array that was summed, at most. */
            tolerance = to >= from ? 0 : size[k][i] * 0x1p-24;
            ck_assert_double_le(fabs(sum[k][i] - old), tolerance);
        }
    sp_manifest_free(&m);
}
END_TEST

/* 4 ranks to 3: 0 and 1 come to 0, 2 to 1, 3 to 2. */
START_TEST(each_goes_to_the_rank_of_its_place)
{
    sp_manifest m = save(4, BY_ALL);

    for (int r = 0; r < 3; r++) {
        rank now = went_on(&m, r, 3);

        check_sum(&now, 1, r == 0 ? 0 : r + 1, r == 0 ? 2 : 1);
        for (size_t i = 0; i < 15; i++)
            ck_assert(now.arrays[0][i] == 0);
        rank_free(&now);
    }
    sp_manifest_free(&m);
}
END_TEST

/* 3 ranks to 6: those that get nothing start from zero. */
START_TEST(what_is_shared_among_more_stays_whole)
{
    sp_manifest m = save(3, BY_ALL);

    for (int r = 0; r < 6; r++) {
        rank now = went_on(&m, r, 6);

        check_sum(&now, 2, r / 2, r % 2 == 0);
        rank_free(&now);
    }
    sp_manifest_free(&m);
}
END_TEST

/* 11 columns: 2 3 3 3 on 4 ranks, 3 4 4 on 3, none on some of more. */
START_TEST(columns_are_cut_anew)
{
    int from = jobs[_i].from, to = jobs[_i].to;
    sp_manifest m = save(from, BY_ALL);
    size_t next = 0;

    for (int r = 0; r < to; r++) {
        rank now = went_on(&m, r, to);

        for (int row = 0; row < now.local.rows; row++, next++)
            for (size_t i = 0; i < STATE; i++)
                ck_assert(now.state.now[(size_t)row * STATE + i] ==
                          column_at(next, i));
        rank_free(&now);
    }
    ck_assert_uint_eq(next, COLUMNS);
    sp_manifest_free(&m);
}
END_TEST

/* Ranks 0 and 2 of 4 lead nodes of two. */
START_TEST(only_leaders_keep_what_is_not_sent)
{
    sp_manifest m = save(4, BY_SECOND);

    for (int r = 0; r < 2; r++) {
        rank now = went_on(&m, r, 2);

        check_sum(&now, 1, 2 * r, 1);
        rank_free(&now);
    }
    /* As many ranks as before, all of them keep something: 0 - 2 - . */
    for (int r = 0; r < 4; r++) {
        rank now = went_on(&m, r, 4);
        float mean = sp_params_find(now.params, "bn.running_mean")->value[0];

        check_sum(&now, 1, r, r % 2 == 0);
        ck_assert(mean == (float)r + 0.25f); /* of its own file */
        rank_free(&now);
    }
    sp_manifest_free(&m);
}
END_TEST

START_TEST(statistics_stay_as_the_weights_have_them)
{
    sp_manifest m = save(4, BY_ALL);
    rank now = went_on(&m, 1, 2);

    for (size_t i = 0; i < 5; i++)
        ck_assert(sp_params_find(now.params, "bn.running_mean")->value[i] == 0);
    rank_free(&now);
    sp_manifest_free(&m);
}
END_TEST

START_TEST(the_same_ranks_are_told_from_others)
{
    sp_manifest m = save(4, BY_SECOND);
    const bool second[] = { true, false, true, false };
    const bool all[] = { true, true, true, true };

    ck_assert(sp_place_same(&m, second, 4));
    ck_assert(!sp_place_same(&m, all, 4));
    ck_assert(!sp_place_same(&m, second, 2));
    sp_manifest_free(&m);
}
END_TEST

static void refused(const sp_manifest *m, int ranks, keeping how, sp_err want,
                    const char *word)
{
    const char *const words[] = { word, NULL };
    sp_err e;
    rank now = go_on(m, 0, ranks, how, &e);

    ck_assert_int_eq(e, want);
    ck_assert_msg(sp_error_has(words), "%s", sp_last_error());
    rank_free(&now);
}

START_TEST(arrays_of_other_settings_are_refused)
{
    sp_manifest none = save(4, BY_NONE), all;

    refused(&none, 2, BY_ALL, SP_ECONFIG, "holds none of what the compressor");
    all = save(4, BY_ALL);
    refused(&all, 2, BY_NONE, SP_ECONFIG, "would not keep");
    strcpy(names[2], "fc.bias.remainder");
    refused(&all, 2, BY_ALL, SP_ECONFIG, "has no fc.bias.remainder");
    strcpy(names[2], names[1]);
    refused(&all, 2, BY_ALL, SP_ECONFIG, "holds fc.bias.residual");
    strcpy(names[2], "fc.bias.residual");
    sp_manifest_free(&all);
    sp_manifest_free(&none);
}
END_TEST

START_TEST(missing_and_damaged_files_are_named)
{
    sp_manifest m = save(4, BY_ALL);
    const char *path = sp_scratch_path(folder, "rank-0001.safetensors");

    ck_assert_int_eq(truncate(path, 300), 0);
    refused(&m, 2, BY_ALL, SP_EFORMAT, "rank-0001.safetensors");
    ck_assert_int_eq(unlink(path), 0);
    refused(&m, 2, BY_ALL, SP_EIO, "rank-0001.safetensors");
    sp_manifest_free(&m);
}
END_TEST

START_TEST(people_are_told_what_is_exact)
{
    sp_manifest m = save(4, BY_ALL);
    const bool all[] = { true, true, true, true };
    rank now = rank_new(0, 2);
    sp_text told = { 0 };

    sp_reshard_tell(&m, local_of(&now, true, true), sp_place_of(all, 0, 2),
                    false, &told);
    ck_assert_ptr_nonnull(
        strstr(sp_text_string(&told), "2, up to here there were 4"));
    ck_assert_ptr_nonnull(strstr(
        sp_text_string(&told), "velocity, which the compressor keeps, starts"));
    ck_assert_ptr_null(strstr(sp_text_string(&told), "residual, which"));
    ck_assert_ptr_nonnull(strstr(sp_text_string(&told), "not yet sent"));
    ck_assert_ptr_nonnull(strstr(sp_text_string(&told), "running statistics"));
    sp_text_free(&told);
    sp_reshard_tell(&m, local_of(&now, true, true), sp_place_of(all, 0, 1),
                    true, &told);
    ck_assert_uint_eq(told.size, 0);
    sp_reshard_tell(&m, local_of(&now, true, true), sp_place_of(all, 0, 4),
                    true, &told);
    ck_assert_ptr_nonnull(strstr(sp_text_string(&told), "all is exact"));
    sp_text_free(&told);
    rank_free(&now);
    sp_manifest_free(&m);
}
END_TEST

/* Ranks with 3, 3 and 4 of 10 samples. */
START_TEST(averages_are_weighted_by_samples)
{
    const double samples[] = { 3, 3, 4 };
    rank r[3];
    double sum[10] = { 0 };

    for (int n = 0; n < 3; n++) {
        r[n] = rank_new(n, 3);
        sp_params_find(r[n].params, "bn.running_mean")->value[1] =
            (float)n + 1; /* 1, 2, 3 */
        sp_params_find(r[n].params, "bn.running_var")->value[4] = 0.1f;
        ck_assert_uint_eq(sp_statistics_count(r[n].params), 10);
        sp_statistics_add(r[n].params, samples[n], sum);
    }
    sp_statistics_set(r[2].params, sum, 10);
    /* (3*1 + 3*2 + 4*3) / 10 */
    ck_assert(sp_params_find(r[2].params, "bn.running_mean")->value[1] == 2.1f);
    /* What all have stays what it is. */
    ck_assert(sp_params_find(r[2].params, "bn.running_var")->value[4] == 0.1f);
    ck_assert(sp_params_find(r[2].params, "bn.running_var")->value[0] == 1);
    for (int n = 0; n < 3; n++)
        rank_free(&r[n]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reshard");
    TCase *tc = tcase_create("reshard");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, what_adds_up_is_conserved, 0, JOBS);
    tcase_add_test(tc, each_goes_to_the_rank_of_its_place);
    tcase_add_test(tc, what_is_shared_among_more_stays_whole);
    tcase_add_loop_test(tc, columns_are_cut_anew, 0, JOBS);
    tcase_add_test(tc, only_leaders_keep_what_is_not_sent);
    tcase_add_test(tc, statistics_stay_as_the_weights_have_them);
    tcase_add_test(tc, the_same_ranks_are_told_from_others);
    tcase_add_test(tc, arrays_of_other_settings_are_refused);
    tcase_add_test(tc, missing_and_damaged_files_are_named);
    tcase_add_test(tc, people_are_told_what_is_exact);
    tcase_add_test(tc, averages_are_weighted_by_samples);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
