/* The settings of the runs: what differs, and all of each. */
#include <string.h>

#include "report/page.h"
#include "report/svg.h"

/* Whether an earlier run has the key, too, so that its row is there. */
static bool was_listed(const sp_runs *runs, size_t run, const sp_run_setting *s)
{
    for (size_t i = 0; i < run; i++)
        if (sp_run_setting_of(&runs->run[i], s->section, s->key))
            return true;
    return false;
}

static bool differs(const sp_runs *runs, const sp_run_setting *s)
{
    for (size_t i = 0; i < runs->count; i++) {
        const char *value =
            sp_run_setting_of(&runs->run[i], s->section, s->key);
        /* A run without any settings says nothing about them. */
        if (!value && runs->run[i].settings.size == 0)
            continue;
        if (!value || strcmp(value, s->value) != 0)
            return true;
    }
    return false;
}

static void put_row(sp_text *out, const sp_runs *runs, const sp_run_setting *s)
{
    sp_text name = { 0 };

    sp_text_add(&name, "%s.%s", s->section, s->key);
    sp_html_row(out, sp_text_string(&name));
    for (size_t i = 0; i < runs->count; i++) {
        const char *value =
            sp_run_setting_of(&runs->run[i], s->section, s->key);
        sp_html_cell(out, value ? value : "\xe2\x80\x93");
    }
    sp_html_end_row(out);
    out->failed |= name.failed;
    sp_text_free(&name);
}

/* Gives how many keys differ. */
static size_t put_differences(sp_text *out, const sp_runs *runs)
{
    size_t count = 0;

    for (size_t i = 0; i < runs->count; i++) {
        const sp_run_setting *s;
        for (size_t k = 0; (s = sp_run_setting_at(&runs->run[i], k)); k++)
            if (!was_listed(runs, i, s) && differs(runs, s)) {
                put_row(out, runs, s);
                count++;
            }
    }
    return count;
}

static void put_difference_table(sp_text *out, const sp_runs *runs)
{
    sp_text table = { 0 };

    sp_html_open(&table, "Settings that differ");
    sp_html_head(&table, "Key");
    for (size_t i = 0; i < runs->count; i++)
        sp_html_head(&table, runs->run[i].name);
    sp_html_body(&table);
    if (put_differences(&table, runs) > 0) {
        sp_html_close(&table);
        sp_text_put(out, sp_text_string(&table), table.size);
    } else {
        sp_text_add(out, "<p>All settings are the same.</p>\n");
    }
    out->failed |= table.failed;
    sp_text_free(&table);
}

static void put_all(sp_text *out, const sp_run_record *r)
{
    const char *section = "";
    const sp_run_setting *s;

    sp_text_add(out, "<details><summary>All settings of ");
    sp_escape(out, r->name);
    sp_text_add(out, "</summary><pre>");
    for (size_t i = 0; (s = sp_run_setting_at(r, i)); i++) {
        if (strcmp(section, s->section) != 0) {
            sp_text_add(out, "%s", i ? "\n" : "");
            sp_escape(out, s->section);
            sp_text_add(out, ":\n");
        }
        section = s->section;
        sp_text_add(out, "  ");
        sp_escape(out, s->key);
        sp_text_add(out, ": ");
        sp_escape(out, s->value);
        if (*s->source) {
            sp_text_add(out, "  <i># ");
            sp_escape(out, s->source);
            sp_text_add(out, "</i>");
        }
        sp_text_add(out, "\n");
    }
    sp_text_add(out, "</pre></details>\n");
}

void sp_page_settings(sp_text *out, const sp_runs *runs)
{
    bool any = false;

    for (size_t i = 0; i < runs->count; i++)
        any |= runs->run[i].settings.size > 0;
    if (!any)
        return;
    sp_text_add(out, "<section id=\"settings\"><h2>Settings</h2>\n");
    if (runs->count > 1)
        put_difference_table(out, runs);
    for (size_t i = 0; i < runs->count; i++)
        if (runs->run[i].settings.size > 0)
            put_all(out, &runs->run[i]);
    sp_text_add(out, "</section>\n");
}
