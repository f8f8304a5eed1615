/* Bars: where the time of runs went, and which layers their bytes belong to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/gallery.h"

enum { LAYERS = 10 /* with bars of their own */, NAME = 160 };

static void write_table(const sp_bars *b, sp_text *out)
{
    char word[SP_WORD];

    sp_html_open(out, b->title);
    sp_html_head(out, "");
    for (int p = 0; p < b->part_count; p++)
        sp_html_head(out, b->parts[p]);
    sp_html_body(out);
    for (size_t i = 0; i < b->count; i++) {
        sp_html_row(out, b->bar[i].name);
        for (int p = 0; p < b->part_count; p++)
            sp_html_cell(out, sp_show(word, b->bar[i].part[p], b->unit));
        sp_html_end_row(out);
    }
    sp_html_close(out);
}

static sp_err finish(sp_gallery *g, const sp_bars *b, sp_part_of part)
{
    sp_item item = { .part = part };
    sp_err e = sp_bars_draw(b, &item.figure);

    if (e != SP_OK) {
        sp_figure_free(&item.figure);
        return e;
    }
    write_table(b, &item.table);
    return sp_gallery_add(g, &item);
}

sp_err sp_gallery_times(sp_gallery *g, const sp_runs *runs)
{
    sp_bar *bars = calloc(runs->count, sizeof *bars);
    sp_bars b = { .id = "time",
                  .title = "Where the time went",
                  .note = "seconds of rank 0 over the whole run",
                  .parts = sp_run_time_names,
                  .part_count = SP_RUN_TIMES,
                  .width = 920,
                  .unit = SP_SECONDS,
                  .bar = bars };
    sp_err e = bars ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    for (size_t i = 0; e == SP_OK && i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        if (!r->timed)
            continue;
        bars[b.count].name = r->name;
        for (int p = 0; p < SP_RUN_TIMES; p++)
            bars[b.count].part[p] = r->times[p];
        b.count++;
    }
    if (e == SP_OK && b.count > 0)
        e = finish(g, &b, SP_SPEED);
    free(bars);
    return e;
}

/* ---- Bytes --------------------------------------------------------------- */

static const char *const stream_keys[] = { "values", "places", "headers",
                                           "dense" };

enum { STREAMS = 4 };

static double sum(const sp_bar *b)
{
    double bytes = 0;

    for (int p = 0; p < STREAMS; p++)
        bytes += b->part[p];
    return bytes;
}

/* The most bytes first; equal ones stay in the order of the network. */
static int by_bytes(const void *a, const void *b)
{
    const sp_bar *x = a, *y = b;
    double p = sum(x), q = sum(y);

    return p != q ? (p < q) - (p > q)
                  : (x->place > y->place) - (x->place < y->place);
}

/* The bars of all tensors, of a step. Gives how many. */
static size_t read_bars(const sp_json_value *list, double steps, sp_bar *bars)
{
    size_t count = 0;

    for (const sp_json_value *v = list->first; v; v = v->next) {
        const sp_json_value *name = sp_json_find(v, "name");
        sp_bar *b = &bars[count];
        if (!name || name->kind != SP_JSON_TEXT)
            continue;
        b->name = name->text;
        for (int p = 0; p < STREAMS; p++) {
            const sp_json_value *n = sp_json_find(v, stream_keys[p]);
            b->part[p] =
                n && n->kind == SP_JSON_NUMBER ? fmax(0, n->number) / steps : 0;
        }
        b->place = count++;
    }
    return count;
}

/* Tensors behind the first become one bar. */
static size_t sum_rest(sp_bar *bars, size_t count, char name[NAME])
{
    if (count <= LAYERS + 1)
        return count;
    snprintf(name, NAME, "%zu others", count - LAYERS);
    bars[LAYERS].name = name;
    for (size_t i = LAYERS + 1; i < count; i++)
        for (int p = 0; p < STREAMS; p++)
            bars[LAYERS].part[p] += bars[i].part[p];
    return LAYERS + 1;
}

/* The steps that a run's bytes are of; 1 if it does not say. */
static double steps_of(const sp_run_record *r)
{
    double from = sp_run_number(r, "bytes", "from_step");
    double to = sp_run_number(r, "bytes", "to_step");

    return to > from ? to - from : 1;
}

static sp_err add_bytes(sp_gallery *g, const sp_run_record *r, size_t number,
                        const sp_json_value *list)
{
    sp_bar *bars = calloc(list->count + 1, sizeof *bars);
    char id[SP_WORD], title[NAME], rest[NAME];
    sp_bars b = { .id = id,
                  .title = title,
                  .note = "mean of a step, of rank 0; the tensors with the "
                          "most bytes",
                  .parts = stream_keys,
                  .part_count = STREAMS,
                  .width = 620,
                  .unit = SP_BYTES,
                  .bar = bars };
    sp_err e;

    if (!bars)
        return sp_fail(SP_ENOMEM, "out of memory");
    snprintf(id, sizeof id, "bytes-%zu", number);
    snprintf(title, sizeof title, "Bytes by layer: %.120s", r->name);
    b.count = read_bars(list, steps_of(r), bars);
    qsort(bars, b.count, sizeof *bars, by_bytes);
    b.count = sum_rest(bars, b.count, rest);
    e = b.count > 0 && sum(&bars[0]) > 0 ? finish(g, &b, SP_COMMUNICATION)
                                         : SP_OK;
    free(bars);
    return e;
}

sp_err sp_gallery_bytes(sp_gallery *g, const sp_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        const sp_run_record *r = &runs->run[i];
        const sp_json_value *list =
            sp_json_find(sp_json_find(r->root, "bytes"), "tensors");
        if (list && list->kind == SP_JSON_LIST)
            SP_TRY(add_bytes(g, r, i + 1, list));
    }
    return SP_OK;
}
