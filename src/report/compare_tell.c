/* A comparison of two runs as text and as JSON. */
#include <math.h>
#include <string.h>

#include "report/compare.h"
#include "report/scale.h"

/* ---- Text -----------------------------------------------------------------
 */

/* A number in the digits that tell it from others, "-" for none. */
static const char *shown(char out[SP_NUMBER_ROOM], double x)
{
    if (isfinite(x))
        snprintf(out, SP_NUMBER_ROOM, "%.7g", x);
    else
        snprintf(out, SP_NUMBER_ROOM, "%s", isnan(x) ? "-" : "infinite");
    return out;
}

static void tell_number(const sp_number_row *row, FILE *out)
{
    char a[SP_NUMBER_ROOM], b[SP_NUMBER_ROOM], factor[SP_NUMBER_ROOM];
    double ratio = row->value[1] / row->value[0];

    if (isnan(row->value[0]) && isnan(row->value[1]))
        return;
    fprintf(out, "  %-24s %14s %14s", row->name, shown(a, row->value[0]),
            shown(b, row->value[1]));
    if (isfinite(ratio) && row->value[0] != row->value[1]) {
        snprintf(factor, sizeof factor, "%.4g", ratio);
        fprintf(out, "   x %s", factor);
    }
    fputc('\n', out);
}

static void tell_words(const sp_text_row *row, FILE *out)
{
    char name[80];

    snprintf(name, sizeof name, "%s%s%s", row->section,
             *row->section ? "." : "", row->key);
    fprintf(out, "  %-28s %s | %s\n", name, row->value[0] ? row->value[0] : "-",
            row->value[1] ? row->value[1] : "-");
}

static bool words_differ(const sp_text_row *row)
{
    const char *a = row->value[0], *b = row->value[1];

    return a && b ? strcmp(a, b) != 0 : a != b;
}

static void tell_settings(const sp_run_comparison *c, FILE *out)
{
    const sp_text_row *rows = (const void *)c->settings.bytes;
    size_t count = c->settings.size / sizeof *rows;

    if (count == 0)
        fprintf(out, "settings: all the same\n");
    else
        fprintf(out, "settings: %zu differ (a | b)\n", count);
    for (size_t i = 0; i < count; i++)
        tell_words(&rows[i], out);
}

static void tell_hashes(const sp_run_comparison *c, FILE *out)
{
    if (c->hashes == 0)
        fprintf(out, "parameters: no hash of the same step in both\n");
    else if (isnan(c->differ_at))
        fprintf(out, "parameters: same bits through step %.0f (%zu hashes)\n",
                c->same_through, c->hashes);
    else if (isnan(c->same_through))
        fprintf(out, "parameters: differ from the first hash on, step %.0f\n",
                c->differ_at);
    else
        fprintf(out,
                "parameters: same bits through step %.0f, differ at step "
                "%.0f\n",
                c->same_through, c->differ_at);
}

static void tell_scores(const sp_run_comparison *c, FILE *out)
{
    const sp_score_row *rows = (const void *)c->scores.bytes;
    size_t count = c->scores.size / sizeof *rows;
    char a[SP_NUMBER_ROOM], b[SP_NUMBER_ROOM], gap[SP_NUMBER_ROOM];

    if (count > 0)
        fprintf(out, "scores: %18s %14s %14s   largest gap of an epoch\n", "",
                "a", "b");
    for (size_t i = 0; i < count; i++) {
        const char *name = sp_run_metric_key(rows[i].metric);
        fprintf(out, "  final %-18s %14s %14s", name,
                shown(a, rows[i].final[0]), shown(b, rows[i].final[1]));
        if (!isnan(rows[i].gap_epoch))
            fprintf(out, "   %s at %.0f", shown(gap, rows[i].gap),
                    rows[i].gap_epoch);
        fprintf(out, "\n  best  %-18s %14s %14s\n", name,
                shown(a, rows[i].best[0]), shown(b, rows[i].best[1]));
    }
}

static void tell_makers(const sp_run_comparison *c, FILE *out)
{
    int count = 0;

    for (int i = 0; i < SP_MADE_ROWS; i++)
        count += words_differ(&c->made[i]);
    if (count == 0)
        fprintf(out, "versions and machine: all the same\n");
    else
        fprintf(out, "versions and machine: %d differ (a | b)\n", count);
    for (int i = 0; i < SP_MADE_ROWS; i++)
        if (words_differ(&c->made[i]))
            tell_words(&c->made[i], out);
}

void sp_tell_text(const sp_run_comparison *c, FILE *out)
{
    for (int k = 0; k < 2; k++) {
        fprintf(out, "%c: %s, %s\n", 'a' + k, c->run[k].path,
                sp_run_status(&c->run[k]));
        fputs(sp_text_string(&c->run[k].notes), out);
    }
    tell_settings(c, out);
    tell_makers(c, out);
    tell_hashes(c, out);
    tell_scores(c, out);
    fprintf(out, "bytes of a step:\n");
    for (int i = 0; i < SP_BYTE_ROWS; i++)
        tell_number(&c->bytes[i], out);
    fprintf(out, "steps and speed:\n");
    tell_number(&c->steps, out);
    for (int i = 0; i < SP_SPEED_ROWS; i++)
        tell_number(&c->speed[i], out);
    fprintf(out, "results: %s\n", c->differ ? "they differ" : "the same");
}

/* ---- JSON -----------------------------------------------------------------
 */

static void put_words(sp_json *j, const sp_text_row *row)
{
    char name[80];

    snprintf(name, sizeof name, "%s%s%s", row->section,
             *row->section ? "." : "", row->key);
    sp_json_open(j, NULL);
    sp_json_text(j, "key", name);
    sp_json_text(j, "a", row->value[0]);
    sp_json_text(j, "b", row->value[1]);
    sp_json_close(j);
}

static void put_number(sp_json *j, const sp_number_row *row)
{
    sp_json_open(j, row->name);
    sp_json_number(j, "a", row->value[0]);
    sp_json_number(j, "b", row->value[1]);
    sp_json_close(j);
}

static void put_score(sp_json *j, const sp_score_row *row)
{
    sp_json_open(j, sp_run_metric_key(row->metric));
    sp_json_number(j, "final_a", row->final[0]);
    sp_json_number(j, "final_b", row->final[1]);
    sp_json_number(j, "best_a", row->best[0]);
    sp_json_number(j, "best_b", row->best[1]);
    sp_json_number(j, "largest_gap", row->gap);
    sp_json_number(j, "gap_epoch", row->gap_epoch);
    sp_json_close(j);
}

static void put_run(sp_json *j, const char *key, const sp_run_record *r)
{
    sp_json_open(j, key);
    sp_json_text(j, "run", r->path);
    sp_json_text(j, "status", sp_run_text(r, "status", NULL));
    sp_json_close(j);
}

static void put_lists(sp_json *j, const sp_run_comparison *c)
{
    const sp_text_row *settings = (const void *)c->settings.bytes;
    const sp_score_row *scores = (const void *)c->scores.bytes;

    sp_json_list(j, "settings");
    for (size_t i = 0; i < c->settings.size / sizeof *settings; i++)
        put_words(j, &settings[i]);
    sp_json_close(j);
    sp_json_list(j, "made_by");
    for (int i = 0; i < SP_MADE_ROWS; i++)
        if (words_differ(&c->made[i]))
            put_words(j, &c->made[i]);
    sp_json_close(j);
    sp_json_open(j, "scores");
    for (size_t i = 0; i < c->scores.size / sizeof *scores; i++)
        put_score(j, &scores[i]);
    sp_json_close(j);
}

sp_err sp_tell_json(const sp_run_comparison *c, FILE *out)
{
    sp_json j = { 0 };

    sp_json_open(&j, NULL);
    put_run(&j, "a", &c->run[0]);
    put_run(&j, "b", &c->run[1]);
    sp_json_bool(&j, "differ", c->differ);
    sp_json_open(&j, "hashes");
    sp_json_int(&j, "compared", (int64_t)c->hashes);
    sp_json_number(&j, "same_through", c->same_through);
    sp_json_number(&j, "differ_at", c->differ_at);
    sp_json_close(&j);
    put_lists(&j, c);
    put_number(&j, &c->steps);
    for (int i = 0; i < SP_BYTE_ROWS; i++)
        put_number(&j, &c->bytes[i]);
    for (int i = 0; i < SP_SPEED_ROWS; i++)
        put_number(&j, &c->speed[i]);
    sp_json_close(&j);
    return sp_tell_finish(&j, out);
}
