#include "report/palette.h"

const sp_palette sp_palette_light = {
    .ink = 0x1b1e23,
    .muted = 0x5a626d,
    .grid = 0xe4e7ec,
    .paper = 0xffffff,
    .run = { 0x1d5fc0, 0xc44a06, 0x0a7d5b, 0x96389a, 0x7a5b00, 0x0784b0,
             0xbf1f57, 0x474c54, 0x567a00, 0x6747cf },
    .share = { 0xbcd4f2, 0xf7cb9f, 0xa6d9c3, 0xe2bfe3, 0xefe29f, 0x93b7e4,
               0xf3a9b8, 0xcbd0d7, 0xe6e8eb },
    .heat = { 0xe9f1fa, 0xd3e3f3, 0xb5d1ea, 0x8fbbde, 0x64a0cf, 0x4083bd,
              0x2466a5, 0x114b88, 0x082f63 },
};

const sp_palette sp_palette_dark = {
    .ink = 0xe4e7eb,
    .muted = 0x9da6b2,
    .grid = 0x2b323b,
    .paper = 0x14171c,
    .run = { 0x74adff, 0xff9f60, 0x4fd3a8, 0xe490e2, 0xdcbc50, 0x5fd2f6,
             0xff86a8, 0xbcc3cd, 0xb5d45a, 0xae9bff },
    .share = { 0x2c5c96, 0x8f5420, 0x1f7459, 0x774479, 0x756315, 0x3d78b8,
               0x973f55, 0x58606b, 0x3d444d },
    .heat = { 0x17273c, 0x1a385c, 0x1f4c7f, 0x2863a3, 0x3c7dc0, 0x5c99d5,
              0x85b5e6, 0xb0d1f3, 0xdfedff },
};

uint32_t sp_palette_colour(const sp_palette *p, sp_paint paint, int number)
{
    switch (paint) {
    case SP_MUTED:
        return p->muted;
    case SP_GRID:
        return p->grid;
    case SP_PAPER:
        return p->paper;
    case SP_RUN:
        return p->run[number % SP_COLOURS];
    case SP_SHARE:
        return p->share[number % SP_RUN_TIMES];
    case SP_HEAT:
        return p->heat[number % SP_HEATS];
    case SP_INK:
        break;
    }
    return p->ink;
}

static void put_list(sp_text *out, char name, const uint32_t *colours,
                     int count)
{
    for (int i = 0; i < count; i++)
        sp_text_add(out, "--%c%d:#%06x;", name, i, (unsigned)colours[i]);
}

void sp_palette_css(sp_text *out, const sp_palette *p)
{
    sp_text_add(out, "--ink:#%06x;--muted:#%06x;--grid:#%06x;--paper:#%06x;",
                (unsigned)p->ink, (unsigned)p->muted, (unsigned)p->grid,
                (unsigned)p->paper);
    put_list(out, 'r', p->run, SP_COLOURS);
    put_list(out, 'p', p->share, SP_RUN_TIMES);
    put_list(out, 'h', p->heat, SP_HEATS);
}

void sp_palette_rules(sp_text *out)
{
    sp_text_add(out,
                "svg text{font-family:system-ui,-apple-system,\"Segoe UI\","
                "Roboto,\"Helvetica Neue\",\"Noto Sans\",\"Liberation Sans\","
                "Arial,sans-serif;font-variant-numeric:tabular-nums}"
                ".fi{fill:var(--ink)}.fm{fill:var(--muted)}"
                ".fg{fill:var(--grid)}.fb{fill:var(--paper)}"
                ".si{stroke:var(--ink)}.sm{stroke:var(--muted)}"
                ".sg{stroke:var(--grid)}.sb{stroke:var(--paper)}"
                ".l{fill:none;stroke-linejoin:round}"
                ".tb{font-weight:650}.te{text-anchor:end}"
                ".tm{text-anchor:middle}");
    for (int i = 0; i < SP_COLOURS; i++)
        sp_text_add(out, ".fr%d{fill:var(--r%d)}.sr%d{stroke:var(--r%d)}", i, i,
                    i, i);
    for (int i = 0; i < SP_RUN_TIMES; i++)
        sp_text_add(out, ".fp%d{fill:var(--p%d)}", i, i);
    for (int i = 0; i < SP_HEATS; i++)
        sp_text_add(out, ".fh%d{fill:var(--h%d)}", i, i);
}
