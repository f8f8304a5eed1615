/* A table as comma-separated values. */
#include <math.h>

#include "table/quote.h"
#include "table/write.h"

/* A field and the comma before it; nothing for NAN. */
static void put(sp_text *out, double x)
{
    sp_text_put(out, ",", 1);
    if (isfinite(x))
        sp_text_number(out, x);
    else if (!isnan(x))
        sp_text_add(out, x > 0 ? "inf" : "-inf");
}

static void put_interval(sp_text *out, const sp_estimate *e)
{
    put(out, e->mean);
    put(out, e->mean - e->half);
    put(out, e->mean + e->half);
}

static const char *verdict_word(const sp_row_summary *s)
{
    static const char *const words[] = {
        [SP_VERDICT_NONE] = "",         [SP_VERDICT_EQUAL] = "equal",
        [SP_VERDICT_GOOD] = "no_worse", [SP_VERDICT_WORSE] = "worse",
        [SP_VERDICT_OPEN] = "open",
    };

    return words[s->verdict];
}

static void put_row(sp_text *out, const sp_table *t, const sp_row_summary *s)
{
    sp_text_add(out, "row,");
    sp_quote_csv(out, s->row->name);
    sp_text_add(out, ",,,%d,%s", s->done, t->metric->name);
    put_interval(out, &s->value);
    put(out, s->value.sd);
    put(out, s->row->paper);
    put_interval(out, &s->difference);
    put(out, t->margin > 0 ? t->margin : NAN);
    sp_text_add(out, ",%s", verdict_word(s));
    put(out, s->packet_bytes);
    put(out, s->ratio);
    put(out, s->run_bytes);
    put(out, s->run_ratio);
    put(out, s->params);
    sp_text_add(out, ",,");
    put(out, s->seconds);
    sp_text_add(out, "\n");
}

static void put_cell(sp_text *out, const sp_table *t, const sp_cell *c)
{
    static const char *const states[] = {
        [SP_CELL_NEW] = "new",
        [SP_CELL_BEGUN] = "begun",
        [SP_CELL_DONE] = "done",
        [SP_CELL_FAILED] = "failed",
    };

    sp_text_add(out, "run,");
    sp_quote_csv(out, c->row->name);
    sp_text_add(out, ",%d,%s,,%s", c->seed, states[c->state], t->metric->name);
    put(out, c->value);
    sp_text_add(out, ",,,,,,,,,");
    put(out, c->packet_bytes);
    put(out, c->dense_bytes / c->packet_bytes);
    put(out, c->sent.packet);
    put(out, c->sent.dense / c->sent.packet);
    put(out, c->params);
    sp_text_add(out, ",");
    sp_quote_csv(out, c->path);
    sp_text_add(out, ",%s", c->hash);
    put(out, c->seconds);
    sp_text_add(out, "\n");
}

void sp_write_csv(sp_text *out, const sp_findings *f)
{
    sp_text_add(
        out,
        "kind,row,seed,state,n,metric,value,low,high,sd,paper,"
        "difference,difference_low,difference_high,margin,verdict,"
        "packet_bytes,ratio,run_bytes,run_ratio,params,run,hash,seconds\n");
    for (size_t i = 0; i < f->table->row_count; i++)
        put_row(out, f->table, &f->rows[i]);
    for (size_t i = 0; i < f->cells->count; i++)
        put_cell(out, f->table, &f->cells->cell[i]);
}
