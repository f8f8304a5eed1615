/* From a table file to rows that are ready to be trained. */
#include "table/definition.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "table/read.h"

/* The fields of the two mappings, as they are read. */
typedef struct table_keys {
    const char *title, *paper, *metric, *baseline;
    int ranks, at;
    double margin, confidence;
    sp_list seeds;
} table_keys;

typedef struct row_keys {
    const char *name, *note, *baseline;
    sp_list seeds;
    double paper;
    bool judged;
} row_keys;

#define TABLE(field) offsetof(table_keys, field)
#define ROW(field) offsetof(row_keys, field)

static const sp_key table_key_list[] = {
    { "title", SP_TEXT, TABLE(title), "", 0, 0, "what stands above the table",
      NULL },
    { "ranks", SP_INT, TABLE(ranks), "0", 0, 65536,
      "ranks that every run is trained on; 0: those that are there", NULL },
    { "metric", SP_TEXT, TABLE(metric), "test_top1", 0, 0,
      "what is compared: a loss, top1, top5 or ppl of the train, valid or test "
      "part, as in an epoch line of metrics.jsonl",
      NULL },
    { "at", SP_CHOICE, TABLE(at), "final", 0, 0,
      "of the last epoch, or of the best one by the validation part (without "
      "one, by the test part)",
      "final|best" },
    { "baseline", SP_TEXT, TABLE(baseline), "", 0, 0,
      "the row that others are compared with by the same seed", NULL },
    { "margin", SP_FLOAT, TABLE(margin), "0", 0, 1e9,
      "difference to the baseline, in units of the metric, up to which a row "
      "counts as equal; 0: no verdicts",
      NULL },
    { "confidence", SP_FLOAT, TABLE(confidence), "0.95", 0.5, 0.9999,
      "level of all intervals", NULL },
    { "paper", SP_TEXT, TABLE(paper), "", 0, 0,
      "where the rows' published values are from", NULL },
    { "seeds", SP_LIST, TABLE(seeds), "[1]", 0, 2e9,
      "values of train.seed, each of which is a run", NULL },
};

static const sp_key row_key_list[] = {
    { "name", SP_TEXT, ROW(name), "", 0, 0, "of the row", NULL },
    { "note", SP_TEXT, ROW(note), "", 0, 0, "told below the table", NULL },
    { "seeds", SP_LIST, ROW(seeds), "[]", 0, 2e9, "in place of the table's",
      NULL },
    { "paper", SP_FLOAT, ROW(paper), "0", 0, 0, "the published value", NULL },
    { "baseline", SP_TEXT, ROW(baseline), "", 0, 0,
      "the row to compare with, in place of the table's", NULL },
    { "judged", SP_BOOL, ROW(judged), "true", 0, 0,
      "its verdict counts for the exit status", NULL },
};

const sp_section sp_table_section = {
    .name = "table",
    .size = sizeof(table_keys),
    .keys = table_key_list,
    .key_count = sizeof table_key_list / sizeof *table_key_list,
};

const sp_section sp_table_row_section = {
    .name = "row",
    .size = sizeof(row_keys),
    .keys = row_key_list,
    .key_count = sizeof row_key_list / sizeof *row_key_list,
};

static const char *const list_names[] = { "configs", "set" };

enum { CONFIGS, SET, LISTS };

/* A file under reading. */
typedef struct reading {
    sp_table *t;
    sp_loading *l;
    table_keys keys;
    sp_words lists[LISTS];
    sp_mapping block;
    const char *baselines[SP_TABLE_ROWS]; /* named by rows; "": the table's */
    const char *baselines_at[SP_TABLE_ROWS];
    bool listed; /* `rows` is there */
} reading;

/* ---- Rows ---------------------------------------------------------------- */

/* "DGC, no warm-up" -> "dgc-no-warm-up". */
static const char *slug_of(sp_pool *pool, const char *name)
{
    char slug[SP_TABLE_NAME + 1];
    size_t n = 0;

    for (const char *p = name; *p && n < SP_TABLE_NAME; p++) {
        unsigned char c = (unsigned char)*p;

        if (c < 128 && isalnum(c))
            slug[n++] = (char)tolower(c);
        else if (n > 0 && slug[n - 1] != '-')
            slug[n++] = '-';
    }
    while (n > 0 && slug[n - 1] == '-')
        n--;
    return n ? sp_pool_text(pool, slug, n) : sp_pool_text(pool, "row", 3);
}

static void check_name(reading *r, const sp_table_row *row)
{
    sp_table *t = r->t;

    if (!*row->name) {
        sp_complain(r->l, row->at, "a row needs a name");
        return;
    }
    if (strlen(row->name) > SP_TABLE_NAME) {
        sp_complain(r->l, row->at, "a row's name has at most %d bytes",
                    SP_TABLE_NAME);
        return;
    }
    for (size_t i = 0; row->slug && &t->rows[i] < row; i++)
        if (t->rows[i].slug && strcmp(t->rows[i].slug, row->slug) == 0) {
            sp_complain(r->l, row->at,
                        "this row and that at %s would both have the folder "
                        "%s: rename one",
                        t->rows[i].at, row->slug);
            return;
        }
}

/* Whole and each once. */
static void check_seeds(sp_loading *l, const char *at, const sp_list *seeds)
{
    for (int i = 0; i < seeds->count; i++) {
        if (seeds->value[i] != floor(seeds->value[i])) {
            sp_complain(l, at, "seeds must be whole numbers, not %.12g",
                        seeds->value[i]);
            return;
        }
        for (int j = 0; j < i; j++)
            if (seeds->value[i] == seeds->value[j]) {
                sp_complain(l, at, "seed %.0f stands twice", seeds->value[i]);
                return;
            }
    }
}

static void read_row(reading *r, sp_yaml *y)
{
    sp_table *t = r->t;
    sp_table_row *row = &t->rows[t->row_count];
    row_keys keys = { 0 };
    sp_words lists[LISTS] = { 0 };
    sp_mapping b = { .section = &sp_table_row_section,
                     .base = &keys,
                     .list_names = list_names,
                     .lists = lists,
                     .list_count = LISTS };
    const char *at = sp_yaml_here(y);

    if (t->row_count == SP_TABLE_ROWS) {
        sp_complain(r->l, at, "a table has at most %d rows", SP_TABLE_ROWS);
        sp_yaml_give_up(y);
        return;
    }
    sp_mapping_read(y, &b);
    if (y->broken)
        return;
    t->published = t->published || sp_mapping_at(&b, "paper");
    r->baselines[t->row_count] = keys.baseline;
    r->baselines_at[t->row_count] = sp_mapping_at(&b, "baseline");
    t->row_count++;
    *row =
        (sp_table_row){ .name = keys.name ? keys.name : "",
                        .note = keys.note ? keys.note : "",
                        .at = sp_mapping_at(&b, "name"),
                        .configs = lists[CONFIGS],
                        .set = lists[SET],
                        .seeds = keys.seeds,
                        .paper = sp_mapping_at(&b, "paper") ? keys.paper : NAN,
                        .judged = keys.judged };
    row->at = row->at ? row->at : at;
    row->slug = slug_of(r->l->pool, row->name);
    check_name(r, row);
    check_seeds(r->l, sp_mapping_at(&b, "seeds"), &row->seeds);
}

static void read_rows(sp_yaml *y, void *arg)
{
    reading *r = arg;

    r->listed = true;
    if (y->event.type != YAML_SEQUENCE_START_EVENT) {
        sp_complain(r->l, sp_yaml_here(y),
                    "rows is a list: write \"- name: ...\" lines");
        sp_yaml_skip(y);
        return;
    }
    sp_yaml_plain(y);
    r->t->rows = sp_pool_take(r->l->pool, SP_TABLE_ROWS * sizeof *r->t->rows);
    while (sp_yaml_next(y) && y->event.type != YAML_SEQUENCE_END_EVENT) {
        if (!r->t->rows)
            sp_yaml_skip(y);
        else
            read_row(r, y);
    }
}

/* ---- Files and settings -------------------------------------------------- */

/* Where a configuration file is: beside the table file, or as given. */
static const char *find_config(reading *r, const char *name, const char *at)
{
    const char *slash = strrchr(r->t->path, '/');
    char shown[SP_SHOWN_ROOM];
    const char *beside =
        slash && name[0] != '/'
            ? sp_pool_print(r->l->pool, "%.*s%s", (int)(slash + 1 - r->t->path),
                            r->t->path, name)
            : name;

    if (beside && sp_is_file(beside))
        return beside;
    if (beside && !sp_is_file(name))
        sp_complain(r->l, at,
                    "there is no file %s, neither beside the table file nor "
                    "here",
                    sp_shown(shown, name));
    return name;
}

static void find_configs(reading *r, sp_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        w->word[i] = find_config(r, w->word[i], w->at[i]);
}

static void check_set(reading *r, const sp_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (strncmp(w->word[i], "train.seed=", strlen("train.seed=")) == 0)
            sp_complain(r->l, w->at[i],
                        "train.seed is what `seeds` lists: leave it out here");
}

/* The table's words, then the row's. */
static void join(sp_pool *pool, const sp_words *before, sp_words *w)
{
    sp_words all = { .count = before->count + w->count };

    all.word = sp_pool_take(pool, (all.count + 1) * sizeof *all.word);
    all.at = sp_pool_take(pool, (all.count + 1) * sizeof *all.at);
    if (!all.word || !all.at) {
        *w = (sp_words){ 0 };
        return;
    }
    for (size_t i = 0; i < all.count; i++) {
        const sp_words *from = i < before->count ? before : w;
        size_t k = i < before->count ? i : i - before->count;

        all.word[i] = from->word[k];
        all.at[i] = from->at[k];
    }
    *w = all;
}

static void complete_rows(reading *r)
{
    const char *at = sp_mapping_at(&r->block, "seeds");

    check_seeds(r->l, at, &r->keys.seeds);
    find_configs(r, &r->lists[CONFIGS]);
    check_set(r, &r->lists[SET]);
    for (size_t i = 0; i < r->t->row_count; i++) {
        sp_table_row *row = &r->t->rows[i];

        find_configs(r, &row->configs);
        check_set(r, &row->set);
        join(r->l->pool, &r->lists[CONFIGS], &row->configs);
        join(r->l->pool, &r->lists[SET], &row->set);
        if (row->seeds.count == 0)
            row->seeds = r->keys.seeds;
        if (row->seeds.count == 0)
            sp_complain(r->l, row->at, "the row has no seeds");
        if (row->configs.count == 0)
            sp_complain(r->l, row->at,
                        "the row has no configuration: list its files in "
                        "configs");
    }
}

/* ---- The whole ----------------------------------------------------------- */

static const char *row_name(const void *table, size_t i)
{
    const sp_table *t = table;

    return i < t->row_count ? t->rows[i].name : NULL;
}

/* The row of that name; -1 without a name, and after a complaint. */
static int find_row(reading *r, const char *name, const char *at)
{
    const char *near;
    char shown[SP_SHOWN_ROOM];

    if (!name || !*name)
        return -1;
    for (size_t i = 0; i < r->t->row_count; i++)
        if (strcmp(r->t->rows[i].name, name) == 0)
            return (int)i;
    near = sp_nearest(name, row_name, r->t);
    sp_shown(shown, name);
    if (near)
        sp_complain(r->l, at, "no row is called %s; did you mean %s?", shown,
                    near);
    else
        sp_complain(r->l, at, "no row is called %s", shown);
    return -1;
}

/* A row is not compared with itself. */
static void find_baselines(reading *r)
{
    sp_table *t = r->t;
    int common =
        find_row(r, r->keys.baseline, sp_mapping_at(&r->block, "baseline"));
    bool named = r->keys.baseline && *r->keys.baseline;

    for (size_t i = 0; i < t->row_count; i++) {
        const char *own = r->baselines[i];
        int row = own && *own ? find_row(r, own, r->baselines_at[i]) : common;

        named = named || (own && *own);
        t->rows[i].baseline = row == (int)i ? -1 : row;
        t->compared = t->compared || t->rows[i].baseline >= 0;
    }
    if (r->keys.margin > 0 && !named)
        sp_complain(r->l, sp_mapping_at(&r->block, "margin"),
                    "a margin needs a baseline: name a row in `baseline`");
}

static void find_metric(reading *r)
{
    const char *name = r->keys.metric ? r->keys.metric : "", *near;
    char shown[SP_SHOWN_ROOM];

    r->t->metric = sp_metric_find(name);
    if (r->t->metric)
        return;
    near = sp_nearest(name, sp_metric_name, NULL);
    sp_shown(shown, name);
    if (near)
        sp_complain(r->l, sp_mapping_at(&r->block, "metric"),
                    "there is no metric %s; did you mean %s?", shown, near);
    else
        sp_complain(r->l, sp_mapping_at(&r->block, "metric"),
                    "there is no metric %s: it is one of train, valid or test, "
                    "with _loss, _top1, _top5 or _ppl",
                    shown);
}

static void read_root(reading *r, sp_yaml *y)
{
    sp_table *t = r->t;

    if (!sp_yaml_root(y)) {
        if (!y->broken)
            sp_complain(r->l, t->path, "is empty: a table has rows");
        return;
    }
    sp_mapping_read(y, &r->block);
    if (y->broken)
        return;
    sp_yaml_end(y);
    t->title = r->keys.title;
    t->source = r->keys.paper;
    t->ranks = r->keys.ranks;
    t->best = r->keys.at == 1;
    t->margin = r->keys.margin;
    t->confidence = r->keys.confidence;
    if (!r->listed)
        sp_complain(r->l, t->path, "a table needs rows");
    else if (t->row_count == 0 && t->rows)
        sp_complain(r->l, r->block.other_at, "a table needs at least one row");
    complete_rows(r);
    find_baselines(r);
    find_metric(r);
}

sp_err sp_table_read(sp_table *t, const char *path)
{
    sp_loading l = { .pool = &t->pool };
    reading r = { .t = t, .l = &l };
    sp_yaml y = { .l = &l, .path = path };
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e;

    *t = (sp_table){ .path = path };
    r.block = (sp_mapping){ .section = &sp_table_section,
                            .base = &r.keys,
                            .list_names = list_names,
                            .lists = r.lists,
                            .list_count = LISTS,
                            .other = "rows",
                            .read_other = read_rows,
                            .arg = &r };
    SP_TRY(sp_file_read(path, SP_YAML_BYTES, &bytes, &size));
    t->path = sp_pool_text(&t->pool, path, strlen(path));
    if (t->path && sp_yaml_start(&y, bytes, size)) {
        read_root(&r, &y);
        sp_yaml_stop(&y);
    }
    free(bytes);
    e = sp_conclude(&l);
    if (e != SP_OK)
        sp_table_close(t);
    return e;
}

void sp_table_close(sp_table *t)
{
    sp_arena_free(&t->pool.arena);
    *t = (sp_table){ 0 };
}
