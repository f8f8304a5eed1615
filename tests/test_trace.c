/* The timeline of a run, and of parts that are put together. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "runs.h"
#include "trace_file.h"

static runs r;

static void set_up(void) { r = runs_new(); }

static void tear_down(void) { runs_free(&r); }

static const char *const traced[] = { "log.trace=true", "log.trace_steps=100",
                                      NULL };

static const char *whole(const char *run)
{
    return runs_path(&r, run, "trace.json");
}

/* How often a file has a text. */
static int count(const char *path, const char *word)
{
    char *text = runs_read(path);
    int n = 0;

    for (char *at = text; (at = strstr(at, word)); at++)
        n++;
    free(text);
    return n;
}

START_TEST(all_steps_of_a_run)
{
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "a", .overrides = traced }), SP_OK);
    ck_assert_int_eq(trace_faults(whole("a"), 1, 1, 18), 0);
    ck_assert_int_eq(count(whole("a"), "\"cat\":\"evaluate\""), 3);
    ck_assert_int_eq(count(whole("a"), "\"cat\":\"checkpoint\""), 3);
    /* fc1, relu, fc2 and the loss forward; the gradients of two layers'
     * weights and biases, and of what the second reads, of relu and loss. */
    ck_assert_int_eq(count(whole("a"), "\"cat\":\"operator\""), 18 * (4 + 7));
    /* Some batches were ready when the first step began: those of one worker
     * and two more. */
    ck_assert_int_ge(count(whole("a"), "\"cat\":\"worker\""), 18 - 3);
    ck_assert_int_eq(count(runs_path(&r, "a", "log.txt"), "18 steps, 1 to 18"),
                     1);
}
END_TEST

START_TEST(no_more_steps_than_asked_for)
{
    static const char *const few[] = { "log.trace=true", "log.trace_steps=4",
                                       NULL };

    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "f", .overrides = few }),
                     SP_OK);
    ck_assert_int_eq(trace_faults(whole("f"), 1, 1, 4), 0);
    ck_assert_int_eq(count(whole("f"), "\"cat\":\"step\""), 4);
    ck_assert_int_eq(count(whole("f"), "\"cat\":\"operator\""), 4 * (4 + 7));
    ck_assert_int_eq(count(whole("f"), "\"cat\":\"evaluate\""), 3);
}
END_TEST

/* What encodes and decodes is within the pass, or the exchange, that it is a
 * part of; which trace_faults() checks of all spans. fp16 has two rounds. */
START_TEST(packets_are_spans_with_bytes)
{
    static const char *const packed[] = { "log.trace=true",
                                          "compress.name=fp16",
                                          "train.max_steps=5", NULL };

    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "p", .overrides = packed }), SP_OK);
    ck_assert_int_eq(trace_faults(whole("p"), 1, 1, 5), 0);
    ck_assert_int_eq(count(whole("p"), "\"name\":\"encode\""), 2 * 5);
    ck_assert_int_eq(count(whole("p"), "\"cat\":\"exchange\""), 5);
    ck_assert_int_ge(count(whole("p"), "\"of\":\"fc"), 5);
    ck_assert_int_ge(count(whole("p"), "\"bytes\":"), 5);
}
END_TEST

/* Killed behind line N of the terminal, 7 of which are an epoch's. What there
 * is can be read but for the bracket, and what follows has no step twice. */
START_TEST(killed_and_resumed_no_step_is_double)
{
    static const int lines[] = { 3, 7, 8, 12, 16 };
    runs_job j = {
        .run = "k", .overrides = traced, .end = RUNS_DIE, .lines = lines[_i]
    };
    const char *part = runs_path(&r, "k", "trace/rank-0000.json");
    sp_json_doc *doc;

    ck_assert(runs_train_killed(&r, j));
    char *text = runs_read(part);
    char *closed = sp_path("", "%s]", text);
    ck_assert_int_eq(sp_json_parse(&doc, "part", closed, strlen(closed)),
                     SP_OK);
    sp_json_doc_free(doc);
    free(closed);
    free(text);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "k" }), SP_OK);
    ck_assert_int_eq(trace_faults(whole("k"), 1, 1, 18), 0);
    ck_assert_int_eq(count(whole("k"), "\"cat\":\"evaluate\""), 3);
}
END_TEST

START_TEST(stopped_and_resumed_is_one_timeline)
{
    runs_job stop = {
        .run = "s", .overrides = traced, .end = RUNS_STOP, .lines = 4
    };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    ck_assert(runs_error("sprat resume"));
    ck_assert_int_eq(trace_faults(whole("s"), 1, 1, 4), 0);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "s" }), SP_OK);
    ck_assert_int_eq(trace_faults(whole("s"), 1, 1, 18), 0);
    ck_assert_int_eq(count(whole("s"), "process_name"), 1);
}
END_TEST

/* The event of a name in the whole; its times in *begin, *lasts. */
static void find(const char *run, const char *name, double *begin,
                 double *lasts)
{
    char *text = runs_read(whole(run));
    sp_json_doc *doc;
    const char *is;

    ck_assert_int_eq(sp_json_parse(&doc, "trace", text, strlen(text)), SP_OK);
    *begin = NAN;
    for (const sp_json_value *e = sp_json_root(doc)->first; e; e = e->next)
        if (sp_json_get_text(e, "name", &is) == SP_OK && !strcmp(is, name)) {
            ck_assert_int_eq(sp_json_get_number(e, "ts", begin), SP_OK);
            ck_assert_int_eq(sp_json_get_number(e, "dur", lasts), SP_OK);
        }
    sp_json_doc_free(doc);
    free(text);
}

/* A part by hand. At 1000 rank 0 is 100 ahead, at 3000 it is 300: at 2000 it is
 * 200, so what goes on from there until 2500 begins at 2200 and ends at 2750.
 * Behind the mark at 9000, which has none at its end, it is always -500. A mark
 * that does not say of when, or how far, is none. */
START_TEST(clocks_are_put_together)
{
    static const char part[] =
        "[\n"
        "{\"name\":\"clock\",\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":500,"
        "\"args\":{\"end\":false,\"offset\":null}}\n,\n"
        "{\"name\":\"clock\",\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":1000,"
        "\"args\":{\"end\":false,\"offset\":100}}\n,\n"
        "{\"name\":\"one\",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":2000,"
        "\"dur\":500,\"args\":{\"step\":1}}\n,\n"
        "{\"name\":\"clock\",\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":3000,"
        "\"args\":{\"end\":true,\"offset\":300}}\n,\n"
        "{\"name\":\"clock\",\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":9000,"
        "\"args\":{\"end\":false,\"offset\":-500}}\n,\n"
        "{\"name\":\"two\",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":9700,"
        "\"dur\":10,\"args\":{\"step\":3}}\n,\n"
        "{\"name\":\"late\",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":9800,"
        "\"dur\":10,\"args\":{\"step\":5}}\n,\n"
        "{\"name\":\"torn";
    runs_job stop = {
        .run = "c", .overrides = traced, .end = RUNS_STOP, .lines = 4
    };
    double begin, lasts;

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    sp_scratch_write(r.folder, "c/trace/rank-0001.json", part, sizeof part - 1);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "c" }), SP_OK);
    find("c", "one", &begin, &lasts);
    ck_assert_double_eq(begin, 2200);
    ck_assert_double_eq(lasts, 550);
    find("c", "two", &begin, &lasts);
    ck_assert_double_eq(begin, 9200);
    ck_assert_double_eq(lasts, 10);
    find("c", "late", &begin, &lasts); /* behind the checkpoint, step 4 */
    ck_assert(isnan(begin));
}
END_TEST

/* Neither junk nor another's file is an event. */
START_TEST(damaged_parts_are_no_error)
{
    static const char junk[] = "[\n{}\n,\n[1,2]\n,\n\"x\"\n,\n{\"ph\":\"X\"}\n"
                               "{\"name\":\"clock\",\"args\":3}\n\n{\n";
    runs_job stop = {
        .run = "d", .overrides = traced, .end = RUNS_STOP, .lines = 4
    };

    ck_assert_int_eq(runs_train(&r, stop), SP_ESTOPPED);
    sp_scratch_write(r.folder, "d/trace/rank-0000.json", junk, sizeof junk - 1);
    sp_scratch_write(r.folder, "d/trace/rank-x.json", junk, sizeof junk - 1);
    ck_assert_int_eq(runs_resume(&r, (runs_job){ .run = "d" }), SP_OK);
    ck_assert_int_eq(trace_faults(whole("d"), 1, 5, 18), 0);
}
END_TEST

START_TEST(nothing_of_it_without_being_asked)
{
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "n" }), SP_OK);
    ck_assert(!sp_is_file(whole("n")));
    ck_assert(!sp_is_dir(runs_path(&r, "n", "trace")));
}
END_TEST

/* Looking changes nothing. */
START_TEST(the_weights_are_the_same)
{
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = "x" }), SP_OK);
    ck_assert_int_eq(
        runs_train(&r, (runs_job){ .run = "y", .overrides = traced }), SP_OK);
    ck_assert(runs_same(&r, "x", "y", "model.safetensors"));
    ck_assert(runs_same(&r, "x", "y", "optim.safetensors"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *tc = tcase_create("trace");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, all_steps_of_a_run);
    tcase_add_test(tc, no_more_steps_than_asked_for);
    tcase_add_test(tc, packets_are_spans_with_bytes);
    tcase_add_loop_test(tc, killed_and_resumed_no_step_is_double, 0, 5);
    tcase_add_test(tc, stopped_and_resumed_is_one_timeline);
    tcase_add_test(tc, clocks_are_put_together);
    tcase_add_test(tc, damaged_parts_are_no_error);
    tcase_add_test(tc, nothing_of_it_without_being_asked);
    tcase_add_test(tc, the_weights_are_the_same);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
