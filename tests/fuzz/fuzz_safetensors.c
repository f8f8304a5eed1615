/* safetensors files: weights, an optimizer's state, a rank's own arrays; and
 * those of others, of more kinds of number. */
#include <stdlib.h>

#include "base/safetensors.h"
#include "convert/foreign.h"
#include "fuzz.h"

/* Where it is read as another program's, arrays are of floats then. */
static void read_foreign(const char *path, size_t size)
{
    sp_foreign f;

    if (sp_foreign_open(&f, path) != SP_OK)
        return;
    for (size_t i = 0; i < f.count; i++) {
        const sp_foreign_array *a = &f.arrays[i];
        float *out;
        size_t n = 1;

        for (int d = 0; d < a->ndim; d++)
            n *= (size_t)a->dims[d];
        fuzz_law(n <= size, "each element has a byte");
        out = malloc((n + 1) * sizeof *out);
        fuzz_law(sp_foreign_read(&f, a, out) == SP_OK, "and can be read");
        free(out);
    }
    sp_foreign_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file("input.safetensors", bytes, size);
    const sp_st_tensor *t;
    sp_st_file *f;

    read_foreign(path, size);
    if (sp_st_open(&f, path) != SP_OK)
        return 0;
    for (size_t i = 0; (t = sp_st_at(f, i)) != NULL; i++) {
        void *data = malloc((size_t)t->bytes + 1);

        fuzz_law(t->offset + t->bytes <= size, "arrays are within the file");
        fuzz_law(sp_st_read(f, t, data) == SP_OK, "and can be read");
        fuzz_law(sp_st_load(f, t, data) == SP_OK, "and are what they are");
        fuzz_law(sp_st_find(f, t->name) == t, "and are found by name");
        free(data);
    }
    sp_st_metadata(f, "format");
    sp_st_close(f);
    return 0;
}
