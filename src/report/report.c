#include "sprat/report.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/outputs.h"
#include "report/gallery.h"
#include "report/page.h"
#include "report/raster.h"
#include "report/svg.h"

static sp_err write_svg(const sp_figure *f, const char *path)
{
    sp_text text = { 0 };
    sp_err e;

    sp_svg_put_file(&text, f);
    e = sp_text_check(&text);
    if (e == SP_OK)
        e = sp_file_write_synced(path, text.bytes, text.size);
    sp_text_free(&text);
    return e;
}

static sp_err write_png(const sp_figure *f, const char *path)
{
    sp_raster r = { 0 };
    sp_err e = sp_raster_draw(&r, f);

    if (e == SP_OK)
        e = sp_raster_write(&r, path);
    free(r.rgb);
    return e;
}

static sp_err write_files(const sp_gallery *g, const char *folder,
                          const char *ending,
                          sp_err (*write)(const sp_figure *f, const char *path))
{
    sp_err e = sp_dir_make(folder);

    for (size_t i = 0; e == SP_OK && i < sp_gallery_count(g); i++) {
        const sp_figure *f = &sp_gallery_at(g, i)->figure;
        char *path = sp_path(folder, "%s.%s", f->id, ending);
        e = path ? write(f, path) : sp_fail(SP_ENOMEM, "out of memory");
        free(path);
    }
    return e;
}

static sp_err fill(sp_gallery *g, const sp_runs *runs)
{
    SP_TRY(sp_gallery_tradeoff(g, runs));
    SP_TRY(sp_gallery_curves(g, runs));
    SP_TRY(sp_gallery_bytes(g, runs));
    SP_TRY(sp_gallery_times(g, runs));
    return sp_gallery_layers(g, runs);
}

static void tell_notes(const sp_runs *runs, FILE *out)
{
    for (size_t i = 0; out && i < runs->count; i++)
        fputs(sp_text_string(&runs->run[i].notes), out);
}

static sp_err write_all(const sp_report_opt *o, sp_report_told *told)
{
    sp_runs runs = { 0 };
    sp_gallery g = { 0 };
    sp_text page = { 0 };
    sp_err e = o->file ? sp_output_check(o->file, NULL, 0) : SP_OK;

    if (e == SP_OK)
        e = sp_runs_open(&runs, o->paths, o->path_count);
    if (e == SP_OK)
        e = fill(&g, &runs);
    if (e == SP_OK && o->file) {
        e = sp_page_write(&page, &runs, &g, o->title);
        if (e == SP_OK)
            e = sp_file_write_synced(o->file, page.bytes, page.size);
    }
    if (e == SP_OK && o->svg)
        e = write_files(&g, o->svg, "svg", write_svg);
    if (e == SP_OK && o->png)
        e = write_files(&g, o->png, "png", write_png);
    if (e == SP_OK) {
        tell_notes(&runs, o->notes);
        *told = (sp_report_told){ runs.count, sp_gallery_count(&g), page.size };
    }
    sp_text_free(&page);
    sp_gallery_free(&g);
    sp_runs_free(&runs);
    return e;
}

/* A program around the library may have set a locale with a decimal comma; for
 * "C", newlocale() gives a constant that needs no freeing. */
sp_err sp_report_write(const sp_report_opt *o, sp_report_told *told)
{
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    sp_report_told unused;
    sp_err e = write_all(o, told ? told : &unused);

    uselocale(before);
    return e;
}
