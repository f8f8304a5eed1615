/* result.json of a run, as a table reads it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "fuzz.h"
#include "table/cell.h"

static const char model[] = "model: {name: mlp}\ndata: {name: synthetic}\n";
static const char rows[] = "configs: [model.yaml]\nmetric: test_top1\n"
                           "rows: [{name: plain, seeds: [1]}]\n";

/* A table of one run, whose folder has its configuration. */
static void open_table(sp_table *t, sp_cell *c)
{
    char *text = NULL, *path;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    sp_config *config;

    fuzz_file("model.yaml", model, sizeof model - 1);
    fuzz_law(sp_table_read(t, fuzz_file("table.yaml", rows, sizeof rows - 1)) ==
                 SP_OK,
             "the table is sound");
    fuzz_law(sp_cell_name(c, fuzz_folder(), &t->rows[0], 1) == SP_OK &&
                 sp_dir_make(c->run) == SP_OK,
             "its run has a folder");
    fuzz_law(sp_cell_config(c, fuzz_registry(), &config) == SP_OK &&
                 sp_config_print(config, out) == SP_OK && fclose(out) == 0,
             "and a configuration");
    path = sp_path(c->path, "config.yaml");
    fuzz_file(path, text, size);
    sp_config_free(config);
    free(path);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static sp_table t;
    static sp_cell c;
    char *path;

    if (!t.path)
        open_table(&t, &c);
    path = sp_path(c.path, "result.json");
    fuzz_file(path, bytes, size);
    free(path);
    if (sp_cell_look(&c, &t, fuzz_registry()) != SP_OK)
        fuzz_law(strstr(sp_last_error(), c.path) != NULL,
                 "an error names the run");
    else if (c.state == SP_CELL_DONE)
        fuzz_law(isfinite(c.value), "a run that is done has a score");
    return 0;
}
