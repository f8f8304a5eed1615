/* The charts of a report, in the order of its sections. */
#ifndef SPRAT_REPORT_GALLERY_H
#define SPRAT_REPORT_GALLERY_H

#include <stddef.h>

#include "report/chart.h"
#include "report/run.h"

typedef enum sp_part_of {
    SP_LEARNING,      /* loss, scores, rate */
    SP_COMMUNICATION, /* density, bytes over time, bytes by layer */
    SP_SPEED,         /* items a second, where the time went */
    SP_LAYERS,        /* statistics of tensors */
    SP_PART_COUNT
} sp_part_of;

/* A chart, and its values as an HTML table for those who cannot see it. */
typedef struct sp_item {
    sp_part_of part;
    sp_figure figure;
    sp_text table;
} sp_item;

typedef struct sp_gallery {
    sp_text items; /* sp_item */
} sp_gallery;

/* Add a chart; takes figure and table over, whatever happens. */
SP_MUST sp_err sp_gallery_add(sp_gallery *g, sp_item *item);
size_t sp_gallery_count(const sp_gallery *g);
const sp_item *sp_gallery_at(const sp_gallery *g, size_t i);
void sp_gallery_free(sp_gallery *g);

/* Add what these runs give: curves.c, tradeoff.c, bars of parts.c, maps of
 * layers.c. */
SP_MUST sp_err sp_gallery_curves(sp_gallery *g, const sp_runs *runs);
SP_MUST sp_err sp_gallery_tradeoff(sp_gallery *g, const sp_runs *runs);
SP_MUST sp_err sp_gallery_times(sp_gallery *g, const sp_runs *runs);
SP_MUST sp_err sp_gallery_bytes(sp_gallery *g, const sp_runs *runs);
SP_MUST sp_err sp_gallery_layers(sp_gallery *g, const sp_runs *runs);

/* Steps of an epoch of a run where x counts epochs, else 1: x counts steps, as
 * one of the runs has not told its epochs. */
double sp_x_unit(const sp_runs *runs, const sp_run_record *r);
const char *sp_x_name(const sp_runs *runs);

/* HTML tables, in this order: open, a head for each column, body; then for each
 * row: row, its cells, end; close. Texts are escaped. */
void sp_html_open(sp_text *out, const char *caption);
void sp_html_head(sp_text *out, const char *text);
void sp_html_body(sp_text *out);
void sp_html_row(sp_text *out, const char *heading);
void sp_html_cell(sp_text *out, const char *text);
void sp_html_end_row(sp_text *out);
void sp_html_close(sp_text *out);

#endif
