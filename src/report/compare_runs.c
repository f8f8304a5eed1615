/* Two run folders, read and compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "report/compare.h"

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* ---- Settings -------------------------------------------------------------
 */

static void add_setting(sp_run_comparison *c, const sp_run_setting *s)
{
    sp_text_row row = { s->section, s->key, { NULL, NULL } };

    for (int i = 0; i < 2; i++)
        row.value[i] = sp_run_setting_of(&c->run[i], s->section, s->key);
    if (!row.value[0] || !row.value[1] ||
        strcmp(row.value[0], row.value[1]) != 0)
        sp_text_put(&c->settings, &row, sizeof row);
}

static void compare_settings(sp_run_comparison *c)
{
    const sp_run_setting *s;

    for (size_t i = 0; (s = sp_run_setting_at(&c->run[0], i)); i++)
        add_setting(c, s);
    for (size_t i = 0; (s = sp_run_setting_at(&c->run[1], i)); i++)
        if (!sp_run_setting_of(&c->run[0], s->section, s->key))
            add_setting(c, s);
}

/* ---- Scores ---------------------------------------------------------------
 */

static const sp_run_metric scored[] = {
    SP_TRAIN_LOSS, SP_VALID_LOSS, SP_TEST_LOSS, SP_TRAIN_TOP1, SP_VALID_TOP1,
    SP_TEST_TOP1,  SP_TRAIN_PPL,  SP_VALID_PPL, SP_TEST_PPL,
};

static double epoch_of(const sp_run_record *r, double step)
{
    return r->batches > 0 ? round(step / r->batches) : step;
}

/* The largest difference of a metric after one epoch. Epochs rise in both. */
static void find_gap(const sp_run_comparison *c, sp_score_row *row)
{
    const sp_xy_list *p = &c->run[0].epochs[row->metric];
    const sp_xy_list *q = &c->run[1].epochs[row->metric];
    size_t k = 0;

    for (size_t i = 0; i < sp_xy_list_count(p); i++) {
        sp_xy a = sp_xy_list_at(p)[i], b;
        double epoch = epoch_of(&c->run[0], a.x), gap;
        while (k < sp_xy_list_count(q) &&
               epoch_of(&c->run[1], sp_xy_list_at(q)[k].x) < epoch)
            k++;
        if (k == sp_xy_list_count(q))
            return;
        b = sp_xy_list_at(q)[k];
        if (epoch_of(&c->run[1], b.x) != epoch)
            continue;
        gap = same(a.y, b.y) ? 0 : fabs(a.y - b.y);
        if (isnan(row->gap_epoch) || gap > row->gap || isnan(gap)) {
            row->gap = gap;
            row->gap_epoch = epoch;
        }
        if (isnan(gap)) /* one of them is not finite: no gap is larger */
            return;
    }
}

static void compare_scores(sp_run_comparison *c)
{
    for (size_t i = 0; i < sizeof scored / sizeof *scored; i++) {
        sp_score_row row = { .metric = scored[i],
                             .gap = NAN,
                             .gap_epoch = NAN };
        bool known = false;
        for (int k = 0; k < 2; k++) {
            row.final[k] = sp_run_final(&c->run[k], scored[i]);
            row.best[k] =
                sp_run_number(&c->run[k], "best", sp_run_metric_key(scored[i]));
            known |= !isnan(row.final[k]) || !isnan(row.best[k]);
        }
        find_gap(c, &row);
        if (!known && isnan(row.gap_epoch))
            continue;
        sp_text_put(&c->scores, &row, sizeof row);
        if (!same(row.final[0], row.final[1]) ||
            !same(row.best[0], row.best[1]) ||
            (!isnan(row.gap_epoch) && row.gap != 0))
            c->differ = true;
    }
}

/* ---- Numbers --------------------------------------------------------------
 */

static sp_number_row numbers(const sp_run_comparison *c, const char *key)
{
    return (sp_number_row){ key,
                            { sp_run_number(&c->run[0], key, NULL),
                              sp_run_number(&c->run[1], key, NULL) } };
}

/* The mean over epochs. */
static double items_of(const sp_run_record *r)
{
    const sp_xy_list *p = &r->epochs[SP_ITEMS];
    double sum = 0;

    for (size_t i = 0; i < sp_xy_list_count(p); i++)
        sum += sp_xy_list_at(p)[i].y;
    return sp_xy_list_count(p) > 0 ? sum / (double)sp_xy_list_count(p) : NAN;
}

static void compare_numbers(sp_run_comparison *c)
{
    static const char *const bytes[SP_BYTE_ROWS] = {
        "dense_bytes", "packet_bytes", "mpi_bytes", "compression_ratio"
    };

    c->steps.name = "step";
    for (int k = 0; k < 2; k++) {
        c->steps.value[k] = sp_run_number(&c->run[k], "step", NULL);
        if (isnan(c->steps.value[k]))
            c->steps.value[k] = c->run[k].last_step;
    }
    c->differ |= c->steps.value[0] != c->steps.value[1];
    for (int i = 0; i < SP_BYTE_ROWS; i++) {
        c->bytes[i] = numbers(c, bytes[i]);
        c->differ |= !same(c->bytes[i].value[0], c->bytes[i].value[1]);
    }
    c->speed[0] = numbers(c, "seconds");
    c->speed[1] =
        (sp_number_row){ "items_per_s",
                         { items_of(&c->run[0]), items_of(&c->run[1]) } };
}

static void compare_makers(sp_run_comparison *c)
{
    static const char *const keys[SP_MADE_ROWS][2] = {
        { "commit", NULL },     { "versions", "sprat" },
        { "versions", "blas" }, { "versions", "compiler" },
        { "isa", NULL },        { "threads", NULL },
        { "ranks", NULL },
    };

    for (int i = 0; i < SP_MADE_ROWS; i++) {
        const char *second = keys[i][1];
        c->made[i] = (sp_text_row){ second ? keys[i][0] : "",
                                    second ? second : keys[i][0],
                                    { NULL, NULL } };
        for (int k = 0; k < 2; k++) {
            double n = sp_run_number(&c->run[k], keys[i][0], second);
            c->made[i].value[k] = sp_run_text(&c->run[k], keys[i][0], second);
            if (isnan(n))
                continue;
            snprintf(c->words[i][k], sizeof c->words[i][k], "%.0f", n);
            c->made[i].value[k] = c->words[i][k];
        }
    }
}

/* ---- Hashes ---------------------------------------------------------------
 */

typedef struct hash_line {
    double step;
    char hex[SP_HASH_HEX];
} hash_line;

static sp_err take_hash(void *list, const sp_line *line)
{
    hash_line h = { 0 };
    const char *hex;

    SP_TRY(sp_line_number(line, "step", &h.step));
    SP_TRY(sp_line_text(line, "hash", &hex));
    if (isnan(h.step) || !hex || strlen(hex) != SP_HASH_HEX - 1)
        return sp_line_fail(line, "there is no step with a hash", NULL);
    memcpy(h.hex, hex, SP_HASH_HEX);
    sp_text_put(list, &h, sizeof h);
    return sp_text_check(list);
}

/* Steps rise in both lists. */
static void match_hashes(sp_run_comparison *c, const sp_text lists[2])
{
    const hash_line *a = (const void *)lists[0].bytes;
    const hash_line *b = (const void *)lists[1].bytes;
    size_t n = lists[0].size / sizeof *a, m = lists[1].size / sizeof *b;

    for (size_t i = 0, k = 0; i < n && k < m;) {
        if (a[i].step != b[k].step) {
            a[i].step < b[k].step ? i++ : k++;
            continue;
        }
        c->hashes++;
        if (strcmp(a[i].hex, b[k].hex) != 0) {
            c->differ_at = a[i].step;
            c->differ = true;
            return;
        }
        c->same_through = a[i].step;
        i++;
        k++;
    }
}

static sp_err compare_hashes(sp_run_comparison *c)
{
    sp_text lists[2] = { { 0 }, { 0 } };
    sp_err e = SP_OK;

    c->same_through = c->differ_at = NAN;
    for (int k = 0; k < 2 && e == SP_OK; k++)
        e = sp_run_read_lines(&c->run[k], "hashes.jsonl", take_hash, &lists[k]);
    if (e == SP_OK)
        match_hashes(c, lists);
    sp_text_free(&lists[0]);
    sp_text_free(&lists[1]);
    return e;
}

sp_err sp_compare_runs(sp_run_comparison *c, const char *a, const char *b)
{
    *c = (sp_run_comparison){ 0 };
    SP_TRY(sp_run_open(&c->run[0], a, a));
    SP_TRY(sp_run_open(&c->run[1], b, b));
    compare_settings(c);
    compare_scores(c);
    compare_numbers(c);
    compare_makers(c);
    SP_TRY(compare_hashes(c));
    SP_TRY(sp_text_check(&c->settings));
    return sp_text_check(&c->scores);
}

void sp_run_comparison_free(sp_run_comparison *c)
{
    sp_run_free(&c->run[0]);
    sp_run_free(&c->run[1]);
    sp_text_free(&c->settings);
    sp_text_free(&c->scores);
}
