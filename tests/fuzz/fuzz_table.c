/* Table files. */
#include "fuzz.h"
#include "table/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file("input.yaml", bytes, size);
    sp_table t;

    if (sp_table_read(&t, path) != SP_OK) {
        fuzz_law(sp_last_error()[0] != '\0', "an error has a text");
        return 0;
    }
    for (size_t i = 0; i < t.row_count; i++)
        fuzz_law(t.rows[i].slug[0] != '\0' && t.rows[i].seeds.count > 0 &&
                     t.rows[i].baseline < (int)t.row_count,
                 "rows are complete");
    sp_table_close(&t);
    return 0;
}
