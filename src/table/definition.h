/* What a table file asks for. */
#ifndef SP_TABLE_DEFINITION_H
#define SP_TABLE_DEFINITION_H

#include "base/config_internal.h"
#include "table/metric.h"

enum { SP_TABLE_ROWS = 256, SP_TABLE_NAME = 120 /* bytes of a row's name */ };

/* Strings of a list, each with its place for messages. */
typedef struct sp_words {
    const char **word, **at;
    size_t count;
} sp_words;

/* A row: one setting, trained with several seeds. */
typedef struct sp_table_row {
    const char *name, *note; /* note "": none */
    const char *slug;        /* name as a folder's */
    const char *at;          /* "table.yaml:9:5" */
    sp_words configs, set;   /* the table's and its own, ready to be loaded */
    sp_list seeds;
    double paper; /* NAN: none */
    int baseline; /* the row that this one is compared with; -1: none */
    bool judged;  /* its verdict counts for the exit status */
} sp_table_row;

typedef struct sp_table {
    sp_pool pool; /* owns all below */
    const char *path;
    const char *title, *source; /* of the paper's values; "": not told */
    int ranks;                  /* 0: any number */
    const sp_metric *metric;
    bool best;                 /* of the best epoch, not of the last */
    double margin, confidence; /* margin 0: no verdicts */
    sp_table_row *rows;
    size_t row_count;
    bool compared;  /* some row has a baseline */
    bool published; /* some row has a paper's value */
} sp_table;

/* Read a table file. All mistakes are found in one pass, each told as
 * "file:line:column: what". On success sp_table_close() frees what is in *t.
 * Errors: SP_ECONFIG, SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_table_read(sp_table *t, const char *path);
void sp_table_close(sp_table *t);

/* The keys of a table, or of its rows, for the reference of all keys. */
extern const sp_section sp_table_section, sp_table_row_section;

#endif
