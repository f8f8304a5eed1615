/* metrics.jsonl and hashes.jsonl: whole lines, cut back on resume. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/run.h"
#include "runs.h"
#include "train/metrics.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static sp_train_state state(int64_t step, int epoch)
{
    sp_train_state s = sp_train_state_start();

    s.step = step;
    s.epoch = epoch;
    return s;
}

/* Open and close the files of the folder "m" as a resume would. */
static void cut(int64_t step, int epoch)
{
    sp_train_state at = state(step, epoch);
    sp_log_cfg log = { .every = 1 };
    sp_metrics m;

    ck_assert_int_eq(
        sp_metrics_open(&m, sp_scratch_path(r.folder, "m"), &at, &log), SP_OK);
    sp_metrics_close(&m);
}

static void check_text(const char *file, const char *want)
{
    char *text = runs_read(runs_path(&r, "m", file));

    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(later_and_torn_lines_go)
{
    static const char metrics[] =
        "{\"kind\":\"step\",\"epoch\":1,\"step\":5}\n"
        "{\"kind\":\"epoch\",\"epoch\":1,\"step\":6}\n"
        "{\"kind\":\"step\",\"epoch\":2,\"step\":12}\n"
        "{\"kind\":\"epoch\",\"epoch\":2,\"step\":12}\n"
        "{\"kind\":\"step\",\"epoch\":3,\"step\":13}\n"
        "{\"kind\":\"step\",\"epo";
    static const char hashes[] = "{\"step\":6,\"hash\":\"aa\"}\n"
                                 "{\"step\":13,\"hash\":\"bb\"}\n"
                                 "{\"step\":7";
    const char *third = strstr(metrics, "{\"kind\":\"step\",\"epoch\":2");
    const char *fourth = strstr(metrics, "{\"kind\":\"epoch\",\"epoch\":2");
    const char *fifth = strstr(metrics, "{\"kind\":\"step\",\"epoch\":3");
    char want[sizeof metrics];

    sp_scratch_write(r.folder, "m/metrics.jsonl", metrics, sizeof metrics - 1);
    sp_scratch_write(r.folder, "m/hashes.jsonl", hashes, sizeof hashes - 1);
    cut(12, 2);
    snprintf(want, sizeof want, "%.*s", (int)(fifth - metrics), metrics);
    check_text("metrics.jsonl", want);
    check_text("hashes.jsonl", "{\"step\":6,\"hash\":\"aa\"}\n");
    /* At step 12 before the evaluation: the epoch's line goes too. */
    cut(12, 1);
    snprintf(want, sizeof want, "%.*s", (int)(fourth - metrics), metrics);
    check_text("metrics.jsonl", want);
    cut(6, 1);
    snprintf(want, sizeof want, "%.*s", (int)(third - metrics), metrics);
    check_text("metrics.jsonl", want);
    cut(0, 0);
    check_text("metrics.jsonl", "");
    check_text("hashes.jsonl", "");
}
END_TEST

START_TEST(lines_that_say_nothing_go)
{
    static const char junk[] = "nonsense\n{\"kind\":\"step\",\"step\":1}\n"
                               "{}\n[1]\n\n{\"step\":\"1\"}\n";

    sp_scratch_write(r.folder, "m/metrics.jsonl", junk, sizeof junk - 1);
    cut(5, 0);
    check_text("metrics.jsonl", "{\"kind\":\"step\",\"step\":1}\n");
}
END_TEST

START_TEST(what_does_not_apply_is_left_out)
{
    sp_train_state at = state(0, 0);
    sp_epoch_line line = sp_epoch_line_none(), back;
    sp_log_cfg log = { .every = 1 };
    sp_metrics m;
    sp_json_doc *doc;

    line.epoch = 2;
    line.step = 12;
    line.test_top1 = 12.5;
    sp_scratch_write(r.folder, "m/x", "", 0);
    ck_assert_int_eq(
        sp_metrics_open(&m, sp_scratch_path(r.folder, "m"), &at, &log), SP_OK);
    ck_assert_int_eq(sp_metrics_epoch(&m, &line), SP_OK);
    sp_metrics_close(&m);
    static const char begin[] = "{\"kind\":\"epoch\",\"epoch\":2,\"step\":12,"
                                "\"test_top1\":12.5,\"wall_time\":";
    char *text = runs_read(runs_path(&r, "m", "metrics.jsonl"));
    ck_assert_mem_eq(text, begin, sizeof begin - 1);
    ck_assert_int_eq(sp_json_parse(&doc, "line", text, strlen(text)), SP_OK);
    ck_assert_int_eq(sp_epoch_line_read(sp_json_root(doc), &back), SP_OK);
    ck_assert(back.epoch == 2 && back.step == 12 && back.test_top1 == 12.5);
    ck_assert(isnan(back.valid_top1) && isnan(back.lr));
    sp_json_doc_free(doc);
    free(text);
}
END_TEST

START_TEST(a_state_survives_writing_and_reading)
{
    sp_train_state s = state(123456789012, 7), back;
    sp_json j = { 0 };
    sp_json_doc *doc;
    const char *text;

    s.batch = 3;
    s.loss_sum = 0.1 + 0.2; /* needs all 17 digits */
    s.window.norm = 1.0 / 3;
    s.schedule.bad = 2;
    s.best.epoch = 4;
    s.best.valid_loss = 1e-300;
    sp_json_open(&j, NULL);
    sp_train_state_write(&j, &s);
    sp_json_close(&j);
    ck_assert_int_eq(sp_json_finish(&j, &text), SP_OK);
    ck_assert_int_eq(sp_json_parse(&doc, "state", text, strlen(text)), SP_OK);
    ck_assert_int_eq(sp_train_state_read(sp_json_root(doc), &back), SP_OK);
    ck_assert(back.step == s.step && back.epoch == 7 && back.batch == 3);
    ck_assert(back.loss_sum == s.loss_sum);
    ck_assert(back.window.norm == s.window.norm);
    ck_assert(isinf(back.schedule.best) && back.schedule.bad == 2);
    ck_assert(back.best.valid_loss == 1e-300 && isnan(back.best.test_loss));
    ck_assert(isnan(back.last.epoch));
    sp_json_doc_free(doc);
    sp_json_free(&j);
}
END_TEST

START_TEST(a_run_writes_the_promised_lines)
{
    static const char *const keys[] = {
        "epoch",        "step",        "lr",
        "train_loss",   "train_top1",  "valid_loss",
        "valid_top1",   "test_loss",   "test_top1",
        "seconds",      "items_per_s", "dense_bytes",
        "packet_bytes", "mpi_bytes",   "compression_ratio",
        "peak_rss_mib",
    };
    const char *more[] = { "train.epochs=40", "data.valid=16", "log.every=20",
                           NULL };
    sp_hash_line *hashes;
    size_t count;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = more }), SP_OK);
    char *text = runs_read(runs_path(&r, "a", "metrics.jsonl"));
    char *line = strstr(text, "{\"kind\":\"epoch\"");
    ck_assert_ptr_nonnull(line);
    *strchr(line, '\n') = '\0';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\":", keys[i]);
        ck_assert_msg(strstr(line, key), "%s", keys[i]);
    }
    ck_assert_ptr_null(strstr(line, "top5")); /* four classes */
    /* 16*8 + 8 + 8*4 + 4 = 172 parameters of 4 bytes. */
    ck_assert_ptr_nonnull(strstr(line, "\"dense_bytes\":688,"));
    /* The first 5 steps of an epoch of 80 samples in batches of 16. */
    ck_assert_ptr_null(strstr(text, "\"kind\":\"step\",\"epoch\":1,"));
    free(text);
    ck_assert_int_eq(sp_hashes_read(runs_path(&r, "a", ""), &hashes, &count),
                     SP_OK);
    ck_assert_uint_eq(count, 2); /* 200 steps */
    ck_assert_int_eq(hashes[0].step, 100);
    ck_assert_int_eq(hashes[1].step, 200);
    ck_assert_uint_eq(strlen(hashes[1].hex), 64);
    ck_assert_str_ne(hashes[0].hex, hashes[1].hex);
    free(hashes);
}
END_TEST

static bool writes(const char *kind, const char *key)
{
    const char *written;

    for (int i = 0; (written = sp_metrics_key(kind, i)); i++)
        if (strcmp(written, key) == 0)
            return true;
    return false;
}

/* Reports know no trainer, so they have the keys that they read once more. */
START_TEST(what_reports_read_is_written)
{
    for (int m = 0; m < SP_METRIC_COUNT; m++) {
        const char *key = sp_run_metric_key((sp_run_metric)m);

        ck_assert_msg(writes("step", key) || writes("epoch", key), "%s", key);
    }
    for (int i = 0; i < SP_RUN_TIMES; i++)
        ck_assert_msg(writes("time", sp_run_time_keys[i]), "%s",
                      sp_run_time_keys[i]);
    ck_assert_int_eq(SP_RUN_TIMES, SP_TIMES + 1); /* and other_s */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("metrics");
    TCase *tc = tcase_create("metrics");
    SRunner *run = srunner_create(s);

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, later_and_torn_lines_go);
    tcase_add_test(tc, lines_that_say_nothing_go);
    tcase_add_test(tc, what_does_not_apply_is_left_out);
    tcase_add_test(tc, a_state_survives_writing_and_reading);
    tcase_add_test(tc, a_run_writes_the_promised_lines);
    tcase_add_test(tc, what_reports_read_is_written);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
