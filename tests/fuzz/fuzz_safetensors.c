/* safetensors files: weights, an optimizer's state, a rank's own arrays. */
#include <stdlib.h>

#include "base/safetensors.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file("input.safetensors", bytes, size);
    const sp_st_tensor *t;
    sp_st_file *f;

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
