/* Archives in memory, as `sprat import` reads them: .npz files, and those of
 * torch.save(). */
#include <stdlib.h>

#include "convert/foreign.h"
#include "fuzz.h"

enum { MOST = 1 << 20 };

/* Elements of an array, or MOST if there are as many or more. */
static size_t elements(const sp_foreign_array *a)
{
    size_t n = 1;

    for (int d = 0; d < a->ndim; d++) {
        fuzz_law(a->dims[d] >= 0, "sizes are not negative");
        if (a->dims[d] == 0)
            return 0;
    }
    for (int d = 0; d < a->ndim; d++)
        n = (uint64_t)a->dims[d] < MOST / n ? n * (size_t)a->dims[d] : MOST;
    return n;
}

static void read_arrays(const sp_foreign *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const sp_foreign_array *a = &f->arrays[i];
        size_t n = elements(a);
        float *out = n < MOST ? malloc((n + 1) * sizeof *out) : NULL;

        fuzz_law(sp_foreign_find(f, a->name) == a, "arrays have names");
        if (out && sp_foreign_read(f, a, out) != SP_OK)
            fuzz_law(sp_last_error()[0] != '\0', "an error has a text");
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sp_foreign f;

    if (sp_foreign_parse(&f, "input", bytes, size) == SP_OK) {
        read_arrays(&f);
        sp_foreign_close(&f);
    }
    return 0;
}
