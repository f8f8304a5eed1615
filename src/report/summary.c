/* What stands at the head of the page: how the runs ended, what they were. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page.h"
#include "report/scale.h"
#include "report/svg.h"

/* ---- What is known of a run ------------------------------------------------
 */

/* The best value of a metric, and the epoch that it was reached in (NAN: not
 * known). */
static double best_of(const sp_run_record *r, sp_run_metric m, double *epoch)
{
    const sp_xy_list *p = &r->epochs[m];
    double best = sp_run_number(r, "best", sp_run_metric_key(m));

    *epoch = sp_run_number(r, "best", "epoch");
    if (!isnan(*epoch) && !sp_run_is_ahead(r))
        return best;
    best = *epoch = NAN;
    for (size_t i = 0; i < sp_xy_list_count(p); i++) {
        sp_xy at = sp_xy_list_at(p)[i];
        if (isnan(best) ||
            (sp_run_metric_percent(m) ? at.y > best : at.y < best)) {
            best = at.y;
            *epoch = round(at.x / r->batches);
        }
    }
    return best;
}

static sp_unit unit_of(sp_run_metric m)
{
    return sp_run_metric_percent(m) ? SP_PERCENT : SP_PLAIN;
}

/* "test top-1". */
static const char *score_name(sp_run_metric m)
{
    switch (m) {
    case SP_VALID_TOP1:
        return "validation top-1";
    case SP_TEST_TOP1:
        return "test top-1";
    case SP_VALID_PPL:
        return "validation perplexity";
    case SP_TEST_PPL:
        return "test perplexity";
    case SP_VALID_LOSS:
        return "validation loss";
    case SP_TEST_LOSS:
        return "test loss";
    default:
        return "";
    }
}

/* A number of result.json's top, or else of the run's last epoch. */
static double number_of(const sp_run_record *r, sp_run_metric m)
{
    double value = sp_run_number(r, sp_run_metric_key(m), NULL);

    return isnan(value) || sp_run_is_ahead(r) ? sp_run_final(r, m) : value;
}

/* ---- Columns --------------------------------------------------------------
 */

typedef void write_fn(sp_text *out, const sp_run_record *r);

typedef struct column {
    const char *name;
    write_fn *write;
    bool (*is_needed)(const sp_runs *runs); /* NULL: always */
} column;

static void put_number(sp_text *out, double value, sp_unit unit)
{
    char word[SP_WORD];

    sp_text_add(out, "%s", sp_show(word, value, unit));
}

static void put_status(sp_text *out, const sp_run_record *r)
{
    const char *status = sp_run_status(r);
    const char *reason = sp_run_text(r, "reason", NULL);
    bool done = strcmp(status, "done") == 0;

    sp_text_add(out, "<span class=\"%s\">", done ? "done" : "odd");
    sp_escape(out, status);
    sp_text_add(out, "</span>");
    if (reason) {
        sp_text_add(out, "<br><small class=\"why\">");
        sp_escape(out, reason);
        sp_text_add(out, "</small>");
    }
}

static void put_reached(sp_text *out, const sp_run_record *r)
{
    double step = fmax(sp_run_number(r, "step", NULL), r->last_step);
    double epochs =
        fmax(sp_run_number(r, "epochs", NULL), (double)r->epoch_count);

    put_number(out, step, SP_COUNT);
    sp_text_add(out, "<br><small>");
    put_number(out, epochs, SP_COUNT);
    sp_text_add(out, " epoch%s</small>", epochs == 1 ? "" : "s");
}

static void put_final(sp_text *out, const sp_run_record *r)
{
    sp_run_metric m = sp_run_score(r);

    if (m == SP_NO_METRIC) {
        sp_text_add(out, "–");
        return;
    }
    put_number(out, sp_run_final(r, m), unit_of(m));
    sp_text_add(out, "<br><small>%s</small>", score_name(m));
}

static void put_best(sp_text *out, const sp_run_record *r)
{
    sp_run_metric m = sp_run_score(r);
    double epoch, best;

    if (m == SP_NO_METRIC) {
        sp_text_add(out, "–");
        return;
    }
    best = best_of(r, m, &epoch);
    put_number(out, best, unit_of(m));
    if (!isnan(epoch)) {
        sp_text_add(out, "<br><small>epoch ");
        put_number(out, epoch, SP_COUNT);
        sp_text_add(out, "</small>");
    }
}

/* The test score of a run that is judged by a validation part; else its
 * score. */
static sp_run_metric test_of(const sp_run_record *r)
{
    sp_run_metric m = sp_run_score(r);

    return m == SP_VALID_TOP1   ? SP_TEST_TOP1
           : m == SP_VALID_PPL  ? SP_TEST_PPL
           : m == SP_VALID_LOSS ? SP_TEST_LOSS
                                : m;
}

static bool has_test(const sp_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (test_of(&runs->run[i]) != sp_run_score(&runs->run[i]))
            return true;
    return false;
}

static void put_test(sp_text *out, const sp_run_record *r)
{
    sp_run_metric test = test_of(r);

    if (test == SP_NO_METRIC)
        sp_text_add(out, "–");
    else
        put_number(out, sp_run_final(r, test), unit_of(test));
}

static void put_packet(sp_text *out, const sp_run_record *r)
{
    put_number(out, number_of(r, SP_PACKET_BYTES), SP_BYTES);
}

static void put_mpi(sp_text *out, const sp_run_record *r)
{
    put_number(out, number_of(r, SP_MPI_BYTES), SP_BYTES);
}

static void put_ratio(sp_text *out, const sp_run_record *r)
{
    put_number(out, number_of(r, SP_COMPRESSION_RATIO), SP_TIMES_OF);
}

static void put_seconds(sp_text *out, const sp_run_record *r)
{
    double seconds = sp_run_number(r, "seconds", NULL);

    put_number(out, sp_run_is_ahead(r) ? NAN : seconds, SP_SECONDS);
}

static void put_items(sp_text *out, const sp_run_record *r)
{
    const sp_xy_list *p = &r->epochs[SP_ITEMS];
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < sp_xy_list_count(p); i++)
        if (isfinite(sp_xy_list_at(p)[i].y)) {
            sum += sp_xy_list_at(p)[i].y;
            count++;
        }
    put_number(out, count ? sum / (double)count : NAN, SP_PLAIN);
}

static void put_setting(sp_text *out, const sp_run_record *r,
                        const char *section, const char *key,
                        const char *before)
{
    const char *value = sp_run_setting_of(r, section, key);

    if (!value || strcmp(value, "0") == 0)
        return;
    sp_text_add(out, "%s", before);
    sp_escape(out, value);
}

static void put_model(sp_text *out, const sp_run_record *r)
{
    put_setting(out, r, "model", "name", "");
    put_setting(out, r, "model", "depth", " ");
    put_setting(out, r, "model", "hidden", " ");
}

static void put_params(sp_text *out, const sp_run_record *r)
{
    put_number(out, sp_run_number(r, "params", NULL), SP_COUNT);
}

static void put_macs(sp_text *out, const sp_run_record *r)
{
    put_number(out, sp_run_number(r, "macs", NULL), SP_COUNT);
}

static void put_data(sp_text *out, const sp_run_record *r)
{
    put_setting(out, r, "data", "name", "");
    sp_text_add(out, "<br><small>batch ");
    put_setting(out, r, "train", "batch", "");
    sp_text_add(out, "</small>");
}

static void put_optimizer(sp_text *out, const sp_run_record *r)
{
    put_setting(out, r, "optim", "name", "");
    put_setting(out, r, "optim", "lr", ", ");
    sp_text_add(out, "<br><small>");
    put_setting(out, r, "schedule", "name", "");
    sp_text_add(out, "</small>");
}

static void put_method(sp_text *out, const sp_run_record *r)
{
    const char *low = sp_run_setting_of(r, "lowrank", "name");

    put_setting(out, r, "compress", "name", "");
    put_setting(out, r, "compress", "ratio", ", ");
    if (low && strcmp(low, "none") != 0) {
        sp_text_add(out, "<br><small>low rank: ");
        sp_escape(out, low);
        sp_text_add(out, "</small>");
    }
}

static void put_machine(sp_text *out, const sp_run_record *r)
{
    const char *isa = sp_run_text(r, "isa", NULL);

    put_number(out, sp_run_number(r, "ranks", NULL), SP_COUNT);
    sp_text_add(out, " × ");
    put_number(out, sp_run_number(r, "threads", NULL), SP_COUNT);
    sp_text_add(out, "<br><small>");
    sp_escape(out, isa ? isa : "");
    sp_text_add(out, "</small>");
}

static void put_seed(sp_text *out, const sp_run_record *r)
{
    const char *seed = sp_run_setting_of(r, "train", "seed");

    sp_escape(out, seed ? seed : "–");
}

static void put_commit(sp_text *out, const sp_run_record *r)
{
    const char *commit = sp_run_text(r, "commit", NULL);
    const char *version = sp_run_text(r, "versions", "sprat");

    sp_text_add(out, "<code>");
    sp_escape(out, commit ? commit : "–");
    sp_text_add(out, "</code><br><small>");
    sp_escape(out, version ? version : "");
    sp_text_add(out, "</small>");
}

static const column results[] = {
    { "Status", put_status, NULL },     { "Steps", put_reached, NULL },
    { "Final", put_final, NULL },       { "Best", put_best, NULL },
    { "Test", put_test, has_test },     { "Packets a step", put_packet, NULL },
    { "Compression", put_ratio, NULL }, { "MPI a step", put_mpi, NULL },
    { "Time", put_seconds, NULL },      { "Items a second", put_items, NULL },
};

static const column setup[] = {
    { "Model", put_model, NULL },
    { "Parameters", put_params, NULL },
    { "MACs a sample", put_macs, NULL },
    { "Data", put_data, NULL },
    { "Optimizer, rate", put_optimizer, NULL },
    { "Compressor, density", put_method, NULL },
    { "Ranks × threads", put_machine, NULL },
    { "Seed", put_seed, NULL },
    { "Commit, version", put_commit, NULL },
};

static void put_table(sp_text *out, const sp_runs *runs, const char *caption,
                      const column *columns, size_t count)
{
    sp_html_open(out, caption);
    sp_html_head(out, "Run");
    for (size_t c = 0; c < count; c++)
        if (!columns[c].is_needed || columns[c].is_needed(runs))
            sp_html_head(out, columns[c].name);
    sp_html_body(out);
    for (size_t i = 0; i < runs->count; i++) {
        sp_text_add(out, "\n<tr><th scope=\"row\" class=\"run\">");
        sp_svg_put_sign(out, (int)runs->run[i].look);
        sp_escape(out, runs->run[i].name);
        sp_text_add(out, "</th>");
        for (size_t c = 0; c < count; c++) {
            if (columns[c].is_needed && !columns[c].is_needed(runs))
                continue;
            sp_text_add(out, "<td>");
            columns[c].write(out, &runs->run[i]);
            sp_text_add(out, "</td>");
        }
        sp_html_end_row(out);
    }
    sp_html_close(out);
}

/* ---- Warnings -------------------------------------------------------------
 */

static void put_lines(sp_text *out, const sp_run_record *r, const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        sp_text line = { 0 };
        sp_text_put(&line, lines, n);
        sp_text_add(out, "<li><b>");
        sp_escape(out, r->name);
        sp_text_add(out, "</b> ");
        sp_escape(out, sp_text_string(&line));
        sp_text_add(out, "</li>\n");
        out->failed |= line.failed;
        sp_text_free(&line);
        lines += n + (lines[n] == '\n');
    }
}

static void put_warnings(sp_text *out, const sp_runs *runs)
{
    bool any = false;

    for (size_t i = 0; i < runs->count; i++)
        any |= runs->run[i].warnings.size + runs->run[i].notes.size > 0;
    if (!any)
        return;
    sp_text_add(out, "<div class=\"warnings\"><h3>Warnings</h3><ul>\n");
    for (size_t i = 0; i < runs->count; i++) {
        put_lines(out, &runs->run[i], sp_text_string(&runs->run[i].notes));
        put_lines(out, &runs->run[i], sp_text_string(&runs->run[i].warnings));
    }
    sp_text_add(out, "</ul></div>\n");
}

void sp_page_summary(sp_text *out, const sp_runs *runs)
{
    sp_text_add(out, "<section id=\"runs\"><h2>Runs</h2>\n");
    put_table(out, runs, "Results", results, sizeof results / sizeof *results);
    put_warnings(out, runs);
    put_table(out, runs, "Setup", setup, sizeof setup / sizeof *setup);
    sp_text_add(out, "</section>\n");
}
