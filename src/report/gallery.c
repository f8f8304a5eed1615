#include "report/gallery.h"

#include <math.h>

#include "report/svg.h"

sp_err sp_gallery_add(sp_gallery *g, sp_item *item)
{
    sp_err e = sp_figure_check(&item->figure);

    if (e == SP_OK)
        e = sp_text_check(&item->table);
    if (e == SP_OK) {
        sp_text_put(&g->items, item, sizeof *item);
        e = sp_text_check(&g->items);
    }
    if (e != SP_OK) {
        sp_figure_free(&item->figure);
        sp_text_free(&item->table);
    }
    *item = (sp_item){ 0 };
    return e;
}

size_t sp_gallery_count(const sp_gallery *g)
{
    return g->items.size / sizeof(sp_item);
}

const sp_item *sp_gallery_at(const sp_gallery *g, size_t i)
{
    return (const sp_item *)(const void *)g->items.bytes + i;
}

void sp_gallery_free(sp_gallery *g)
{
    sp_item *items = (sp_item *)(void *)g->items.bytes;

    for (size_t i = 0; i < sp_gallery_count(g); i++) {
        sp_figure_free(&items[i].figure);
        sp_text_free(&items[i].table);
    }
    sp_text_free(&g->items);
}

/* Only where all runs tell their epochs do these make a common axis. */
static bool has_epochs(const sp_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (!(runs->run[i].batches > 0) && runs->run[i].last_step > 0)
            return false;
    return true;
}

double sp_x_unit(const sp_runs *runs, const sp_run_record *r)
{
    return has_epochs(runs) && r->batches > 0 ? r->batches : 1;
}

const char *sp_x_name(const sp_runs *runs)
{
    return has_epochs(runs) ? "epoch" : "step";
}

void sp_html_open(sp_text *out, const char *caption)
{
    sp_text_add(out, "<div class=\"scroll\"><table><caption>");
    sp_escape(out, caption);
    sp_text_add(out, "</caption>\n<thead><tr>");
}

void sp_html_head(sp_text *out, const char *text)
{
    sp_text_add(out, "<th scope=\"col\">");
    sp_escape(out, text);
    sp_text_add(out, "</th>");
}

void sp_html_body(sp_text *out) { sp_text_add(out, "</tr></thead><tbody>"); }

void sp_html_row(sp_text *out, const char *heading)
{
    sp_text_add(out, "\n<tr><th scope=\"row\">");
    sp_escape(out, heading);
    sp_text_add(out, "</th>");
}

void sp_html_cell(sp_text *out, const char *text)
{
    sp_text_add(out, "<td>");
    sp_escape(out, text);
    sp_text_add(out, "</td>");
}

void sp_html_end_row(sp_text *out) { sp_text_add(out, "</tr>"); }

void sp_html_close(sp_text *out)
{
    sp_text_add(out, "\n</tbody></table></div>\n");
}
