/* sprat report. */
#include <stdio.h>

#include "sprat.h"
#include "sprat/report.h"

static int report(const sp_args *a)
{
    sp_report_opt o = { .paths = a->words,
                        .path_count = a->word_count,
                        .title = sp_args_flag(a, "title"),
                        .file = sp_args_flag(a, "o"),
                        .svg = sp_args_flag(a, "svg"),
                        .png = sp_args_flag(a, "png"),
                        .notes = stderr };
    sp_report_told told;
    sp_err e;

    if (!o.file && !o.svg && !o.png)
        o.file = "report.html";
    e = sp_report_write(&o, &told);
    if (e != SP_OK)
        return sp_refuse(e);
    if (o.file)
        printf("%s: %zu run%s, %zu charts, %.1f KiB\n", o.file, told.runs,
               told.runs == 1 ? "" : "s", told.charts,
               (double)told.bytes / 1024);
    if (o.svg)
        printf("%s: %zu charts as SVG\n", o.svg, told.charts);
    if (o.png)
        printf("%s: %zu charts as PNG\n", o.png, told.charts);
    return SP_EXIT_DONE;
}

const sp_verb sp_verb_report = {
    .name = "report",
    .words = "RUN...",
    .least = 1,
    .most = -1,
    .help = "draw runs over each other, as one page and as pictures",
    .examples =
        "RUN is a run folder, under way or ended, or a folder of run folders,\n"
        "as of a table. The page is one file that needs no other and no\n"
        "network: curves, bytes, times, settings that differ. With --svg or\n"
        "--png alone no page is written.\n\n"
        "  sprat report runs/resnet20 runs/resnet20-dgc -o dgc.html\n"
        "  sprat report runs/table --png charts\n",
    .flags = { { "o", "FILE", "the page (report.html)" },
               { "svg", "DIR", "write every chart there as SVG, too" },
               { "png", "DIR", "the same as PNG" },
               { "title", "TEXT", "of the page (the names of the runs)" } },
    .run = report,
};
