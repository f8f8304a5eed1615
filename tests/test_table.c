/* Tables of small runs: what is trained, taken over and refused, and what is
 * made of it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "runs.h"
#include "sprat/table.h"
#include "table/same.h"
#include "table/write.h"

static runs r;

static void set_up(void) { r = runs_new(); }
static void tear_down(void) { runs_free(&r); }

static void write_table(const char *text)
{
    sp_scratch_write(r.folder, "t.yaml", text, strlen(text));
}

static const char *path(const char *name)
{
    return sp_scratch_path(r.folder, name);
}

static sp_err run_with(sp_table_opt o, sp_table_state *state)
{
    o.file = path("t.yaml");
    o.run = path("T");
    return sp_table_run(r.registry, &o, state);
}

static sp_err run_table(sp_table_state *state)
{
    return run_with((sp_table_opt){ .file = NULL }, state);
}

static const char two_rows[] = "configs: [config.yaml]\n"
                               "seeds: [1, 2]\n"
                               "baseline: plain\n"
                               "margin: 100\n"
                               "rows:\n"
                               "  - {name: plain}\n"
                               "  - {name: faster, set: [optim.lr=0.1]}\n";

/* What stands in table.csv before the seconds; free() frees. */
static char *csv_without_seconds(void)
{
    char *text = runs_read(path("T/table.csv")), *to = text;

    for (char *line = text, *next; *line; line = next) {
        char *end = strchr(line, '\n'), *comma = end;

        while (*comma != ',')
            comma--;
        next = end + 1;
        memmove(to, line, (size_t)(comma - line));
        to += comma - line;
        *to++ = '\n';
    }
    *to = '\0';
    return text;
}

static bool said(const char *file, const char *word)
{
    char *text = runs_read(path(file));
    bool found = strstr(text, word) != NULL;

    free(text);
    return found;
}

START_TEST(every_row_is_trained_with_every_seed)
{
    sp_table_state s;

    write_table(two_rows);
    ck_assert_msg(run_table(&s) == SP_OK, "%s", sp_last_error());
    ck_assert_int_eq(s.runs, 4);
    ck_assert_int_eq(s.done, 4);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_eq(s.rows, 2);
    ck_assert(s.started);
    ck_assert(said("T/faster/seed-2/config.yaml", "lr: 0.1 "));
    ck_assert(said("T/faster/seed-2/config.yaml", "seed: 2 "));
    ck_assert(said("T/table.md", "[faster/seed-2](faster/seed-2)"));
    ck_assert(said("T/table.tex", "faster & 2 & $"));
}
END_TEST

/* The same run, made by `train` and moved to its place, with settings that do
 * not change what it computes. */
START_TEST(a_run_made_elsewhere_is_taken_over)
{
    static const char *const set[] = { "train.seed=2",    "optim.lr=0.1",
                                       "train.threads=2", "train.keep=1",
                                       "log.every=3",     NULL };
    sp_table_state s;
    char *before, *after;

    write_table(two_rows);
    ck_assert_int_eq(run_table(&s), SP_OK);
    before = csv_without_seconds();
    ck_assert_int_eq(sp_dir_remove(path("T/faster/seed-2")), SP_OK);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "else", .overrides = set }), SP_OK);
    ck_assert_int_eq(sp_rename_synced(path("else"), path("T/faster/seed-2")),
                     SP_OK);
    ck_assert_int_eq(run_table(&s), SP_OK);
    ck_assert(!s.started);
    ck_assert_int_eq(s.done, 4);
    after = csv_without_seconds();
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

START_TEST(a_run_of_other_settings_is_refused)
{
    static const char *const set[] = { "optim.lr=0.2", NULL };
    sp_table_state s;

    write_table(two_rows);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "T/plain/seed-1", .overrides = set }),
        SP_OK);
    ck_assert_int_eq(run_table(&s), SP_ECONFIG);
    ck_assert(runs_error("plain/seed-1"));
    ck_assert_msg(runs_error("optim.lr is 0.2, not 0.05"), "%s",
                  sp_last_error());
    ck_assert(!s.started);
    ck_assert(!sp_is_dir(path("T/plain/seed-2")));
}
END_TEST

START_TEST(a_run_under_way_is_resumed)
{
    sp_table_state s;
    char *once, *again;

    write_table(two_rows);
    ck_assert_int_eq(run_table(&s), SP_OK);
    once = csv_without_seconds();
    ck_assert_int_eq(sp_dir_remove(path("T")), SP_OK);
    ck_assert_int_eq(sp_dir_make(path("T/plain")), SP_OK);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "T/plain/seed-1",
                                                .end = RUNS_STOP,
                                                .lines = 9 }),
                     SP_ESTOPPED);
    ck_assert_int_eq(run_table(&s), SP_OK);
    again = csv_without_seconds();
    ck_assert_str_eq(once, again);
    ck_assert(said("T/plain/seed-1/log.txt", "resume   after step"));
    free(once);
    free(again);
}
END_TEST

/* A folder in which a run was about to begin holds nothing to go on from. */
START_TEST(a_run_without_a_checkpoint_begins_anew)
{
    sp_table_state s;

    write_table(two_rows);
    sp_scratch_write(r.folder, "T/plain/seed-1/.lock", "", 0);
    ck_assert_int_eq(sp_dir_make(path("T/plain/seed-1/checkpoints")), SP_OK);
    ck_assert_msg(run_table(&s) == SP_OK, "%s", sp_last_error());
    ck_assert_int_eq(s.done, 4);
}
END_TEST

START_TEST(a_report_trains_nothing)
{
    sp_table_state s;

    write_table(two_rows);
    ck_assert_int_eq(run_with((sp_table_opt){ .report = true }, &s), SP_EARG);
    ck_assert(runs_error("no such folder"));
    ck_assert_int_eq(sp_dir_make(path("T")), SP_OK);
    ck_assert_int_eq(run_with((sp_table_opt){ .report = true }, &s), SP_OK);
    ck_assert_int_eq(s.runs, 4);
    ck_assert_int_eq(s.done, 0);
    ck_assert_int_eq(s.open, 1);
    ck_assert(said("T/table.md", "| plain | 0 of 2 |"));
    ck_assert(said("T/table.md", "not begun"));
    ck_assert(!sp_is_dir(path("T/plain")));
}
END_TEST

START_TEST(what_is_not_finite_is_told_and_not_tried_again)
{
    sp_table_state s;
    char *log, *again;

    write_table(
        "configs: [config.yaml]\n"
        "rows:\n"
        "  - {name: bad, set: [optim.lr=1e6, 'model.hidden=[64, 64, 64]']}\n"
        "  - {name: good}\n");
    ck_assert_int_eq(run_table(&s), SP_OK);
    ck_assert_int_eq(s.failed, 1);
    ck_assert_int_eq(s.done, 1);
    ck_assert(said("T/table.md", "not finite"));
    log = runs_read(path("T/bad/seed-1/log.txt"));
    ck_assert_int_eq(run_table(&s), SP_OK);
    ck_assert(!s.started);
    again = runs_read(path("T/bad/seed-1/log.txt"));
    ck_assert_str_eq(log, again);
    free(log);
    free(again);
    ck_assert_int_eq(run_with((sp_table_opt){ .retry = true }, &s), SP_OK);
    ck_assert(s.started);
    ck_assert_int_eq(s.failed, 1);
    ck_assert(said("T/bad/seed-1/log.txt", "resume"));
}
END_TEST

START_TEST(all_rows_are_checked_before_the_first_run)
{
    sp_table_state s;

    write_table(
        "configs: [config.yaml]\n"
        "rows:\n"
        "  - {name: a}\n"
        "  - {name: b, set: [optim.rl=1]}\n"
        "  - {name: c, set: [schedule.name=step, 'schedule.at=[3,2]']}\n"
        "  - {name: d, set: [compress.name=dgc, optim.name=adam]}\n");
    ck_assert_int_eq(run_table(&s), SP_ECONFIG);
    ck_assert(runs_error("t.yaml:4:12: row b: "));
    ck_assert(runs_error("did you mean lr"));
    ck_assert(runs_error("row c: "));
    ck_assert(runs_error("row d: "));
    ck_assert(!sp_is_dir(path("T")));
    /* What only data can tell. */
    write_table("configs: [config.yaml]\n"
                "rows:\n"
                "  - {name: a}\n"
                "  - {name: b, set: [data.name=cifar10, data.root=nowhere]}\n"
                "  - {name: c, set: [train.batch=1000]}\n");
    ck_assert_int_ne(run_table(&s), SP_OK);
    ck_assert(runs_error("row b: "));
    ck_assert(runs_error("row c: "));
    ck_assert(!s.started);
    ck_assert(!sp_is_dir(path("T/a")));
}
END_TEST

START_TEST(the_metric_must_suit_the_model)
{
    sp_table_state s;

    write_table("configs: [config.yaml]\nmetric: test_ppl\n"
                "rows: [{name: a}]\n");
    ck_assert_int_eq(run_table(&s), SP_ECONFIG);
    ck_assert(runs_error("a model of images has no test_ppl"));
    write_table("configs: [config.yaml]\nmetric: valid_top1\n"
                "rows: [{name: a}]\n");
    ck_assert_int_eq(run_table(&s), SP_ECONFIG);
    ck_assert(runs_error("data.valid"));
    write_table("configs: [config.yaml]\nmetric: valid_top1\n"
                "set: [data.valid=16]\nrows: [{name: a}]\n");
    ck_assert_int_eq(run_table(&s), SP_OK);
}
END_TEST

START_TEST(ranks_must_be_those_of_the_table)
{
    sp_table_state s;

    write_table("configs: [config.yaml]\nranks: 3\nrows: [{name: a}]\n");
    ck_assert_int_eq(run_table(&s), SP_EARG);
    ck_assert(runs_error("mpirun -n 3 sprat table "));
    /* A report needs none, but looks at those of the runs. */
    ck_assert_int_eq(sp_dir_make(path("T/a")), SP_OK);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "T/a/seed-1" }), SP_OK);
    ck_assert_int_eq(run_with((sp_table_opt){ .report = true }, &s), SP_EARG);
    ck_assert(runs_error("is a run of 1 rank, not of the 3 asked for"));
}
END_TEST

static volatile sig_atomic_t stop = 1;

START_TEST(a_stop_begins_no_run)
{
    sp_table_state s;

    write_table(two_rows);
    ck_assert_int_eq(run_with((sp_table_opt){ .stop = &stop }, &s),
                     SP_ESTOPPED);
    ck_assert_int_eq(s.done, 0);
    ck_assert(said("T/table.md", "| plain | 0 of 2 |"));
}
END_TEST

static bool same(const char *const *a, const char *const *b,
                 char first[SP_DIFFERENCE_ROOM])
{
    sp_config *x = runs_config(&r, a), *y = runs_config(&r, b);
    bool equal;

    ck_assert_int_eq(sp_config_same(x, y, &equal, first), SP_OK);
    sp_config_free(x);
    sp_config_free(y);
    return equal;
}

START_TEST(what_counts_as_the_same)
{
    static const char *const without[][2] = {
        { "train.threads=3", NULL },     { "train.checkpoint_minutes=9", NULL },
        { "train.max_minutes=9", NULL }, { "log.every=7", NULL },
        { "dist.timeout_s=9", NULL },    { "data.workers=3", NULL },
        { "train.planner=false", NULL },
    };
    static const char *const with[][2] = {
        { "train.seed=9", NULL },
        { "train.batch=8", NULL },
        { "train.epochs=9", NULL },
        { "train.isa=base", NULL },
        { "optim.nesterov=1", NULL },
        { "compress.name=fp16", NULL },
        { "lowrank.name=pufferfish", NULL },
        { "model.hidden=[8, 8]", NULL },
        { "model.init=w", NULL },
    };
    char first[SP_DIFFERENCE_ROOM];

    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        ck_assert_msg(same(NULL, without[i], first), "%s", first);
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        const char *set = with[i][0];
        size_t n = strcspn(set, "=");

        if (strncmp(set, "optim.nesterov", n) == 0)
            set = "optim.nesterov=true";
        ck_assert_msg(!same(NULL, (const char *const[]){ set, NULL }, first),
                      "%s", set);
        ck_assert_msg(strncmp(first, set, n) == 0, "%s for %s", first, set);
    }
}
END_TEST

START_TEST(paths_are_the_same_that_lead_to_one_place)
{
    const char *a[] = { NULL, NULL }, *b[] = { NULL, NULL };
    char first[SP_DIFFERENCE_ROOM], x[300], y[300];

    sp_scratch_write(r.folder, "w/one", "1", 1);
    sp_scratch_write(r.folder, "w/two", "1", 1);
    snprintf(x, sizeof x, "model.init=%s", path("w/one"));
    snprintf(y, sizeof y, "model.init=%s", path("w/../w/one"));
    a[0] = x;
    b[0] = y;
    ck_assert(same(a, b, first));
    snprintf(y, sizeof y, "model.init=%s", path("w/two"));
    ck_assert(!same(a, b, first));
}
END_TEST

/* Two epochs of 10 and 30 steps: (10 x 8 + 30 x 4) / 40 = 5, and of floats
 * (10 x 40 + 30 x 20) / 40 = 25. */
START_TEST(what_a_run_has_sent)
{
    static const char lines[] =
        "{\"kind\":\"step\",\"step\":5,\"packet_bytes\":1000}\n"
        "{\"kind\":\"epoch\",\"step\":10,\"packet_bytes\":8,"
        "\"dense_bytes\":40}\n"
        "{\"kind\":\"epoch\",\"step\":40,\"packet_bytes\":4,"
        "\"dense_bytes\":20}\n"
        "{\"kind\":\"epoch\",\"st";
    static const char back[] =
        "\n{\"kind\":\"epoch\",\"step\":-9223372036854775807,"
        "\"packet_bytes\":9,\"dense_bytes\":9}\n";
    static const char more[] = "{\"kind\":\"epoch\",\"step\":50}\n";
    sp_text all = { 0 };
    sp_run_sent sent;

    ck_assert_int_eq(sp_sent_in_run(path("run"), &sent), SP_OK);
    ck_assert(isnan(sent.packet) && isnan(sent.dense));
    sp_scratch_write(r.folder, "run/metrics.jsonl", lines, sizeof lines - 1);
    ck_assert_int_eq(sp_sent_in_run(path("run"), &sent), SP_OK);
    ck_assert_double_eq(sent.packet, 5);
    ck_assert_double_eq(sent.dense, 25);
    /* Steps of a damaged file, which lead back. */
    sp_text_add(&all, "%s%s", lines, back);
    sp_scratch_write(r.folder, "run/metrics.jsonl", all.bytes, all.size);
    ck_assert_int_eq(sp_sent_in_run(path("run"), &sent), SP_OK);
    ck_assert_double_eq(sent.packet, 5);
    sp_text_add(&all, "%s", more);
    sp_scratch_write(r.folder, "run/metrics.jsonl", all.bytes, all.size);
    sp_text_free(&all);
    ck_assert_int_eq(sp_sent_in_run(path("run"), &sent), SP_OK);
    ck_assert(isnan(sent.packet));
}
END_TEST

/* Rows of made-up values, against arithmetic by hand. */
START_TEST(rows_are_summed_up)
{
    sp_table_row rows[] = { { .name = "base", .judged = true, .baseline = -1 },
                            { .name = "row", .judged = true } };
    sp_table t = { .metric = sp_metric_find("test_top1"),
                   .margin = 1,
                   .confidence = 0.9,
                   .rows = rows,
                   .row_count = 2,
                   .compared = true };
    sp_cell cells[] = {
        { &rows[0], 1, NULL, NULL, SP_CELL_DONE, .value = 90,
          .packet_bytes = 400, .sent = { 400, 400 }, .dense_bytes = 400,
          .params = 100, .seconds = 1 },
        { &rows[0], 2, NULL, NULL, SP_CELL_DONE, .value = 92,
          .packet_bytes = 400, .sent = { 400, 400 }, .dense_bytes = 400,
          .params = 100, .seconds = 3 },
        { &rows[0], 3, NULL, NULL, SP_CELL_FAILED, .value = NAN },
        { &rows[1], 2, NULL, NULL, SP_CELL_DONE, .value = 92.5,
          .packet_bytes = 5, .sent = { 50, 400 }, .dense_bytes = 400,
          .params = 60, .seconds = 2 },
        { &rows[1], 1, NULL, NULL, SP_CELL_DONE, .value = 90.25,
          .packet_bytes = 3, .sent = { 30, 400 }, .dense_bytes = 400,
          .params = 60, .seconds = 4 },
        { &rows[1], 3, NULL, NULL, SP_CELL_DONE, .value = 10, .packet_bytes = 4,
          .sent = { 40, 400 }, .dense_bytes = 400, .params = 60, .seconds = 3 },
    };
    sp_cells all = { cells, 6 };
    sp_row_summary s[2];
    sp_text verdict = { 0 };

    sp_summarize(&t, &all, s);
    ck_assert_int_eq(s[0].cells, 3);
    ck_assert_int_eq(s[0].done, 2);
    ck_assert_int_eq(s[0].failed, 1);
    ck_assert_double_eq(s[0].value.mean, 91);
    ck_assert_double_eq(s[0].seconds, 2);
    ck_assert_int_eq(s[0].verdict, SP_VERDICT_NONE);
    /* Seed 3 has no partner: differences 0.5 and 0.25, mean 0.375, sd
     * 0.25/sqrt(2), half width t(0.95, 1) x 0.125 = 0.789. */
    ck_assert_int_eq(s[1].difference.n, 2);
    ck_assert_double_eq_tol(s[1].difference.mean, 0.375, 1e-12);
    ck_assert_double_eq_tol(s[1].difference.half, 6.313752 * 0.125, 1e-5);
    ck_assert_int_eq(s[1].verdict, SP_VERDICT_GOOD);
    sp_put_verdict(&verdict, &t, &s[1]);
    ck_assert_str_eq(sp_text_string(&verdict),
                     "no worse than 1 (2 of 3 pairs)");
    sp_text_free(&verdict);
    ck_assert_double_eq_tol(s[1].value.mean, 192.75 / 3, 1e-12);
    ck_assert_double_eq(s[1].packet_bytes, 4);
    ck_assert_double_eq(s[1].ratio, 100);
    ck_assert_double_eq(s[1].run_bytes, 40);
    ck_assert_double_eq(s[1].run_ratio, 10);
    ck_assert_double_eq(s[1].params, 60);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");
    SRunner *runner = srunner_create(s);
    int failures;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_row_is_trained_with_every_seed);
    tcase_add_test(t, a_run_made_elsewhere_is_taken_over);
    tcase_add_test(t, a_run_of_other_settings_is_refused);
    tcase_add_test(t, a_run_under_way_is_resumed);
    tcase_add_test(t, a_run_without_a_checkpoint_begins_anew);
    tcase_add_test(t, a_report_trains_nothing);
    tcase_add_test(t, what_is_not_finite_is_told_and_not_tried_again);
    tcase_add_test(t, all_rows_are_checked_before_the_first_run);
    tcase_add_test(t, the_metric_must_suit_the_model);
    tcase_add_test(t, ranks_must_be_those_of_the_table);
    tcase_add_test(t, a_stop_begins_no_run);
    tcase_add_test(t, what_counts_as_the_same);
    tcase_add_test(t, paths_are_the_same_that_lead_to_one_place);
    tcase_add_test(t, what_a_run_has_sent);
    tcase_add_test(t, rows_are_summed_up);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
