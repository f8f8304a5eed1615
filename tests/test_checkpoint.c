/* Checkpoints: whole or absent, and never used when damaged. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "runs.h"
#include "train/checkpoint.h"
#include "train/rotate.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static sp_err train(const char *run, const char *const *overrides)
{
    return runs_train(&r, (runs_job){ .run = run, .overrides = overrides });
}

static sp_err resume(const char *run, const char *const *overrides)
{
    return runs_resume(&r, (runs_job){ .run = run, .overrides = overrides });
}

static bool exists(const char *run, const char *name)
{
    char inner[128];
    struct stat s;

    snprintf(inner, sizeof inner, "checkpoints/%s", name);
    return lstat(runs_path(&r, run, inner), &s) == 0;
}

static sp_err open_last(void)
{
    sp_checkpoint c;
    sp_err e =
        sp_checkpoint_open_whole(&c, runs_path(&r, "a", ""), "last", NULL);

    sp_checkpoint_close(&c);
    return e;
}

static const char *const files[] = { "model.safetensors", "optim.safetensors",
                                     "rank-0000.safetensors", "manifest.json" };

enum { FILES = 4, PLACES = 40 };

/* Change the file in place, see it refused, and put it back. */
static void try_damage(const char *path, const char *bytes, size_t size,
                       const char *name)
{
    sp_err e;

    ck_assert_int_eq(sp_file_write_synced(path, bytes, size), SP_OK);
    e = open_last();
    ck_assert_int_eq(e, SP_EFORMAT);
    ck_assert(runs_error(name));
    ck_assert(runs_error("use an older checkpoint: step-00000012"));
}

START_TEST(a_damaged_file_is_refused_by_name)
{
    const char *name = files[_i];
    char inner[64], path[512];
    uint8_t *bytes;
    size_t size;

    ck_assert_int_eq(train("a", NULL), SP_OK);
    snprintf(inner, sizeof inner, "checkpoints/last/%s", name);
    snprintf(path, sizeof path, "%s", runs_path(&r, "a", inner));
    ck_assert_int_eq(sp_file_read(path, 1 << 20, &bytes, &size), SP_OK);
    for (size_t i = 0; i < PLACES; i++) {
        size_t at = i * (size - 1) / (PLACES - 1);

        bytes[at] ^= (uint8_t)(1 << i % 8);
        try_damage(path, (char *)bytes, size, name);
        bytes[at] ^= (uint8_t)(1 << i % 8);
        try_damage(path, (char *)bytes, at, name); /* truncated there */
    }
    ck_assert_int_eq(resume("a", NULL), SP_EFORMAT);
    ck_assert(runs_error(name));
    ck_assert_int_eq(sp_file_write_synced(path, bytes, size), SP_OK);
    ck_assert_int_eq(open_last(), SP_OK);
    unlink(path);
    ck_assert_int_eq(open_last(), SP_EIO);
    ck_assert(runs_error(name));
    free(bytes);
}
END_TEST

START_TEST(other_versions_and_broken_rules_are_refused)
{
    static const struct {
        const char *from, *to, *word;
    } changes[] = {
        { "\"format\": 2", "\"format\": 3", "format 3" },
        { "\"full\"", "\"bare\"", "bare" },
        { "\"step\": 18", "\"step\": -1", "step" },
        { "\"epoch\"", "\"apoch\"", "epoch" },
        { "\"height\": 4", "\"height\": 0", "height" },
        { "\"size\": ", "\"sise\": ", "size" },
    };

    ck_assert_int_eq(train("a", NULL), SP_OK);
    ck_assert_int_eq(open_last(), SP_OK);
    runs_forge(&r, "a", "last", changes[_i].from, changes[_i].to);
    ck_assert_int_eq(open_last(), SP_EFORMAT);
    ck_assert(runs_error(changes[_i].word));
}
END_TEST

START_TEST(another_model_is_refused_by_tensor)
{
    const char *wider[] = { "model.hidden=[9]", NULL };
    const char *deeper[] = { "model.hidden=[8,8]", NULL };
    const char *rule[] = { "optim.name=adam", "train.epochs=4", NULL };

    ck_assert_int_eq(train("a", NULL), SP_OK);
    ck_assert_int_eq(resume("a", wider), SP_EFORMAT);
    ck_assert(runs_error("fc1.weight: float of 8x16, the model's is 9x16"));
    ck_assert_int_eq(resume("a", deeper), SP_EFORMAT);
    ck_assert(runs_error("fc3.weight: missing"));
    ck_assert_int_eq(resume("a", rule), SP_ECONFIG);
    ck_assert(runs_error("optim.name=sgd"));
}
END_TEST

START_TEST(leftovers_of_killed_writers_go)
{
    runs_job stop = { .run = "a", .end = RUNS_STOP, .lines = 9 };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    sp_scratch_write(r.folder, "a/checkpoints/.tmp-step-00000012/x", "x", 1);
    sp_scratch_write(r.folder, "a/checkpoints/.old-step-00000001/x", "x", 1);
    sp_scratch_write(r.folder, "a/result.json.tmp", "x", 1);
    ck_assert_int_eq(
        symlink("nowhere", runs_path(&r, "a", "checkpoints/last.tmp")), 0);
    ck_assert_int_eq(resume("a", NULL), SP_OK);
    ck_assert(!exists("a", ".tmp-step-00000012"));
    ck_assert(!exists("a", ".old-step-00000001"));
    ck_assert(!exists("a", "last.tmp"));
    ck_assert(!exists("a", "../result.json.tmp"));
    ck_assert(exists("a", "step-00000018/manifest.json"));
}
END_TEST

START_TEST(older_checkpoints_go_but_for_those_in_use)
{
    const char *none[] = { "train.keep=0", "train.epochs=6", NULL };
    const char *two[] = { "train.keep=2", "train.epochs=6", "optim.lr=0",
                          NULL };
    const char *steps[] = { "train.checkpoint_steps=2", "train.epochs=1",
                            NULL };

    ck_assert_int_eq(train("a", none), SP_OK);
    ck_assert(exists("a", "start/model.safetensors"));
    ck_assert(exists("a", "last/model.safetensors"));
    ck_assert(exists("a", "best/model.safetensors"));
    ck_assert(exists("a", "step-00000036"));
    /* With rate 0 the first epoch stays the best. */
    ck_assert_int_eq(train("b", two), SP_OK);
    ck_assert(exists("b", "start"));
    ck_assert(exists("b", "step-00000006")); /* best */
    ck_assert(!exists("b", "step-00000012"));
    ck_assert(!exists("b", "step-00000018"));
    ck_assert(exists("b", "step-00000024"));
    ck_assert(exists("b", "step-00000030"));
    ck_assert(exists("b", "step-00000036")); /* last */
    ck_assert_int_eq(train("c", steps), SP_OK);
    ck_assert(exists("c", "step-00000002"));
    ck_assert(exists("c", "step-00000004"));
    ck_assert(exists("c", "step-00000006"));
}
END_TEST

START_TEST(age_is_by_number_not_by_letters)
{
    static const char *const names[] = { "step-00000100", "step-00000100-2",
                                         "step-00000100-10", "step-99999999",
                                         "step-100000000" };
    enum { NAMES = sizeof names / sizeof *names };

    for (int i = 0; i < NAMES; i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "k/checkpoints/%s/x", names[i]);
        sp_scratch_write(r.folder, inner, "x", 1);
    }
    for (int keep = NAMES; keep >= 0; keep--) {
        ck_assert_int_eq(sp_rotate(sp_scratch_path(r.folder, "k"), keep),
                         SP_OK);
        for (int i = 0; i < NAMES; i++)
            ck_assert_int_eq(exists("k", names[i]), i >= NAMES - keep);
    }
}
END_TEST

/* An old checkpoint that cannot be removed costs room, not the run. */
START_TEST(what_cannot_be_removed_does_not_end_a_run)
{
    enum { DEEP = 70 }; /* deeper than folders are removed */
    runs_job stop = { .run = "a", .end = RUNS_STOP, .lines = 9 };
    const char *none[] = { "train.keep=0", NULL };
    char path[512] = "a/checkpoints/step-00000001";
    char *log;

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    for (int i = 0; i < DEEP; i++)
        strcat(path, "/d");
    sp_scratch_write(r.folder, strcat(path, "/x"), "x", 1);
    ck_assert_int_eq(resume("a", none), SP_OK);
    ck_assert(exists("a", "step-00000018"));
    ck_assert(!exists("a", "step-00000001"));
    log = runs_read(runs_path(&r, "a", "log.txt"));
    ck_assert_ptr_nonnull(strstr(log, "warning: "));
    ck_assert_ptr_nonnull(strstr(log, "step-00000001"));
    free(log);
}
END_TEST

START_TEST(names_are_those_of_checkpoints)
{
    static const char *const wrong[] = {
        "", ".", "..", "../a", "a/b", ".tmp-x", "step-00000099"
    };
    sp_checkpoint c;

    ck_assert_int_eq(train("a", NULL), SP_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(
            sp_checkpoint_open(&c, runs_path(&r, "a", ""), wrong[i]), SP_EARG);
    ck_assert(runs_error("there is last, and "));
}
END_TEST

/* Files beyond a size cannot be written: what a full disk looks like. */
START_TEST(a_full_disk_costs_the_new_checkpoint_only)
{
    const char *large[] = { "model.hidden=[512]", NULL };
    const char *more[] = { "train.epochs=4", NULL };
    struct rlimit limit = { 20000, 20000 };
    char *status;

    ck_assert_int_eq(train("a", large), SP_OK);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(resume("a", more), SP_EIO);
    ck_assert(runs_error("older checkpoints are as they were"));
    ck_assert_int_eq(open_last(), SP_OK);
    ck_assert(exists("a", "step-00000018"));
    ck_assert(!exists("a", "step-00000024"));
    ck_assert(!exists("a", ".tmp-step-00000024"));
    status = runs_result(&r, "a", "status");
    ck_assert_str_eq(status, "failed");
    free(status);
}
END_TEST

START_TEST(equal_weights_are_equal_files)
{
    ck_assert_int_eq(train("a", NULL), SP_OK);
    ck_assert_int_eq(train("other/place", NULL), SP_OK);
    ck_assert(runs_same(&r, "a", "other/place", "model.safetensors"));
}
END_TEST

/* Checkpoints of format 1, from before there were ranks: nothing of what came
 * since is looked for. */
START_TEST(the_first_format_can_still_be_read)
{
    runs_job stop = { .run = "a", .end = RUNS_STOP, .lines = 9 };
    static const char *const later[] = { "\"ranks\"", "\"dense\"",
                                         "\"compressor\"", "\"keeps\"" };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    runs_forge(&r, "a", "last", "\"format\": 2", "\"format\": 1");
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        char changed[32];

        snprintf(changed, sizeof changed, "%s", later[i]);
        changed[1] = '_';
        runs_forge(&r, "a", "last", later[i], changed);
    }
    ck_assert_int_eq(resume("a", NULL), SP_OK);
    ck_assert_int_eq(train("b", NULL), SP_OK);
    ck_assert(runs_same(&r, "a", "b", "model.safetensors"));
    ck_assert(runs_same(&r, "a", "b", "optim.safetensors"));
}
END_TEST

START_TEST(another_compressor_is_refused)
{
    ck_assert_int_eq(train("a", NULL), SP_OK);
    runs_forge(&r, "a", "last", "\"compressor\": \"none\"",
               "\"compressor\": \"some\"");
    ck_assert_int_eq(resume("a", NULL), SP_ECONFIG);
    ck_assert(runs_error("compress.name=some, not none"));
    ck_assert(runs_error("model.init="));
}
END_TEST

START_TEST(ranks_without_files_are_refused)
{
    ck_assert_int_eq(train("a", NULL), SP_OK);
    runs_forge(&r, "a", "last", "\"ranks\": 1", "\"ranks\": 2");
    ck_assert_int_eq(open_last(), SP_EFORMAT);
    ck_assert(runs_error("rank-0001.safetensors"));
    ck_assert_int_eq(train("b", NULL), SP_OK);
    runs_forge(&r, "b", "last", "\"ranks\": 1", "\"ranks\": 0");
    ck_assert_int_eq(resume("b", NULL), SP_EFORMAT);
    ck_assert(runs_error("ranks is 0"));
}
END_TEST

/* To use the weights, other files need only be there. */
START_TEST(weights_are_used_beside_damaged_state)
{
    char path[512];
    sp_checkpoint c;
    FILE *f;

    ck_assert_int_eq(train("a", NULL), SP_OK);
    snprintf(path, sizeof path, "%s",
             runs_path(&r, "a", "checkpoints/last/optim.safetensors"));
    f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, -1, SEEK_END), 0);
    fputc(0x7f, f);
    fclose(f);
    ck_assert_int_eq(open_last(), SP_EFORMAT);
    ck_assert_int_eq(sp_checkpoint_open(&c, runs_path(&r, "a", ""), "last"),
                     SP_OK);
    sp_checkpoint_close(&c);
    ck_assert_int_eq(truncate(path, 9), 0);
    ck_assert_int_eq(sp_checkpoint_open(&c, runs_path(&r, "a", ""), "last"),
                     SP_EFORMAT);
    ck_assert(runs_error("optim.safetensors"));
}
END_TEST

static const char *const text[] = { "model.name=lstm_lm",  "model.layers=1",
                                    "model.hidden=6",      "model.embedding=5",
                                    "data.vocab=9",        "data.train=400",
                                    "data.test=60",        "data.augment=none",
                                    "data.normalize=none", "train.batch=7",
                                    "train.bptt=5",        "train.eval_batch=4",
                                    "train.epochs=2",      NULL };

/* Cut rank 0's file of the last checkpoint of "a" into those of three ranks
 * with 2, 2 and 3 of the 7 columns. */
static void cut_in_three(void)
{
    enum { RANKS = 3, MOST = 7 * 6 };
    const char *run = runs_path(&r, "a", "");
    char path[512], whole[512], name[SP_RANK_FILE_ROOM];
    sp_rank_stamp stamps[RANKS] = { 0 }, *before;
    sp_st_file *f;
    sp_checkpoint c;
    float data[2][MOST];

    ck_assert_int_eq(sp_checkpoint_open(&c, run, "last"), SP_OK);
    snprintf(whole, sizeof whole, "%s/whole", c.folder);
    snprintf(path, sizeof path, "%s/%s", c.folder, sp_rank_file(name, 0));
    ck_assert_int_eq(rename(path, whole), 0);
    ck_assert_int_eq(sp_st_open(&f, whole), SP_OK);
    for (int n = 0; n < RANKS; n++) {
        sp_st_tensor cut[4];
        sp_st_content content = { cut, 0, NULL, 0 };
        size_t first, rows;

        sp_share(7, n, RANKS, &first, &rows);
        for (size_t i = 0; sp_st_at(f, i); i++) {
            ck_assert_uint_lt(i, 2);
            cut[i] = *sp_st_at(f, i);
            ck_assert_int_eq(cut[i].dims[0], 7);
            ck_assert_int_eq(cut[i].dims[1], 6);
            ck_assert_int_eq(sp_st_read(f, &cut[i], data[i]), SP_OK);
            cut[i].dims[0] = (int64_t)rows;
            cut[i].data = data[i] + first * 6;
            content.count++;
        }
        ck_assert_uint_eq(content.count, 2); /* h and c */
        snprintf(path, sizeof path, "%s/%s", c.folder, sp_rank_file(name, n));
        ck_assert_int_eq(sp_st_write(path, &content, &stamps[n].stamp), SP_OK);
    }
    sp_st_close(f);
    before = c.manifest.rank_stamps;
    c.manifest.rank_stamps = stamps;
    c.manifest.ranks = RANKS;
    ck_assert_int_eq(sp_manifest_write(c.folder, &c.manifest), SP_OK);
    c.manifest.rank_stamps = before;
    sp_checkpoint_close(&c);
}

/* Three ranks' columns of text, gone on with by one: without batch norm and
 * compressor nothing is lost, and here nothing was summed in another order. */
START_TEST(columns_of_three_ranks_go_on_on_one)
{
    runs_job stop = {
        .run = "a", .overrides = text, .end = RUNS_STOP, .lines = 7
    };
    char *log;

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    cut_in_three();
    ck_assert_int_eq(open_last(), SP_OK);
    ck_assert_int_eq(resume("a", NULL), SP_OK);
    ck_assert_int_eq(train("b", text), SP_OK);
    ck_assert(runs_same(&r, "a", "b", "model.safetensors"));
    ck_assert(runs_same(&r, "a", "b", "optim.safetensors"));
    log = runs_read(runs_path(&r, "a", "log.txt"));
    ck_assert_ptr_nonnull(strstr(log, "1, up to here there were 3"));
    free(log);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *tc = tcase_create("checkpoint");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_damaged_file_is_refused_by_name, 0, FILES);
    tcase_add_loop_test(tc, other_versions_and_broken_rules_are_refused, 0, 6);
    tcase_add_test(tc, another_model_is_refused_by_tensor);
    tcase_add_test(tc, leftovers_of_killed_writers_go);
    tcase_add_test(tc, older_checkpoints_go_but_for_those_in_use);
    tcase_add_test(tc, age_is_by_number_not_by_letters);
    tcase_add_test(tc, what_cannot_be_removed_does_not_end_a_run);
    tcase_add_test(tc, names_are_those_of_checkpoints);
    tcase_add_test(tc, a_full_disk_costs_the_new_checkpoint_only);
    tcase_add_test(tc, equal_weights_are_equal_files);
    tcase_add_test(tc, the_first_format_can_still_be_read);
    tcase_add_test(tc, another_compressor_is_refused);
    tcase_add_test(tc, ranks_without_files_are_refused);
    tcase_add_test(tc, weights_are_used_beside_damaged_state);
    tcase_add_test(tc, columns_of_three_ranks_go_on_on_one);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
