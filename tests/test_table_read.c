/* Table files: what they give, and mistakes in them, all in one pass. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "fixture.h"
#include "table/definition.h"

static char *folder;
static sp_table table;

static void set_up(void)
{
    folder = sp_scratch_new();
    sp_scratch_write(folder, "a.yaml", "", 0);
    sp_scratch_write(folder, "sub/b.yaml", "", 0);
}

static void tear_down(void) { sp_scratch_free(folder); }

static sp_err read_table(const char *text)
{
    sp_scratch_write(folder, "t.yaml", text, strlen(text));
    return sp_table_read(&table, sp_scratch_path(folder, "t.yaml"));
}

/* The whole is refused, with all of these in the text, which end with NULL. */
static void refused(const char *text, const char *const *words)
{
    ck_assert_int_eq(read_table(text), SP_ECONFIG);
    for (; *words; words++)
        ck_assert_msg(strstr(sp_last_error(), *words), "no '%s' in: %s", *words,
                      sp_last_error());
}

static void refused_by(const char *text, const char *word)
{
    refused(text, (const char *const[]){ word, NULL });
}

START_TEST(rows_take_over_what_the_table_says)
{
    const sp_table_row *row;

    ck_assert_int_eq(read_table("title: T\n"
                                "configs: [a.yaml]\n"
                                "set: [train.threads=1]\n"
                                "seeds: [3, 1]\n"
                                "ranks: 4\n"
                                "metric: test_ppl\n"
                                "at: best\n"
                                "baseline: full\n"
                                "margin: 0.5\n"
                                "confidence: 0.9\n"
                                "paper: \"somebody's\"\n"
                                "rows:\n"
                                "  - name: full\n"
                                "  - name: Low rank, r/4\n"
                                "    configs: sub/b.yaml\n"
                                "    set: ['compress.warmup=[]', optim.lr=2]\n"
                                "    seeds: [7]\n"
                                "    paper: 72.3\n"
                                "    judged: false\n"
                                "    note: why\n"),
                     SP_OK);
    ck_assert_str_eq(table.title, "T");
    ck_assert_str_eq(table.source, "somebody's");
    ck_assert_int_eq(table.ranks, 4);
    ck_assert_str_eq(table.metric->name, "test_ppl");
    ck_assert(!table.metric->higher && table.best && table.compared);
    ck_assert_double_eq(table.margin, 0.5);
    ck_assert_double_eq(table.confidence, 0.9);
    ck_assert_uint_eq(table.row_count, 2);
    row = &table.rows[0];
    ck_assert_int_eq(row->baseline, -1);
    ck_assert_uint_eq(row->configs.count, 1);
    ck_assert_str_eq(row->configs.word[0], sp_scratch_path(folder, "a.yaml"));
    ck_assert_int_eq(row->seeds.count, 2);
    ck_assert_double_eq(row->seeds.value[0], 3);
    ck_assert(isnan(row->paper) && row->judged && !*row->note);
    row = &table.rows[1];
    ck_assert_str_eq(row->slug, "low-rank-r-4");
    ck_assert_int_eq(row->baseline, 0);
    ck_assert_uint_eq(row->configs.count, 2);
    ck_assert_str_eq(row->configs.word[1],
                     sp_scratch_path(folder, "sub/b.yaml"));
    ck_assert_uint_eq(row->set.count, 3);
    ck_assert_str_eq(row->set.word[0], "train.threads=1");
    ck_assert_str_eq(row->set.word[1], "compress.warmup=[]");
    ck_assert_int_eq(row->seeds.count, 1);
    ck_assert_double_eq(row->paper, 72.3);
    ck_assert(!row->judged);
    ck_assert_str_eq(row->note, "why");
    sp_table_close(&table);
}
END_TEST

START_TEST(a_row_may_name_its_own_baseline)
{
    ck_assert_int_eq(read_table("configs: [a.yaml]\n"
                                "margin: 1\n"
                                "rows: [{name: a}, {name: b, baseline: a},\n"
                                "  {name: c, baseline: b}]\n"),
                     SP_OK);
    ck_assert_int_eq(table.rows[0].baseline, -1);
    ck_assert_int_eq(table.rows[1].baseline, 0);
    ck_assert_int_eq(table.rows[2].baseline, 1);
    ck_assert_int_eq(table.rows[0].seeds.count, 1);
    sp_table_close(&table);
}
END_TEST

START_TEST(all_mistakes_are_told_with_their_places)
{
    static const char *const words[] = {
        "t.yaml:1:1: a table has no key \"titel\"; did you mean title?",
        "t.yaml:2:11: there is no file \"c.yaml\"",
        "t.yaml:3:7: train.seed is what `seeds` lists",
        "t.yaml:4:9: there is no metric \"test_topl\"; did you mean test_top",
        "t.yaml:5:5: table.at must be one of final, best, not \"last\"",
        "t.yaml:6:11: no row is called \"ful\"; did you mean FULL?",
        "t.yaml:7:9: table.margin must be",
        "t.yaml:8:8: seeds must be whole numbers, not 1.5",
        "t.yaml:12:12: this row and that at ",
        "t.yaml:11:5: a row has no key \"nme\"; did you mean name?",
        "t.yaml:11:5: a row needs a name",
        "t.yaml:12:25: row.paper must be a finite number, not \"much\"",
        "t.yaml:13:22: seed 2 stands twice",
        NULL,
    };

    refused("titel: x\n"
            "configs: [c.yaml]\n"
            "set: [train.seed=3]\n"
            "metric: test_topl\n"
            "at: last\n"
            "baseline: ful\n"
            "margin: -1\n"
            "seeds: [1.5]\n"
            "rows:\n"
            "  - {name: FULL}\n"
            "  - nme: full\n"
            "  - {name: full, paper: much}\n"
            "  - {name: x, seeds: [2, 2]}\n",
            words);
}
END_TEST

START_TEST(of_the_wrong_kind)
{
    refused_by("", "a table has rows");
    refused_by("[1, 2]\n", "must be \"key: value\" lines");
    refused_by("title: T\n", "a table needs rows");
    refused_by("rows: []\n", "at least one row");
    refused_by("rows: 3\n", "rows is a list");
    refused_by("rows: {name: a}\n", "rows is a list");
    refused_by("rows: [3]\n", "a row is a mapping");
    refused_by("rows: [{name: a}]\n", "no configuration");
    refused_by("rows: [{configs: a.yaml}]\n", "a row needs a name");
    refused_by("seeds: []\nconfigs: a.yaml\nrows: [{name: a}]\n", "no seeds");
    refused_by("seeds: 1\nconfigs: a.yaml\nrows: [{name: a}]\n",
               "a list of numbers");
    refused_by("configs: [{a: b}]\nrows: [{name: a}]\n", "must be a string");
    refused_by("configs: {a: b}\nrows: [{name: a}]\n", "list of strings");
    refused_by("configs: a.yaml\nmargin: 1\nrows: [{name: a}]\n",
               "a margin needs a baseline");
    refused_by("configs: a.yaml\nrows: [{name: a}]\nrows: [{name: b}]\n",
               "rows stands twice");
    refused_by("configs: a.yaml\nrows: [{name: a, name: b}]\n",
               "name stands twice");
    refused_by("configs: a.yaml\nrows: [{name: a}]\n---\na: b\n",
               "a second document");
    refused_by("configs: a.yaml\nrows: [{name: &x a}]\n", "anchors");
    refused_by("configs: a.yaml\nrows: [*x]\n", "t.yaml:2");
    refused_by("configs: a.yaml\nrows: [{name: a\n", "not valid YAML");
    refused_by("configs: a.yaml\n\tx: y\n", "not valid YAML");
}
END_TEST

/* A table of 257 rows, one of a name of 121 bytes, and a list of 65 files. */
START_TEST(of_an_absurd_size)
{
    sp_text text = { 0 };

    sp_text_add(&text, "configs: a.yaml\nrows:\n");
    for (int i = 0; i <= SP_TABLE_ROWS; i++)
        sp_text_add(&text, "- name: r%d\n", i);
    refused_by(sp_text_string(&text), "at most 256 rows");
    sp_text_free(&text);
    sp_text_add(&text, "configs: a.yaml\nrows:\n- name: ");
    for (int i = 0; i <= SP_TABLE_NAME; i++)
        sp_text_add(&text, "n");
    refused_by(sp_text_string(&text), "at most 120 bytes");
    sp_text_free(&text);
    sp_text_add(&text, "rows:\n- name: a\n  configs:\n");
    for (int i = 0; i <= 64; i++)
        sp_text_add(&text, "  - a.yaml\n");
    refused_by(sp_text_string(&text), "at most 64");
    sp_text_free(&text);
}
END_TEST

START_TEST(names_become_folders)
{
    static const char *const names[][2] = {
        { "DGC", "dgc" },       { "  0.1 % (x)", "0-1-x" },
        { "../../etc", "etc" }, { "\xC3\xA9t\xC3\xA9", "t" },
        { "\xCE\xB1", "row" },
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        snprintf(text, sizeof text, "configs: a.yaml\nrows: [{name: \"%s\"}]\n",
                 names[i][0]);
        ck_assert_int_eq(read_table(text), SP_OK);
        ck_assert_str_eq(table.rows[0].slug, names[i][1]);
        sp_table_close(&table);
    }
}
END_TEST

START_TEST(no_such_file)
{
    ck_assert_int_eq(sp_table_read(&table, "nowhere/t.yaml"), SP_EIO);
}
END_TEST

static void documented(const char *text, const char *key)
{
    char cell[64];

    snprintf(cell, sizeof cell, "`%s`", key);
    ck_assert_msg(strstr(text, cell), "%s is not in docs/tables.md", key);
}

START_TEST(every_key_is_documented)
{
    static const sp_section *const sections[] = { &sp_table_section,
                                                  &sp_table_row_section };
    uint8_t *text = NULL;
    size_t size;

    ck_assert_int_eq(sp_file_read(SP_TABLES_MD, 1 << 20, &text, &size), SP_OK);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sections[i]->key_count; k++)
            documented((const char *)text, sections[i]->keys[k].name);
    documented((const char *)text, "configs");
    documented((const char *)text, "set");
    documented((const char *)text, "rows");
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table_read");
    TCase *t = tcase_create("table_read");
    SRunner *r = srunner_create(s);
    int failures;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, rows_take_over_what_the_table_says);
    tcase_add_test(t, a_row_may_name_its_own_baseline);
    tcase_add_test(t, all_mistakes_are_told_with_their_places);
    tcase_add_test(t, of_the_wrong_kind);
    tcase_add_test(t, of_an_absurd_size);
    tcase_add_test(t, names_become_folders);
    tcase_add_test(t, no_such_file);
    tcase_add_test(t, every_key_is_documented);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failures = srunner_ntests_failed(r);
    srunner_free(r);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
