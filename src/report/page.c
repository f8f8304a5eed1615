#include "report/page.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "report/svg.h"

static const struct {
    const char *id, *title;
} parts[SP_PART_COUNT] = {
    [SP_LEARNING] = { "learning", "Learning" },
    [SP_COMMUNICATION] = { "communication", "Communication" },
    [SP_SPEED] = { "speed", "Speed" },
    [SP_LAYERS] = { "layers", "Layers" },
};

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void sp_page_digest(char out[48], const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";
    char hex[SP_HASH_HEX];
    sp_hash h;
    size_t used = 0;

    sp_hash_start(&h);
    sp_hash_add(&h, text, strlen(text));
    sp_hash_end(&h, hex);
    /* Three hexadecimal digits are two letters; the last of 64 stands alone. */
    for (int i = 0; i < 63; i += 3) {
        unsigned bits =
            digit(hex[i]) << 8 | digit(hex[i + 1]) << 4 | digit(hex[i + 2]);
        out[used++] = letters[bits >> 6];
        out[used++] = letters[bits & 63];
    }
    out[used++] = letters[digit(hex[63]) << 2];
    out[used++] = '=';
    out[used] = '\0';
}

static bool has_part(const sp_gallery *g, sp_part_of part)
{
    for (size_t i = 0; i < sp_gallery_count(g); i++)
        if (sp_gallery_at(g, i)->part == part)
            return true;
    return false;
}

/* The names of the first rows, which are runs or those of several seeds. */
static void put_title(sp_text *out, const sp_runs *runs, const char *title)
{
    size_t rows = 0;

    if (title) {
        sp_escape(out, title);
        return;
    }
    for (size_t i = 0; i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        if (r->look != rows)
            continue; /* a row's later seed */
        rows++;
        if (rows > 3)
            continue;
        sp_text_add(out, rows > 1 ? ", " : "");
        sp_escape(out, r->row);
    }
    if (rows > 3)
        sp_text_add(out, " and %zu more", rows - 3);
}

/* Nothing may be loaded from anywhere, and only this script may run. */
static void put_head(sp_text *out, const sp_runs *runs, const char *title)
{
    char digest[48];

    sp_page_digest(digest, sp_page_script());
    sp_text_add(out,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                "<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\""
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                "script-src 'sha256-%s'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<meta name=\"generator\" content=\"sprat " SP_VERSION "\">\n"
                "<link rel=\"icon\" href=\"data:,\">\n<title>",
                digest);
    put_title(out, runs, title);
    sp_text_add(out, "</title>\n<style>");
    sp_page_style(out);
    sp_text_add(out, "</style>\n</head>\n<body>\n<main>\n<header><h1>");
    put_title(out, runs, title);
    sp_text_add(out, "</h1>\n");
}

static void put_links(sp_text *out, const sp_gallery *g)
{
    sp_text_add(out, "<nav><a href=\"#runs\">Runs</a>");
    for (int p = 0; p < SP_PART_COUNT; p++)
        if (has_part(g, (sp_part_of)p))
            sp_text_add(out, " <a href=\"#%s\">%s</a>", parts[p].id,
                        parts[p].title);
    sp_text_add(out, " <a href=\"#settings\">Settings</a></nav></header>\n");
}

/* Wide charts take a row of their own. */
static void put_chart(sp_text *out, const sp_item *item)
{
    sp_text_add(out, "<figure%s>\n",
                item->figure.w > 700 ? " class=\"wide\"" : "");
    sp_svg_put(out, &item->figure);
    sp_text_add(out, "<details><summary>Values</summary>\n");
    sp_text_put(out, sp_text_string(&item->table), item->table.size);
    sp_text_add(out, "</details></figure>\n");
}

static void put_part(sp_text *out, const sp_gallery *g, sp_part_of part)
{
    if (!has_part(g, part))
        return;
    sp_text_add(out, "<section id=\"%s\"><h2>%s</h2>\n<div class=\"charts\">\n",
                parts[part].id, parts[part].title);
    for (size_t i = 0; i < sp_gallery_count(g); i++)
        if (sp_gallery_at(g, i)->part == part)
            put_chart(out, sp_gallery_at(g, i));
    sp_text_add(out, "</div></section>\n");
}

sp_err sp_page_write(sp_text *out, const sp_runs *runs, const sp_gallery *g,
                     const char *title)
{
    put_head(out, runs, title);
    put_links(out, g);
    sp_page_summary(out, runs);
    for (int p = 0; p < SP_PART_COUNT; p++)
        put_part(out, g, (sp_part_of)p);
    sp_page_settings(out, runs);
    sp_text_add(out,
                "<footer>Made by sprat " SP_VERSION
                " from run folders.</footer>\n</main>\n<script>%s"
                "</script>\n</body>\n</html>\n",
                sp_page_script());
    return sp_text_check(out);
}
