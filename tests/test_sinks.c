/* The other forms of metrics.jsonl. */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "event_reader.h"
#include "runs.h"
#include "train/metrics.h"
#include "train/tensors.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

/* The only event file of a run. */
static const char *event_file(const char *run)
{
    DIR *dir = opendir(runs_path(&r, run, "tensorboard"));
    static char name[300];
    int files = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        ck_assert_ptr_nonnull(strstr(d->d_name, "tfevents"));
        snprintf(name, sizeof name, "tensorboard/%s", d->d_name);
        files++;
    }
    closedir(dir);
    ck_assert_int_eq(files, 1);
    return runs_path(&r, run, name);
}

/* ---- Lines as they are promised ------------------------------------------ */

static const sp_log_cfg both = { .every = 1, .csv = true, .tensorboard = true };

/* The folder "m" of a run at step 0, opened. */
static sp_metrics open_metrics(void)
{
    sp_train_state at = sp_train_state_start();
    sp_metrics m;

    sp_scratch_write(r.folder, "m/x", "", 0);
    ck_assert_int_eq(
        sp_metrics_open(&m, sp_scratch_path(r.folder, "m"), &at, &both), SP_OK);
    return m;
}

static void check_text(const char *file, const char *want)
{
    char *text = runs_read(runs_path(&r, "m", file));
    char *at = strstr(text, "\n");

    ck_assert_ptr_nonnull(at); /* the head */
    ck_assert_msg(strncmp(at + 1, want, strlen(want)) == 0, "%s: %s", file,
                  at + 1);
    free(text);
}

START_TEST(a_step_in_all_forms)
{
    sp_step_line line = { .epoch = 1,
                          .step = 7,
                          .lr = 0.5,
                          .train_loss = 1.25,
                          .train_top1 = NAN,
                          .grad_norm = INFINITY,
                          .items_per_s = 100,
                          .packet_bytes = 12,
                          .mpi_bytes = 24,
                          .net_bytes = 0 };
    sp_metrics m = open_metrics();
    double now = (double)time(NULL);
    events *e;

    ck_assert_int_eq(sp_metrics_step(&m, &line), SP_OK);
    sp_metrics_close(&m);
    check_text("steps.csv", "1,7,0.5,1.25,,inf,100,12,24,0,");
    check_text("metrics.csv", "");
    e = events_read(event_file("m"));
    ck_assert_int_eq(e->records, 3); /* version, start, step */
    ck_assert_int_eq(e->count, 7);
    ck_assert_float_eq(events_find(e, 7, "lr")->value, 0.5f);
    ck_assert_float_eq(events_find(e, 7, "train/loss")->value, 1.25f);
    ck_assert(isinf(events_find(e, 7, "train/grad_norm")->value));
    ck_assert_float_eq(events_find(e, 7, "bytes/packet")->value, 12);
    ck_assert_float_eq(events_find(e, 7, "bytes/mpi")->value, 24);
    ck_assert_float_eq(events_find(e, 7, "bytes/net")->value, 0);
    ck_assert_double_eq_tol(events_find(e, 7, "lr")->time, now, 5);
    free(e);
}
END_TEST

/* Every number of an epoch's line, whichever: each has a column and a tag. */
START_TEST(no_number_of_an_epoch_is_lost)
{
    sp_epoch_line line = sp_epoch_line_none();
    double *numbers = (double *)(void *)&line;
    size_t n = sizeof line / sizeof *numbers;
    sp_metrics m = open_metrics();
    char want[512] = "";
    events *e;

    for (size_t i = 0; i < n; i++) {
        numbers[i] = 1000 + (double)i;
        snprintf(want + strlen(want), sizeof want - strlen(want), "%zu,",
                 1000 + i);
    }
    ck_assert_int_eq(sp_metrics_epoch(&m, &line), SP_OK);
    sp_metrics_close(&m);
    char *text = runs_read(runs_path(&r, "m", "metrics.csv"));
    char *row = strstr(text, "\r\n") + 2;
    for (size_t i = 0; i < n; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "%zu,", 1000 + i);
        ck_assert_msg(strstr(row, cell), "%s", row);
    }
    free(text);
    e = events_read(event_file("m"));
    ck_assert_int_eq((size_t)e->count, n - 2); /* epoch and step */
    for (int i = 0; i < e->count; i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(e->all[i].tag, e->all[k].tag);
    ck_assert_float_eq(events_find(e, 1001, "valid/loss")->value, 1005);
    free(e);
}
END_TEST

/* RFC 4180: CRLF ends lines, all have as many cells as the head. */
static void check_table(const char *run, const char *file, int rows)
{
    char *text = runs_read(runs_path(&r, run, file)), *end;
    int cells = 0, lines = 0;

    for (char *line = text; *line; line = end + 2, lines++) {
        int n = 1;

        end = strstr(line, "\r\n");
        ck_assert_ptr_nonnull(end);
        for (char *c = line; c < end; c++)
            n += *c == ',';
        ck_assert_int_eq(n, lines > 0 ? cells : n);
        cells = n;
    }
    ck_assert_int_eq(lines, rows + 1);
    free(text);
}

static const char *const asked[] = { "log.csv=true", "log.tensorboard=true",
                                     NULL };

/* Lines of a kind in a file. */
static int lines_of(const char *run, const char *file, const char *kind)
{
    char *text = runs_read(runs_path(&r, run, file)), word[32];
    int n = 0;

    snprintf(word, sizeof word, "\"kind\":\"%s\"", kind);
    for (char *at = text; (at = strstr(at, word)); at++)
        n++;
    free(text);
    return n;
}

static void check_whole(const char *run)
{
    events *e = events_read(event_file(run));

    events_check_single(e);
    for (int step = 1; step <= 18; step++)
        ck_assert_ptr_nonnull(events_find(e, step, "train/loss"));
    for (int step = 6; step <= 18; step += 6) {
        ck_assert_ptr_nonnull(events_find(e, step, "test/top1"));
        ck_assert_ptr_nonnull(events_find(e, step, "time/other_s"));
    }
    free(e);
    check_table(run, "steps.csv", 18);
    check_table(run, "metrics.csv", 3);
    check_table(run, "times.csv", 3);
    ck_assert_int_eq(lines_of(run, "metrics.jsonl", "time"), 3);
    ck_assert_int_eq(lines_of(run, "tensors.jsonl", "tensors"), 3);
    ck_assert_int_eq(lines_of(run, "tensors.jsonl", "names"), 1);
}

/* Readers would take for events what a writer that was killed left of a file
 * with another number. */
START_TEST(what_killed_writers_left_goes)
{
    static const char left[] = "m/tensorboard/events.out.tfevents.0000000005."
                               "sprat.tmp";
    sp_metrics m;

    sp_scratch_write(r.folder, left, "torn", 4);
    m = open_metrics();
    sp_metrics_close(&m);
    ck_assert(!sp_is_file(sp_scratch_path(r.folder, left)));
    free(events_read(event_file("m")));
}
END_TEST

/* Killed behind a line of the terminal, 7 of which are an epoch's, and gone on
 * from: all files hold each step once. */
START_TEST(killed_and_resumed_nothing_is_double)
{
    static const int lines[] = { 1, 4, 6, 7, 8, 13, 20 };
    runs_job j = {
        .run = "k", .overrides = asked, .end = RUNS_DIE, .lines = lines[_i]
    };

    ck_assert(runs_train_killed(&r, j));
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "k" }), SP_OK);
    check_whole("k");
}
END_TEST

/* Asked for in the middle, they have what came before, too. */
START_TEST(asked_for_late_they_are_whole)
{
    runs_job stop = { .run = "l", .end = RUNS_STOP, .lines = 8 };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert(!sp_is_file(runs_path(&r, "l", "steps.csv")));
    ck_assert_int_eq(
        runs_resume(&r, (runs_job){ .run = "l", .overrides = asked }), SP_OK);
    check_whole("l");
}
END_TEST

/* ---- Parameters ---------------------------------------------------------- */

/* Values of a list of the last line. */
static double item(const char *run, const char *key, int i)
{
    char *text = runs_read(runs_path(&r, run, "tensors.jsonl"));
    char *last = strstr(text, "\"epoch\":3"), word[32];
    double x;

    ck_assert_ptr_nonnull(last);
    snprintf(word, sizeof word, "\"%s\":[", key);
    last = strstr(last, word);
    ck_assert_ptr_nonnull(last);
    for (last += strlen(word); i > 0; i--)
        last = strchr(last, ',') + 1;
    x = strncmp(last, "null", 4) == 0 ? NAN : atof(last);
    free(text);
    return x;
}

/* With a rate of 0 the weights stay: biases 0, weights not. 8 x 16 + 8 and
 * 4 x 8 + 4 numbers travel dense in 4 bytes each where fp16 takes 2. */
START_TEST(numbers_of_parameters)
{
    static const char *const still[] = { "optim.lr=0", "compress.name=fp16",
                                         NULL };
    static const double bytes[] = { 16 * 8, 8, 8 * 4, 4 };
    char *text;

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "t", .overrides = still }), SP_OK);
    text = runs_read(runs_path(&r, "t", "tensors.jsonl"));
    ck_assert_ptr_nonnull(
        strstr(text, "\"names\":[\"fc1.weight\",\"fc1.bias\",\"fc2.weight\","
                     "\"fc2.bias\"],\"elements\":[128,8,32,4]}"));
    free(text);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_ge(item("t", "packet_bytes", i), 2 * bytes[i]);
        ck_assert_double_le(item("t", "packet_bytes", i), 4 * bytes[i]);
        ck_assert_double_gt(item("t", "grad_norm", i), 0);
        ck_assert_double_ge(item("t", "weight_norm", i), 0);
        ck_assert_double_ge(item("t", "zero_share", i), 0);
        ck_assert_double_le(item("t", "zero_share", i), 1);
    }
    ck_assert_double_gt(item("t", "weight_norm", 0), 0);
    ck_assert_double_eq(item("t", "zero_share", 0), 0);
}
END_TEST

/* Stopped between the last step, whose line is the 20th, and the evaluation:
 * what goes on has seen weights, but no gradient. */
START_TEST(no_gradient_is_not_a_gradient_of_0)
{
    runs_job stop = { .run = "g", .end = RUNS_STOP, .lines = 20 };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "g" }), SP_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_nan(item("g", "grad_norm", i));
        ck_assert_double_nan(item("g", "packet_bytes", i));
        ck_assert_double_gt(item("g", "weight_norm", i), 0);
    }
}
END_TEST

/* Names that nothing followed before the kill are not there twice. */
START_TEST(names_are_told_once_for_a_network)
{
    static const char two[] =
        "{\"kind\":\"names\",\"names\":[\"a\"],\"elements\":[1]}\n"
        "{\"kind\":\"tensors\",\"epoch\":1,\"step\":6}\n"
        "{\"kind\":\"names\",\"names\":[\"b\"],\"elements\":[1]}\n"
        "{\"kind\":\"tensors\",\"epoch\":2,\"step\":12}\n";
    sp_train_state at = sp_train_state_start();
    sp_tensors t;
    char *text;

    sp_scratch_write(r.folder, "m/tensors.jsonl", two, sizeof two - 1);
    at.step = 8;
    at.epoch = 1;
    ck_assert_int_eq(sp_tensors_open(&t, sp_scratch_path(r.folder, "m"), &at),
                     SP_OK);
    ck_assert_str_eq(t.names,
                     "{\"kind\":\"names\",\"names\":[\"a\"],\"elements\":[1]}");
    sp_tensors_close(&t);
    text = runs_read(runs_path(&r, "m", "tensors.jsonl"));
    ck_assert_uint_eq(strlen(text), (size_t)(strstr(two, "{\"kind\":\"names\","
                                                         "\"names\":[\"b\"]") -
                                             two));
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sinks");
    TCase *tc = tcase_create("sinks");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_step_in_all_forms);
    tcase_add_test(tc, no_number_of_an_epoch_is_lost);
    tcase_add_test(tc, what_killed_writers_left_goes);
    tcase_add_loop_test(tc, killed_and_resumed_nothing_is_double, 0, 7);
    tcase_add_test(tc, asked_for_late_they_are_whole);
    tcase_add_test(tc, numbers_of_parameters);
    tcase_add_test(tc, no_gradient_is_not_a_gradient_of_0);
    tcase_add_test(tc, names_are_told_once_for_a_network);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
